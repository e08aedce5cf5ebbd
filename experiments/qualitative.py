"""The paper's four questions about breast masses, answered on the integers 1 to 10, with every optimum listed."""

from typing import Any

import numpy as np
from dice import Dice
from lire import Lire
from paper import EXAMPLES
from peers import Ocean
from problem import Problem
from systems import Peer
from tweaking import FeatureTweaking

from cfmaps import CounterfactualMap, Distance, Features, Integer


def answer_examples(problem: Problem) -> list[dict[str, Any]]:
    """For every question its label, its target, all optimal rows, and what each other system answers."""
    features = Features([Integer(name, low=1, high=10) for name in problem.data.columns])
    cfmap = CounterfactualMap(problem.model, features=features)
    cfmap.build(n_threads=1)
    systems = [system for system in others() if not hasattr(system, "available") or system.available()]
    for system in systems:
        system.prepare(problem)
    asked = [np.array(query, dtype=float) for query, _ in EXAMPLES]
    found = [example(problem, cfmap, systems, row) for row in asked]
    for system in systems:
        if hasattr(system, "close"):
            system.close()
    return found


def others() -> list[Any]:
    return [
        Peer(Ocean(integers=True)),
        Lire(whole=True),
        FeatureTweaking(forest_check=True, whole=True),
        FeatureTweaking(forest_check=False, whole=True),
        Dice("random"),
        Dice("kdtree"),
    ]


def example(problem: Problem, cfmap: CounterfactualMap, systems: list[Any], row: np.ndarray) -> dict[str, Any]:
    label = problem.model.predict(row[None])[0]
    target = problem.model.classes_[problem.model.classes_ != label][0]
    answers = {system.name: system.explain(row, target, "l1").counterfactual for system in systems}
    search = cfmap.explain(row, target=target)
    optima = all_optima(cfmap, row, int(np.flatnonzero(cfmap.classes == target)[0]))
    assert {np.abs(best - row).sum() for best in optima} == {search.distance}
    return {
        "query": row.tolist(),
        "label": int(label),
        "target": int(target),
        "optima": optima.tolist(),
        "cfmaps": search.counterfactual.tolist(),
        "answers": {name: judged(problem, row, found, target) for name, found in answers.items()},
    }


def judged(problem: Problem, row: np.ndarray, found: np.ndarray | None, target: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    distance = float(Distance("l1").between(row, found))
    return {"row": found.tolist(), "distance": distance, "valid": bool(problem.model.predict(found[None])[0] == target)}


def all_optima(cfmap: CounterfactualMap, row: np.ndarray, label: int) -> np.ndarray:
    """Every optimal row: in L1 a box has one nearest row, so they are those of the nearest boxes of the whole map."""
    boxes = cfmap.partition.boxes(label)
    rows = np.clip(row, boxes.lower, boxes.upper)
    distances = np.abs(rows - row).sum(axis=1)
    return np.unique(rows[distances == distances.min()], axis=0)
