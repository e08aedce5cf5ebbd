"""How long constrained questions and menus of levers take, beside treecf's on what both can say. One thread each."""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from datasets import forest, queries
from peers import TIE

from cfmaps import CounterfactualMap


def times_of(ask: Callable[[np.ndarray], Any], rows: np.ndarray, repeat: int = 1) -> list[float]:
    """Milliseconds of one call for each row."""
    found = []
    for row in rows:
        start = time.perf_counter()
        for _ in range(repeat):
            ask(row)
        found.append((time.perf_counter() - start) / repeat * 1e3)
    return found


def rules_of(names: Sequence[str], rows: np.ndarray) -> list[str]:
    """A cap, a relation between two columns that half of the rows keep, and an implication."""
    middle = np.median(rows, axis=0)
    relation = f"`{names[0]}` <= `{names[1]}`"  # the one form that treecf's exact search takes
    return ["changes <= 2", relation, f"if `{names[2]}` >= {middle[2]} then `{names[3]}` <= {middle[3]}"]


def show(name: str, times: list[float], beside: float | None = None) -> float:
    """Print mean and median; returns the mean."""
    ratio = "" if beside is None else f"{beside / np.mean(times):10.0f} times faster"
    print(f"{name:44}{np.mean(times):12.3f}{np.median(times):12.3f}{ratio}")
    return float(np.mean(times))


def measure(dataset: str, n: int, n_peer: int) -> None:
    """All figures of one data set."""
    model, data, test = forest(dataset)
    rows = queries(data, test, n)
    cfmap = CounterfactualMap(model)
    cfmap.build(time_limit=60)
    names = list(cfmap.features.names)
    rules = rules_of(names, data.rows)
    print(f"\n{data.name}: {model.n_estimators} trees, {len(names)} columns; milliseconds{'mean':>12}{'median':>12}")
    half = f"freeze {', '.join(f'`{name}`' for name in names[::2])}"
    for name, constraints in (("unconstrained", ()), ("half of the features frozen", half)):
        times_of(lambda row, kept=constraints: cfmap.explain(row, constraints=kept), rows[:3])
        show(name, times_of(lambda row, kept=constraints: cfmap.explain(row, constraints=kept), rows))
    relation = times_of(lambda row: cfmap.explain(row, constraints=rules[1]), rows)
    capped = times_of(lambda row: cfmap.explain(row, constraints=rules), rows)
    menus = times_of(lambda row: cfmap.levers(row, n_threads=1), rows)
    if not importlib.util.find_spec("treecf") or not n_peer:
        show("the relation alone", relation)
        show("menu of up to 3 levers", menus)
        return
    alone, peer_menus = peer_times(model, rows[:n_peer], len(names))
    peer = show("treecf exact, the relation alone", alone)
    show("the relation alone", relation, peer)
    show("cap, relation and implication", capped, peer)
    show("menu of up to 3 levers", menus, show("treecf's menu of up to 3 levers", peer_menus))


def peer_times(model: Any, rows: np.ndarray, n_columns: int) -> tuple[list[float], list[float]]:
    """treecf's exact search under the relation, and its menu; the first call, which loads the model, is not timed."""
    import treecf

    warnings.simplefilter("ignore")
    relation = treecf.Linear({"f0": 1.0, "f1": -1.0}, "<=", 0.0)
    under = treecf.Explainer(model, normalizers=np.ones(n_columns), constraints=[relation])
    free = treecf.Explainer(model, normalizers=np.ones(n_columns))

    def target(row: np.ndarray) -> Any:
        other = "<=" if model.predict([row])[0] == model.classes_[1] else ">="
        return treecf.Target.raw(op=other, value=0.5 + TIE)

    goals = {row.tobytes(): target(row) for row in rows}
    options = {"backend": "exact", "seed": 0, "time_budget_s": 60.0}
    for explainer in (under, free):
        explainer.explain(rows[0], goals[rows[0].tobytes()], **options)
    alone = times_of(lambda row: under.explain(row, goals[row.tobytes()], **options), rows)
    menus = times_of(lambda row: free.recourse_menu(row, goals[row.tobytes()], max_levers=3, **options), rows)
    return alone, menus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["BC", "PD"])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--peer-queries", type=int, default=5, help="rows that treecf is asked about; 0 leaves it out")
    options = parser.parse_args()
    for name in options.data:
        measure(name, options.queries, options.peer_queries)


if __name__ == "__main__":
    main()
