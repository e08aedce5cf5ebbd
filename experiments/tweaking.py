"""Feature Tweaking (Tolomei et al. 2017): go where a single tree gives the target, and hope that the forest follows.

Ours, after the paper's description. Every leaf of the target class, in every tree that agrees with the forest about the
query, gives one candidate: the query moved into the leaf by as little as possible, ``epsilon`` beyond its thresholds.
The method keeps the candidates that the forest accepts; the public implementation that the study used asks the tree
only, which is `forest_check=False` here.
"""

import clock
import numpy as np
from leaves import Boxes, leaves_of
from peers import Answer, answer
from problem import Problem

FIRST_BATCH = 32


class FeatureTweaking:
    """Candidates from the nearest to the farthest, until one is accepted."""

    norms = ("l1",)

    def __init__(self, *, forest_check: bool, epsilon: float = 0.1, whole: bool = False) -> None:
        self.forest_check = forest_check
        self.epsilon = epsilon
        self.whole = whole
        self.name = "FT" if forest_check else "FT (tree only)"

    def prepare(self, problem: Problem) -> None:
        self.model, self.facts = problem.model, {}
        trees = [tree.tree_ for tree in self.model.estimators_]
        found = [leaves_of(tree, self.model.n_features_in_) for tree in trees]
        above, upto = (np.concatenate([getattr(leaves, end) for leaves in found]) for end in ("above", "upto"))
        self.boxes = Boxes(above, upto, problem.data, self.epsilon, whole=self.whole)
        self.votes = [tree.value[:, 0].argmax(axis=1) for tree in trees]
        says = [votes[leaves.node] for votes, leaves in zip(self.votes, found, strict=True)]
        owner = np.repeat(np.arange(len(trees)), [len(leaves.node) for leaves in found])
        self.says, self.owner = np.concatenate(says)[self.boxes.kept], owner[self.boxes.kept]

    def explain(self, x: np.ndarray, target: object, norm: str) -> Answer:
        start = clock.now()
        rows = self.candidates(x, target)
        found = self.first_accepted(rows, target) if self.forest_check else next(iter(rows), None)
        return answer(x, found, 1, clock.now() - start)

    def candidates(self, x: np.ndarray, target: object) -> np.ndarray:
        """One row per leaf of the target class, of trees that say what the forest says; the nearest first."""
        own = int(np.searchsorted(self.model.classes_, self.model.predict(x[None])[0]))
        wanted = int(np.searchsorted(self.model.classes_, target))
        agrees = np.array(
            [votes[node] == own for votes, node in zip(self.votes, self.model.apply(x[None])[0], strict=True)]
        )
        rows = self.boxes.nearest(x, np.flatnonzero(agrees[self.owner] & (self.says == wanted)))
        return rows[np.abs(rows - x).sum(axis=1).argsort(kind="stable")]

    def first_accepted(self, rows: np.ndarray, target: object) -> np.ndarray | None:
        """The nearest candidate that the forest gives the target; batches grow, as the first ones decide most."""
        first, size = 0, FIRST_BATCH
        while first < len(rows):
            accepted = np.flatnonzero(self.model.predict(rows[first : first + size]) == target)
            if len(accepted):
                return rows[first + accepted[0]]
            first, size = first + size, 4 * size
        return None
