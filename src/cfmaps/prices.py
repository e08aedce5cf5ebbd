"""What changing one feature costs, where that is more than a weight."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps.constraints import category

FloatArray: TypeAlias = npt.NDArray[np.float64]
Cost: TypeAlias = Callable[[float, FloatArray], Any]


@dataclass(frozen=True, slots=True)
class Price:
    """How the gap of one feature is measured before the norm joins the features.

    Parameters
    ----------
    up, down : float
        What a gap of 1 upwards and downwards counts.
    fixed : float
        Added to the gap of any change.
    cost : callable or sequence of (gap, cost), optional
        The whole price of a change instead: ``cost(value, new_values)`` for an array of new
        values, or the corners of a line from (0, 0), continued at its last slope. It must
        not fall as the change grows.
    between : mapping of (before, after) to cost, optional
        For a one-hot group: the price of changes of category, each as one gap. Others keep
        their usual price.

    Examples
    --------
    >>> Price(up=2).gaps(10.0, np.array([9.0, 10.0, 13.0]))
    array([1., 0., 6.])
    >>> Price(cost=[(1, 1), (3, 10)]).gaps(0.0, np.array([1.0, 2.0, 5.0]))
    array([ 1. ,  5.5, 19. ])
    """

    _: KW_ONLY
    up: float = 1.0
    down: float = 1.0
    fixed: float = 0.0
    cost: Cost | Sequence[tuple[float, float]] | None = None
    between: Mapping[tuple[Any, Any], float] | None = None

    def __post_init__(self) -> None:
        for name in ("up", "down"):
            if _check.number(getattr(self, name), name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if _check.number(self.fixed, "fixed") < 0:
            raise ValueError(f"fixed must not be negative, got {self.fixed}")
        if self.cost is not None and not callable(self.cost):
            _check_corners(self.cost)
        for change, price in (self.between or {}).items():
            if _check.number(price, f"between[{change!r}]") <= 0:
                raise ValueError(f"between[{change!r}] must be positive, got {price}")

    def gaps(self, value: float, new: FloatArray) -> FloatArray:
        """The gap of every new value, unweighted."""
        if self.cost is None:
            gaps = np.where(new > value, self.up * (new - value), self.down * (value - new))
            return np.where(new == value, 0.0, gaps + self.fixed)
        if callable(self.cost):
            gaps = np.asarray(self.cost(value, new.copy()), dtype=np.float64)
        else:
            gaps = _along(self.cost, np.abs(new - value))
        return _checked(np.where(new == value, 0.0, gaps + self.fixed), value, new)

    def group(self, name: str, columns: Sequence[str], usual: FloatArray, power: float) -> FloatArray:
        """What changes of category cost, raised to a power (plain for infinity), given the usual costs."""
        root = 1.0 if np.isinf(power) else power
        gaps = usual ** (1 / root)
        labels = [*columns, "none"][: len(usual)]
        for (before, after), price in (self.between or {}).items():
            for i, j in _places(name, labels, before, after):
                gaps[i, j] = price
        gaps[~np.eye(len(gaps), dtype=bool)] += self.fixed
        return np.asarray(gaps**root)

    @property
    def has_table(self) -> bool:
        """Whether gaps follow no simple rule, so that each value must be priced by itself."""
        return self.cost is not None


def _places(name: str, labels: list[str], before: Any, after: Any) -> list[tuple[int, int]]:
    found = [category(name, wanted, labels) for wanted in (before, after)]
    for wanted, label in zip((before, after), found, strict=True):
        if label is None:
            raise ValueError(f"price of {name!r}: expected a category among {labels}, got {wanted!r}")
    i, j = (labels.index(str(label)) for label in found)
    return [(i, j)] if i != j else []


def _along(corners: Sequence[tuple[float, float]], gaps: FloatArray) -> FloatArray:
    at, cost = np.array([(0.0, 0.0), *corners]).T
    slope = (cost[-1] - cost[-2]) / (at[-1] - at[-2])
    return np.asarray(np.where(gaps > at[-1], cost[-1] + slope * (gaps - at[-1]), np.interp(gaps, at, cost)))


def _check_corners(corners: Sequence[tuple[float, float]]) -> None:
    numbers = np.array([(0.0, 0.0), *corners], dtype=np.float64)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or len(numbers) < 2 or not np.isfinite(numbers).all():
        raise ValueError(f"cost must be a callable or pairs (gap, cost), got {corners!r}")
    if (np.diff(numbers[:, 0]) <= 0).any() or (np.diff(numbers[:, 1]) < 0).any():
        raise ValueError(f"cost must have rising gaps from above 0 and costs that never fall, got {corners!r}")


def _checked(gaps: FloatArray, value: float, new: FloatArray) -> FloatArray:
    """Gaps that are numbers and grow with the change on both sides."""
    if gaps.shape != new.shape or not np.isfinite(gaps).all() or (gaps < 0).any():
        raise ValueError(f"cost must give a finite price of at least 0 per value, got {gaps} for {new}")
    for side in (new >= value, new <= value):
        away = np.abs(new[side] - value).argsort(kind="stable")
        falling = np.flatnonzero(np.diff(gaps[side][away]) < 0)
        if len(falling):
            first, second = new[side][away][falling[0] : falling[0] + 2]
            raise ValueError(f"cost must not fall as the change grows, got less for {second} than {first} from {value}")
    return gaps
