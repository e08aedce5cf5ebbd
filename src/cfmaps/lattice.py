"""An ensemble in rank space: per feature, the cells the model can tell apart.

Everything is exact on the model's own number grid: cells are closed, disjoint and
cover every admissible value, so that optima are attained and no epsilon exists.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps._kinds import keyed
from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.features import Binary, Feature, Features, Integer, Numeric, OneHot, Ordinal

FloatArray = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

LEAF, ALWAYS_LEFT, ALWAYS_RIGHT = -1, -2, -3


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The cells of every axis and the tests of every node, as flat arrays.

    An *axis* is a feature: ordered, or categorical (a one-hot group; one cell per
    category, then one for "none" if allowed). A *test* is an axis and the set of its
    cells that go left: on an ordered axis the cells up to a rank, on a categorical
    one any set. Native category sets are further rows of ``test_sets``, and missing
    values a further cell of an axis, so neither will change this layout.

    Attributes
    ----------
    ensemble, features
        What the lattice was made from.
    n_cells : int32 array of shape (n_axes,)
    categorical : bool array of shape (n_axes,)
    cell_start : int64 array of shape (n_axes + 1,)
        Where the cells of an axis begin in the arrays below.
    low, high : float64 arrays of shape (total_cells,)
        Closed ends of a cell: admissible numbers of the grid (an ordinal keeps its
        values as they were given), infinite where nothing limits the outermost
        cells. 0 for categorical cells.
    real_low, real_high : float64 arrays of shape (total_cells,)
        The closure of the cell on the real line, from the thresholds themselves.
    test_axis, test_rank : int32 arrays of shape (n_tests,)
        Sorted and unique. The rank is the last cell that goes left or, on a
        categorical axis, a row of ``test_sets``.
    test_sets : bool array of shape (n_categorical_tests, max_categories)
        The cells that go left.
    node_test : int32 array of shape (n_nodes,)
        The test of a node; -1 leaf, -2 always left, -3 always right.
    axis_columns : tuple of int arrays
        The model columns of each axis.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cfmaps.readers import read
    >>> ensemble = read(DecisionTreeClassifier().fit([[0], [1]], [0, 1]))
    >>> lattice = Lattice.of(ensemble, Features.numeric(1))
    >>> lattice.low, lattice.high
    (array([      -inf, 0.50000006]), array([0.5, inf]))
    >>> lattice.nearest(np.array([0.25]), np.array([1]))
    array([0.50000006])
    """

    ensemble: Ensemble
    features: Features
    n_cells: Int32Array
    categorical: BoolArray
    cell_start: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray
    real_low: FloatArray
    real_high: FloatArray
    test_axis: Int32Array
    test_rank: Int32Array
    test_sets: BoolArray
    node_test: Int32Array
    axis_columns: tuple[npt.NDArray[np.intp], ...]
    _search: "_Search"

    @classmethod
    def of(cls, ensemble: Ensemble, features: Features) -> "Lattice":
        """The lattice of ``ensemble`` over ``features``.

        Raises
        ------
        ValueError
            When the columns of the two differ, or a feature's limits admit no number.
        """
        _expect_same_columns(ensemble, features)
        axes = _Axes.of(features, ensemble.number)
        cuts = _Cuts.of(ensemble, axes)
        n_cells = axes.n_cells + np.bincount(cuts.axis, minlength=len(features)) * ~axes.categorical
        cell_start = np.concatenate([[0], np.cumsum(n_cells)])
        ordered = ~axes.categorical[cuts.axis]
        rank = np.arange(len(cuts.axis)) - np.searchsorted(cuts.axis, cuts.axis)
        below = (cell_start[cuts.axis] + rank)[ordered]
        sides, real_sides = [cuts.left, cuts.right], [cuts.real_left, cuts.real_right]
        low, high = _ends(cell_start, below, [axes.low, axes.high], [side[ordered] for side in sides])
        real_low, real_high = _ends(
            cell_start, below, [axes.real_low, axes.real_high], [side[ordered] for side in real_sides]
        )
        test_sets = _sets(axes, n_cells, cuts.left[~ordered].astype(np.intp), cuts.axis[~ordered])
        rank[~ordered] = np.arange(len(test_sets))
        return cls(
            ensemble=ensemble,
            features=features,
            n_cells=n_cells.astype(np.int32),
            categorical=axes.categorical,
            cell_start=cell_start,
            low=low,
            high=high,
            real_low=real_low,
            real_high=real_high,
            test_axis=cuts.axis.astype(np.int32),
            test_rank=rank.astype(np.int32),
            test_sets=test_sets,
            node_test=cuts.node_test,
            axis_columns=features.positions,
            _search=_Search.of(features, axes, cuts.axis[ordered], cuts.left[ordered]),
        )

    @property
    def n_axes(self) -> int:
        return len(self.n_cells)

    @property
    def n_tests(self) -> int:
        return len(self.test_axis)

    @property
    def n_points(self) -> int:
        """In how many ways one cell can be chosen per axis."""
        return math.prod(self.n_cells.tolist())

    def round(self, X: FloatArray) -> FloatArray:
        """``X``, one row or many, on the grid: the float64 values of what the model compares.

        An ordinal becomes the listed value that the model cannot tell it from.
        """
        rounded = self.ensemble.round(X).astype(np.float64)
        for column, values in self._search.off_grid:
            on_grid = values.astype(self.ensemble.number).astype(np.float64)
            place = np.minimum(np.searchsorted(on_grid, rounded[..., column]), len(values) - 1)
            listed = np.isin(X[..., column], values)
            rounded[..., column] = np.where(listed, X[..., column], values[place])
        return rounded

    def cells(self, X: FloatArray) -> Int32Array:
        """The cell of each axis for rows on the grid, shape (n_rows, n_axes).

        A value outside its feature's limits counts to the nearest cell.
        """
        search = self._search
        cells = np.empty((len(X), self.n_axes), dtype=np.int32)
        keys = keyed(search.ordered_axes, X[:, search.ordered_columns])
        cells[:, search.ordered_axes] = np.searchsorted(search.cuts, keys) - search.first_cut
        for axis in np.flatnonzero(self.categorical):
            on = X[:, self.axis_columns[axis]] == 1
            cells[:, axis] = np.where(on.any(axis=1), on.argmax(axis=1), self.n_cells[axis] - 1)
        return cells

    def nearest(self, x: FloatArray, cells: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """The admissible row inside ``cells`` nearest to ``x`` in every column.

        Keeps a value its cell allows and moves others to the cell's near end. Both
        arguments may be one row or many, shapes (..., n_columns) and (..., n_axes).
        """
        search = self._search
        point = np.empty(np.broadcast_shapes(x.shape[:-1], cells.shape[:-1]) + x.shape[-1:])
        position = self.cell_start[search.ordered_axes] + cells[..., search.ordered_axes]
        wanted = search.admissible(x[..., search.ordered_columns])
        point[..., search.ordered_columns] = np.clip(wanted, self.low[position], self.high[position])
        for axis in np.flatnonzero(self.categorical):
            columns = self.axis_columns[axis]
            point[..., columns] = cells[..., axis, np.newaxis] == np.arange(len(columns))
        return point

    def nearest_real(self, x: FloatArray, cells: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """The same in the closure of the cells on the real line: no row of the grid need attain it."""
        point = self.nearest(x, cells)
        for axis in np.flatnonzero(~self.categorical):
            column = self.axis_columns[axis][0]
            position = self.cell_start[axis] + cells[..., axis]
            point[..., column] = np.clip(x[..., column], self.real_low[position], self.real_high[position])
        return point


@dataclass(frozen=True, slots=True, eq=False)
class _Axes:
    """What the features say about each axis, before any cut.

    ``low`` and ``high`` are the outermost admissible numbers, infinite when free;
    a categorical axis has its cells, an ordered one a single cell so far.
    """

    number: type[np.floating[Any]]
    categorical: BoolArray
    integral: BoolArray
    numeric: BoolArray
    ordinals: tuple[tuple[int, FloatArray], ...]
    n_cells: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray
    real_low: FloatArray
    real_high: FloatArray
    axis_of_column: npt.NDArray[np.intp]
    category_of_column: npt.NDArray[np.intp]

    @classmethod
    def of(cls, features: Features, number: type[np.floating[Any]]) -> "_Axes":
        kinds = np.array([_KINDS.index(type(entry)) for entry in features])
        wanted_low, wanted_high = np.array([_limits(entry) for entry in features]).T
        ordinal = kinds == _KINDS.index(Ordinal)
        # An ordinal keeps its listed values; other limits round inward to the grid.
        low = np.where(ordinal, wanted_low, -closed_sides(-wanted_low, number)[0])
        high = np.where(ordinal, wanted_high, closed_sides(wanted_high, number)[0])
        _expect_a_number(features, low, high, float(np.finfo(number).max))
        numeric = kinds == _KINDS.index(Numeric)
        axis_of_column, category_of_column = np.empty((2, features.n_columns), dtype=np.intp)
        for axis, positions in enumerate(features.positions):
            axis_of_column[positions] = axis
            category_of_column[positions] = np.arange(len(positions))
        return cls(
            number=number,
            categorical=kinds == _KINDS.index(OneHot),
            integral=(kinds == _KINDS.index(Integer)) | (kinds == _KINDS.index(Binary)),
            numeric=numeric,
            ordinals=tuple(
                (axis, np.array(entry.values)) for axis, entry in enumerate(features) if isinstance(entry, Ordinal)
            ),
            n_cells=np.array([entry.n_categories if isinstance(entry, OneHot) else 1 for entry in features]),
            low=low + 0.0,
            high=high,
            real_low=np.where(numeric, wanted_low, low),
            real_high=np.where(numeric, wanted_high, high),
            axis_of_column=axis_of_column,
            category_of_column=category_of_column,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """The distinct cuts of all axes sorted by (axis, left), and the cut of every node.

    ``left`` and ``right`` are the admissible numbers on both sides. On a categorical
    axis ``left`` is the category that goes right, alone.
    """

    axis: npt.NDArray[np.intp]
    left: FloatArray
    right: FloatArray
    real_left: FloatArray
    real_right: FloatArray
    node_test: Int32Array

    @classmethod
    def of(cls, ensemble: Ensemble, axes: _Axes) -> "_Cuts":
        nodes = np.flatnonzero(ensemble.feature >= 0)
        threshold = ensemble.threshold[nodes]
        axis = axes.axis_of_column[ensemble.feature[nodes]]
        left, right = _admissible_sides(axes, axis, axes.category_of_column[ensemble.feature[nodes]], threshold)
        largest = float(np.finfo(axes.number).max)
        always_left = left >= np.where(axes.categorical, np.inf, np.minimum(axes.high, largest))[axis]
        always_right = left < np.maximum(axes.low, -largest)[axis]
        node_test = np.full(ensemble.n_nodes, LEAF, dtype=np.int32)
        node_test[nodes[always_left]] = ALWAYS_LEFT
        node_test[nodes[always_right]] = ALWAYS_RIGHT
        both = np.flatnonzero(~(always_left | always_right))
        order = both[np.lexsort((left[both], axis[both]))]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (np.diff(axis[order]) != 0) | (np.diff(left[order]) != 0)
        first = np.flatnonzero(is_new)
        node_test[nodes[order]] = np.cumsum(is_new) - 1
        unique = order[first]
        numeric = axes.numeric[axis[unique]]
        thresholds = threshold[order]
        return cls(
            axis=axis[unique],
            left=left[unique],
            right=right[unique],
            real_left=np.where(numeric, np.minimum.reduceat(thresholds, first), left[unique]),
            real_right=np.where(numeric, np.maximum.reduceat(thresholds, first), right[unique]),
            node_test=node_test,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What finding a cell and moving into one need, in the shape they need it."""

    ordered_axes: npt.NDArray[np.intp]
    ordered_columns: npt.NDArray[np.intp]
    integral: BoolArray
    cuts: npt.NDArray[np.complex128]
    first_cut: npt.NDArray[np.intp]
    ordinal: npt.NDArray[np.intp]
    values: npt.NDArray[np.complex128]
    value_start: npt.NDArray[np.intp]
    off_grid: tuple[tuple[int, FloatArray], ...]

    @classmethod
    def of(cls, features: Features, axes: _Axes, axis: npt.NDArray[np.intp], left: FloatArray) -> "_Search":
        ordered_axes = np.flatnonzero(~axes.categorical)
        scales = [values for _, values in axes.ordinals]
        return cls(
            ordered_axes=ordered_axes,
            ordered_columns=np.array([features.positions[k][0] for k in ordered_axes], dtype=np.intp),
            integral=axes.integral[ordered_axes],
            cuts=keyed(axis, left),
            first_cut=np.searchsorted(axis, ordered_axes),
            ordinal=np.searchsorted(ordered_axes, [axis for axis, _ in axes.ordinals]),
            values=np.concatenate([np.empty(0, complex), *(keyed(k, values) for k, values in enumerate(scales))]),
            value_start=np.cumsum([0, *map(len, scales)]),
            off_grid=tuple(
                (int(features.positions[axis][0]), values)
                for axis, values in axes.ordinals
                if (values.astype(axes.number) != values).any()
            ),
        )

    def admissible(self, x: FloatArray) -> FloatArray:
        """Whole numbers where these are wanted, and the nearer listed value for ordinals."""
        x = np.where(self.integral, np.rint(x), x)
        if len(self.ordinal):
            wanted = x[..., self.ordinal]
            place = np.searchsorted(self.values, keyed(np.arange(len(self.ordinal)), wanted))
            above = self.values.imag[np.minimum(place, self.value_start[1:] - 1)]
            below = self.values.imag[np.maximum(place - 1, self.value_start[:-1])]
            x[..., self.ordinal] = np.where(wanted - below <= above - wanted, below, above)
        return x


_KINDS: list[type] = [Numeric, Integer, Ordinal, Binary, OneHot]


def _limits(entry: Feature) -> tuple[float, float]:
    """The outermost values a feature may hold, infinite when free."""
    if isinstance(entry, Ordinal):
        return entry.values[0], entry.values[-1]
    if isinstance(entry, OneHot):
        return 0.0, 0.0
    if isinstance(entry, Binary):
        return 0.0, 1.0
    low = -np.inf if entry.low is None else float(entry.low)
    high = np.inf if entry.high is None else float(entry.high)
    return (float(np.ceil(low)), float(np.floor(high))) if isinstance(entry, Integer) else (low, high)


def _admissible_sides(
    axes: _Axes, axis: npt.NDArray[np.intp], category: npt.NDArray[np.intp], threshold: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Per node, the last admissible number sent left and the first sent right."""
    left, right = closed_sides(threshold, axes.number)
    integral, categorical = axes.integral[axis], axes.categorical[axis]
    # From 2**24 on every float32 is whole, and below it every whole number is a float32.
    left[integral] = np.floor(left[integral])
    right[integral] = np.ceil(right[integral]) + 0.0
    for ordinal, values in axes.ordinals:
        here = np.flatnonzero(axis == ordinal)
        place = np.searchsorted(values.astype(axes.number), threshold[here], side="right")
        fenced = np.concatenate([[-np.inf], values, [np.inf]])
        left[here], right[here] = fenced[place], fenced[place + 1]
    if categorical.any():
        by_threshold = np.where(threshold < 0, -np.inf, np.where(threshold >= 1, np.inf, category))
        left = np.where(categorical, by_threshold, left)
    return left, right


def _ends(
    cell_start: npt.NDArray[np.int64], below: npt.NDArray[np.int64], outer: list[FloatArray], sides: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Both ends of every cell; ``below[i]`` is the cell that cut i closes from above."""
    low, high = np.zeros((2, cell_start[-1]))
    low[cell_start[:-1]], high[cell_start[1:] - 1] = outer
    high[below], low[below + 1] = sides
    return low, high


def _sets(
    axes: _Axes, n_cells: npt.NDArray[np.int64], right: npt.NDArray[np.intp], axis: npt.NDArray[np.intp]
) -> BoolArray:
    """Per categorical test the cells that go left: all of its axis but one."""
    widest = int(n_cells[axes.categorical].max(initial=0))
    sets = np.arange(widest) < n_cells[axis][:, np.newaxis]
    sets[np.arange(len(sets)), right] = False
    return sets


def _expect_same_columns(ensemble: Ensemble, features: Features) -> None:
    if ensemble.feature_names is not None:
        _check.same_names(features.columns, ensemble.feature_names, "features")
    if features.n_columns != ensemble.n_features:
        raise ValueError(f"features must cover the model's {ensemble.n_features} columns, got {features.n_columns}")


def _expect_a_number(features: Features, low: FloatArray, high: FloatArray, largest: float) -> None:
    empty = np.maximum(low, -largest) > np.minimum(high, largest)
    empty |= [isinstance(entry, Ordinal) and max(map(abs, entry.values)) > largest for entry in features]
    if empty.any():
        entry = features.entries[int(np.argmax(empty))]
        raise ValueError(f"feature {entry.name!r}: its limits admit no number the model can compare, got {entry}")
