"""Slow, obvious versions of what the library does fast."""

import numpy as np


def box_gaps(x, lower, upper):
    """How far ``x`` is outside each box, per feature."""
    return np.maximum(0.0, np.maximum(lower - x, x - upper))


def box_distances(x, lower, upper, p, weights=1.0):
    """Distance from ``x`` to every box in the norm ``||weights * (x - y)||_p``.

    Measured in units of each box's widest gap, so that powers stay in range.
    """
    gaps = weights * box_gaps(x, lower, upper)
    widest = gaps.max(axis=1)
    if p == np.inf:
        return widest
    shares = gaps / np.where(widest > 0, widest, 1.0)[:, np.newaxis]
    return widest * np.sum(shares**p, axis=1) ** (1 / p)


def nearest_boxes(X, lower, upper, p, weights=1.0):
    """Distance from every row to its nearest box, inf when there is none."""
    return np.array([box_distances(x, lower, upper, p, weights).min(initial=np.inf) for x in X])
