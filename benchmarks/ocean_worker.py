"""oceanpy behind a pipe: one JSON line in (``x``, ``target``), one out (``counterfactual``, ``seconds``, ``status``).

Started by ``peers.Ocean`` with the pickle of a forest and its columns; runs under Python >= 3.12 and imports nothing
of ours.
"""

import contextlib
import json
import pickle
import sys
import time
import warnings
from typing import Any

import pandas as pd
from ocean import ConstraintProgrammingExplainer, MixedIntegerProgramExplainer
from ocean.abc import Mapper
from ocean.feature import Feature

SOLVERS = {"CP": ConstraintProgrammingExplainer, "MIP": MixedIntegerProgramExplainer}


def explainer(problem: dict[str, Any]) -> Any:
    """The program of one forest; it is built once and reused by every query."""
    group_of = {j: f"group{g}" for g, group in enumerate(problem["groups"]) for j in group}
    names = [(group_of.get(j, f"column{j}"), str(j)) for j in range(len(problem["kinds"]))]
    features = {f"group{g}": one_hot(group) for g, group in enumerate(problem["groups"])}
    features |= {names[j][0]: single(problem, j) for j in range(len(names)) if j not in group_of}
    ordered = {name: features[name] for name, _ in names}
    columns = pd.MultiIndex.from_tuples(names) if group_of else pd.Index([name for name, _ in names])
    return SOLVERS[problem["solver"]](problem["model"], mapper=Mapper(ordered, columns=columns))


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


def reply(search: Any, x: list[float], target: int, time_limit: float) -> dict[str, Any]:
    """One query on one thread; building the answer's row is inside the clocks, of the wall and of the processor."""
    start, busy = time.perf_counter(), time.process_time()
    found = search.explain(pd.Series(x).to_numpy(), y=target, norm=1, num_workers=1, max_time=time_limit)
    row = None if found is None else found.to_numpy().tolist()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return {"counterfactual": row, "seconds": seconds, "processor": busy, "status": search.get_solving_status()}


def serve(path: str) -> None:
    """Answer until the input ends; the first line out says whether the program is built."""
    with open(path, "rb") as file:
        problem = pickle.load(file)
    start = time.process_time()
    made = attempt(lambda: {"ready": True, "program": explainer(problem)})
    program = made.pop("program", None)
    print(json.dumps({"ready": False, "processor": time.process_time() - start} | made), flush=True)
    for line in sys.stdin if program else ():
        query = json.loads(line)
        found = attempt(lambda query=query: reply(program, query["x"], query["target"], problem["time_limit"]))
        print(json.dumps(found), flush=True)


def attempt(call: Any) -> dict[str, Any]:
    """What the call returns, or its error: a licence may be too small. It also speaks on what is our pipe."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return call()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(sys.argv[1])
