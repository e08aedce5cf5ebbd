"""Answers as values: one explanation, or many in columns."""

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from cfmaps import _tables, _words
from cfmaps._shapes import LikeRows
from cfmaps.constraints import Constraint
from cfmaps.distance import Distance, FloatArray
from cfmaps.errors import NotConfirmed
from cfmaps.features import Categorical, Feature, OneHot
from cfmaps.lattice import Lattice
from cfmaps.records import save_explanations
from cfmaps.recourse import Recourse

STATUSES = ("optimal", "feasible", "infeasible", "unknown")


@dataclass(frozen=True, slots=True)
class Change:
    """One feature that differs: its value, or its category (None for no category), before and after."""

    feature: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Region:
    """A box around an answer in which the model keeps its class.

    Attributes
    ----------
    columns : tuple of str
    lower, upper : float64 arrays of shape (n_columns,)
        Closed ends on the model's number grid, infinite where nothing limits. Of a one-hot
        group the columns with upper end 1 may be on, one at a time.
    """

    columns: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray


@dataclass(slots=True, eq=False)
class Question:
    """What was asked, and what it takes to read the replies; never changed once it is made."""

    lattice: Lattice
    distance: Distance
    classes: npt.NDArray[Any]
    predict: Callable[[FloatArray], npt.NDArray[Any]]
    find_region: Callable[[npt.NDArray[np.int32]], tuple[FloatArray, FloatArray]]
    rows: FloatArray
    grid_rows: FloatArray
    shape: LikeRows
    # The model's own numbers for rows, where a target is about these and not about labels.
    outputs: Callable[[FloatArray], npt.NDArray[Any]] | None = None
    # What answers under constraints, and the codes of the targets.
    recourse: Recourse | None = None
    codes: npt.NDArray[np.int32] | None = None


