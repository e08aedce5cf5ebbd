"""CF-Maps as the paper describes it, and cfmaps' own search from cold to warm."""

from typing import Any

import clock
import numpy as np
from peers import Answer
from problem import Problem

from cfmaps import CounterfactualMap

NORMS = ("l1", "l2", "linf")
# Beyond, a forest counts as too large for a whole map: 8 bytes per node, and 2 per box and feature for the index.
MOST_NODES, MOST_SECONDS = 60_000_000, 60.0


class TooLarge(Exception):
    """A whole map that does not fit the budget."""


def whole_map(problem: Problem) -> CounterfactualMap:
    """The complete partition, on one core."""
    cfmap = CounterfactualMap(problem.model, features=problem.features)
    grown = cfmap.build(n_threads=1, max_nodes=MOST_NODES, time_limit=MOST_SECONDS)
    if not grown.complete:
        raise TooLarge(f"the partition is out of {grown.reason} at {grown.n_nodes:,} nodes, {grown.seconds:.0f} s")
    return cfmap


class CfMaps:
    """Algorithm 1: the partition and one KD-tree per class. Algorithm 2: the nearest box, and the row inside it."""

    name = "CF-Maps"
    norms = NORMS

    def prepare(self, problem: Problem) -> None:
        start = clock.now()
        cfmap = whole_map(problem)
        extracted = clock.now() - start
        self.trees = {label: cfmap.box_tree(label) for label in problem.model.classes_}
        self.facts = {
            "extraction": extracted,
            "boxes": sum(tree.n_boxes for tree in self.trees.values()),
            "nodes": sum(tree.n_nodes for tree in self.trees.values()),
            "bytes": sum(tree.n_bytes for tree in self.trees.values()),
        }
        self.visited: dict[str, list[int]] = {norm: [] for norm in NORMS}

    def explain(self, x: np.ndarray, target: Any, norm: str) -> Answer:
        start = clock.now()
        # The forest compares float32, and the ends of the boxes are float32.
        found = self.trees[target].nearest(x[None].astype(np.float32).astype(float), norm)
        seconds = clock.now() - start
        self.visited[norm].append(int(found.visited[0]))
        return Answer(None if found.index[0] < 0 else found.point[0], float(found.distance[0]), seconds)


class Search:
    """What cfmaps' own searches share. The clock covers `explain`; predict confirms all answers after the last one."""

    norms: tuple[str, ...] = ("l1",)
    cfmap: CounterfactualMap | None = None

    def prepare(self, problem: Problem) -> None:
        self.problem, self.cfmap, self.facts = problem, None, {}

    def fresh(self) -> CounterfactualMap:
        return CounterfactualMap(self.problem.model, features=self.problem.features)

    def explain(self, x: np.ndarray, target: Any, norm: str) -> Answer:
        seconds, found = clock.seconds(lambda: self.map().explain(x, target=target, distance=norm))
        assert found.status in ("optimal", "infeasible")
        return Answer(None, found.distance, seconds)

    def confirmed(self, rows: np.ndarray, targets: np.ndarray, norm: str, answers: list[Answer]) -> list[Answer]:
        """The same answers with their rows, from one more call, which must find the same distances."""
        found = self.map().explain_many(rows, target=targets, distance=norm)
        assert found.distances.tolist() == [each.distance for each in answers]
        return [each._replace(counterfactual=row) for each, row in zip(answers, found.counterfactuals, strict=True)]


class Cold(Search):
    """No preparation: every question reads the forest and asks a fresh map."""

    name = "cfmaps cold"

    def map(self) -> CounterfactualMap:
        return self.fresh()


class Growing(Search):
    """No preparation: one map answers all questions and keeps what each of them grew. Reading the forest is counted."""

    name = "cfmaps growing"

    def map(self) -> CounterfactualMap:
        self.cfmap = self.cfmap or self.fresh()
        return self.cfmap


class Warm(Search):
    """The whole map, one question at a time."""

    name = "cfmaps warm"
    norms = NORMS

    def prepare(self, problem: Problem) -> None:
        self.cfmap = whole_map(problem)
        self.facts = {"nodes": self.cfmap.partition.n_nodes, "bytes": self.cfmap.partition.n_bytes}

    def map(self) -> CounterfactualMap:
        return self.cfmap


class WarmInOneCall(Warm):
    """The whole map, all questions in one call, on one thread."""

    name = "cfmaps warm, one call"
    norms = ("l1",)

    def explain_all(self, rows: np.ndarray, targets: np.ndarray, norm: str) -> list[Answer]:
        seconds, found = clock.seconds(
            lambda: self.cfmap.explain_many(rows, target=targets, distance=norm, n_threads=1)
        )
        return [Answer(None, distance, seconds / len(rows)) for distance in found.distances.tolist()]
