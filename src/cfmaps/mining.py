"""Constraints that data keep, offered for review: nothing here is applied by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cfmaps import _check
from cfmaps.constraints import Condition, Constraint, Implies, Linear, Range
from cfmaps.distance import FloatArray
from cfmaps.features import Binary, Feature, Features, Integer, Numeric, OneHot

_FEWEST = 5  # rows for which an implication must have something to say


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Something that holds in every row of the data.

    Attributes
    ----------
    kind : {"order", "implication", "range", "one-hot", "integer"}
    proposal : Constraint, or a feature (`OneHot`, `Integer`) for `Features`
    support : int
        The rows it speaks about.
    reason : str
    """

    kind: str
    proposal: Constraint | Feature
    support: int
    reason: str

    def __str__(self) -> str:
        return f"{self.proposal}: {self.reason}"


def mine(data: Any, features: Features | None = None) -> list[Suggestion]:
    """What all rows keep: orders between columns, implications between flags, ranges, one-hot groups, whole numbers.

    Parameters
    ----------
    data : rows or frame
        In the model's columns.
    features : Features, optional
        What the columns are; without it one-hot groups and whole numbers are looked for too.

    Examples
    --------
    >>> rows = [[1.0, 2.5, 1, 0], [2.0, 2.5, 0, 1], [0.5, 9.25, 1, 0], [3.0, 3.5, 0, 1]]
    >>> for suggestion in mine(rows, Features.numeric(4)):
    ...     if suggestion.kind == "order":
    ...         print(suggestion)
    x0 - x1 <= 0: x0 is never above x1, in 4 rows
    """
    known = features
    if known is None:
        names = list(getattr(data, "columns", ())) or None
        width = np.shape(data)[1] if np.ndim(data) == 2 else len(names or ())
        known = Features.numeric(width, names=names)
    rows = _check.matrix(data, "data", known.n_columns, columns=known.columns)
    if not len(rows):
        raise ValueError("data must hold at least one row, got none")
    found = [*_ranges(rows, known), *_orders(rows, known), *_implications(rows, known)]
    return [*found, *_groups(rows, known), *_integers(rows, known)] if features is None else found


def _numbers(features: Features) -> list[tuple[Feature, int]]:
    places = zip(features, features.positions, strict=True)
    return [(entry, int(columns[0])) for entry, columns in places if not isinstance(entry, OneHot | Binary)]


def _is_flag(column: FloatArray) -> bool:
    return bool(np.isin(column, (0, 1)).all())


def _ranges(rows: FloatArray, features: Features) -> Iterator[Suggestion]:
    for entry, place in _numbers(features):
        low, high = float(rows[:, place].min()), float(rows[:, place].max())
        if low < high and not _is_flag(rows[:, place]):
            yield Suggestion("range", Range(entry.name, low, high), len(rows), f"no row of {len(rows)} is outside")


def _orders(rows: FloatArray, features: Features) -> Iterator[Suggestion]:
    numbers = [(entry, place) for entry, place in _numbers(features) if not _is_flag(rows[:, place])]
    for one, other in combinations(numbers, 2):
        for (low, below), (high, above) in ((one, other), (other, one)):
            a, b = rows[:, below], rows[:, above]
            # Ranges that do not meet say nothing about the two together.
            if (a <= b).all() and (a < b).any() and a.max() > b.min():
                order = Linear({low.name: 1, high.name: -1}, "<=", 0)
                reason = f"{low.name} is never above {high.name}, in {len(rows)} rows"
                yield Suggestion("order", order, len(rows), reason)


def _implications(rows: FloatArray, features: Features) -> Iterator[Suggestion]:
    flags = [
        (entry.name, int(columns[0]))
        for entry, columns in zip(features, features.positions, strict=True)
        if not isinstance(entry, OneHot) and _is_flag(rows[:, columns[0]])
    ]
    for name, place in flags:
        on = rows[:, place] == 1
        if on.sum() < _FEWEST or on.all():
            continue
        for other, column in flags:
            for value in (0.0, 1.0):
                if other != name and (rows[on, column] == value).all() and not (rows[:, column] == value).all():
                    rule = Implies(Condition(name, "==", 1.0), Condition(other, "==", value))
                    yield Suggestion("implication", rule, int(on.sum()), f"so in all {on.sum()} rows with {name}")


def _groups(rows: FloatArray, features: Features) -> Iterator[Suggestion]:
    """Neighbouring flags whose names begin alike, or any run of them, of which exactly one is on in every row."""
    flags = [place for place in range(rows.shape[1]) if _is_flag(rows[:, place]) and rows[:, place].any()]
    start = 0
    while start < len(flags):
        for end in range(len(flags), start + 2, -1):
            columns = flags[start:end]
            if columns[-1] - columns[0] == end - start - 1 and (rows[:, columns].sum(axis=1) == 1).all():
                names = [features.columns[column] for column in columns]
                group = OneHot(_common(names), columns=names)
                yield Suggestion("one-hot", group, len(rows), f"exactly one is on in each of {len(rows)} rows")
                start = end - 1
                break
        start += 1


def _common(names: list[str]) -> str:
    """What the names of some columns begin with, or all of them."""
    shared = names[0]
    while shared and not all(name.startswith(shared) for name in names):
        shared = shared[:-1]
    return shared.rstrip("=_:. -") or "+".join(names)


def _integers(rows: FloatArray, features: Features) -> Iterator[Suggestion]:
    for entry, place in _numbers(features):
        column = rows[:, place]
        if isinstance(entry, Numeric) and not _is_flag(column) and (column == np.floor(column)).all():
            yield Suggestion("integer", Integer(entry.name), len(rows), f"whole in all {len(rows)} rows")