class Explanations:
    """The smallest changes of many rows, in columns; item ``i`` is an `Explanation`.

    Distances and bounds are proven when the answers arrive. ``counterfactuals`` are
    confirmed by the model's own ``predict`` in one call when they are first read: that
    call may take longer than all searches together.
    """

    __slots__ = ("_confirmed", "_question", "_replies")

    def __init__(self, question: Question, replies: Any) -> None:
        self._question = question
        self._replies = replies
        self._confirmed = False

    def __len__(self) -> int:
        return len(self._replies)

    def __getitem__(self, index: SupportsIndex) -> "Explanation":
        index, n_rows = operator.index(index), len(self)
        if not -n_rows <= index < n_rows:
            raise IndexError(f"index must be within {n_rows} explanations, got {index}")
        return Explanation(self, index % n_rows)

    def __iter__(self) -> Iterator["Explanation"]:
        return (Explanation(self, index) for index in range(len(self)))

    @property
    def question(self) -> Question:
        """What was asked."""
        return self._question

    @property
    def statuses(self) -> npt.NDArray[np.str_]:
        """Per row "optimal", "feasible", "infeasible" or "unknown"."""
        return np.asarray(np.array(STATUSES)[self._replies.codes[0]])

    @property
    def distances(self) -> FloatArray:
        """Distance of every answer; inf where there is none."""
        return np.asarray(self._replies.numbers[0])

    @property
    def lower_bounds(self) -> FloatArray:
        """What no counterfactual is nearer than: the distance itself where it is optimal."""
        return np.asarray(self._replies.numbers[1])

    @property
    def infima(self) -> FloatArray:
        """Distance to the closure of each answer's cells on the real line."""
        return self._infima(slice(None))

    @property
    def sources(self) -> npt.NDArray[Any]:
        """The model's label of every row; its output where the target is about that."""
        if self._question.outputs is not None:
            return self._question.outputs(self._question.grid_rows)
        return np.asarray(self._question.classes[self._replies.codes[2]])

    @property
    def targets(self) -> npt.NDArray[Any]:
        """The model's label of every answer; None where there is none. The output where the target is about that."""
        found = self._replies.codes[1] >= 0
        if self._question.outputs is not None:
            outputs: Any = self._question.outputs(
                np.where(found[:, np.newaxis], self._replies.points, self._question.grid_rows)
            )
            return np.array([output if is_found else None for output, is_found in zip(outputs, found, strict=True)])
        labels = self._question.classes[np.maximum(self._replies.codes[1], 0)]
        return np.asarray(labels if found.all() else np.where(found, labels.astype(object), None))

    @property
    def n_visited(self) -> npt.NDArray[np.int64]:
        """Nodes of the map that each search visited."""
        return np.asarray(self._replies.work[0], dtype=np.int64)

    @property
    def n_evaluated(self) -> npt.NDArray[np.int64]:
        """Boxes that each search had to bound beyond the map."""
        return np.asarray(self._replies.work[1], dtype=np.int64)

    @property
    def counterfactuals(self) -> Any:
        """The answers, in the columns, type and library of the query; NaN rows where there is none."""
        return self._question.shape.all(self.points)

    @property
    def points(self) -> FloatArray:
        """The answers as float64 rows in the model's columns, NaN where there is none."""
        return self._confirmed_points(slice(None))

    def to_frame(self) -> Any:
        """One row per query: status, labels, distance and the counterfactual's columns.

        In the library of the query, or pandas (else polars) when that was an array.
        """
        columns = {
            "status": self.statuses,
            "source": self.sources,
            "target": self.targets,
            "distance": self.distances,
            "lower_bound": self.lower_bounds,
        }
        answers = dict(zip(self._question.lattice.features.columns, self.points.T, strict=True))
        clash = next((name for name in answers if name in columns), None)
        prefix = "" if clash is None else "counterfactual_"
        columns |= {prefix + name: values for name, values in answers.items()}
        return _tables.frame(columns, self._question.shape.frame, same_rows=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all explanations to a .json, .jsonl, .csv or .parquet file; `load_explanations` reads it."""
        save_explanations(path, self)

    def _infima(self, which: slice) -> FloatArray:
        lattice, rows, cells = self._question.lattice, self._question.grid_rows[which], self._replies.cells[which]
        if self._question.recourse is not None:  # what constraints leave of a cell has no closure of its own
            return self.lower_bounds[which]
        closed = lattice.nearest_real(rows, np.maximum(cells, 0))
        measured = self._question.distance.between(rows, closed, features=lattice.features)
        moved = (cells >= 0).all(axis=1)
        return np.where(moved, measured, self.distances[which])

    def _confirmed_points(self, which: slice) -> FloatArray:
        self._confirm()
        question, points = self._question, self._replies.points[which]
        rows = np.where(points != question.grid_rows[which], points, question.rows[which])
        rows[self._replies.codes[1, which] < 0] = np.nan
        return rows

    def _confirm(self) -> None:
        """Ask the model itself, once, about all answers."""
        found = np.flatnonzero(self._replies.codes[1] >= 0)
        if self._confirmed or not len(found):
            return
        expected = self._question.classes[self._replies.codes[1][found]]
        predicted = self._question.predict(self._replies.points[found])
        wrong = np.flatnonzero(predicted != expected)
        if len(wrong):
            row, got, wanted = found[wrong[0]], predicted[wrong[0]], expected[wrong[0]]
            raise NotConfirmed(
                f"predict gives {got!r} for the answer to row {row}, expected {wanted!r}, "
                f"at {self._replies.points[row].tolist()}; was the model changed since it was read?"
            )
        if self._question.recourse is not None:
            for row in found:
                self._question.recourse.confirm(self._question.grid_rows[row], self._replies.points[row])
        self._confirmed = True

    def __repr__(self) -> str:
        counts = {status: int((self._replies.codes[0] == code).sum()) for code, status in enumerate(STATUSES)}
        return f"Explanations({', '.join([f'{len(self)} rows', *(f'{n} {name}' for name, n in counts.items() if n)])})"

    def _repr_html_(self) -> str:
        return _tables.html_of_many(self)


class Explanation:
    """The smallest change of one row that the model classifies as wanted.

    Reading ``counterfactual``, ``changes()`` or anything made from them asks the model's
    own ``predict`` once and raises `NotConfirmed` should it disagree.
    """

    __slots__ = ("_index", "_many")

    def __init__(self, many: Explanations, index: int) -> None:
        self._many = many
        self._index = index

    @property
    def status(self) -> str:
        """ "optimal"; "feasible" or "unknown" after an early stop; "infeasible" when proven."""
        return STATUSES[self._many._replies.codes[0, self._index]]

    @property
    def distance(self) -> float:
        """Distance of the counterfactual; inf without one."""
        return float(self._many._replies.numbers[0, self._index])

    @property
    def lower_bound(self) -> float:
        """What no counterfactual is nearer than."""
        return float(self._many._replies.numbers[1, self._index])

    @property
    def infimum(self) -> float:
        """Distance to the closure of the answer's cells on the real line, at most a grid step a feature less."""
        return float(self._many._infima(self._place)[0])

    @property
    def source(self) -> Any:
        """The model's label of the query; its output where the target is about that."""
        question = self._many._question
        if question.outputs is not None:
            return question.outputs(question.grid_rows[self._place])[0]
        return self._many._question.classes[self._many._replies.codes[2, self._index]]

    @property
    def target(self) -> Any:
        """The model's label of the counterfactual, its output where the target is about that; None without one."""
        code = self._many._replies.codes[1, self._index]
        if code >= 0 and self._many._question.outputs is not None:
            return self._many._question.outputs(self._many._replies.points[self._place])[0]
        return None if code < 0 else self._many._question.classes[code]

    @property
    def query(self) -> Any:
        """The row that was asked about, as it was given."""
        question = self._many._question
        return question.shape.one(question.rows[self._index], self._index)

    @property
    def counterfactual(self) -> Any:
        """The answer in the columns, type and library of the query; None without one."""
        return self._many._question.shape.one(self._point, self._index) if self._is_found else None

    @property
    def violated(self) -> tuple[Constraint, ...]:
        """The constraints that the query itself does not keep, so that it could not stay as it is."""
        question = self._many._question
        return () if question.recourse is None else question.recourse.broken(question.grid_rows[self._index])

    @property
    def conflict(self) -> tuple[Constraint, ...]:
        """Where the status is "infeasible": constraints that together leave no answer; any answer needs one relaxed.

        Without any of them there is an answer. Empty where the model, its features and the
        distance alone leave none. Found by asking again, once for each constraint.
        """
        question = self._many._question
        if self.status != "infeasible" or question.recourse is None or question.codes is None:
            return ()
        return question.recourse.conflict(question.grid_rows[self._index], int(question.codes[self._index]))

    @property
    def region(self) -> Region | None:
        """A box around the counterfactual in which the model keeps the target; None without one."""
        question = self._many._question
        if not self._is_found:
            return None
        cells = self._many._replies.cells[self._index]
        if (cells < 0).any():
            cells = question.lattice.cells(question.grid_rows[self._place])[0]
        return Region(question.lattice.features.columns, *question.find_region(cells))

    def changes(self) -> list[Change]:
        """The features that change, in order; a one-hot group is one feature."""
        if not self._is_found:
            return []
        features = self._many._question.lattice.features
        before, after = self._many._question.rows[self._index], self._point
        pairs = zip(features, features.positions, strict=True)
        return [
            Change(feature.name, _value(feature, before[columns]), _value(feature, after[columns]))
            for feature, columns in pairs
            if not np.array_equal(before[columns], after[columns], equal_nan=True)
        ]

    def contributions(self) -> list[tuple[Change, float]]:
        """Each change with what it adds to the distance when all are made in turn; they sum up to the distance."""
        question = self._many._question
        features, at = question.lattice.features, question.grid_rows[self._index].copy()
        goal = self._many._replies.points[self._index]
        places = dict(zip(features.names, features.positions, strict=True))
        before, steps = 0.0, []
        for change in self.changes():
            at[places[change.feature]] = goal[places[change.feature]]
            after = float(question.distance.between(question.grid_rows[self._index], at, features=features))
            steps.append((change, after - before))
            before = after
        return steps

    @property
    def is_constrained(self) -> bool:
        """Whether constraints were asked for, so that the region need not keep them."""
        recourse = self._many._question.recourse
        return recourse is not None and bool(recourse.constraints)

    def describe(self, units: Mapping[str, str] | None = None) -> str:
        """What has to change, in plain sentences.

        Without constraints every number may be anything between the values named: they are
        the region's, all at once. ``units`` are put behind the numbers of their features.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from cfmaps import CounterfactualMap, Features, Numeric
        >>> model = DecisionTreeClassifier().fit([[20], [30], [50]], ["no", "yes", "no"])
        >>> cfmap = CounterfactualMap(model, features=Features([Numeric("income")]))
        >>> print(cfmap.explain([21]).describe({"income": "k"}))
        The model says yes instead of no if income rises from 21 k to between 25.001 and 40 k. No smaller change does
        (distance 4).
        """
        return _words.describe(self, units or {}, self._many._question.lattice.features.entries)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON."""
        found = self._is_found
        return {
            "status": self.status,
            "source": _plain(self.source),
            "target": _plain(self.target),
            "distance": self.distance if found else None,
            "infimum": self.infimum if found else None,
            "lower_bound": self.lower_bound if np.isfinite(self.lower_bound) else None,
            "query": self._named(self._many._question.rows[self._index]),
            "counterfactual": self._named(self._point) if found else None,
            "changes": [{"feature": c.feature, "before": c.before, "after": c.after} for c in self.changes()],
        }

    def _named(self, row: FloatArray) -> dict[str, Any]:
        """A row by column: categories as the caller writes them, None for missing values."""
        features, named = self._many._question.lattice.features, {}
        for feature, columns in zip(features, features.positions, strict=True):
            for name, column in zip(feature.columns, columns.tolist(), strict=True):
                value = float(row[column])
                is_plain = value == value and not isinstance(feature, Categorical)
                named[name] = value if is_plain else _value(feature, row[[column]])
        return {name: named[name] for name in features.columns}

    def to_frame(self) -> Any:
        """The changes as a frame: feature, before, after."""
        changes = self.changes()
        columns = {name: [getattr(change, name) for change in changes] for name in ("feature", "before", "after")}
        return _tables.frame(columns, self._many._question.shape.frame)

    @property
    def _place(self) -> slice:
        return slice(self._index, self._index + 1)

    @property
    def _is_found(self) -> bool:
        return bool(self._many._replies.codes[1, self._index] >= 0)

    @property
    def _point(self) -> FloatArray:
        return np.asarray(self._many._confirmed_points(self._place)[0])

    def __str__(self) -> str:
        return _tables.text(self)

    def __repr__(self) -> str:
        return f"Explanation(status={self.status!r}, target={_plain(self.target)!r}, distance={self.distance:.6g})"

    def _repr_html_(self) -> str:
        return _tables.html(self)


def _value(feature: Feature, columns: FloatArray) -> Any:
    if isinstance(feature, OneHot):
        return feature.columns[int(columns.argmax())] if columns.any() else None
    value = float(columns[0])
    if value != value:
        return None
    if isinstance(feature, Categorical):
        return feature.category_of(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
