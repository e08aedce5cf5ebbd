"""Answers under constraints and prices, and what stands in the way where there are none."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _core
from cfmaps.constraints import Constraint, Row
from cfmaps.distance import Distance, FloatArray
from cfmaps.ensemble import Ensemble
from cfmaps.errors import NotConfirmed
from cfmaps.features import OneHot
from cfmaps.lattice import Lattice
from cfmaps.limits import Limits, limits_of
from cfmaps.partition import Partition
from cfmaps.plausibility import Boxes, BoxList, Isolation, Plausible
from cfmaps.rules import Rules

_BOXES_AT_ONCE = 64
_ROUNDED_DOWN = 1 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Answers to one row, in the arrays that the core's own replies have."""

    points: FloatArray
    numbers: FloatArray
    codes: npt.NDArray[np.int32]
    cells: npt.NDArray[np.int32]
    work: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.points)


def _expect_plain(lattice: Lattice) -> None:
    """Native categories and missing values are not among the things that rules speak of yet."""
    places = zip(lattice.features, lattice.categorical.tolist(), strict=True)
    other = [entry.name for entry, categorical in places if categorical and not isinstance(entry, OneHot)]
    if other:
        raise ValueError(f"constraints and prices are not kept yet where {other[0]!r} has categories or may be missing")


def nothing(row: FloatArray, source: int, n_axes: int) -> Replies:
    """The reply that there is no answer."""
    codes = np.array([[2], [-1], [source]], dtype=np.int32)
    cells = np.full((1, n_axes), -1, dtype=np.int32)
    return Replies(row.copy(), np.full((2, 1), np.inf), codes, cells, np.zeros((2, 1), dtype=np.int64))


def better(best: Replies, found: Any) -> Replies:
    """The best of several replies to one question about different boxes, with the bound that all together prove."""
    place = int(np.argmin(found.numbers[0]))
    work = best.work + np.asarray(found.work).sum(axis=1, keepdims=True)
    bound = min(float(best.numbers[1, 0]), float(np.min(found.numbers[1])))
    if found.numbers[0, place] < best.numbers[0, 0]:
        points, cells, codes = found.points[[place]], found.cells[[place]], found.codes[:, [place]].copy()
        distance = float(found.numbers[0, place])
    else:
        points, cells, codes, distance = best.points, best.cells, best.codes.copy(), float(best.numbers[0, 0])
    # A box that was given up early, or left unsolved, may hold something better.
    is_open = bool((np.asarray(found.codes[0]) % 2 == 1).any()) or best.codes[0, 0] % 2 == 1
    if is_open:
        codes[0] = 1 if np.isfinite(distance) else 3
    return Replies(points, np.array([[distance], [min(bound, distance)]]), codes, cells, work)


