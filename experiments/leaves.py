"""Boxes that trees make of the columns, and the nearest admissible row inside each."""

from dataclasses import dataclass

import numpy as np
from datasets import DataSet


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of a tree: node numbers, and the open-closed box ``(above, upto]`` of each."""

    node: np.ndarray
    above: np.ndarray
    upto: np.ndarray


def leaves_of(tree, n_columns: int) -> Leaves:
    """Walk a fitted scikit-learn tree; shape of the ends: (n_leaves, n_columns)."""
    found = []
    stack = [(0, np.full(n_columns, -np.inf), np.full(n_columns, np.inf))]
    while stack:
        node, above, upto = stack.pop()
        if tree.children_left[node] == -1:
            found.append((node, above, upto))
            continue
        column, threshold = tree.feature[node], tree.threshold[node]
        left, right = upto.copy(), above.copy()
        left[column] = min(upto[column], threshold)
        right[column] = max(above[column], threshold)
        stack += [(tree.children_right[node], right, upto), (tree.children_left[node], above, left)]
    nodes, above, upto = zip(*found, strict=True)
    return Leaves(np.array(nodes), np.array(above), np.array(upto))


class Boxes:
    """Boxes whose nearest admissible rows are wanted: flags are 0 or 1, groups have one column on.

    ``margin`` None ends a box at the last number the forest can tell apart; a number stays that far from thresholds,
    or in the middle where a box is too narrow for it. With ``whole`` integer columns stay integer.
    """

    def __init__(
        self, above: np.ndarray, upto: np.ndarray, data: DataSet, margin: float | None = None, *, whole: bool = False
    ) -> None:
        self.lower, self.upper = grid_ends(above, upto) if margin is None else margin_ends(above, upto, margin)
        integers = [j for j, kind in enumerate(data.kinds) if whole and kind == "integer"]
        self.lower[:, integers] = np.maximum(np.floor(above[:, integers]) + 1, data.rows[:, integers].min(axis=0))
        self.upper[:, integers] = np.minimum(np.floor(upto[:, integers]), data.rows[:, integers].max(axis=0))
        flags = [j for j, kind in enumerate(data.kinds) if kind in ("binary", "one-hot")]
        self.lower[:, flags], self.upper[:, flags] = above[:, flags] >= 0, upto[:, flags] >= 1
        self.groups = [np.array(group) for group in data.groups.values()]
        self.allowed = [allowed(self.lower[:, group], self.upper[:, group]) for group in self.groups]
        holds_a_row = np.all([self.lower <= self.upper], axis=(0, 2))
        for choice in self.allowed:
            holds_a_row &= choice.any(axis=1)
        self.kept = np.flatnonzero(holds_a_row)
        self.lower, self.upper = self.lower[self.kept], self.upper[self.kept]
        self.allowed = [choice[self.kept] for choice in self.allowed]

    def nearest(self, x: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The row nearest to ``x`` in each box (or the chosen ones), in every norm."""
        rows = np.clip(x, self.lower[chosen], self.upper[chosen])
        for group, choice in zip(self.groups, self.allowed, strict=True):
            own = int(x[group].argmax())
            category = np.where(choice[chosen, own], own, choice[chosen].argmax(axis=1))
            rows[:, group] = np.eye(len(group))[category]
        return rows


def grid_ends(above: np.ndarray, upto: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last float32 of ``(above, upto]``."""
    with np.errstate(over="ignore"):
        return np.nextafter(last_at_most(above), np.float32(np.inf)).astype(float), last_at_most(upto).astype(float)


def last_at_most(threshold: np.ndarray) -> np.ndarray:
    """The largest float32 that is not above each number."""
    single = threshold.astype(np.float32)
    return np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)


def margin_ends(above: np.ndarray, upto: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Both ends moved inwards by ``margin``."""
    lower, upper = above + margin, upto - margin
    narrow = lower > upper
    with np.errstate(invalid="ignore"):
        middle = (above + upto) / 2
    return np.where(narrow, middle, lower), np.where(narrow, middle, upper)


def allowed(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Which categories of a group a box holds: the own column may be on, no other must be."""
    others_on = lower.sum(axis=1, keepdims=True) - lower
    return (upper >= 1) & (others_on == 0)
