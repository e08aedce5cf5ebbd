"""Answers that look like the data: constraints that a search keeps with proof."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps._set_axes import ALWAYS_LEFT, ALWAYS_RIGHT, LEAF
from cfmaps.constraints import Constraint, Row
from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.features import Features, Numeric, OneHot
from cfmaps.lattice import FloatArray, Lattice


class Plausible(Constraint):
    """A constraint that knows data. It has no text."""

    __slots__ = ()

    def features(self) -> tuple[str, ...]:
        return ()

    def accepts(self, lattice: Lattice, point: FloatArray) -> bool:
        """Whether a row on the grid is plausible."""
        raise NotImplementedError

    def holds(self, before: Row, after: Row) -> bool:
        raise TypeError(f"{self} needs the model: ask accepts")


class Isolation(Plausible):
    """The score of an isolation forest is at or above a limit.

    The forest becomes a further ensemble in the same search, so that the answer is the
    nearest of all rows that score well enough. scikit-learn's own ``score_samples`` confirms it.

    Parameters
    ----------
    forest : IsolationForest
        Fitted on the model's columns.
    at_least : float, optional
        The limit of ``score_samples``; its ``offset_`` when not given: what it predicts as an inlier.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> forest = IsolationForest(n_estimators=10, random_state=0).fit([[0.0], [0.1], [0.2], [5.0]])
    >>> Isolation(forest, -0.5)
    Isolation(10 trees, score >= -0.5)
    """

    __slots__ = ("at_least", "forest")

    def __init__(self, forest: Any, at_least: float | None = None) -> None:
        if not hasattr(forest, "_decision_path_lengths") or not hasattr(forest, "score_samples"):
            raise TypeError(f"forest must be a fitted IsolationForest, got {type(forest).__name__}")
        self.forest = forest
        self.at_least = float(forest.offset_) if at_least is None else _check.number(at_least, "at_least")

    def ensemble(self) -> Ensemble:
        """Two bands of the summed path lengths, added in scikit-learn's order: band 1 is plausible."""
        trees = [tree.tree_ for tree in self.forest.estimators_]
        counts = np.array([tree.node_count for tree in trees])
        roots = np.cumsum(counts) - counts
        left, right = (
            np.concatenate([getattr(tree, f"children_{side}") for tree in trees]) for side in ("left", "right")
        )
        leaf, shift = left < 0, np.repeat(roots, counts)
        columns = [
            own[np.maximum(tree.feature, 0)] for own, tree in zip(self.forest.estimators_features_, trees, strict=True)
        ]
        names = getattr(self.forest, "feature_names_in_", None)
        return Ensemble(
            feature=np.where(leaf, -1, np.concatenate(columns)),
            threshold=np.where(leaf, 0.0, np.concatenate([tree.threshold for tree in trees])),
            left=np.where(leaf, -1, left + shift),
            right=np.where(leaf, -1, right + shift),
            roots=roots,
            value=np.where(leaf, np.concatenate(self._lengths()), 0.0)[:, np.newaxis],
            init=np.zeros(1),
            classes=np.array(["strange", "plausible"]),
            n_features=int(self.forest.n_features_in_),
            rule="bands",
            cuts=np.array([self._least_length()]),
            feature_names=None if names is None else tuple(map(str, names)),
        )

    def accepts(self, lattice: Lattice, point: FloatArray) -> bool:
        return bool(self.forest._score_samples(point[np.newaxis].astype(np.float32))[0] >= self.at_least)

    def _lengths(self) -> list[FloatArray]:
        parts = zip(self.forest._decision_path_lengths, self.forest._average_path_length_per_tree, strict=True)
        return [depth + rest - 1.0 for depth, rest in parts]

    def _least_length(self) -> float:
        """The least sum of path lengths whose score reaches the limit, found by halving the numbers between."""
        from sklearn.ensemble._iforest import _average_path_length

        whole = len(self.forest.estimators_) * _average_path_length([self.forest._max_samples])

        def reaches(length: float) -> bool:
            return bool((-(2 ** (-np.divide(np.array([length]), whole))))[0] >= self.at_least)

        low, high = 0.0, float(1 + sum(lengths.max() for lengths in self._lengths()))
        if reaches(low):
            return low
        if not reaches(high):
            return high
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return high

    def __repr__(self) -> str:
        return f"Isolation({len(self.forest.estimators_)} trees, score >= {self.at_least:.6g})"


