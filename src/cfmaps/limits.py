"""The part of the rules that depends on the row: what is left to each, in the arrays of the core."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.constraints import Forbid
from cfmaps.distance import FloatArray
from cfmaps.features import OneHot
from cfmaps.plausibility import BoxList
from cfmaps.rules import Rules


@dataclass(frozen=True, slots=True)
class Limits:
    """What the rules leave to each of several rows, in the arrays of the core."""

    low: FloatArray
    high: FloatArray
    condition_low: FloatArray
    condition_high: FloatArray
    allowed: npt.NDArray[np.bool_]

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        return self.low, self.high, self.condition_low, self.condition_high, self.allowed

    def taking(self, which: slice) -> "Limits":
        """Those of some rows."""
        condition_low, condition_high = self.condition_low[which], self.condition_high[which]
        return Limits(self.low[which], self.high[which], condition_low, condition_high, self.allowed[which])

    def within(self, boxes: BoxList, chosen: npt.NDArray[np.intp]) -> "Limits":
        """Those of one row in each of several boxes."""
        n = len(chosen)
        condition_low, condition_high = (
            np.repeat(ends, n, axis=0) for ends in (self.condition_low, self.condition_high)
        )
        allowed = boxes.allowed[chosen] & self.allowed if self.allowed.size else boxes.allowed[chosen]
        low, high = np.maximum(self.low, boxes.low[chosen]), np.minimum(self.high, boxes.high[chosen])
        return Limits(low, high, condition_low, condition_high, allowed)

    def frozen(self, rules: Rules, rows: FloatArray, frozen: npt.NDArray[np.bool_]) -> "Limits":
        """With some axes of each row left as they are."""
        ordered = frozen & ~rules.lattice.categorical
        # A value beyond its limits cannot stay: then nothing is left.
        low = np.where(ordered, np.maximum(self.low, rows[:, rules.first_columns]), self.low)
        high = np.where(ordered, np.minimum(self.high, rows[:, rules.first_columns]), self.high)
        allowed = self.allowed
        for axis in np.flatnonzero((frozen & rules.lattice.categorical).any(axis=0)).tolist():
            if not allowed.size:
                allowed = np.ones((len(rows), len(rules.lattice.low)), dtype=bool)
            here = _cells(rules, axis)
            own = np.arange(here.stop - here.start) == _categories(rules, rows, axis)[:, np.newaxis]
            allowed = allowed.copy()
            allowed[:, here] &= own | ~frozen[:, [axis]]
        return Limits(low, high, self.condition_low, self.condition_high, allowed)


def limits_of(rules: Rules, rows: FloatArray) -> Limits:
    """The part of each row, shape (n_rows, n_columns)."""
    shape = (len(rows), rules.lattice.n_axes)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    values = rows[:, rules.first_columns]
    if rules.frozen:
        low[:, rules.frozen] = high[:, rules.frozen] = values[:, rules.frozen]
    for axis, operator, value, relative, _ in rules.limited:
        ends = _ends(rules, axis, operator, value, relative, values[:, axis])
        if operator in ("<=", "<"):
            high[:, axis] = np.minimum(high[:, axis], ends)
        else:
            low[:, axis] = np.maximum(low[:, axis], ends)
    condition_low, condition_high = _conditions(rules, rows)
    return Limits(low, high, condition_low, condition_high, _allowed(rules, rows))


def _ends(rules: Rules, axis: int, operator: str, value: Fraction, relative: bool, own: FloatArray) -> Any:
    if not relative:
        return rules.rounded(axis, value, operator)
    if value == 0 and operator in ("<=", ">="):
        return own
    return np.array([rules.rounded(axis, Fraction(x) + value, operator) for x in own.tolist()])


def _conditions(rules: Rules, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = np.zeros((2, len(rows), len(rules.literals)))
    if not rules.literals:
        return low, high
    for place, condition in enumerate(rules.literals):
        axis = rules.axis_of[condition.feature]
        column = rules.lattice.axis_columns[axis][0]
        if isinstance(rules.lattice.features.entries[axis], OneHot):
            wanted = _categories(rules, rows, axis) if condition.relative else rules.category_of(axis, condition.value)
            low[:, place] = high[:, place] = wanted
        elif condition.relative:
            ends = [rules.interval(condition, x) for x in rows[:, column].tolist()]
            low[:, place], high[:, place] = np.array(ends).T
        else:
            low[:, place], high[:, place] = rules.interval(condition, 0.0)
    for constraint, place in rules.forbidden:
        if place >= 0:
            _lift(rules, constraint, place, rows, low, high)
    return low, high


def _lift(rules: Rules, constraint: Forbid, place: int, rows: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """A transition forbidden from one value, or to one's own, binds only rows that have another."""
    own = rows[:, rules.lattice.axis_columns[rules.axis_of[constraint.feature]][0]]
    free = np.zeros(len(rows), dtype=bool) if constraint.before is None else own != constraint.before
    if constraint.after is None:
        low[free, place], high[free, place] = -np.inf, np.inf
        return
    free |= own == constraint.after
    low[free, place], high[free, place] = np.inf, -np.inf


def _categories(rules: Rules, rows: FloatArray, axis: int) -> npt.NDArray[np.intp]:
    on = rows[:, rules.lattice.axis_columns[axis]] == 1
    return np.asarray(np.where(on.any(axis=1), on.argmax(axis=1), on.shape[1]))


def _allowed(rules: Rules, rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Per cell of categorical axes whether the row may be there; nothing where nothing limits them."""
    categorical = rules.lattice.categorical
    forbidden = [constraint for constraint, place in rules.forbidden if place < 0]
    frozen = [axis for axis in rules.frozen if categorical[axis]]
    if not (forbidden or frozen or rules.kept_categories):
        return np.empty((len(rows), 0), dtype=bool)
    allowed = np.ones((len(rows), len(rules.lattice.low)), dtype=bool)
    own = np.arange(len(rows))
    for axis in frozen:
        here = _cells(rules, axis)
        allowed[:, here] = False
        allowed[own, here.start + _categories(rules, rows, axis)] = True
    for axis, condition in rules.kept_categories:
        here = _cells(rules, axis)
        relative = condition.relative
        wanted = _categories(rules, rows, axis) if relative else rules.category_of(axis, condition.value)
        same = np.arange(here.stop - here.start) == np.broadcast_to(wanted, len(rows))[:, np.newaxis]
        allowed[:, here] &= same if condition.operator == "==" else ~same
    for constraint in forbidden:
        _forbid(rules, constraint, rows, allowed)
    return allowed


def _forbid(rules: Rules, constraint: Forbid, rows: FloatArray, allowed: npt.NDArray[np.bool_]) -> None:
    axis = rules.axis_of[constraint.feature]
    here, own = _cells(rules, axis), _categories(rules, rows, axis)
    bound = np.ones(len(rows), dtype=bool)
    if constraint.before is not None:
        bound = own == rules.category_of(axis, constraint.before)
    n_cells = here.stop - here.start
    to = np.ones(n_cells, dtype=bool)
    if constraint.after is not None:
        to = np.arange(n_cells) == rules.category_of(axis, constraint.after)
    changed = np.arange(n_cells) != own[:, np.newaxis]
    allowed[:, here] &= ~(bound[:, np.newaxis] & to & changed)


def _cells(rules: Rules, axis: int) -> slice:
    return slice(int(rules.lattice.cell_start[axis]), int(rules.lattice.cell_start[axis + 1]))
