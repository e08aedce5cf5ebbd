"""Constraints and prices to try: around thresholds, around the row, nested, contradictory."""

import numpy as np

from cfmaps import (
    AllOf,
    AnyOf,
    Condition,
    Decrease,
    Forbid,
    Freeze,
    Implies,
    Increase,
    Linear,
    MaxChanges,
    Not,
    Price,
    Range,
    Step,
)
from cfmaps.features import Binary, Integer, Numeric, OneHot, Ordinal
from models import split_points


def random_constraints(rng, case, x, *, kinds, n):
    """So many constraints of these kinds over the features of a case, around a row's values."""
    made = []
    stepped_names = set()
    for _ in range(20 * n):
        if len(made) == n:
            break
        one = one_constraint(rng, case, x, str(rng.choice(kinds)))
        if isinstance(one, Step):
            if one.feature in stepped_names:
                continue
            stepped_names.add(one.feature)
        if one is not None:
            made.append(one)
    return made


def ordered(case):
    return [
        (entry, columns[0])
        for entry, columns in zip(case.features, case.features.positions, strict=True)
        if not isinstance(entry, OneHot)
    ]


def drawn(rng, entries):
    return entries[int(rng.integers(len(entries)))] if entries else None


def number_near(rng, case, column, x):
    pool = [
        *split_points(case.model, case.features)[column],
        x[column],
        x[column] + rng.normal(),
        float(rng.integers(-3, 4)),
    ]
    pool = [value for value in pool if np.isfinite(value) and abs(value) < 1e6]
    return float(rng.choice(pool or [0.0]))


def random_condition(rng, case, x):
    features = case.features
    axis = int(rng.integers(len(features)))
    entry, columns = features.entries[axis], features.positions[axis]
    if isinstance(entry, OneHot):
        if rng.random() < 0.2:
            return Condition(str(rng.choice(entry.columns)), str(rng.choice(["==", "!=", ">="])), 1.0)
        return Condition(entry.name, str(rng.choice(["==", "!="])), str(rng.choice(entry.columns)))
    operator = str(rng.choice(["<=", ">=", "<", ">", "==", "!="]))
    if rng.random() < 0.25:
        return Condition(entry.name, operator, float(rng.choice([0, 0, 1, -1, 0.5, 0.1])), relative=True)
    return Condition(entry.name, operator, number_near(rng, case, columns[0], x))


def random_logic(rng, case, x, depth=2):
    kind = rng.integers(6) if depth else 0
    parts = [lambda: random_logic(rng, case, x, depth - 1)] * 2
    if kind == 1:
        return Implies(parts[0](), parts[1]())
    if kind == 2:
        return AnyOf(parts[0](), parts[1]())
    if kind == 3:
        return AllOf(parts[0](), parts[1]())
    if kind == 4:
        return Not(parts[0]())
    return random_condition(rng, case, x)


def one_constraint(rng, case, x, kind):
    features, numbers = case.features, ordered(case)
    names = list(features.names)
    if kind == "freeze":
        return Freeze(str(rng.choice(names)))
    if kind == "max_changes":
        return MaxChanges(int(rng.integers(0, len(names) + 1)))
    if kind == "logic":
        return random_logic(rng, case, x)
    if kind == "forbid":
        return random_forbid(rng, case, x)
    if not numbers:
        return None
    entry, column = drawn(rng, numbers)
    if kind == "range":
        low, high = sorted(number_near(rng, case, column, x) for _ in range(2))
        return [Range(entry.name, low=low), Range(entry.name, high=high), Range(entry.name, low, high)][rng.integers(3)]
    if kind == "monotone":
        most = None if rng.random() < 0.5 else float(rng.choice([0.5, 1, 2, 0.3]))
        return (Increase if rng.random() < 0.5 else Decrease)(entry.name, most)
    if kind == "step":
        return random_step(rng, case, entry, column, x)
    return random_linear(rng, case, x)


def random_forbid(rng, case, x):
    entry, columns = drawn(rng, list(zip(case.features, case.features.positions, strict=True)))
    if isinstance(entry, OneHot):
        pool = [None, *entry.columns]
    else:
        pool = [None, float(np.float32(x[columns[0]])), float(np.float32(number_near(rng, case, columns[0], x)))]
    return Forbid(entry.name, *[pool[int(rng.integers(len(pool)))] for _ in range(2)])


def random_step(rng, case, entry, column, x):
    if isinstance(entry, Binary):
        return None
    if isinstance(entry, Ordinal) or rng.random() < 0.4:
        pool = entry.values if isinstance(entry, Ordinal) else [number_near(rng, case, column, x) for _ in range(4)]
        return Step(entry.name, values=list(rng.choice(pool, size=2)))
    start = "current" if rng.random() < 0.3 else float(rng.integers(-1, 2))
    return Step(
        entry.name, float(rng.choice([1, 2, 3]) if isinstance(entry, Integer) else rng.choice([0.5, 1, 0.7])), start
    )


def random_linear(rng, case, x):
    names = [
        column
        for entry in case.features
        for column in entry.columns
        if isinstance(entry, Numeric | OneHot | Binary | Ordinal)
        or (isinstance(entry, Integer) and entry.low is not None)
    ]
    if len(names) < 2:
        return None
    chosen = rng.choice(names, size=min(len(names), int(rng.integers(2, 4))), replace=False)
    shares = {str(name): float(rng.choice([1, -1, 2, -0.4, 0.3])) for name in chosen}
    at = sum(share * x[case.features.columns.index(name)] for name, share in shares.items())
    most = float(np.round(at + rng.normal() * rng.choice([0, 1, 3]), 3)) if abs(at) < 1e4 else 0.0
    return Linear(shares, "<=" if rng.random() < 0.6 else ">=", most)


def random_prices(rng, case, *, linear):
    prices = {}
    for entry in case.features:
        if rng.random() < 0.6:
            continue
        fixed = float(rng.choice([0, 0.5]))
        if isinstance(entry, OneHot):
            a, b = rng.choice(entry.columns, size=2, replace=False)
            prices[entry.name] = Price(fixed=fixed, between={(str(a), str(b)): float(rng.choice([0.3, 4]))})
        elif linear or rng.random() < 0.5:
            prices[entry.name] = Price(up=float(rng.choice([1, 3])), down=float(rng.choice([1, 0.5])), fixed=fixed)
        elif rng.random() < 0.5:
            prices[entry.name] = Price(cost=lambda value, new: np.sqrt(np.abs(new - value)))
        else:
            prices[entry.name] = Price(cost=[(0.5, 1.0), (2.0, 1.5), (3.0, 9.0)], fixed=fixed)
    return prices
