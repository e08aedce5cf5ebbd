"""What a change costs: a weighted norm over the model's columns."""

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps.features import Categorical, Feature, Features, OneHot
from cfmaps.prices import Price

FloatArray: TypeAlias = npt.NDArray[np.float64]
Norm: TypeAlias = str | float

_NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """``||diag(weights) (x - y)||_p`` over the model's columns.

    Parameters
    ----------
    norm : {"l1", "l2", "linf"} or number >= 1
    weights : array-like of shape (n_columns,), optional
        Positive and finite; all 1 when not given.
    prices : mapping of feature to Price, optional
        Gaps that are more than a difference: dearer upwards, with a fixed part, from a
        function or a matrix of categories. The weight of the column multiplies them.

    Attributes
    ----------
    p : float
        The exponent of the norm, ``inf`` for "linf".

    Examples
    --------
    >>> Distance("l2", weights=[3, 1]).between([0.0, 0.0], [1.0, 4.0])
    np.float64(5.0)
    """

    norm: Norm = "l1"
    weights: FloatArray | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    p: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _exponent(self.norm))
        if self.weights is not None:
            object.__setattr__(self, "weights", _positive(self.weights))
        if any(not isinstance(price, Price) for price in self.prices.values()):
            raise TypeError(f"prices must be a mapping of features to Price, got {self.prices!r}")

    @classmethod
    def resolve(
        cls, norm: "Norm | Distance", weights: Any, columns: Sequence[str] | int, *, data: Any = None
    ) -> "Distance":
        """A distance whose weights fit the model's columns.

        Parameters
        ----------
        norm : {"l1", "l2", "linf"}, number >= 1, or Distance
            A Distance brings its own weights.
        weights : None, array-like, mapping or {"range", "mad", "std"}
            A mapping gives the weights of some columns by name, others get 1. A text asks
            for 1 / spread of ``data`` per column (largest minus smallest value, median
            absolute deviation, standard deviation); a column without spread gets 1.
        columns : sequence of str, or int
            The model's columns, or how many there are.
        data : rows or frame, optional
            What the spread is taken from.

        Examples
        --------
        >>> Distance.resolve("l1", {"age": 0.5}, ["age", "income"]).weights
        array([0.5, 1. ])
        >>> Distance.resolve("linf", "range", 2, data=[[0, 5], [4, 5]]).weights
        array([0.25, 1.  ])
        """
        names = [f"x{i}" for i in range(columns)] if isinstance(columns, int) else list(columns)
        prices: Mapping[str, Price] = {}
        if isinstance(norm, Distance):
            prices = norm.prices
            if weights is not None:
                raise ValueError("weights must not be given twice: the Distance brings its own")
            weights, norm = norm.weights, norm.norm
        if isinstance(weights, str):
            weights = _inverse_spread(weights, data, len(names), None if isinstance(columns, int) else names)
        elif isinstance(weights, Mapping):
            weights = _by_name(weights, names)
        distance = cls(norm, weights, prices)
        if distance.weights is not None and len(distance.weights) != len(names):
            raise ValueError(f"weights must be {len(names)} numbers, one per column, got {len(distance.weights)}")
        return distance

    def between(self, x: npt.ArrayLike, y: npt.ArrayLike, *, features: Features | None = None) -> FloatArray:
        """The distance of rows, shapes (..., n_columns) to (...).

        With ``features``, a one-hot group that has a ``gap`` counts as one coordinate, a
        change of a native category or of missingness as the gap of its feature, and
        ``prices`` are those of the features; without, they cannot be told and count nothing.
        """
        before, after = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        moved = np.abs(before - after)
        has_missing = bool(np.isnan(moved).any())
        for entry, positions in () if features is None else zip(features, features.positions, strict=True):
            if isinstance(entry, Categorical) or has_missing:
                column = positions[0]
                moved[..., column] = _moved(entry, before[..., column], after[..., column], moved[..., column])
        gaps = moved if self.weights is None else moved * self.weights
        for entry, positions in () if features is None else zip(features, features.positions, strict=True):
            if isinstance(entry, OneHot) and entry.gap is not None:
                changed = moved[..., positions].any(axis=-1)
                gaps[..., positions] = 0.0
                gaps[..., positions[0]] = changed * entry.gap * self._column_weights(positions).max()
            if entry.name in self.prices:
                gaps[..., positions] = self._priced(entry, positions, before, after)
        return _norm(gaps, self.p)

    def category_costs(self, features: Features) -> tuple[FloatArray, ...]:
        """What changes between the categories of each group cost, to the power p (plain for "linf").

        One (n_categories, n_categories) matrix per OneHot of ``features``, in order.

        >>> features = Features([OneHot("job", columns=["clerk", "nurse"], optional=True)])
        >>> Distance("l1").category_costs(features)[0]
        array([[0., 2., 1.],
               [2., 0., 1.],
               [1., 1., 0.]])
        """
        return tuple(
            self._group_costs(entry, positions)
            for entry, positions in zip(features, features.positions, strict=True)
            if isinstance(entry, OneHot)
        )

    def coded_costs(self, entry: Any, position: int, n_cells: int) -> FloatArray:
        """What changes between the cells of one column cost, to the power p (plain for "linf").

        A matrix for a native category, whose last cell may stand for missing values; for
        numbers only the cost of setting or filling a missing value.
        """
        weight = 1.0 if self.weights is None else float(self.weights[position])
        unknown = float(_power(weight * entry.missing_gap, self.p))
        if not isinstance(entry, Categorical):
            costs = np.array([[unknown]])
            in_range = 0 < unknown < math.inf
        else:
            costs = np.full((n_cells, n_cells), _power(weight * entry.gap, self.p))
            costs[len(entry.categories) :] = unknown
            costs[:, len(entry.categories) :] = unknown
            np.fill_diagonal(costs, 0.0)
            in_range = bool(np.isfinite(costs).all() and (costs + np.eye(len(costs)) > 0).all())
        if not in_range:
            raise ValueError(f"weights and gap of feature {entry.name!r} to the power {self.p:g} leave float64's range")
        return costs

    def _column_weights(self, positions: npt.NDArray[np.intp]) -> FloatArray:
        return np.ones(len(positions)) if self.weights is None else self.weights[positions]

    def _group_costs(self, group: OneHot, positions: npt.NDArray[np.intp]) -> FloatArray:
        weights = (1.0,) * len(positions) if self.weights is None else tuple(self.weights[positions].tolist())
        # The category "none", if allowed, has no column to switch: it weighs nothing.
        costs, in_range = _changes(weights + (0.0,) * group.optional, group.gap, self.p)
        if not in_range:
            raise ValueError(f"weights and gap of feature {group.name!r} to the power {self.p:g} leave float64's range")
        if group.name in self.prices:
            return self.prices[group.name].group(group.name, group.columns, costs, self.p)
        return costs

    def _priced(self, entry: Feature, positions: npt.NDArray[np.intp], x: FloatArray, y: FloatArray) -> FloatArray:
        """The gaps of one feature with a price, on its first column."""
        gaps = np.zeros((*np.broadcast_shapes(x.shape, y.shape)[:-1], len(positions)))
        x, y = np.broadcast_arrays(x[..., positions], y[..., positions])
        for place in np.ndindex(gaps.shape[:-1]):
            old, new = x[place], y[place]
            if isinstance(entry, OneHot):
                places = [int(row.argmax()) if row.any() else len(row) for row in (old, new)]
                powered = self._group_costs(entry, positions)[places[0], places[1]]
                gaps[(*place, 0)] = powered if math.isinf(self.p) else powered ** (1 / self.p)
            else:
                weight = self._column_weights(positions)[0]
                gaps[(*place, 0)] = weight * self.prices[entry.name].gaps(float(old[0]), new)[0]
        return gaps


