"""Measures what the plan asks for and the store does not have yet."""

import sys
import time
from typing import Any

from born_again import measure_partitions
from dice import Worker
from plan import Plan
from problem import Problem, Setting
from qualitative import answer_examples
from study import Store, measure
from systems import all_systems

EXTRAS = {
    "partition": measure_partitions,
    "examples": lambda problem: {"examples": answer_examples(problem), "columns": problem.data.columns},
}


def run(plan: Plan, store: Store, seconds: float) -> None:
    """Go through the plan, cell after cell; no cell is begun after ``seconds``."""
    start, systems = time.perf_counter(), all_systems()
    todo = [cell for cell in plan.cells if not store.has(*cell[:2])]
    say(f"{len(plan.cells) - len(todo)} of {len(plan.cells)} cells are there already, {len(todo)} to go")
    problem: Problem | None = None
    for done, (setting, name, budget) in enumerate(todo):
        if time.perf_counter() - start > seconds:
            say(f"out of time: {len(todo) - done} cells are left for another run")
            break
        if store.has(setting, name):
            continue  # another run was here
        if problem is None or problem.setting != setting:
            problem = Problem(setting, plan.n_queries)
            remember_optimum(problem, store)
        spent = time.perf_counter() - start
        say(f"[{done + 1}/{len(todo)}, {spent / 60:.1f} min] {setting.key} {name}")
        found = EXTRAS[name](problem) if name in EXTRAS else measure(systems[name], problem, budget)
        store.write(setting, name, found)
    Worker.close()


def remember_optimum(problem: Problem, store: Store) -> None:
    """The yardstick of every D: the optimum in each norm, and in L1 with a change of category counted once."""
    setting: Setting = problem.setting
    if store.has(setting, "optimum"):
        return
    found: dict[str, Any] = {norm: problem.optimum(norm).tolist() for norm in ("l1", "l2", "linf")}
    found["l1-gap"] = problem.optimum("l1", gap=1.0).tolist() if problem.data.groups else found["l1"]
    store.write(setting, "optimum", found)


def say(line: str) -> None:
    """Progress goes to standard error, a line per cell."""
    print(line, file=sys.stderr, flush=True)
