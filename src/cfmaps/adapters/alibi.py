"""The call shape of alibi: ``from cfmaps.adapters.alibi import CounterFactual``.

What changes with the import: the answer is the global optimum in the norm, not a descent; the model is a tree model,
and its ``predict`` method, ``predict_proba`` method or itself is passed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cfmaps


@dataclass(frozen=True, slots=True)
class Explanation:
    """What ``explain`` gives: ``cf`` with X, class, distance and index, as alibi's explanations have it."""

    cf: dict[str, Any] | None
    all: dict[int, list[dict[str, Any]]]
    orig_class: Any
    explanation: cfmaps.Explanation

    @property
    def data(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return {"cf": self.cf, "all": self.all, "orig_class": self.orig_class}


class CounterFactual:
    """As ``alibi.explainers.CounterFactual``, exact.

    Parameters
    ----------
    predictor : fitted tree model, or its ``predict`` or ``predict_proba`` method
    shape : tuple, optional
        Of what `explain` gets: one row.
    target_class : "other", "same" is refused, or int
        An index into the model's classes, as in alibi.
    distance_fn : {"l1", "l2", "linf"} or number
    features : Features, optional
    **question
        What else `CounterfactualMap.explain` takes: weights, time_limit, constraints.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> explainer = CounterFactual(model.predict_proba, shape=(1, 1), target_class=1)
    >>> found = explainer.explain(np.array([[0.25]]))
    >>> found.orig_class, found.cf["class"], round(float(found.cf["distance"]), 6)
    (0, 1, 0.25)
    """

    def __init__(
        self,
        predictor: Any,
        shape: tuple[int, ...] | None = None,
        *,
        target_class: Any = "other",
        distance_fn: Any = "l1",
        features: cfmaps.Features | None = None,
        **question: Any,
    ) -> None:
        model = getattr(predictor, "__self__", predictor)
        self.cfmap = cfmaps.CounterfactualMap(model, features=features)
        self.shape = shape
        self._target = self._label(target_class)
        self._question = question | {"distance": distance_fn}

    def explain(self, X: npt.ArrayLike) -> Explanation:
        """The smallest change of one row, shape (1, n_columns)."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or len(rows) != 1 or (self.shape is not None and rows.shape != self.shape):
            raise ValueError(f"X must have shape {self.shape or '(1, n_columns)'}, got {rows.shape}")
        answer = self.cfmap.explain(rows[0], target=self._target, **self._question)
        codes = {label: code for code, label in enumerate(self.cfmap.classes.tolist())}
        found = None
        if answer.counterfactual is not None:
            point = np.asarray(answer.counterfactual)[np.newaxis]
            found = {"X": point, "class": codes[_plain(answer.target)], "distance": answer.distance, "index": 0}
        return Explanation(found, {0: [found] if found else []}, codes[_plain(answer.source)], answer)

    def _label(self, target_class: Any) -> Any:
        if isinstance(target_class, str) and target_class == "other":
            return None
        classes = self.cfmap.classes
        if (
            isinstance(target_class, bool)
            or not isinstance(target_class, int | np.integer)
            or not 0 <= target_class < len(classes)
        ):
            raise ValueError(f"target_class must be 'other' or an index below {len(classes)}, got {target_class!r}")
        return classes[target_class]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