def _moved(entry: Feature, before: FloatArray, after: FloatArray, moved: FloatArray) -> Any:
    """How far one column moved, in the gaps of its feature."""
    if isinstance(entry, OneHot):
        return moved
    if isinstance(entry, Categorical):
        moved = np.where(before != after, entry.gap, 0.0)
    unknown = np.isnan(before), np.isnan(after)
    return np.where(unknown[0] | unknown[1], np.where(unknown[0] & unknown[1], 0.0, entry.missing_gap), moved)


@lru_cache(maxsize=1024)
def _changes(weights: tuple[float, ...], gap: float | None, p: float) -> tuple[FloatArray, bool]:
    """What each change of category costs, to the power p, and whether all are positive and finite.

    Remembered, since every new map asks again for the same few groups.
    """
    if gap is not None:
        costs = np.full((len(weights), len(weights)), _power(gap * max(weights), p))
    elif math.isinf(p):
        costs = np.maximum.outer(weights, weights)
    else:
        powers = _power(weights, p)
        costs = np.add.outer(powers, powers)
    np.fill_diagonal(costs, 0.0)
    costs.setflags(write=False)
    return costs, bool(np.isfinite(costs).all() and (costs + np.eye(len(costs)) > 0).all())


def _exponent(norm: Any) -> float:
    if isinstance(norm, str) and norm in _NORMS:
        return _NORMS[norm]
    # A NaN is not >= 1 either.
    if isinstance(norm, str) or not isinstance(norm, numbers.Real) or not float(norm) >= 1:
        raise ValueError(f"norm must be 'l1', 'l2', 'linf' or a number >= 1, got {norm!r}")
    return float(norm)


