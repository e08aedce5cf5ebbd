"""Targets on what a model puts out: an interval of its score, its number or a probability.

The output of a tree ensemble is a monotone function of one sum over all trees, so an
interval of outputs is an interval of sums, and its ends are found exactly, by halving
over floats with the library's own function. What is left is a model with the classes
"below", "inside" and "above", which a map decides like any other.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble

INSIDE = 1
Link = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """The model's output must lie between two numbers, ends included.

    Parameters
    ----------
    low, high : float or None
        None leaves a side open.
    label : optional
        Of a classifier: the class whose probability is meant; with two classes the second
        by default.

    Examples
    --------
    >>> Interval(high=250_000)
    Interval(low=None, high=250000, label=None)
    """

    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    label: Any = None

    def __post_init__(self) -> None:
        low, high = self.ends
        if math.isnan(low) or math.isnan(high) or low > high:
            raise ValueError(f"Interval: low must not exceed high, got {self.low} and {self.high}")
        if math.isinf(low) and math.isinf(high):
            raise ValueError("Interval: low or high must be given")

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, infinite where a side is open."""
        low = -math.inf if self.low is None else float(self.low)
        high = math.inf if self.high is None else float(self.high)
        return low, high

    def holds(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether each output lies inside."""
        low, high = self.ends
        exact = np.asarray(outputs).astype(np.float64)
        return np.asarray((low <= exact) & (exact <= high))


def Probability(label: Any, *, at_least: float | None = None, at_most: float | None = None) -> Interval:
    """The probability of a class lies at or above, or at or below, a number.

    >>> Probability("yes", at_least=0.8)
    Interval(low=0.8, high=None, label='yes')
    """
    return Interval(at_least, at_most, label=label)


def _expit(x: float) -> float:
    from scipy.special import expit

    return float(expit(x))


def _expit_twice(x: float) -> float:
    return _expit(2 * x)


def _adaboost(x: float) -> float:
    """The softmax of -x/2 and x/2 as scikit-learn takes it."""
    halves = np.array([-x / 2, x / 2])
    shares = np.exp(halves - halves.max())
    return float((shares / shares.sum())[1])


def _logistic32(x: float) -> float:
    """XGBoost's: in float32, and never of an exponential that overflows."""
    return float(np.float32(1) / (np.exp(np.float32(min(-x, 88.7))) + np.float32(1) + np.float32(1e-16)))


def _logistic64(x: float) -> float:
    return 1.0 / (1.0 + math.exp(min(-x, 709.0)))


def _exp(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(x))


LINKS: dict[str, Link] = {
    "identity": float,
    "expit": _expit,
    "expit_twice": _expit_twice,
    "adaboost": _adaboost,
    "logistic32": _logistic32,
    "logistic64": _logistic64,
    "exp": _exp,
}


def banded(ensemble: Ensemble, target: Interval) -> Ensemble:
    """The same trees with the classes "below", "inside" (`INSIDE`) and "above" of one output.

    Raises
    ------
    ValueError
        When the output is no monotone function of one score, or the label is not one.
    """
    score, output, increases = _output_of(ensemble, target.label)
    low, high = target.ends
    if increases:
        cuts = [_first(ensemble, lambda x: output(x) >= low), _first(ensemble, lambda x: output(x) > high)]
    else:
        cuts = [_first(ensemble, lambda x: output(x) <= high), _first(ensemble, lambda x: output(x) < low)]
    bias = np.broadcast_to(np.asarray(ensemble.bias, dtype=np.float64), (ensemble.n_scores,))
    return replace(
        ensemble,
        rule="bands",
        cuts=np.array(cuts),
        classes=np.array(["below", "inside", "above"] if increases else ["above", "inside", "below"]),
        value=ensemble.value[:, [score]],
        init=ensemble.init[[score]],
        bias=float(bias[score]),
    )


def outputs(ensemble: Ensemble, target: Interval, X: Any) -> npt.NDArray[np.float64]:
    """What the ensemble puts out for rows: where no live model does."""
    score, output, _ = _output_of(ensemble, target.label)
    return np.array([output(raw) for raw in ensemble.scores(X)[:, score].tolist()])


def code_of(ensemble: Ensemble, label: Any) -> int | None:
    """The class whose probability is meant; None when the output is a number."""
    if ensemble.rule == "value":
        if label is not None:
            raise ValueError(f"label must be None, as the model predicts a number, got {label!r}")
        return None
    labels = ensemble.classes.tolist()
    if label is None and len(labels) == 2:
        return 1
    if label not in labels:
        raise ValueError(f"label must be one of the model's labels {labels}, got {label!r}")
    return int(labels.index(label))


def _output_of(ensemble: Ensemble, label: Any) -> tuple[int, Link, bool]:
    """The score behind an output, the function between them, and whether it grows."""
    code = code_of(ensemble, label)
    if code is None:
        return 0, _link(ensemble, ensemble.link or "identity"), True
    if ensemble.rule == "argmax" and ensemble.link == "identity":
        return code, float, True
    if ensemble.rule == "bands" and ensemble.n_classes == 2 and ensemble.link:
        link = _link(ensemble, ensemble.link)
        return (0, link, True) if code == 1 else (0, lambda x: 1 - link(x), False)
    raise ValueError(
        "an Interval needs an output that is a monotone function of one score: this model's probability of a class "
        "depends on the scores of all classes, or is not known; ask for a label instead"
    )


def _link(ensemble: Ensemble, name: str) -> Link:
    if name not in LINKS:
        raise ValueError(f"link must be one of {sorted(LINKS)}, got {name!r}")
    return LINKS[name]


def _first(ensemble: Ensemble, holds: Callable[[float], bool]) -> float:
    """The least number of the model's sums for which ``holds``, which is false below and true from there; or inf."""
    number = ensemble.sum_number
    largest = float(np.finfo(number).max)
    if not holds(largest):
        return math.inf
    if holds(-largest):
        return -largest
    below, above = _rank(-largest), _rank(largest)
    while above - below > 1:
        middle = (below + above) // 2
        # float32 numbers lie among those of float64: rounding down finds the last one at or below.
        if holds(_down(_number(middle), number)):
            above = middle
        else:
            below = middle
    return _down(_number(above), number)


def _down(x: float, number: type[np.floating[Any]]) -> float:
    nearest = number(x)
    return float(np.nextafter(nearest, number(-np.inf))) if nearest > x else float(nearest)


def _rank(x: float) -> int:
    """Integers in the order of the floats; both zeros are 0."""
    bits = int(np.float64(x).view(np.int64))
    return -(2**63) - bits if bits < 0 else bits


def _number(rank: int) -> float:
    return float(np.int64(-(2**63) - rank if rank < 0 else rank).view(np.float64))
