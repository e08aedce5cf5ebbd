"""Slow, obvious versions of what the library does fast."""

from itertools import product

import numpy as np

from cfmaps.features import Binary, Integer, OneHot, Ordinal


def box_gaps(x, lower, upper):
    """How far ``x`` is outside each box, per feature."""
    return np.maximum(0.0, np.maximum(lower - x, x - upper))


def box_distances(x, lower, upper, p, weights=1.0):
    """Distance from ``x`` to every box in the norm ``||weights * (x - y)||_p``."""
    return norms(weights * box_gaps(x, lower, upper), p)


def nearest_boxes(X, lower, upper, p, weights=1.0):
    """Distance from every row to its nearest box, inf when there is none."""
    return np.array([box_distances(x, lower, upper, p, weights).min(initial=np.inf) for x in X])


def norms(gaps, p):
    """The p-norm of every row, measured in units of its widest gap so that powers stay in range."""
    widest = gaps.max(axis=1)
    if p == np.inf:
        return widest
    shares = gaps / np.where(widest > 0, widest, 1.0)[:, np.newaxis]
    return widest * np.sum(shares**p, axis=1) ** (1 / p)


def predictions(model, rows, votes):
    """What the model says; for hard votes the majority of its trees, ties to the smallest class."""
    if votes == "soft" or not hasattr(model, "estimators_"):
        return model.predict(rows)
    counts = np.zeros((len(rows), len(model.classes_)))
    for tree in model.estimators_:
        counts[np.arange(len(rows)), tree.predict(rows).astype(int)] += 1
    return model.classes_[counts.argmax(axis=1)]


def row_distances(x, rows, features, p, weights):
    """Distance from ``x`` to every row; a one-hot group with a gap is one coordinate."""
    gaps = np.abs(rows - x) * weights
    for entry, columns in zip(features, features.positions, strict=True):
        if isinstance(entry, OneHot) and entry.gap is not None:
            changed = (rows[:, columns] != x[columns]).any(axis=1)
            gaps[:, columns] = 0
            gaps[:, columns[0]] = changed * entry.gap * weights[columns].max()
    return norms(gaps, p)


def on_the_grid(features, x):
    """``x`` as the float32 numbers the model compares; an ordinal stays the listed value it stands for."""
    grid = x.astype(np.float32).astype(np.float64)
    for entry, columns in zip(features, features.positions, strict=True):
        if isinstance(entry, Ordinal):
            grid[columns] = next(value for value in entry.values if np.float32(value) == np.float32(x[columns[0]]))
    return grid


def respects(features, point):
    """Whether a row on the grid holds what each feature may hold, limits included."""
    return all(_allows(entry, point[columns]) for entry, columns in zip(features, features.positions, strict=True))


def nearest_candidates(features, thresholds, x):
    """Rows among which is, for every class and distance, the nearest admissible one to ``x`` on the grid.

    A column of a nearest row keeps its value, or has crossed some threshold and
    stopped at the first number behind it; so all combinations of these are enough.
    """
    choices = [
        _choices(entry, thresholds[columns[0]], x[columns])
        for entry, columns in zip(features, features.positions, strict=True)
    ]
    rows = np.empty((int(np.prod([len(choice) for choice in choices])), len(x)))
    indices = np.array(list(product(*(range(len(choice)) for choice in choices))))
    for choice, columns, index in zip(choices, features.positions, indices.T, strict=True):
        rows[:, columns] = choice[index]
    return rows


def _allows(entry, columns):
    value = columns[0]
    if isinstance(entry, OneHot):
        on = columns.sum()
        return bool(np.isin(columns, [0, 1]).all()) and (on == 1 or (entry.optional and on == 0))
    if isinstance(entry, Ordinal):
        return value in entry.values
    if isinstance(entry, Binary):
        return value in (0, 1)
    low, high = _limits(entry)
    return low <= value <= high and (not isinstance(entry, Integer) or value.is_integer())


def _choices(entry, thresholds, own):
    """What the columns of one feature may hold, shape (n_choices, n_columns)."""
    if isinstance(entry, OneHot):
        categories = np.eye(len(own))
        return np.concatenate([categories, np.zeros((int(entry.optional), len(own)))])
    return np.array(_numbers(entry, thresholds, own[0]))[:, np.newaxis]


def _numbers(entry, thresholds, own):
    if isinstance(entry, Binary):
        return [0.0, 1.0]
    if isinstance(entry, Ordinal):
        return entry.values
    sides = _both_sides(thresholds[np.isfinite(thresholds)])
    low, high = _limits(entry)
    if isinstance(entry, Integer):
        near = np.clip([own, *sides], low, high)
        whole = np.arange(np.floor(near.min()), np.ceil(near.max()) + 1)
        return whole[(whole >= low) & (whole <= high)]
    return np.unique(np.clip([own, *sides], low, high))


def _limits(entry):
    """The first and last float32 within a feature's limits."""
    low = np.float32(-np.inf if entry.low is None else entry.low)
    high = np.float32(np.inf if entry.high is None else entry.high)
    low = np.nextafter(low, np.float32(np.inf)) if entry.low is not None and low < entry.low else low
    high = np.nextafter(high, np.float32(-np.inf)) if entry.high is not None and high > entry.high else high
    return float(low), float(high)


def _both_sides(thresholds):
    """The last float32 at or below each threshold, and the first above."""
    single = thresholds.astype(np.float32)
    last = np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)
    return np.concatenate([last, np.nextafter(last, np.float32(np.inf))]).astype(np.float64)