def _positive(weights: Any) -> FloatArray:
    array = _check.row(weights, "weights", np.shape(weights)[0] if np.ndim(weights) else 0)
    if (array <= 0).any():
        raise ValueError(f"weights must be positive, got {array[array <= 0][0]} for column {(array <= 0).argmax()}")
    return array


def _by_name(weights: Mapping[str, float], names: list[str]) -> FloatArray:
    array = np.ones(len(names))
    for name, weight in weights.items():
        if name not in names:
            raise ValueError(f"weights name the column {name!r}, expected some of {names}")
        array[names.index(name)] = _check.number(weight, f"weights[{name!r}]")
    return array


def _inverse_spread(kind: str, data: Any, n_columns: int, names: list[str] | None) -> FloatArray:
    spreads: dict[str, Callable[..., FloatArray]] = {"range": np.ptp, "mad": _median_absolute_deviation, "std": np.std}
    if kind not in spreads:
        raise ValueError(f"weights must be None, numbers, a mapping or one of {list(spreads)}, got {kind!r}")
    if data is None:
        raise ValueError(f"weights={kind!r} needs data to measure the spread of, got None")
    rows = _check.matrix(data, "data", n_columns, columns=names)
    if not len(rows):
        raise ValueError("data must hold at least one row, got none")
    spread = spreads[kind](rows, axis=0)
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / np.where(spread > 0, spread, 1.0))


def _median_absolute_deviation(rows: FloatArray, axis: int) -> FloatArray:
    return np.asarray(np.median(np.abs(rows - np.median(rows, axis=axis)), axis=axis))


def _power(weights: Any, p: float) -> Any:
    if math.isinf(p):
        return weights
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(weights) ** p


def _norm(gaps: FloatArray, p: float) -> FloatArray:
    """The p-norm along the last axis, scaled so that no power leaves float64's range."""
    if p == 1:
        return np.asarray(gaps.sum(axis=-1))[()]
    largest = gaps.max(axis=-1, initial=0.0)
    if math.isinf(p):
        return np.asarray(largest)[()]
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    powers = (gaps / scale[..., np.newaxis]) ** p
    return np.asarray(scale * powers.sum(axis=-1) ** (1.0 / p))[()]