class Boxes(Plausible):
    """A constraint met in any of several boxes."""

    __slots__ = ()

    def boxes(self, lattice: Lattice) -> "BoxList":
        """The boxes on a lattice."""
        raise NotImplementedError


class BoxList:
    """Boxes by the closed ends of ordered axes and the cells of categorical ones.

    Parameters
    ----------
    low, high : float64 arrays of shape (n_boxes, n_axes)
    allowed : bool array of shape (n_boxes, n_cells)
        Per cell of the lattice; read for categorical axes.
    label : int array of shape (n_boxes,)
        The class that the model gives all over the box, or -1.
    """

    __slots__ = ("allowed", "high", "label", "low")

    def __init__(
        self, low: FloatArray, high: FloatArray, allowed: npt.NDArray[np.bool_], label: npt.NDArray[np.int64]
    ) -> None:
        self.low, self.high, self.allowed, self.label = low, high, allowed, label

    def __len__(self) -> int:
        return len(self.low)

    def met(self, other: "BoxList") -> "BoxList":
        """The parts that two lists of boxes share."""
        i, j = (grid.ravel() for grid in np.meshgrid(range(len(self)), range(len(other)), indexing="ij"))
        low, high = np.maximum(self.low[i], other.low[j]), np.minimum(self.high[i], other.high[j])
        kept = (low <= high).all(axis=1)
        i, j = i[kept], j[kept]
        label = np.maximum(self.label[i], other.label[j])
        return BoxList(low[kept], high[kept], self.allowed[i] & other.allowed[j], label)


class Live(Boxes):
    """The answer lies in a live region: it reaches the same leaf as some row of the data, in every tree (LIRE).

    Parameters
    ----------
    data : rows or frame
        In the model's columns.
    """

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data

    def boxes(self, lattice: Lattice) -> BoxList:
        rows = _rows(lattice, self.data)
        low, high, allowed, leaves = _leaf_boxes(lattice, lattice.cells(rows))
        # A row beyond the limits of its features may reach a leaf that no answer can.
        inside = (leaves == lattice.ensemble.leaves(rows)).all(axis=1)
        rows, low, high, allowed = rows[inside], low[inside], high[inside], allowed[inside]
        ends = lattice.cell_start[:-1]
        labels = lattice.ensemble.labels(rows)
        packed = np.unique(np.hstack([low, high, allowed, labels[:, np.newaxis]]), axis=0, return_index=True)[1]
        low, high, allowed, labels = low[packed], high[packed], allowed[packed], labels[packed]
        return BoxList(lattice.low[ends + low], lattice.high[ends + high], allowed, labels)

    def accepts(self, lattice: Lattice, point: FloatArray) -> bool:
        rows = _rows(lattice, self.data)
        same = lattice.ensemble.leaves(rows) == lattice.ensemble.leaves(point[np.newaxis])
        return bool(same.all(axis=1).any())

    def __repr__(self) -> str:
        return f"Live({len(self.data)} rows)"


