"""Which features suffice: every minimal set with its cheapest change, and the sets proven not to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.distance import FloatArray
from cfmaps.recourse import Recourse, Replies, stacked


@dataclass(frozen=True, slots=True, eq=False)
class Lever:
    """A set of features that suffices where none of its parts does, and its cheapest change.

    Attributes
    ----------
    features : tuple of str
    explanation : Explanation
    """

    features: tuple[str, ...]
    explanation: Any


@dataclass(frozen=True, slots=True, eq=False)
class Levers:
    """The menu of one row, by size and then by price.

    Attributes
    ----------
    sufficient : tuple of Lever
    insufficient : tuple of tuples of str
        The sets, up to the size asked for, of which changing all features, whatever the
        change, is proven not to suffice.
    undecided : tuple of tuples of str
        The sets that a time limit left open; empty without one.
    """

    sufficient: tuple[Lever, ...]
    insufficient: tuple[tuple[str, ...], ...]
    undecided: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.sufficient)

    def __getitem__(self, index: int) -> Lever:
        return self.sufficient[index]

    def __iter__(self) -> Iterator[Lever]:
        return iter(self.sufficient)

    def __str__(self) -> str:
        lines = [f"{', '.join(one.features)}: {one.explanation.distance:.6g}" for one in self.sufficient]
        return "\n".join([*lines, f"{len(self.insufficient)} sets proven not to suffice"])


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Sets of axes and the replies to the questions in which only these may change."""

    sets: list[tuple[int, ...]]
    replies: Replies

    @property
    def statuses(self) -> npt.NDArray[np.int32]:
        return np.asarray(self.replies.codes[0])


def minimal_sets(
    recourse: Recourse, row: FloatArray, code: int, axes: Sequence[int], most: int, seconds: float, n_threads: int
) -> Found:
    """All sets of up to so many axes without a sufficient part, asked size by size."""
    asked: list[Found] = []
    sufficient: list[frozenset[int]] = []
    for size in range(1, most + 1):
        sets = [one for one in combinations(axes, size) if not any(part <= set(one) for part in sufficient)]
        if not sets:
            break
        found = within_sets(recourse, row, code, sets, seconds, n_threads)
        sufficient += [frozenset(one) for one, status in zip(sets, found.statuses, strict=True) if status <= 1]
        asked.append(found)
    return joined(asked)


def within_sets(
    recourse: Recourse,
    row: FloatArray,
    code: int,
    sets: Sequence[tuple[int, ...]],
    seconds: float,
    n_threads: int,
) -> Found:
    """The cheapest change within each set of axes."""
    rows = np.repeat(row[np.newaxis], len(sets), axis=0)
    may_change = np.zeros((len(sets), recourse.lattice.n_axes), dtype=bool)
    for place, one in enumerate(sets):
        may_change[place, list(one)] = True
    codes = np.full(len(sets), code, dtype=np.int32)
    replies = recourse.ask(rows, codes, seconds, max(1, min(n_threads, len(sets))), may_change=may_change)
    arrays = (replies.points, replies.numbers, replies.codes, replies.cells, replies.work)
    return Found(list(sets), Replies(*map(np.asarray, arrays)))


def joined(parts: Sequence[Found]) -> Found:
    """Several rounds of questions as one."""
    return Found([one for part in parts for one in part.sets], stacked([part.replies for part in parts]))
