"""One system on one problem, within a budget, and the file that remembers it."""

import json
import time
from pathlib import Path
from typing import Any

import clock
import numpy as np
from peers import Answer
from problem import Problem, Setting


def measure(system: Any, problem: Problem, budget: float) -> dict[str, Any]:
    """Prepare, then ask row after row until the budget of seconds is used up, at least once, in every norm."""
    reason = refusal(system, problem)
    if reason:
        return {"refused": reason}
    try:
        spent, _ = clock.seconds(lambda: system.prepare(problem))
        # What runs in a process of its own knows its own time.
        prepared = getattr(system, "prepared", spent)
        norms = {norm: in_norm(system, problem, norm, budget) for norm in system.norms}
    except Exception as error:  # a system that fails is a result of the study
        return {"refused": f"{type(error).__name__}: {error}"}
    finally:
        if hasattr(system, "close"):
            system.close()
    return {"prepare": prepared, "facts": system.facts, "norms": norms}


def refusal(system: Any, problem: Problem) -> str:
    if hasattr(system, "available") and not system.available():
        return "not installed here"
    return system.refuses(problem) if hasattr(system, "refuses") else ""


def in_norm(system: Any, problem: Problem, norm: str, budget: float) -> dict[str, Any]:
    """Seconds, distances, and which answers hold, for as many rows as were asked."""
    answers = ask(system, problem, norm, budget)
    n, gap = len(answers), getattr(system, "gap", None)
    if hasattr(system, "confirmed"):
        answers = system.confirmed(problem.rows[:n], problem.targets[:n], norm, answers)
    nothing = np.full(problem.rows.shape[1], np.nan)
    found = np.array([nothing if each.counterfactual is None else each.counterfactual for each in answers])
    distances, valid = problem.judge(found, norm, gap)
    result = {
        "seconds": [each.seconds for each in answers],
        "distance": distances.tolist(),
        "valid": valid.tolist(),
        "gap": gap,
    }
    visited = getattr(system, "visited", {}).get(norm)
    return result | ({"visited": visited} if visited else {})


def ask(system: Any, problem: Problem, norm: str, budget: float) -> list[Answer]:
    if hasattr(system, "explain_all"):
        return system.explain_all(problem.rows, problem.targets, norm)
    answers: list[Answer] = []
    end = time.perf_counter() + budget
    for x, target in zip(problem.rows, problem.targets, strict=True):
        if answers and time.perf_counter() >= end:
            break
        answers.append(system.explain(x, target, norm))
    return answers


class Store:
    """A folder with one JSON file per system and setting; what is there is not measured again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, setting: Setting, name: str) -> Path:
        return self.folder / f"{setting.key}-{name}.json"

    def forget(self) -> None:
        for path in self.folder.glob("*.json"):
            path.unlink()

    def has(self, setting: Setting, name: str) -> bool:
        return self.path(setting, name).exists()

    def write(self, setting: Setting, name: str, result: dict[str, Any]) -> None:
        """All or nothing, so that a run cut short leaves no half file."""
        path = self.path(setting, name)
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(result))
        temporary.rename(path)

    def read(self, setting: Setting, name: str) -> dict[str, Any] | None:
        path = self.path(setting, name)
        return json.loads(path.read_text()) if path.exists() else None
