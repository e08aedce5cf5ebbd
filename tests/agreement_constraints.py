"""Constrained answers of many random models against an enumeration of all pieces and a solver of its own.

Run as a script it prints what it compared and ends with "0 differences", or with their list.
"""

import argparse
import sys
from collections import Counter

import numpy as np

from cfmaps import CounterfactualMap, Distance, Step
from constrained import Measure, keeps, solve
from models import random_model
from oracles import on_the_grid, predictions, respects
from random_constraints import random_constraints, random_prices

ALONE = ("freeze", "range", "monotone", "step", "forbid", "max_changes", "logic", "linear")
NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf, 3: 3.0, 1.5: 1.5}
KINDS = (
    "halves",
    "integers",
    "uniform",
    "limited",
    "integer",
    "whole",
    "ordinal",
    "off_grid",
    "binary",
    "one_hot",
    "optional",
)
LINEAR_KINDS = ("halves", "integers", "uniform", "limited", "integer", "ordinal", "binary", "one_hot")
GRID = float(np.finfo(np.float32).eps)


def one_trial(seed, index, counts, differences):
    rng = np.random.default_rng([seed, index])
    linear = index % 3 == 0
    kinds = [kind for kind in ALONE if linear or kind != "linear"]
    if index % 2:
        kinds = ["linear"] if linear else [ALONE[(index // 2) % (len(ALONE) - 1)]]
    case = random_model(
        rng,
        n_features=int(rng.integers(1, 4)),
        n_trees=int(rng.integers(1, 4)),
        depth=int(rng.integers(1, 4)),
        kinds=LINEAR_KINDS if linear else KINDS,
        n_queries=2,
    )
    cold, whole = CounterfactualMap(case.model, features=case.features), None
    if rng.random() < 0.5:
        whole = CounterfactualMap(case.model, features=case.features)
        whole.build(n_threads=1)
    for x in case.queries:
        n = 1 if index % 2 else int(rng.integers(2, 5))
        constraints = random_constraints(rng, case, x, kinds=kinds, n=n)
        if linear and any(isinstance(one, Step) for one in constraints):
            continue
        norm = str(rng.choice(["l1", "l2", "linf"])) if linear else list(NORMS)[rng.integers(len(NORMS))]
        weights = None if rng.random() < 0.5 else rng.uniform(0.2, 3, case.features.n_columns)
        prices = random_prices(rng, case, linear=linear) if rng.random() < 0.4 and (not linear or norm == "l1") else {}
        target = None if rng.random() < 0.5 else rng.choice(case.model.classes_)
        distance = Distance(norm, weights, prices)
        measure = Measure(NORMS[norm], np.ones(case.features.n_columns) if weights is None else weights, prices)
        name = f"trial {index}: {[str(one) for one in constraints]} {norm} {prices} {x.tolist()} -> {target}"
        compare(case, x, target, constraints, distance, measure, [cold, whole], name, counts, differences)


def compare(case, x, target, constraints, distance, measure, maps, name, counts, differences):
    def predict(rows):
        return predictions(case.model, rows, "soft")

    own = predict(x[np.newaxis])[0]
    grid = on_the_grid(case.features, x)
    wanted = (lambda label: label != own) if target is None else (lambda label: label == target)
    try:
        answers = [
            cfmap.explain(x, target=target, distance=distance, constraints=constraints) for cfmap in maps if cfmap
        ]
    except ValueError as error:
        counts["contradictions" if "contradict" in str(error) else "refused"] += 1
        return
    if own == target and keeps(case.features, constraints, grid, grid):
        expected = 0.0
    else:
        expected = solve(case, constraints, measure, x, wanted, predict)
    linear = any(hasattr(one, "shares") for one in constraints)
    for e in answers:
        counts["infeasible" if np.isinf(expected) else "linear" if linear else "separable"] += 1
        problems = judge(case, e, grid, x, expected, constraints, wanted, linear)
        if problems:
            differences.append(f"{name}: {problems}; {e.status} {e.distance} expected {expected}")


def judge(case, e, grid, x, expected, constraints, wanted, linear):
    if np.isinf(expected):
        return "" if e.status == "infeasible" else "status"
    if e.status != "optimal":
        return "status"
    point = on_the_grid(case.features, np.asarray(e.counterfactual, dtype=float))
    # Where relations hold between real numbers, the last step to numbers of the grid costs a few of its steps.
    near = GRID * np.abs(point).sum() * 4 if linear else 0.0
    if abs(e.distance - expected) > near + 1e-12 * abs(expected) or e.distance < expected * (1 - 1e-6):
        return "distance"
    if linear and abs(e.lower_bound - expected) > 1e-6 * (1 + expected):
        return "bound"
    if e.lower_bound > e.distance or (not linear and e.lower_bound != e.distance):
        return "lower bound"
    if not keeps(case.features, constraints, grid, point):
        return f"a broken constraint at {point}"
    if expected and not respects(case.features, point):
        return "limits"
    return "" if wanted(predictions(case.model, np.asarray(e.counterfactual)[np.newaxis], "soft")[0]) else "label"


def run(seed, first, last):
    counts, differences = Counter(), []
    for index in range(first, last):
        one_trial(seed, index, counts, differences)
    return counts, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one trial, by its number")
    options = parser.parse_args()
    first = 0 if options.only is None else options.only
    last = options.trials if options.only is None else first + 1
    counts, differences = run(options.seed, first, last)
    for kind, count in sorted(counts.items()):
        print(f"{count:>10,} {kind}")
    for difference in differences:
        print(difference)
    print(f"{len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
