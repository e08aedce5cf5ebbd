"""Axes whose tests are any sets of cells: native categories, and columns that may be missing or not."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.features import Categorical, Feature, Features

LEAF, ALWAYS_LEFT, ALWAYS_RIGHT = -1, -2, -3
# What is known of a column: it holds a value, none, or the one or the other.
PRESENT, MISSING, EITHER = 0, 1, 2

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Cells and tests of all axes, as in a `Lattice`; ``ends`` are its four arrays of ends."""

    n_cells: npt.NDArray[Any]
    ends: list[FloatArray]
    test_axis: npt.NDArray[Any]
    test_rank: npt.NDArray[Any]
    test_sets: BoolArray
    node_test: npt.NDArray[np.int32]


def with_sets(table: Table, ensemble: Ensemble, features: Features, missing: npt.NDArray[np.int8]) -> Table:
    """The table with sets for tests wherever an axis has categories or a cell for missing values.

    ``table`` knows every column as one that holds a number, and no tests of categories.
    """
    table = replace(table, node_test=table.node_test.copy(), ends=[end.copy() for end in table.ends])
    axis_of_column = np.empty(features.n_columns, dtype=np.intp)
    for axis, positions in enumerate(features.positions):
        axis_of_column[positions] = axis
    nodes_of = _nodes_by_axis(ensemble, axis_of_column, len(features))
    for axis, entry in enumerate(features):
        if missing[axis] == MISSING:
            table = _without_tests(table, ensemble, axis, nodes_of[axis])
        elif missing[axis] == EITHER or isinstance(entry, Categorical):
            table = _by_sets(table, ensemble, axis, entry, nodes_of[axis], may_be_missing=missing[axis] == EITHER)
    return _sorted(table)


def _nodes_by_axis(ensemble: Ensemble, axis_of_column: IntArray, n_axes: int) -> list[IntArray]:
    inner = np.flatnonzero(ensemble.feature >= 0)
    axis = axis_of_column[ensemble.feature[inner]]
    order = np.argsort(axis, kind="stable")
    return np.split(inner[order], np.searchsorted(axis[order], np.arange(1, n_axes)))


def _missing_left(ensemble: Ensemble, nodes: IntArray) -> BoolArray:
    return np.zeros(len(nodes), dtype=bool) if ensemble.missing_left is None else ensemble.missing_left[nodes]


def _without_tests(table: Table, ensemble: Ensemble, axis: int, nodes: IntArray) -> Table:
    """One cell, that of missing values; every node knows where they go."""
    table.node_test[nodes] = np.where(_missing_left(ensemble, nodes), ALWAYS_LEFT, ALWAYS_RIGHT)
    return _replaced(table, axis, [np.array([np.nan])] * 4)


def _by_sets(
    table: Table, ensemble: Ensemble, axis: int, entry: Feature, nodes: IntArray, *, may_be_missing: bool
) -> Table:
    if isinstance(entry, Categorical):
        codes = np.array(entry.codes, dtype=np.float64)
        ends = [codes] * 4
        sets = _category_sets(ensemble, nodes, codes)
    else:
        first = int(np.sum(table.n_cells[:axis]))
        ends = [end[first : first + table.n_cells[axis]] for end in table.ends]
        sets = _prefixes(table, nodes, int(table.n_cells[axis]))
    if may_be_missing:
        ends = [np.append(end, np.nan) for end in ends]
        sets = np.column_stack([sets, _missing_left(ensemble, nodes)])
    return _with_tests(_replaced(table, axis, ends), axis, nodes, sets)


def _category_sets(ensemble: Ensemble, nodes: IntArray, codes: FloatArray) -> BoolArray:
    """Which codes go left at each node; a code that no set knows goes where missing values go."""
    sets = codes.astype(ensemble.number) <= ensemble.threshold[nodes][:, np.newaxis]
    if ensemble.category_set is None or ensemble.category_sets is None:
        return sets
    known = codes < ensemble.category_sets.shape[1]
    index = np.where(known, codes, 0).astype(np.intp)
    chosen = ensemble.category_set[nodes]
    listed = np.where(known, ensemble.category_sets[chosen][:, index], _missing_left(ensemble, nodes)[:, np.newaxis])
    return np.where(chosen[:, np.newaxis] >= 0, listed, sets)


def _prefixes(table: Table, nodes: IntArray, n_cells: int) -> BoolArray:
    """The cells that go left, from tests that are ranks."""
    test = table.node_test[nodes]
    rank = np.where(test >= 0, table.test_rank[np.maximum(test, 0)] if len(table.test_rank) else 0, 0)
    rank = np.where(test == ALWAYS_LEFT, n_cells, np.where(test == ALWAYS_RIGHT, -1, rank))
    return np.asarray(np.arange(n_cells) <= rank[:, np.newaxis])


def _replaced(table: Table, axis: int, ends: list[FloatArray]) -> Table:
    """The table with other cells on one axis."""
    first = int(np.sum(table.n_cells[:axis]))
    old = slice(first, first + int(table.n_cells[axis]))
    joined = [
        np.concatenate([end[: old.start], new, end[old.stop :]]) for end, new in zip(table.ends, ends, strict=True)
    ]
    n_cells = table.n_cells.copy()
    n_cells[axis] = len(ends[0])
    return replace(table, n_cells=n_cells, ends=joined)


def _with_tests(table: Table, axis: int, nodes: IntArray, sets: BoolArray) -> Table:
    """The table with the distinct sets of these nodes as tests of the axis."""
    table.node_test[nodes] = np.where(sets.all(axis=1), ALWAYS_LEFT, ALWAYS_RIGHT)
    splits = sets.any(axis=1) & ~sets.all(axis=1)
    unique, inverse = np.unique(sets[splits], axis=0, return_inverse=True)
    table.node_test[nodes[splits]] = len(table.test_axis) + inverse.ravel()
    width = max(table.test_sets.shape[1], unique.shape[1])
    test_sets = np.zeros((len(table.test_sets) + len(unique), width), dtype=bool)
    test_sets[: len(table.test_sets), : table.test_sets.shape[1]] = table.test_sets
    test_sets[len(table.test_sets) :, : unique.shape[1]] = unique
    return replace(
        table,
        test_axis=np.concatenate([table.test_axis, np.full(len(unique), axis)]),
        test_rank=np.concatenate([table.test_rank, np.arange(len(table.test_sets), len(test_sets))]),
        test_sets=test_sets,
    )


def _sorted(table: Table) -> Table:
    """Tests by axis and rank, without those that no node asks any more."""
    used = np.unique(table.node_test[table.node_test >= 0])
    order = used[np.lexsort((table.test_rank[used], table.test_axis[used]))]
    place = np.full(len(table.test_axis) + 1, -1)
    place[order] = np.arange(len(order))
    node_test = np.where(table.node_test >= 0, place[np.maximum(table.node_test, 0)], table.node_test)
    return replace(
        table,
        test_axis=table.test_axis[order],
        test_rank=table.test_rank[order],
        node_test=node_test.astype(np.int32),
    )
