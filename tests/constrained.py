"""The slow oracle of constrained questions: every combination of pieces, one small program each.

A piece is a stretch of one feature on which no threshold, no condition and no number of the
query lies inside. Whether a constraint holds is asked of the constraint itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from cfmaps import (
    Condition,
    Decrease,
    Forbid,
    Increase,
    Linear,
    Price,
    Range,
    Step,
)
from cfmaps.constraints import Row
from cfmaps.features import Binary, Integer, OneHot, Ordinal
from models import split_points
from oracles import norms, on_the_grid

SCALE = 2.0**20  # so that a step of float32 is far above a solver's tolerance
FAR = 12.0


@dataclass(frozen=True)
class Piece:
    """Numbers from low to high, of which `value` is nearest; a category by its index."""

    low: float
    high: float
    value: float
    changes: bool


def view(features, row):
    values = dict(zip(features.columns, row.tolist(), strict=True))
    for entry, columns in zip(features, features.positions, strict=True):
        if isinstance(entry, OneHot):
            on = row[columns] == 1
            values[entry.name] = entry.columns[int(on.argmax())] if on.any() else None
    return Row(values, features.names, np.float32)


def keeps(features, constraints, x, z):
    before, after = view(features, x), view(features, z)
    return all(constraint.holds(before, after) for constraint in constraints)


def simple_conditions(constraint):
    if isinstance(constraint, Condition | Range | Increase | Decrease | Step | Forbid):
        return [constraint]
    return [one for part in getattr(constraint, "parts", ()) for one in simple_conditions(part)]


def numbers_of(constraint, x):
    """Numbers at which a simple condition on one feature may change its mind."""
    if isinstance(constraint, Range):
        return [end for end in (constraint.low, constraint.high) if end is not None]
    if isinstance(constraint, Increase | Decrease):
        sign = 1 if isinstance(constraint, Increase) else -1
        return [x + sign * (constraint.at_most or 0)]
    if isinstance(constraint, Forbid):
        return [value for value in (constraint.before, constraint.after) if value is not None]
    if isinstance(constraint, Condition):
        return [x + constraint.value if constraint.relative else constraint.value]
    return []


def numeric_pieces(entry, thresholds, own, constraints):
    """Pieces of an ordered feature, without those that its own constraints rule out."""
    about = [one for constraint in constraints for one in simple_conditions(constraint) if one.feature == entry.name]
    steps = [one for one in about if isinstance(one, Step)]
    at = [*thresholds[np.isfinite(thresholds)], *(n for one in about for n in numbers_of(one, own)), own]
    around = np.concatenate([np.asarray(at), beside(at)])
    if isinstance(entry, Binary):
        points = [0.0, 1.0]
    elif isinstance(entry, Ordinal):
        points = list(entry.values)
    elif isinstance(entry, Integer):
        points = np.arange(np.floor(around.min()) - 5, np.ceil(around.max()) + 6)
    elif steps:
        points = []
    else:
        return stretches(entry, around, own)
    if steps and not isinstance(entry, Binary | Ordinal | Integer):
        points = [own, *stepped(steps[0], own, around)]
    low, high = limits(entry)
    points = [value for value in np.unique(points) if low <= value <= high]
    return [Piece(value, value, value, value != own) for value in points]


def stepped(step, own, around):
    if step.values is not None:
        return np.asarray(step.values, dtype=np.float32).astype(float)
    start = own if step.start == "current" else step.start
    first = np.floor((around.min() - start) / step.size) - 3
    last = np.ceil((around.max() - start) / step.size) + 3
    return (start + np.arange(first, last + 1) * step.size).astype(np.float32).astype(float)


def stretches(entry, around, own):
    low, high = limits(entry)
    ends = np.unique(np.asarray(around, dtype=np.float32)).astype(float)
    ends = ends[(ends >= low) & (ends <= high)]
    pieces = [Piece(value, value, value, value != own) for value in ends]
    edges = np.concatenate([[low], ends, [high]])
    for before, after in pairwise(edges):
        first = before if before == low else above(before)
        last = after if after == high else below(after)
        if first <= last:
            value = float(np.clip(own, first, last))
            pieces.append(Piece(first, last, value, value != own))
    return pieces


def limits(entry):
    if isinstance(entry, Ordinal | Binary):
        return -np.inf, np.inf
    low = -np.inf if entry.low is None else entry.low
    high = np.inf if entry.high is None else entry.high
    if isinstance(entry, Integer):
        return low, high
    low32, high32 = np.float32(low), np.float32(high)
    return float(above(low32) if low32 < low else low32), float(below(high32) if high32 > high else high32)


def above(value):
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


def below(value):
    return float(np.nextafter(np.float32(value), np.float32(-np.inf)))


def beside(values):
    single = np.asarray(values, dtype=np.float64).astype(np.float32)
    return np.concatenate([[below(v), float(v), above(v)] for v in single])


@dataclass(frozen=True)
class Measure:
    """A norm with prices, in the words of the oracle."""

    p: float
    weights: np.ndarray
    prices: dict

    def gap(self, features, axis, old, new):
        entry, columns = features.entries[axis], features.positions[axis]
        price, weight = self.prices.get(entry.name), self.weights[columns[0]]
        if not isinstance(entry, OneHot):
            if price is None:
                return weight * abs(new - old)
            return weight * float(price.gaps(old, np.array([new]))[0])
        if old == new:
            return 0.0
        labels = [*entry.columns, "none"]
        weights = np.append(self.weights[columns], 0.0)
        usual = norms(weights[[int(old), int(new)]][np.newaxis], self.p)[0]
        if entry.gap is not None:
            usual = entry.gap * weights[:-1].max()
        fixed = 0.0 if price is None else price.fixed
        between = {} if price is None or price.between is None else price.between
        return between.get((labels[int(old)], labels[int(new)]), usual) + fixed


def solve(case, constraints, measure, x, wanted, predict):
    """The least distance to a wanted row that keeps the constraints; inf where there is none."""
    features = case.features
    own = on_the_grid(features, x)
    thresholds = split_points(case.model, features)
    choices, old = [], []
    for entry, columns in zip(features, features.positions, strict=True):
        if isinstance(entry, OneHot):
            on = own[columns] == 1
            old.append(float(on.argmax()) if on.any() else float(len(columns)))
            n = entry.n_categories
            choices.append([Piece(c, c, c, c != old[-1]) for c in map(float, range(n))])
        else:
            old.append(own[columns[0]])
            choices.append(numeric_pieces(entry, thresholds[columns[0]], own[columns[0]], constraints))
    linear = [one for one in constraints if isinstance(one, Linear)]
    others = [one for one in constraints if not isinstance(one, Linear)]
    single = [one for one in others if len(one.features()) == 1]
    for axis, entry in enumerate(features):
        mine = [one for one in single if one.features() == (entry.name,)]
        choices[axis] = [c for c in choices[axis] if keeps(features, mine, own, row_of(features, own, {axis: c.value}))]
    gaps = [np.array([measure.gap(features, k, old[k], c.value) for c in choices[k]]) for k in range(len(choices))]
    index = np.array(list(product(*map(range, map(len, choices)))), dtype=int).reshape(-1, len(choices))
    if not len(index):
        return np.inf
    distances = norms(np.column_stack([gaps[k][index[:, k]] for k in range(len(choices))]), measure.p)
    rows = np.array([row_of(features, own, {k: choices[k][i].value for k, i in enumerate(ids)}) for ids in index])
    labels = predict(rows)
    best = np.inf
    for place in np.argsort(distances, kind="stable"):
        if distances[place] >= best:
            break
        if not wanted(labels[place]) or not keeps(features, others, own, rows[place]):
            continue
        pieces = [choices[k][i] for k, i in enumerate(index[place])]
        best = min(best, nearest_in(features, pieces, linear, measure, old, rows[place], distances[place]))
    return best


def row_of(features, own, values):
    row = own.copy()
    for axis, value in values.items():
        columns = features.positions[axis]
        if isinstance(features.entries[axis], OneHot):
            row[columns] = np.arange(len(columns)) == value
        else:
            row[columns] = value
    return row


def nearest_in(features, pieces, linear, measure, old, row, distance):
    """The least distance within one combination of pieces to the relations."""
    at_near = view(features, row)
    if all(one.holds(at_near, at_near) for one in linear):
        return distance
    free = [k for k, piece in enumerate(pieces) if piece.low < piece.high]
    rows, most = [], []
    for one in linear:
        for shares, right in one.rows():
            constant = sum(
                Fraction(share) * Fraction(row[features.columns.index(name)])
                for name, share in shares.items()
                if name not in [features.names[k] for k in free]
            )
            rows.append([shares.get(features.names[k], 0.0) for k in free])
            most.append(float(Fraction(right) - constant))
    others = np.array([measure.gap(features, k, old[k], p.value) for k, p in enumerate(pieces) if k not in free])
    if not free:
        return np.inf
    program = Program(
        np.array([old[k] for k in free]),
        np.array([pieces[k].low for k in free]),
        np.array([pieces[k].high for k in free]),
        np.array([price_of(features, measure, k) for k in free]),
        np.array(rows),
        np.array(most),
    )
    return program.quadratic(others) if measure.p == 2 else program.linear(others, measure.p)


def price_of(features, measure, axis):
    price = measure.prices.get(features.names[axis]) or Price()
    weight = measure.weights[features.positions[axis][0]]
    return weight * price.up, weight * price.down, weight * price.fixed


@dataclass(frozen=True)
class Program:
    """min of a norm of the gaps, over a box and relations."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    prices: np.ndarray
    rows: np.ndarray
    most: np.ndarray

    def linear(self, others, p):
        """L1 and the maximum norm by a solver; numbers scaled up so that its tolerance does not matter."""
        n = len(self.x)
        up, down, fixed = self.prices.T
        eye, zero = np.eye(n), np.zeros((n, n))
        # Variables: z - x, its parts upwards and downwards, the largest gap.
        cost = np.concatenate([np.zeros(n), up, down, [0.0]])
        parts = [
            LinearConstraint(np.hstack([eye, -eye, eye, np.zeros((n, 1))]), 0, 0),
            LinearConstraint(
                np.hstack([self.rows, np.zeros((len(self.rows), 2 * n + 1))]),
                -np.inf,
                (self.most - self.rows @ self.x) * SCALE,
            ),
        ]
        base = others.sum() + fixed.sum()
        if p == np.inf:
            cost = np.append(np.zeros(3 * n), 1.0)
            base = others.max(initial=0.0)
            parts.append(LinearConstraint(np.hstack([zero, np.diag(up), np.diag(down), -np.ones((n, 1))]), -np.inf, 0))
        lower = np.concatenate([(self.low - self.x) * SCALE, np.zeros(2 * n), [base * SCALE if p == np.inf else 0.0]])
        upper = np.concatenate([(self.high - self.x) * SCALE, np.full(2 * n + 1, np.inf)])
        found = milp(cost, constraints=parts, bounds=Bounds(lower, upper))
        if not found.success:
            return np.inf
        return found.fun / SCALE if p == np.inf else found.fun / SCALE + base

    def quadratic(self, others):
        """L2 by trying every set of ends and relations that may be tight."""
        n, best = len(self.x), np.inf
        start = np.clip(self.x, self.low, self.high)
        weights = np.where(start > self.x, self.prices[:, 0], self.prices[:, 1])
        side = np.where(start == self.x, 0, np.sign(start - self.x))
        for ends in product(*[self._ends(k, side[k]) for k in range(n)]):
            for tight in product((False, True), repeat=len(self.rows)):
                point = self._stationary(ends, np.array(tight), weights, side)
                if point is not None:
                    best = min(best, self._distance(point, others))
        return best

    def _ends(self, k, side):
        """Where one variable may rest: at an end, at its own value, or free to either side of it."""
        ends = [("at", self.low[k]), ("at", self.high[k]), ("free", 1.0), ("free", -1.0)]
        if self.low[k] <= self.x[k] <= self.high[k]:
            ends.append(("at", self.x[k]))
        return [end for end in ends if np.isfinite(end[1])]

    def _stationary(self, ends, tight, weights, side):
        n = len(self.x)
        free = np.array([kind == "free" for kind, _ in ends])
        point = np.array([0.0 if kind == "free" else value for kind, value in ends])
        rows, most = self.rows[tight], self.most[tight]
        price = np.array([self.prices[k, 0] if value > 0 else self.prices[k, 1] for k, (_, value) in enumerate(ends)])
        m, f = len(rows), int(free.sum())
        system, right = np.zeros((f + m, f + m)), np.zeros(f + m)
        system[:f, :f] = np.diag(price[free] ** 2)
        system[:f, f:], system[f:, :f] = rows[:, free].T, rows[:, free]
        right[:f], right[f:] = price[free] ** 2 * self.x[free], most - rows[:, ~free] @ point[~free]
        if f + m:
            try:
                point[free] = np.linalg.solve(system, right)[:f]
            except np.linalg.LinAlgError:
                return None
        signs = np.array([value for _, value in ends])
        if (free & (np.sign(point - self.x) == -signs)).any() or n == 0:
            return None
        slack = 1e-10 * (1 + np.abs(point))
        inside = (point >= self.low - slack).all() and (point <= self.high + slack).all()
        return point if inside and (self.rows @ point <= self.most + 1e-10 * (1 + np.abs(self.most))).all() else None

    def _distance(self, point, others):
        gaps = np.where(point > self.x, self.prices[:, 0], self.prices[:, 1]) * np.abs(point - self.x)
        return float(np.linalg.norm(np.concatenate([gaps, others])))
