"""The map itself: a tree of boxes in rank space that grows where it is asked to."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check, _core
from cfmaps.distance import Distance, FloatArray
from cfmaps.ensemble import Ensemble
from cfmaps.features import OneHot
from cfmaps.lattice import Lattice

_NO_LIMIT = 2**62

Progress = Callable[[float, int], object]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a build ended.

    Attributes
    ----------
    complete : bool
        Whether every box of the map has its label.
    reason : str
        "complete", or the budget that was used up: "nodes", "memory" or "time".
    n_nodes, n_boxes : int
        Nodes of the map, and labelled boxes among them.
    seconds : float
    """

    complete: bool
    reason: str
    n_nodes: int
    n_boxes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Boxes:
    """Labelled boxes in the model's columns.

    Attributes
    ----------
    lower, upper : float64 arrays of shape (n_boxes, n_columns)
        Closed ends on the model's number grid. A one-hot column may be on where its
        upper end is 1 and must be on where its lower end is; one column of a group is.
        Whether an optional group may have none on shows with ``single_categories`` only.
    label : int array of shape (n_boxes,)
        Index into the model's classes; -1 where the map is not grown yet.
    """

    lower: FloatArray
    upper: FloatArray
    label: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, slots=True, eq=False)
class StoredNodes:
    """Nodes that lie in a file, and what they are checked against when a query needs them.

    Attributes
    ----------
    words : uint64 array
        As `Partition.pack` gave them; may be a view of a mapped file.
    digests, roots : uint8 arrays
        SHA-256 of every page of ``words``, and of every page of ``digests``.
    complete : bool
        Whether every box has its label.
    """

    words: npt.NDArray[np.uint64]
    digests: npt.NDArray[np.uint8]
    roots: npt.NDArray[np.uint8]
    complete: bool


