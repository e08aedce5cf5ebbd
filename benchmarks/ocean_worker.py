"""oceanpy behind a pipe: one JSON line in (``x``, ``target``), one out (``counterfactual``, ``seconds``, ``status``).

Started by ``peers.Ocean`` with the pickle of a forest and its columns; runs under Python >= 3.12 and imports nothing
of ours.
"""

import json
import pickle
import sys
import time
import warnings
from typing import Any

import pandas as pd
from ocean import ConstraintProgrammingExplainer
from ocean.abc import Mapper
from ocean.feature import Feature


def explainer(problem: dict[str, Any]) -> ConstraintProgrammingExplainer:
    """The constraint program of one forest; it is built once and reused by every query."""
    group_of = {j: f"group{g}" for g, group in enumerate(problem["groups"]) for j in group}
    names = [(group_of.get(j, f"column{j}"), str(j)) for j in range(len(problem["kinds"]))]
    features = {f"group{g}": one_hot(group) for g, group in enumerate(problem["groups"])}
    features |= {names[j][0]: single(problem, j) for j in range(len(names)) if j not in group_of}
    ordered = {name: features[name] for name, _ in names}
    columns = pd.MultiIndex.from_tuples(names) if group_of else pd.Index([name for name, _ in names])
    return ConstraintProgrammingExplainer(problem["model"], mapper=Mapper(ordered, columns=columns))


def one_hot(group: tuple[int, ...]) -> Feature:
    return Feature(Feature.Type.ONE_HOT_ENCODED, codes=[str(j) for j in group])


def single(problem: dict[str, Any], j: int) -> Feature:
    """A column that is a feature of its own; a numeric one may move one unit beyond the data."""
    kind, low, high = problem["kinds"][j], problem["low"][j], problem["high"][j]
    if kind == "binary":
        return Feature(Feature.Type.BINARY)
    if kind == "integer" and problem["integers"]:
        return Feature(Feature.Type.DISCRETE, levels=range(int(low), int(high) + 1))
    return Feature(Feature.Type.CONTINUOUS, levels=(low - 1.0, high + 1.0))


def reply(search: ConstraintProgrammingExplainer, x: list[float], target: int, time_limit: float) -> dict[str, Any]:
    """One query on one thread; building the answer's row is inside the clock."""
    start = time.perf_counter()
    found = search.explain(pd.Series(x).to_numpy(), y=target, norm=1, num_workers=1, max_time=time_limit)
    row = None if found is None else found.to_numpy().tolist()
    seconds = time.perf_counter() - start
    return {"counterfactual": row, "seconds": seconds, "status": search.get_solving_status()}


def serve(path: str) -> None:
    """Answer until the input ends; the first line out says that the program is built."""
    with open(path, "rb") as file:
        problem = pickle.load(file)
    search = explainer(problem)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        query = json.loads(line)
        print(json.dumps(reply(search, query["x"], query["target"], problem["time_limit"])), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(sys.argv[1])
