"""Constraints and prices as the core wants them: rules for all rows, limits for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatchmethod
from itertools import product
from typing import Any

import numpy as np

from cfmaps import _core
from cfmaps.constraints import (
    AllOf,
    AnyOf,
    Condition,
    Constraint,
    Decrease,
    Forbid,
    Freeze,
    Implies,
    Increase,
    Linear,
    MaxChanges,
    Not,
    Range,
    Robust,
    Row,
    Step,
    category,
    decimal,
)
from cfmaps.distance import Distance, FloatArray
from cfmaps.features import Feature, Integer, Numeric, OneHot, Ordinal
from cfmaps.lattice import Lattice

_FREE, _WHOLE, _LISTED, _STEPPED = range(4)
_MOST_CONDITIONS = 5000

Clause = list[Condition]


@dataclass(slots=True)
class _Axis:
    """What is known of one ordered axis before any row is."""

    values: int
    listed: FloatArray = field(default_factory=lambda: np.empty(0))
    start: float = 0.0
    size: float = 0.0
    from_row: bool = False
    stepped_by: Constraint | None = None


class Rules:
    """All constraints together, sorted by what the core does with them."""

    def __init__(self, lattice: Lattice, distance: Distance) -> None:
        features = lattice.features
        self.lattice, self.distance = lattice, distance
        self.axis_of = {entry.name: axis for axis, entry in enumerate(features)}
        self.column_of = {
            column: (axis, place)
            for axis, entry in enumerate(features)
            if isinstance(entry, OneHot)
            for place, column in enumerate(entry.columns)
        }
        self.axes = [_axis(entry) for entry in features]
        self.frozen: list[int] = []
        self.first_columns = np.array([columns[0] for columns in lattice.axis_columns])
        self.limited: list[tuple[int, str, Fraction, bool, Constraint]] = []
        self.literals: list[Condition] = []
        self.clauses: list[list[int]] = []
        self.forbidden: list[tuple[Forbid, int]] = []  # and its literal, -1 for a category
        self.kept_categories: list[tuple[int, Condition]] = []
        self.relations: list[tuple[FloatArray, FloatArray, float]] = []
        self.most_changes = -1
        self.margins = np.zeros(lattice.n_axes)
        self.may_be_broken: tuple[Constraint, ...] = ()
        self.current: Constraint = MaxChanges(0)
        self.tables: list[tuple[int, Callable[[FloatArray, FloatArray], FloatArray]]] = []

    @classmethod
    def of(cls, lattice: Lattice, distance: Distance, constraints: Sequence[Constraint]) -> "Rules":
        rules = cls(lattice, distance)
        rules._check_prices()
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise TypeError(f"constraints must be cfmaps constraints or their text, got {constraint!r}")
            rules.current = constraint
            for name in constraint.features():
                if name not in rules.axis_of and name not in rules.column_of:
                    rules._fail(f"expected a feature among {list(rules.axis_of)}, got {name!r}")
            rules.add(constraint)
        rules._check_limits()
        never_broken = Freeze | Increase | Decrease | MaxChanges | Step | Forbid | Robust
        rules.may_be_broken = tuple(one for one in constraints if not isinstance(one, never_broken))
        return rules

    def _fail(self, problem: str) -> None:
        raise ValueError(f"constraint {str(self.current)!r}: {problem}")

    # Each kind of constraint.

    @singledispatchmethod
    def add(self, constraint: Constraint) -> None:
        for clause in self._clauses(constraint, negated=False):
            self._add_clause(clause)

    @add.register
    def _(self, constraint: Freeze) -> None:
        self.frozen += [self._any_axis(name) for name in constraint.names]

    @add.register
    def _(self, constraint: Range) -> None:
        for operator, end in ((">=", constraint.low), ("<=", constraint.high)):
            if end is not None:
                self._limit(constraint.feature, operator, Fraction(end), relative=False)

    @add.register
    def _(self, constraint: Increase) -> None:
        self._limit(constraint.feature, ">=", Fraction(0), relative=True)
        if constraint.at_most is not None:
            self._limit(constraint.feature, "<=", decimal(constraint.at_most), relative=True)

    @add.register
    def _(self, constraint: Decrease) -> None:
        self._limit(constraint.feature, "<=", Fraction(0), relative=True)
        if constraint.at_most is not None:
            self._limit(constraint.feature, ">=", -decimal(constraint.at_most), relative=True)

    @add.register
    def _(self, constraint: Step) -> None:
        axis = self._ordered(constraint.feature)
        entry, rule = self.lattice.features.entries[axis], self.axes[axis]
        if rule.stepped_by is not None:
            self._fail(f"{str(rule.stepped_by)!r} gives {constraint.feature!r} a grid already")
        rule.stepped_by = constraint
        rule.from_row = constraint.start == "current"
        if constraint.values is not None:
            number = self.lattice.ensemble.number
            values = np.array([float(number(value)) for value in constraint.values])
            if isinstance(entry, Ordinal):
                values = np.array([value for value in entry.values if value in constraint.values])
            elif rule.values == _WHOLE:
                values = values[values == np.floor(values)]
            rule.values, rule.listed = _LISTED, np.unique(values)
            return
        rule.size, rule.start = float(constraint.size or 1), 0.0 if rule.from_row else float(constraint.start)
        if isinstance(entry, Ordinal):
            self._fail(f"{constraint.feature!r} has listed values: give some of them as values=")
        if isinstance(entry, Integer) and not (rule.size.is_integer() and rule.start.is_integer()):
            self._fail(f"{constraint.feature!r} is whole: expected whole size and start")
        if not isinstance(entry, Integer | Numeric):
            self._fail(f"{constraint.feature!r} is 0 or 1: it has no steps")
        rule.values = _STEPPED

    @add.register
    def _(self, constraint: Forbid) -> None:
        axis = self._any_axis(constraint.feature)
        if isinstance(self.lattice.features.entries[axis], OneHot):
            for value in (constraint.before, constraint.after):
                if value is not None:
                    self.category_of(axis, value)
            self.forbidden.append((constraint, -1))
            return
        stays = Condition(constraint.feature, "==", 0.0, relative=True)
        literal = self._literal(
            stays if constraint.after is None else Condition(constraint.feature, "!=", constraint.after)
        )
        self.clauses.append([literal])
        self.forbidden.append((constraint, literal))

    @add.register
    def _(self, constraint: MaxChanges) -> None:
        self.most_changes = constraint.most if self.most_changes < 0 else min(self.most_changes, constraint.most)

    @add.register
    def _(self, constraint: Robust) -> None:
        for name, margin in constraint.margins:
            for axis in [self._ordered(name)] if name else np.flatnonzero(~self.lattice.categorical):
                self.margins[axis] = max(self.margins[axis], margin)

    @add.register
    def _(self, constraint: Linear) -> None:
        for shares, most in constraint.rows():
            of_axis, of_cell = np.zeros(self.lattice.n_axes), np.zeros(len(self.lattice.low))
            for name, share in shares.items():
                if name in self.column_of:
                    axis, place = self.column_of[name]
                    of_cell[self.lattice.cell_start[axis] + place] = share
                    continue
                axis = self._ordered(name)
                of_axis[axis] = share
                self._check_linear(axis, equal=constraint.operator == "==")
            self.relations.append((of_axis, of_cell, most))

    def _check_linear(self, axis: int, *, equal: bool) -> None:
        name = self.lattice.features.names[axis]
        price = self.distance.prices.get(name)
        if equal and self.axes[axis].values == _FREE:
            self._fail(f"{name!r} is a real number: say within what it is equal, with one <= and one >=")
        if price is not None and price.has_table:
            self._fail(f"the price of {name!r} is a function: relations need prices up, down and fixed")
        if price is not None and price.fixed > 0 and self.distance.p != 1:
            self._fail(f"the fixed price of {name!r} goes with relations in 'l1' only")

    # Conditions.

    def _clauses(self, constraint: Constraint, *, negated: bool) -> list[Clause]:
        """Clauses, all of which must hold, of conditions, any of which will do."""
        parts: list[list[Clause]]
        if isinstance(constraint, Condition):
            return self._of_condition(constraint.negated() if negated else constraint)
        if isinstance(constraint, Range):
            ends = ((">=", constraint.low), ("<=", constraint.high))
            both = AllOf(*(Condition(constraint.feature, sign, end) for sign, end in ends if end is not None))
            return self._clauses(both, negated=negated)
        if isinstance(constraint, Not):
            return self._clauses(constraint.parts[0], negated=not negated)
        if isinstance(constraint, Implies):
            first, second = constraint.parts
            return self._clauses(AnyOf(Not(first), second), negated=negated)
        if not isinstance(constraint, AnyOf | AllOf):
            raise TypeError(f"constraint {str(constraint)!r} is of a kind that cannot be kept: {type(constraint)}")
        parts = [self._clauses(part, negated=negated) for part in constraint.parts]
        if isinstance(constraint, AllOf) != negated:
            return [clause for part in parts for clause in part]
        if np.prod([float(len(part)) for part in parts]) * len(parts) > _MOST_CONDITIONS:
            self._fail(f"it unfolds into more than {_MOST_CONDITIONS} conditions")
        return [[condition for clause in choice for condition in clause] for choice in product(*parts)]

    def _of_condition(self, condition: Condition) -> list[Clause]:
        """The condition itself; one on a one-hot column speaks of the group's category."""
        if condition.feature not in self.column_of:
            self._check_condition(condition)
            return [[condition]]
        if condition.relative:
            self._fail("expected 0 or 1 after a one-hot column")
        axis, place = self.column_of[condition.feature]
        entry = self.lattice.features.entries[axis]
        on, off = (Condition("", condition.operator, condition.value).holds(_NO_ROW, _of(bit)) for bit in (1.0, 0.0))
        if on and off:
            return []
        return [[]] if not on and not off else [[Condition(entry.name, "==" if on else "!=", entry.columns[place])]]

    def _check_condition(self, condition: Condition) -> None:
        axis = self.axis_of[condition.feature]
        if isinstance(self.lattice.features.entries[axis], OneHot):
            if condition.operator not in ("==", "!="):
                self._fail(f"{condition.feature!r} is a category: expected == or !=, got {condition.operator}")
            if not condition.relative:
                self.category_of(axis, condition.value)
        elif isinstance(condition.value, str | None):
            self._fail(f"{condition.feature!r} is a number, got {condition.value!r}")

    def _add_clause(self, clause: Clause) -> None:
        if len(clause) != 1 or self._is_unequal_number(clause[0]):
            self.clauses.append([self._literal(condition) for condition in clause])
            return
        condition = clause[0]
        axis = self.axis_of[condition.feature]
        if isinstance(self.lattice.features.entries[axis], OneHot):
            self.kept_categories.append((axis, condition))
            return
        value = decimal(condition.value) if condition.relative else Fraction(float(condition.value))
        self._limit(condition.feature, condition.operator, value, relative=condition.relative)

    def _is_unequal_number(self, condition: Condition) -> bool:
        entry = self.lattice.features.entries[self.axis_of[condition.feature]]
        return condition.operator == "!=" and not isinstance(entry, OneHot)

    def _literal(self, condition: Condition) -> int:
        self.literals.append(condition)
        return len(self.literals) - 1

    def _limit(self, name: str, operator: str, value: Fraction, *, relative: bool) -> None:
        axis = self._ordered(name)
        for sign in ("<=", ">=") if operator == "==" else (operator,):
            self.limited.append((axis, sign, value, relative, self.current))

    def _ordered(self, name: str) -> int:
        if name in self.column_of or isinstance(self.lattice.features.entries[self.axis_of[name]], OneHot):
            self._fail(f"expected a number, {name!r} is a category")
        return self.axis_of[name]

    def _any_axis(self, name: str) -> int:
        if name in self.column_of:
            group = self.lattice.features.entries[self.column_of[name][0]].name
            self._fail(f"{name!r} is a column of {group!r}: expected the name of the group")
        return self.axis_of[name]

    def category_of(self, axis: int, value: Any) -> int:
        entry = self.lattice.features.entries[axis]
        assert isinstance(entry, OneHot)
        if entry.optional and value in (None, "none"):
            return len(entry.columns)
        column = category(entry.name, value, entry.columns)
        if column is None:
            self._fail(f"expected a category of {entry.name!r} among {list(entry.columns)}, got {value!r}")
        return entry.columns.index(str(column))

    # Numbers.

    def rounded(self, axis: int, value: Fraction, operator: str) -> float:
        """The last (first) number of the axis that keeps ``operator value``, as far as rounding goes."""
        sign = 1 if operator in ("<=", "<") else -1
        exact = value * sign
        number: Any = self.lattice.ensemble.number if self.axes[axis].values == _FREE else np.float64
        with np.errstate(over="ignore"):
            near = number(float(exact))
            while np.isfinite(near) and (
                Fraction(float(near)) > exact or (operator in ("<", ">") and Fraction(float(near)) == exact)
            ):
                near = np.nextafter(near, number(-np.inf))
        return sign * float(near) + 0.0

    def interval(self, condition: Condition, x: float) -> tuple[float, float]:
        axis = self.axis_of[condition.feature]
        absolute = Fraction(0) if condition.relative else Fraction(float(condition.value))
        value = Fraction(x) + decimal(condition.value) if condition.relative else absolute
        low, high = -np.inf, np.inf
        if condition.operator not in ("<=", "<"):
            low = self.rounded(axis, value, ">" if condition.operator == ">" else ">=")
        if condition.operator not in (">=", ">"):
            high = self.rounded(axis, value, "<" if condition.operator == "<" else "<=")
        return low, high

    def _check_limits(self) -> None:
        """Limits that leave nothing to any row are a contradiction."""
        ends: dict[tuple[int, int], tuple[float, Constraint]] = {}
        for axis, operator, value, relative, constraint in self.limited:
            if relative:
                continue
            side = 1 if operator in ("<=", "<") else -1
            end = side * self.rounded(axis, value, operator)
            if (axis, side) not in ends or end < ends[axis, side][0]:
                ends[axis, side] = (end, constraint)
        for (axis, side), (end, constraint) in ends.items():
            other = ends.get((axis, -side))
            if side == 1 and other is not None and -other[0] > end:
                raise ValueError(
                    f"constraints {str(other[1])!r} and {str(constraint)!r} contradict each other: "
                    f"no value of {self.lattice.features.names[axis]!r} keeps both"
                )

    def _check_prices(self) -> None:
        for name, price in self.distance.prices.items():
            if name not in self.axis_of:
                raise ValueError(f"prices name the feature {name!r}, expected some of {list(self.axis_of)}")
            axis = self.axis_of[name]
            is_group = isinstance(self.lattice.features.entries[axis], OneHot)
            if is_group and (price.cost is not None or (price.up, price.down) != (1.0, 1.0)):
                raise ValueError(f"price of {name!r}: a category has prices fixed and between")
            if not is_group and price.between is not None:
                raise ValueError(f"price of {name!r}: between is for categories")
            if price.has_table:
                self.tables.append((axis, self._table(axis, name)))

    def _table(self, axis: int, name: str) -> Callable[[FloatArray, FloatArray], FloatArray]:
        column = self.lattice.axis_columns[axis][0]
        price, weight = self.distance.prices[name], self._weight(axis)
        return lambda row, values: weight * price.gaps(float(row[column]), np.array(values))

    def _weight(self, axis: int) -> float:
        weights = self.distance.weights
        return 1.0 if weights is None else float(weights[self.lattice.axis_columns[axis][0]])

    # For the core.

    def core(self) -> _core.Rules:
        """The part that all rows share."""
        n_axes, n_cells = self.lattice.n_axes, len(self.lattice.low)
        return _core.Rules(
            kinds=np.array([axis.values for axis in self.axes], dtype=np.int32),
            lists=[axis.listed for axis in self.axes],
            steps=np.array([(axis.start, axis.size) for axis in self.axes]),
            from_row=np.array([axis.from_row for axis in self.axes]),
            prices=np.array([self._prices_of(axis) for axis in range(n_axes)]),
            has_table=np.array([axis in dict(self.tables) for axis in range(n_axes)]),
            condition_axis=np.array([self.axis_of[one.feature] for one in self.literals], dtype=np.int32),
            condition_negated=np.array([one.operator == "!=" for one in self.literals], dtype=bool),
            clauses=self.clauses,
            relation_axis=np.array([axis for axis, _, _ in self.relations]).reshape(-1, n_axes),
            relation_category=np.array([cell for _, cell, _ in self.relations]).reshape(-1, n_cells),
            relation_most=np.array([most for _, _, most in self.relations]),
            most_changes=self.most_changes,
            margins=self.margins,
            single=self.lattice.ensemble.number == np.float32,
        )

    def _prices_of(self, axis: int) -> tuple[float, float, float]:
        price = self.distance.prices.get(self.lattice.features.names[axis])
        weight = self._weight(axis)
        return (
            (weight, weight, 0.0) if price is None else (weight * price.up, weight * price.down, weight * price.fixed)
        )


_NO_ROW = Row({}, (), float)


def _of(value: float) -> Row:
    return Row({"": value}, (), float)


def _axis(entry: Feature) -> _Axis:
    if isinstance(entry, Ordinal):
        return _Axis(_LISTED, np.array(entry.values))
    return _Axis(_FREE if isinstance(entry, Numeric | OneHot) else _WHOLE)
