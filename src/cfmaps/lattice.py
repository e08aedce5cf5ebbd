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
from cfmaps._axes import Axes, Cuts
from cfmaps._kinds import keyed
from cfmaps._set_axes import EITHER, Table, with_sets
from cfmaps.ensemble import Ensemble
from cfmaps.features import Categorical, Features, OneHot

FloatArray = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The cells of every axis and the tests of every node, as flat arrays.

    An *axis* is a feature: ordered, or categorical (a one-hot group or a native
    category; one cell per category, then one for "none" if allowed). A *test* is an
    axis and the set of its cells that go left: on an ordered axis the cells up to a
    rank, on a categorical one any set. A column that may be missing as well as not has
    a further cell for that, and then its axis counts as categorical, whatever it holds.

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
        cells. 0 for the cells of one-hot groups, the code of a native category, NaN for
        the cell of missing values.
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
    def of(cls, ensemble: Ensemble, features: Features, missing: npt.NDArray[np.int8] | None = None) -> "Lattice":
        """The lattice of ``ensemble`` over ``features``.

        Parameters
        ----------
        ensemble : Ensemble
        features : Features
        missing : int8 array of shape (n_columns,), optional
            PRESENT, MISSING or EITHER for each column. By default that of rows without
            missing values: present, or either where an answer may set a value to missing.

        Raises
        ------
        ValueError
            When the columns of the two differ, or a feature's limits admit no number.
        """
        _expect_same_columns(ensemble, features)
        axes = Axes.of(features, ensemble.number, _of_complete_rows(features) if missing is None else missing)
        cuts = Cuts.of(ensemble, axes)
        n_cells = axes.n_cells + np.bincount(cuts.axis, minlength=len(features)) * ~axes.one_hot
        cell_start = np.concatenate([[0], np.cumsum(n_cells)])
        ordered = ~axes.one_hot[cuts.axis]
        rank = np.arange(len(cuts.axis)) - np.searchsorted(cuts.axis, cuts.axis)
        below = (cell_start[cuts.axis] + rank)[ordered]
        sides, real_sides = [cuts.left, cuts.right], [cuts.real_left, cuts.real_right]
        ends = [
            *_ends(cell_start, below, [axes.low, axes.high], [side[ordered] for side in sides]),
            *_ends(cell_start, below, [axes.real_low, axes.real_high], [side[ordered] for side in real_sides]),
        ]
        test_sets = _sets(axes, n_cells, cuts.left[~ordered].astype(np.intp), cuts.axis[~ordered])
        rank[~ordered] = np.arange(len(test_sets))
        search = _Search.of(features, axes, cuts.axis[ordered], cuts.left[ordered])
        table = Table(n_cells, ends, cuts.axis, rank, test_sets, cuts.node_test)
        if axes.by_sets.any() or axes.missing.any():
            table = with_sets(table, ensemble, features, axes.missing)
        low, high, real_low, real_high = table.ends
        return cls(
            ensemble=ensemble,
            features=features,
            n_cells=table.n_cells.astype(np.int32),
            categorical=axes.one_hot | axes.by_sets,
            cell_start=np.concatenate([[0], np.cumsum(table.n_cells)]),
            low=low,
            high=high,
            real_low=real_low,
            real_high=real_high,
            test_axis=table.test_axis.astype(np.int32),
            test_rank=table.test_rank.astype(np.int32),
            test_sets=table.test_sets,
            node_test=table.node_test,
            axis_columns=features.positions,
            _search=search,
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
            listed = np.isin(X[..., column], values) | np.isnan(X[..., column])
            rounded[..., column] = np.where(listed, X[..., column], values[place])
        return rounded

    def cells(self, X: FloatArray) -> Int32Array:
        """The cell of each axis for rows on the grid, shape (n_rows, n_axes).

        A value outside its feature's limits counts to the nearest cell.
        """
        search = self._search
        cells = np.empty((len(X), self.n_axes), dtype=np.int32)
        keys = keyed(search.ordered_axes, _filled(X[:, search.ordered_columns]))
        ranks = np.searchsorted(search.cuts, keys) - search.first_cut
        cells[:, search.ordered_axes] = np.minimum(ranks, self.n_cells[search.ordered_axes] - 1)
        for axis in search.groups:
            on = X[:, self.axis_columns[axis]] == 1
            cells[:, axis] = np.where(on.any(axis=1), on.argmax(axis=1), self.n_cells[axis] - 1)
        for axis in search.coded:
            codes = self.low[self.cell_start[axis] : self.cell_start[axis + 1]]
            cells[:, axis] = np.searchsorted(codes, X[:, self.axis_columns[axis][0]])
        for axis in search.either:
            missing = np.isnan(X[:, self.axis_columns[axis][0]])
            cells[:, axis] = np.where(missing, self.n_cells[axis] - 1, cells[:, axis])
        return cells

    def nearest(self, x: FloatArray, cells: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """The admissible row inside ``cells`` nearest to ``x`` in every column.

        Keeps a value its cell allows and moves others to the cell's near end; a missing
        value that is filled becomes the number nearest to 0. Both arguments may be one row
        or many, shapes (..., n_columns) and (..., n_axes).
        """
        search = self._search
        point = np.empty(np.broadcast_shapes(x.shape[:-1], cells.shape[:-1]) + x.shape[-1:])
        position = self.cell_start[search.ordered_axes] + cells[..., search.ordered_axes]
        wanted = search.admissible(_filled(x[..., search.ordered_columns]))
        point[..., search.ordered_columns] = np.clip(wanted, self.low[position], self.high[position])
        for axis in search.groups:
            columns = self.axis_columns[axis]
            point[..., columns] = cells[..., axis, np.newaxis] == np.arange(len(columns))
        for axis in search.coded:
            point[..., self.axis_columns[axis][0]] = self.low[self.cell_start[axis] + cells[..., axis]]
        return point

    def nearest_real(self, x: FloatArray, cells: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """The same in the closure of the cells on the real line: no row of the grid need attain it."""
        point = self.nearest(x, cells)
        for axis in self._search.ordered_axes:
            column = self.axis_columns[axis][0]
            position = self.cell_start[axis] + cells[..., axis]
            point[..., column] = np.clip(_filled(x[..., column]), self.real_low[position], self.real_high[position])
        return point


def _filled(values: FloatArray) -> FloatArray:
    """A number for every missing value."""
    missing = np.isnan(values)
    return np.where(missing, 0.0, values) if missing.any() else values


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What finding a cell and moving into one need, in the shape they need it."""

    ordered_axes: npt.NDArray[np.intp]
    ordered_columns: npt.NDArray[np.intp]
    groups: npt.NDArray[np.intp]
    coded: npt.NDArray[np.intp]
    either: npt.NDArray[np.intp]
    integral: BoolArray
    cuts: npt.NDArray[np.complex128]
    first_cut: npt.NDArray[np.intp]
    ordinal: npt.NDArray[np.intp]
    values: npt.NDArray[np.complex128]
    value_start: npt.NDArray[np.intp]
    off_grid: tuple[tuple[int, FloatArray], ...]

    @classmethod
    def of(cls, features: Features, axes: Axes, axis: npt.NDArray[np.intp], left: FloatArray) -> "_Search":
        coded = np.array([isinstance(entry, Categorical) for entry in features]) & axes.by_sets
        ordered_axes = np.flatnonzero(~axes.one_hot & ~coded)
        scales = [values for _, values in axes.ordinals]
        return cls(
            ordered_axes=ordered_axes,
            ordered_columns=np.array([features.positions[k][0] for k in ordered_axes], dtype=np.intp),
            groups=np.flatnonzero(axes.one_hot),
            coded=np.flatnonzero(coded),
            either=np.flatnonzero(axes.missing == EITHER),
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


def _ends(
    cell_start: npt.NDArray[np.int64], below: npt.NDArray[np.int64], outer: list[FloatArray], sides: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Both ends of every cell; ``below[i]`` is the cell that cut i closes from above."""
    low, high = np.zeros((2, cell_start[-1]))
    low[cell_start[:-1]], high[cell_start[1:] - 1] = outer
    high[below], low[below + 1] = sides
    return low, high


def _sets(
    axes: Axes, n_cells: npt.NDArray[np.int64], right: npt.NDArray[np.intp], axis: npt.NDArray[np.intp]
) -> BoolArray:
    """Per categorical test the cells that go left: all of its axis but one."""
    widest = int(n_cells[axes.one_hot].max(initial=0))
    sets = np.arange(widest) < n_cells[axis][:, np.newaxis]
    sets[np.arange(len(sets)), right] = False
    return sets


def _of_complete_rows(features: Features) -> npt.NDArray[np.int8]:
    missing = np.zeros(features.n_columns, dtype=np.int8)
    for entry, positions in zip(features, features.positions, strict=True):
        if not isinstance(entry, OneHot) and entry.missing in ("set", "free"):
            missing[positions] = EITHER
    return missing


def _expect_same_columns(ensemble: Ensemble, features: Features) -> None:
    if ensemble.feature_names is not None:
        _check.same_names(features.columns, ensemble.feature_names, "features")
    if ensemble.category_set is not None:
        tested = {features.columns[column] for column in np.unique(ensemble.feature[ensemble.category_set >= 0])}
        other = next((e for e in features if not isinstance(e, Categorical) and tested & set(e.columns)), None)
        if other is not None:
            raise ValueError(f"feature {other.name!r}: the model tests its categories, expected a Categorical")
    if features.n_columns != ensemble.n_features:
        raise ValueError(f"features must cover the model's {ensemble.n_features} columns, got {features.n_columns}")
