"""BA-Trees (Vidal, Schiffer 2020): one tree that says what the forest says, and as few leaves as possible.

`fast_partition` is exact and not minimal: it is what CF-Maps are made from. `minimal_leaves` is the dynamic program
that finds the smallest tree, ours after the paper's description; it is for small forests.
"""

import time
from collections.abc import Iterator
from typing import Any

import clock
import numpy as np
from leaves import last_at_most
from problem import Problem

from cfmaps import CounterfactualMap

MOST_CELLS = 200_000


class TooLarge(Exception):
    """A forest that the dynamic program cannot take."""


def fast_partition(model: Any) -> int:
    """Leaves of a tree that says what the forest says, split until the bounds of the score decide."""
    cfmap = CounterfactualMap(model)
    cfmap.build(n_threads=1)
    return cfmap.partition.n_boxes


def label_grid(model: Any) -> np.ndarray:
    """What the forest says in every cell between thresholds; one axis per column, labels as class numbers."""
    trees = [tree.tree_ for tree in model.estimators_]
    sides = []
    for column in range(model.n_features_in_):
        ends = np.unique(last_at_most(np.concatenate([tree.threshold[tree.feature == column] for tree in trees])))
        sides.append(np.append(ends, np.nextafter(ends[-1:], np.float32(np.inf)) if len(ends) else np.float32(0)))
    n_cells = np.prod([len(side) for side in sides], dtype=float)
    if n_cells > MOST_CELLS:
        raise TooLarge(f"{n_cells:.0f} cells")
    rows = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))
    labels = np.searchsorted(model.classes_, model.predict(rows))
    return labels.reshape([len(side) for side in sides]).astype(np.uint8)


def minimal_leaves(labels: np.ndarray, *, seconds: float = 10.0) -> int:
    """Leaves of the smallest tree of axis-parallel cuts whose leaves have one label each."""
    known: dict[tuple, int] = {}
    end = time.perf_counter() + seconds

    def least(grid: np.ndarray) -> int:
        grid = compressed(grid)
        if grid.size == 1:
            return 1
        key = (grid.shape, grid.tobytes())
        if key not in known:
            if time.perf_counter() > end:
                raise TooLarge(f"more than {len(known):,} boxes, {seconds:.0f} s")
            known[key] = min(least(left) + least(right) for left, right in halves(grid))
        return known[key]

    return least(labels)


def compressed(grid: np.ndarray) -> np.ndarray:
    """Without cuts that change no label, which no smallest tree needs: slices equal to their neighbour are dropped.

    A tree for the smaller grid is one for the larger, and a tree for the larger, restricted to the slices that are
    kept, is one for the smaller with no more leaves.
    """
    for axis in range(grid.ndim):
        slices = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
        differs = np.concatenate([[True], (slices[1:] != slices[:-1]).any(axis=1)])
        grid = np.compress(differs, grid, axis=axis)
    return grid


def halves(grid: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Both sides of every cut."""
    for axis, size in enumerate(grid.shape):
        for cut in range(1, size):
            yield np.split(grid, [cut], axis=axis)


def measure_partitions(problem: Problem) -> dict[str, Any]:
    """Leaves and seconds of both; the reason where the dynamic program gives up."""
    fast_seconds, fast = clock.seconds(lambda: fast_partition(problem.model))
    try:
        seconds, least = clock.seconds(lambda: minimal_leaves(label_grid(problem.model)))
    except TooLarge as error:
        return {"fast": fast, "fast_seconds": fast_seconds, "refused": str(error)}
    return {"fast": fast, "fast_seconds": fast_seconds, "minimal": least, "minimal_seconds": seconds}