class Near(Boxes):
    """The answer is near some row of the data: every number within a share of its scale, every category equal.

    Parameters
    ----------
    data : rows or frame
        In the model's columns.
    within : float
        The largest gap in units of the scale.
    scale : {"range", "std"} or array of shape (n_columns,)
        Of the data; a column without spread must be equal.
    """

    __slots__ = ("data", "scale", "within")

    def __init__(self, data: Any, within: float, *, scale: Any = "range") -> None:
        if _check.number(within, "within") < 0:
            raise ValueError(f"within must not be negative, got {within}")
        if isinstance(scale, str) and scale not in ("range", "std"):
            raise ValueError(f"scale must be 'range', 'std' or numbers, got {scale!r}")
        self.data, self.within, self.scale = data, float(within), scale

    def boxes(self, lattice: Lattice) -> BoxList:
        low, high, rows = self._ends(lattice)
        first = np.array([columns[0] for columns in lattice.axis_columns])
        allowed = np.ones((len(rows), len(lattice.low)), dtype=bool)
        low, high = low[:, first], high[:, first]
        # Answers are numbers of the grid: the last ones inside.
        free = np.array([isinstance(entry, Numeric) for entry in lattice.features])
        low[:, free] = -closed_sides(-low[:, free], lattice.ensemble.number)[0]
        high[:, free] = closed_sides(high[:, free], lattice.ensemble.number)[0]
        own = lattice.cells(rows)
        for axis in np.flatnonzero(lattice.categorical):
            here = slice(lattice.cell_start[axis], lattice.cell_start[axis + 1])
            allowed[:, here] = np.arange(here.stop - here.start) == own[:, [axis]]
            low[:, axis], high[:, axis] = -np.inf, np.inf
        return BoxList(low, high, allowed, np.full(len(rows), -1))

    def accepts(self, lattice: Lattice, point: FloatArray) -> bool:
        low, high, rows = self._ends(lattice)
        good = (low <= point) & (point <= high)
        for entry, columns in zip(lattice.features, lattice.features.positions, strict=True):
            if isinstance(entry, OneHot):
                good[:, columns] = rows[:, columns] == point[columns]
        return bool(good.all(axis=1).any())

    def _ends(self, lattice: Lattice) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = _rows(lattice, self.data)
        scale = self.scale
        if isinstance(scale, str):
            scale = (np.ptp if scale == "range" else np.std)(rows, axis=0)
        reach = self.within * np.broadcast_to(np.asarray(scale, dtype=np.float64), rows.shape[1])
        return rows - reach, rows + reach, rows

    def __repr__(self) -> str:
        return f"Near({len(self.data)} rows, within {self.within:g})"


def _rows(lattice: Lattice, data: Any) -> FloatArray:
    features: Features = lattice.features
    rows = _check.matrix(data, "data", features.n_columns, columns=features.columns)
    if not len(rows):
        raise ValueError("data must hold at least one row, got none")
    return lattice.round(rows)


def _leaf_boxes(lattice: Lattice, cells: npt.NDArray[np.int32]) -> tuple[Any, Any, npt.NDArray[np.bool_], Any]:
    """First and last cell of ordered axes, and cells of categorical ones, that share all leaves with rows of cells.

    And the leaves.
    """
    leaves = []
    ensemble, n = lattice.ensemble, len(cells)
    low, high = np.zeros_like(cells), np.tile(lattice.n_cells - 1, (n, 1))
    allowed = np.ones((n, len(lattice.low)), dtype=bool)
    for root in ensemble.roots:
        node = np.full(n, root)
        while len(rows := np.flatnonzero(lattice.node_test[node] != LEAF)):
            test = lattice.node_test[node[rows]]
            right = test == ALWAYS_RIGHT
            for place in np.flatnonzero((test != ALWAYS_LEFT) & ~right):
                right[place] = _take(lattice, int(test[place]), int(rows[place]), cells, low, high, allowed)
            node[rows] = np.where(right, ensemble.right[node[rows]], ensemble.left[node[rows]])
        leaves.append(node)
    return low, high, allowed, np.column_stack(leaves)


def _take(
    lattice: Lattice, test: int, row: int, cells: Any, low: Any, high: Any, allowed: npt.NDArray[np.bool_]
) -> bool:
    """Narrows the box of a row to its own side of a test; whether that is the right one."""
    axis, rank = lattice.test_axis[test], lattice.test_rank[test]
    cell = cells[row, axis]
    if not lattice.categorical[axis]:
        if cell > rank:
            low[row, axis] = max(low[row, axis], rank + 1)
        else:
            high[row, axis] = min(high[row, axis], rank)
        return bool(cell > rank)
    here = slice(lattice.cell_start[axis], lattice.cell_start[axis + 1])
    left = lattice.test_sets[rank, : here.stop - here.start]
    allowed[row, here] &= left if left[cell] else ~left
    return not left[cell]
