"""More than one answer: all that are good enough, each proven to be the next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfmaps import _check
from cfmaps.constraints import Linear
from cfmaps.distance import FloatArray
from cfmaps.explanation import Explanation, Explanations, Question
from cfmaps.plausibility import Boxes
from cfmaps.recourse import Listed, Recourse

DIVERSITIES = (None, "features", "region", "distance")
_MOST = 20_000
_GROWTH = 1.25
_MOST_BALLS = 60
_SLACK = 1 + 1e-12  # a root squared again may be a last digit off; what is found is filtered by its distance


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """Answers in order of distance, of none of which a part could be taken back.

    Attributes
    ----------
    explanations : Explanations
    complete_within : float
        The certificate of rank: no other irreducible answer is nearer than or at this
        distance, but those left out as too alike; inf when there are no more at all.
    """

    explanations: Explanations
    complete_within: float

    def __len__(self) -> int:
        return len(self.explanations)

    def __getitem__(self, index: int) -> Explanation:
        return self.explanations[index]

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.explanations)

    def to_frame(self) -> Any:
        """One row per answer; see `Explanations.to_frame`."""
        return self.explanations.to_frame()


def find(
    recourse: Recourse,
    question: Callable[[int], Question],
    row: FloatArray,
    code: int,
    *,
    k: int | None,
    tolerance: float | None,
    diverse_by: str | None,
    separation: float | None,
    seconds: float,
) -> Alternatives:
    """The alternatives of one row on the grid; ``question(n)`` makes the question that n answers belong to."""
    _check_wishes(recourse, k, tolerance, diverse_by)
    first = recourse.ask(row[np.newaxis], np.array([code], dtype=np.int32), seconds, 1)
    nearest = float(first.numbers[0, 0])
    if first.codes[0, 0] != 0:  # none, or none in time
        return Alternatives(Explanations(question(1), first), float(first.numbers[1, 0]))
    source = int(first.codes[2, 0])
    most = np.inf if tolerance is None else nearest * (1 + tolerance)
    selects = _selector(recourse, row, diverse_by, nearest if separation is None else separation, question(1))
    radius, best = (nearest if k is not None else most), None
    for ball in range(_MOST_BALLS):
        found = recourse.within(row, code, min(radius, most) * _SLACK, _MOST, seconds).no_farther(min(radius, most))
        if not found.is_complete:
            break
        best = found.taking(selects(found)), min(radius, most)
        if radius >= most or (k is not None and len(best[0]) >= k):
            break
        radius = np.inf if ball == _MOST_BALLS - 2 else max(radius * _GROWTH, np.finfo(float).tiny)
    if best is None:
        return Alternatives(Explanations(question(1), first), 0.0)
    listed, within = best
    shown = listed.taking(np.arange(min(len(listed), k or len(listed))))
    return Alternatives(Explanations(question(len(shown)), shown.replies(source)), within)


def _check_wishes(recourse: Recourse, k: int | None, tolerance: float | None, diverse_by: str | None) -> None:
    if k is None and tolerance is None:
        raise ValueError("alternatives needs k or tolerance, got neither")
    if k is not None:
        _check.whole(k, "k", 1)
    if tolerance is not None and _check.number(tolerance, "tolerance") < 0:
        raise ValueError(f"tolerance must not be negative, got {tolerance}")
    if diverse_by not in DIVERSITIES:
        raise ValueError(f"diverse_by must be one of {DIVERSITIES}, got {diverse_by!r}")
    relation = next((one for one in recourse.constraints if isinstance(one, Linear | Boxes)), None)
    if relation is not None:
        raise ValueError(f"alternatives cannot be listed under {str(relation)!r}: there they are endless")


def _selector(
    recourse: Recourse, row: FloatArray, diverse_by: str | None, separation: float, question: Question
) -> Callable[[Listed], Any]:
    """Which of some answers, in order, are unlike all better ones that were taken."""
    features = recourse.lattice.features

    def changed(point: FloatArray) -> frozenset[int]:
        return frozenset(k for k, places in enumerate(features.positions) if (point[places] != row[places]).any())

    def unlike(found: Listed) -> Any:
        taken: list[int] = []
        seen: Any = set()
        for place, point in enumerate(found.points):
            if diverse_by == "features":
                if (key := changed(point)) in seen:
                    continue
                seen.add(key)
            elif diverse_by == "distance":
                apart = recourse.distance.between(found.points[taken], point, features=features)
                if len(taken) and apart.min() < separation:
                    continue
            elif diverse_by == "region":
                if any(((low <= point) & (point <= high)).all() for low, high in seen or ()):
                    continue
                seen = [*seen, question.find_region(found.cells[place])]
            taken.append(place)
        return np.array(taken, dtype=np.intp)

    return unlike
