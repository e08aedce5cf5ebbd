"""Answers of several maps as one: rows with other missing values are answered on maps of their own."""

from collections.abc import Iterator
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from cfmaps.distance import FloatArray
from cfmaps.explanation import Explanation, Explanations, Question


class Joined(Explanations):
    """Answers found on several maps, each for some of the rows."""

    __slots__ = ("_parts", "_place_of")

    def __init__(self, question: Question, parts: list[tuple[npt.NDArray[np.intp], Explanations]]) -> None:
        super().__init__(question, _Replies(len(question.rows), parts))
        self._parts = parts
        self._place_of = {int(row): (part, place) for rows, part in parts for place, row in enumerate(rows)}

    def __getitem__(self, index: SupportsIndex) -> Explanation:
        row = super().__getitem__(index)._index
        part, place = self._place_of[row]
        return part[place]

    def __iter__(self) -> Iterator[Explanation]:
        return (self[index] for index in range(len(self)))

    @property
    def infima(self) -> FloatArray:
        infima = np.empty(len(self))
        for rows, part in self._parts:
            infima[rows] = part.infima
        return infima


class _Replies:
    """The replies of all parts, row by row; cells mean something on the map of a part only."""

    def __init__(self, n_rows: int, parts: list[tuple[npt.NDArray[np.intp], Explanations]]) -> None:
        first = parts[0][1]._replies
        self.codes, self.numbers, self.work = (
            np.empty((len(array), n_rows), dtype=array.dtype) for array in (first.codes, first.numbers, first.work)
        )
        self.points = np.empty((n_rows, first.points.shape[1]))
        for rows, part in parts:
            replies = part._replies
            self.codes[:, rows], self.numbers[:, rows] = replies.codes, replies.numbers
            self.work[:, rows] = replies.work
            self.points[rows] = replies.points

    def __len__(self) -> int:
        return len(self.points)