class Partition:
    """A born-again tree over a lattice: every leaf is a box of one class, or still open."""

    __slots__ = ("_map", "lattice")

    def __init__(self, lattice: Lattice, *, stored: StoredNodes | None = None) -> None:
        self.lattice = lattice
        parts = _core_lattice(lattice), _core_trees(lattice), lattice.features.n_columns
        if stored is None:
            self._map = _core.Map(*parts)
        else:
            self._map = _core.Map(*parts, stored.words, stored.digests, stored.roots, stored.complete)

    @property
    def is_complete(self) -> bool:
        """Whether every box has its label."""
        return self._map.is_complete

    @property
    def n_nodes(self) -> int:
        """Nodes of the tree, open leaves included."""
        return self._map.count()[0]

    @property
    def n_boxes(self) -> int:
        """Labelled boxes."""
        return self._map.count()[1]

    @property
    def n_bytes(self) -> int:
        """Memory of the nodes, room to grow included."""
        return self._map.n_bytes

    @property
    def max_nodes(self) -> int:
        """Size beyond which queries still answer, but keep nothing more."""
        return self._map.most_nodes

    @max_nodes.setter
    def max_nodes(self, most: int) -> None:
        self._map.most_nodes = _check.whole(most, "max_nodes", 0)

    def build(
        self,
        *,
        max_nodes: int | None = None,
        max_memory: int | None = None,
        time_limit: float | None = None,
        n_threads: int | None = None,
        progress: bool | Progress = False,
    ) -> Growth:
        """Grow the whole map; see `CounterfactualMap.build`."""
        start = time.perf_counter()
        most_nodes = _NO_LIMIT if max_nodes is None else _check.whole(max_nodes, "max_nodes", 1)
        most_bytes = _NO_LIMIT if max_memory is None else _check.whole(max_memory, "max_memory", 1)
        limit, threads = _check.seconds(time_limit, "time_limit"), _check.threads(n_threads, "n_threads")
        report = _reporter(progress)
        # A split makes two nodes of one leaf.
        splits = max(most_nodes - self.n_nodes, 0) // 2
        complete, limit_met = self._map.build(splits, most_bytes, limit, threads, report)
        n_nodes, n_boxes, _ = self._map.count()
        if report and complete:
            report(1.0, n_nodes)
        return Growth(complete, "complete" if complete else limit_met, n_nodes, n_boxes, time.perf_counter() - start)

    def pack(self) -> npt.NDArray[np.uint64]:
        """The nodes that can be reached, laid out for a file; nothing grows meanwhile."""
        return np.asarray(self._map.pack())

    def boxes(self, label: int | None = None, *, single_categories: bool = False) -> Boxes:
        """The boxes of the map, or those of one class (an index), as arrays.

        With ``single_categories`` a box that allows several categories of a one-hot group
        becomes one box for each, so that every point between its ends is admissible.
        """
        n_classes = self.lattice.ensemble.n_classes
        if label is not None and _check.whole(label, "label", 0) >= n_classes:
            raise ValueError(f"label must be an index below {n_classes}, got {label}")
        return Boxes(*self._map.boxes(-1 if label is None else label, single_categories))

    def box_tree(self, label: int, leaf_size: int) -> _core.BoxTree:
        """The core's index over the boxes of one class (an index) with single categories."""
        return self._map.box_tree(label, leaf_size)

    def region(self, cells: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Closed ends of a box around these cells in which the model keeps its class."""
        n_cells = self.lattice.n_cells
        if np.shape(cells) != n_cells.shape or ((cells < 0) | (cells >= n_cells)).any():
            raise ValueError(
                f"cells must be one per axis, each below {n_cells.tolist()}, got {np.asarray(cells).tolist()}"
            )
        lower, upper = self._map.region(np.ascontiguousarray(cells, dtype=np.int32))
        return lower, upper

    def explainer(self, distance: Distance) -> _core.Explainer:
        """The core's answering machine for one distance."""
        return _core.Explainer(self._map, *self._measure(distance))

    def advisor(self, distance: Distance, rules: _core.Rules, further: Sequence["Partition"] = ()) -> _core.Advisor:
        """The same under rules; each further partition, over the same features, has to say its second label."""
        labels, others = np.ones(len(further), dtype=np.int32), np.zeros(len(further), dtype=bool)
        maps = [partition._map for partition in further]
        return _core.Advisor(self._map, rules, *self._measure(distance), maps, labels, others)

    def _measure(self, distance: Distance) -> tuple[float, FloatArray, list[FloatArray], list[FloatArray]]:
        n_columns = self.lattice.features.n_columns
        weights = np.ones(n_columns) if distance.weights is None else distance.weights
        # Only other powers than these are measured in a unit that the maximum norm finds.
        is_plain = distance.p in (1.0, 2.0, np.inf)
        largest = None if is_plain else Distance("linf", distance.weights, distance.prices)
        return distance.p, weights, self._costs(distance), self._costs(largest)

    def _costs(self, distance: Distance | None) -> list[FloatArray]:
        if distance is None:
            return []
        of_groups = iter(distance.category_costs(self.lattice.features))
        lattice, nothing = self.lattice, np.zeros((0, 0))
        costs = []
        for axis, (entry, positions) in enumerate(zip(lattice.features, lattice.features.positions, strict=True)):
            if isinstance(entry, OneHot):
                costs.append(next(of_groups))
            elif lattice.categorical[axis]:
                costs.append(distance.coded_costs(entry, int(positions[0]), int(lattice.n_cells[axis])))
            else:
                costs.append(nothing)
        return costs


def _core_lattice(lattice: Lattice) -> _core.Lattice:
    return _core.Lattice(
        n_cells=lattice.n_cells,
        categorical=lattice.categorical,
        low=lattice.low,
        high=lattice.high,
        columns=[np.asarray(columns, dtype=np.int32) for columns in lattice.axis_columns],
        test_axis=lattice.test_axis,
        test_rank=lattice.test_rank,
        test_sets=lattice.test_sets,
    )


def _core_trees(lattice: Lattice) -> _core.Trees:
    ensemble = lattice.ensemble
    return _core.Trees(
        test=lattice.node_test,
        feature=ensemble.feature,
        threshold=ensemble.threshold,
        left=ensemble.left,
        right=ensemble.right,
        roots=ensemble.roots,
        value=ensemble.value,
        init=ensemble.init,
        divisor=ensemble.divisor,
        single=ensemble.number == np.float32,
        rule=ensemble.rule,
        single_sums=ensemble.sum_number == np.float32,
        scale=ensemble.scale,
        bias=_biases(ensemble),
        cuts=_given(ensemble.cuts, np.float64),
        missing_left=_given(ensemble.missing_left, np.bool_),
        category_set=_given(ensemble.category_set, np.int32),
        category_sets=np.zeros((0, 0), dtype=bool) if ensemble.category_sets is None else ensemble.category_sets,
    )


def _given(array: npt.NDArray[Any] | None, dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.empty(0, dtype=dtype) if array is None else array


def _biases(ensemble: Ensemble) -> FloatArray:
    """One number per score, or none when all are 0."""
    bias = np.broadcast_to(np.asarray(ensemble.bias, dtype=np.float64), (ensemble.n_scores,))
    return np.ascontiguousarray(bias) if bias.any() else np.empty(0)


def _reporter(progress: bool | Progress) -> Progress | None:
    if callable(progress):
        return progress
    if not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress must be True, False or a callable, got {progress!r}")
    return _report if progress else None


def _report(share: float, n_nodes: int) -> None:
    end = "\n" if share >= 1.0 else ""
    sys.stderr.write(f"\rmap {100 * share:3.0f} %, {n_nodes:,} nodes{end}")
    sys.stderr.flush()
