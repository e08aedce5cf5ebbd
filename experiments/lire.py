"""LIRE: the nearest live region, which is where some training row falls in every tree (Carreira-Perpinan, Hada 2023).

Ours, after the paper's description: a region is the box of one combination of leaves, one per tree, that a training row
reaches; its class is what the forest says there. A query measures all regions of the target class.
"""

import clock
import numpy as np
from leaves import Boxes, leaves_of
from peers import Answer, answer
from problem import Problem


class Lire:
    """All live regions, by class."""

    name = "LIRE"
    norms = ("l1",)

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole

    def prepare(self, problem: Problem) -> None:
        above, upto, rows = live_regions(problem.model, problem.train)
        labels = problem.model.predict(rows)
        self.regions = {
            label: Boxes(above[labels == label], upto[labels == label], problem.data, whole=self.whole)
            for label in np.unique(labels)
        }
        self.facts = {"regions": len(rows)}

    def explain(self, x: np.ndarray, target: object, norm: str) -> Answer:
        start = clock.now()
        found = None
        if target in self.regions:
            rows = self.regions[target].nearest(x)
            found = rows[np.abs(rows - x).sum(axis=1).argmin()]
        return answer(x, found, 1, clock.now() - start)


def live_regions(model, train: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The box ``(above, upto]`` of every live region, and a training row in each."""
    combinations, first = np.unique(model.apply(train), axis=0, return_index=True)
    above = np.full((len(first), train.shape[1]), -np.inf)
    upto = -above
    for tree, reached in zip(model.estimators_, combinations.T, strict=True):
        leaves = leaves_of(tree.tree_, train.shape[1])
        order = np.argsort(leaves.node)
        place = order[np.searchsorted(leaves.node[order], reached)]
        above, upto = np.maximum(above, leaves.above[place]), np.minimum(upto, leaves.upto[place])
    return above, upto, train[first]