def stacked(replies: Sequence[Replies]) -> Replies:
    """The replies to several questions as one."""
    return Replies(
        np.concatenate([one.points for one in replies]),
        np.concatenate([one.numbers for one in replies], axis=1),
        np.concatenate([one.codes for one in replies], axis=1),
        np.concatenate([one.cells for one in replies]),
        np.concatenate([one.work for one in replies], axis=1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Irreducible answers to one row in order of distance, and whether these are all that were asked for."""

    points: FloatArray
    distances: FloatArray
    cells: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    is_complete: bool

    def __len__(self) -> int:
        return len(self.points)

    def taking(self, which: npt.NDArray[Any]) -> "Listed":
        """Some of them."""
        return Listed(
            self.points[which], self.distances[which], self.cells[which], self.labels[which], self.is_complete
        )

    def no_farther(self, distance: float) -> "Listed":
        return self.taking(self.distances <= distance)

    def replies(self, source: int) -> Replies:
        """As replies that are all proven."""
        n = len(self)
        codes = np.array([np.zeros(n), self.labels, np.full(n, source)], dtype=np.int32)
        work = np.zeros((2, n), dtype=np.int64)
        return Replies(self.points, np.array([self.distances, self.distances]), codes, self.cells, work)


class Recourse:
    """Answers to questions about one map under constraints and prices.

    Parameters
    ----------
    partition : Partition
    distance : Distance
    constraints : sequence of Constraint

    Raises
    ------
    ValueError
        Naming the constraint that makes no sense for these features, or contradicts another.
    """

    def __init__(self, partition: Partition, distance: Distance, constraints: Sequence[Constraint]) -> None:
        self.partition, self.distance, self.constraints = partition, distance, tuple(constraints)
        self.lattice = partition.lattice
        _expect_plain(self.lattice)
        plain = [one for one in self.constraints if not isinstance(one, Plausible)]
        self.rules = Rules.of(self.lattice, distance, plain)
        self._plausible = [one for one in self.constraints if isinstance(one, Plausible)]
        forests = [one.ensemble() for one in self._plausible if isinstance(one, Isolation)]
        self._advisor = partition.advisor(distance, self.rules.core(), list(map(self._further, forests)))
        self._boxes = [one.boxes(self.lattice) for one in self._plausible if isinstance(one, Boxes)]

    def ask(
        self,
        rows: FloatArray,
        codes: npt.NDArray[np.int32],
        seconds: float,
        n_threads: int,
        *,
        may_change: npt.NDArray[np.bool_] | None = None,
    ) -> _core.Replies | Replies:
        """The replies to rows on the grid; ``may_change``, shape (n_rows, n_axes), freezes all other axes."""
        if np.isnan(rows).any():
            raise ValueError("constraints and prices are not kept yet for rows with missing values")
        limits = limits_of(self.rules, rows)
        if may_change is not None:
            limits = limits.frozen(self.rules, rows, ~may_change)
        # Whether a row is robust as it stands is for the search to find out.
        keeps = np.full(len(rows), not self.rules.margins.any())
        if self.rules.may_be_broken or self._plausible:
            keeps &= np.array([not self.broken(row) for row in rows], dtype=bool)
        if not self._boxes:
            gaps = self._gaps(rows, limits)
            return self._advisor.ask(rows, codes, *limits.arrays(), gaps, keeps, seconds, n_threads)
        boxes = reduce(BoxList.met, self._boxes)
        asked = [
            self._in_boxes(rows[[i]], codes[[i]], limits.taking(slice(i, i + 1)), boxes, keeps[[i]], seconds, n_threads)
            for i in range(len(rows))
        ]
        return stacked(asked)

    def _in_boxes(
        self,
        row: FloatArray,
        code: npt.NDArray[np.int32],
        limits: Limits,
        boxes: BoxList,
        keeps: npt.NDArray[np.bool_],
        seconds: float,
        n_threads: int,
    ) -> Replies:
        """The best answer in any of the boxes: nearer boxes first, until none left can win."""
        lattice = self.lattice
        source = int(lattice.ensemble.labels(row)[0])
        if keeps[0] and source == code[0]:
            gaps = self._gaps(row, limits)
            itself = self._advisor.ask(row, code, *limits.arrays(), gaps, keeps, seconds, 1)
            return Replies(itself.points, itself.numbers, itself.codes, itself.cells, itself.work)
        fits = boxes.label != source if code[0] < 0 else (boxes.label == code[0]) | (boxes.label < 0)
        away = self._bounds(row[0], boxes)
        order = np.flatnonzero(fits)[np.argsort(away[fits], kind="stable")]
        best = nothing(row, source, lattice.n_axes)
        for start in range(0, len(order), _BOXES_AT_ONCE):
            chosen = order[start : start + _BOXES_AT_ONCE]
            if away[chosen[0]] > best.numbers[0, 0]:
                break
            repeated, within = np.repeat(row, len(chosen), axis=0), limits.within(boxes, chosen)
            same = np.full(len(chosen), code[0], dtype=np.int32)
            never = np.zeros(len(chosen), dtype=bool)
            gaps = self._gaps(repeated, within)
            found = self._advisor.ask(repeated, same, *within.arrays(), gaps, never, seconds, n_threads)
            best = better(best, found)
        return best

    def _bounds(self, row: FloatArray, boxes: BoxList) -> FloatArray:
        """How far the boxes are at least; nothing is known under prices."""
        if self.distance.prices:
            return np.zeros(len(boxes))
        gaps = np.zeros((len(boxes), len(row)))
        for axis in np.flatnonzero(~self.lattice.categorical):
            column = self.lattice.axis_columns[axis][0]
            gaps[:, column] = np.maximum(
                0, np.maximum(boxes.low[:, axis] - row[column], row[column] - boxes.high[:, axis])
            )
        return np.asarray(self.distance.between(np.zeros(len(row)), gaps)) * _ROUNDED_DOWN

    def _further(self, ensemble: Ensemble) -> Partition:
        """A map of a further forest over the same features, which has to say its second label."""
        if ensemble.number != self.lattice.ensemble.number:
            kind = self.lattice.ensemble.number.__name__
            raise ValueError(f"an isolation forest compares float32 numbers, the model {kind}: their grids differ")
        return Partition(Lattice.of(ensemble, self.lattice.features))

    def within(self, row: FloatArray, code: int, distance: float, most: int, seconds: float) -> Listed:
        """All answers to one row on the grid within a distance of which no part can be taken back, unless too many."""
        rows = row.reshape(1, -1)
        limits = limits_of(self.rules, rows)
        points, distances, cells, labels, is_complete = self._advisor.within(
            rows, code, *limits.arrays(), self._gaps(rows, limits), distance, most, seconds
        )
        order = np.lexsort((*points.T[::-1], distances))
        return Listed(points[order], distances[order], cells[order], labels[order], is_complete)

    def broken(self, row: FloatArray) -> tuple[Constraint, ...]:
        """The constraints that a row, left as it is, does not keep."""
        may_be = (*self.rules.may_be_broken, *self._plausible)
        view = self.view(row) if may_be else None
        return tuple(one for one in may_be if view is not None and not self._holds(one, view, view, row))

    def confirm(self, row: FloatArray, point: FloatArray) -> None:
        """Raise `NotConfirmed` unless the change keeps every constraint, in exact arithmetic."""
        before, after = self.view(row), self.view(point)
        for constraint in self.constraints:
            if not self._holds(constraint, before, after, point):
                raise NotConfirmed(f"the answer {point.tolist()} to {row.tolist()} does not keep {str(constraint)!r}")

    def _holds(self, constraint: Constraint, before: Row, after: Row, point: FloatArray) -> bool:
        if isinstance(constraint, Plausible):
            return constraint.accepts(self.lattice, point)
        return constraint.holds(before, after)

    def conflict(self, row: FloatArray, code: int) -> tuple[Constraint, ...]:
        """A smallest set, none of which can be left out, of constraints that together leave no answer."""
        left = list(self.constraints)
        for constraint in self.constraints:
            fewer = [other for other in left if other is not constraint]
            smaller = Recourse(self.partition, self.distance, fewer)
            replies = smaller.ask(row.reshape(1, -1), np.array([code], dtype=np.int32), np.inf, 1)
            if replies.codes[0, 0] == 2:
                left = fewer
        return tuple(left)

    def view(self, row: FloatArray) -> Row:
        """A row by feature and by column."""
        features = self.lattice.features
        values: dict[str, Any] = dict(zip(features.columns, row.tolist(), strict=True))
        for entry, positions in zip(features, features.positions, strict=True):
            if isinstance(entry, OneHot):
                on = row[positions] == 1
                values[entry.name] = entry.columns[int(on.argmax())] if on.any() else None
        return Row(values, features.names, self.lattice.ensemble.number)

    def _gaps(self, rows: FloatArray, limits: Limits) -> list[FloatArray]:
        """The prices of all slots of axes with tables, row by row."""
        tables = self.rules.tables
        if not tables:
            return []
        priced = []
        for place, row in enumerate(rows):
            gaps = [np.empty(0)]
            for axis, price in tables:
                values = self._advisor.values(rows, *limits.arrays(), place, axis)
                gaps.append(price(row, values))
            priced.append(np.concatenate(gaps))
        return priced
