"""From what was measured to one line per forest, system and norm, and to means over seeds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from plan import Plan
from problem import Setting
from study import Store

UNPREPARED = ("cold", "growing")


@dataclass(frozen=True, slots=True)
class Line:
    """One system on one forest in one norm.

    ``t_1000`` is the mean time of a query times 1,000; ``failed`` the percentage of queries without a valid answer and
    ``ratio`` the total distance of the valid ones over the total optimum; both leave out what the forest never answers.
    """

    setting: Setting
    system: str
    norm: str
    refused: str = ""
    n: int = 0
    prepare: float = np.nan
    t_1000: float = np.nan
    median_ms: float = np.nan
    p95_ms: float = np.nan
    failed: float = np.nan
    ratio: float = np.nan
    visited: float = np.nan
    nodes: float = np.nan
    boxes: float = np.nan
    megabytes: float = np.nan
    extraction: float = np.nan
    remarks: str = ""

    @property
    def total(self) -> float:
        return self.prepare + self.t_1000


def lines_of(plan: Plan, store: Store) -> list[Line]:
    """Everything measured so far, in the order of the plan."""
    found = []
    for setting, system, _ in plan.cells:
        cell = store.read(setting, system)
        if cell is None or system in plan.extras:
            continue
        if "refused" in cell:
            found.append(Line(setting, system, "l1", refused=cell["refused"]))
            continue
        optimum = store.read(setting, "optimum")
        found += [line(setting, system, norm, cell, optimum) for norm in cell["norms"]]
    return found


def line(setting: Setting, system: str, norm: str, cell: dict[str, Any], optimum: dict[str, Any]) -> Line:
    run, facts = cell["norms"][norm], cell["facts"]
    seconds, valid = np.array(run["seconds"]), np.array(run["valid"])
    best = np.array(optimum[norm + ("-gap" if run["gap"] else "")])[: len(seconds)]
    can, distances = np.isfinite(best), np.array(run["distance"])
    kept = can & valid
    return Line(
        setting,
        system,
        norm,
        n=len(seconds),
        # Where nothing is prepared the clock saw no more than a name being given.
        prepare=0.0 if system in UNPREPARED else cell["prepare"],
        t_1000=1000 * seconds.mean(),
        median_ms=1000 * float(np.median(seconds)),
        p95_ms=1000 * float(np.percentile(seconds, 95)),
        failed=100 * float((~valid[can]).mean()) if can.any() else np.nan,
        ratio=distances[kept].sum() / best[kept].sum() if best[kept].sum() > 0 else np.nan,
        visited=float(np.mean(run["visited"])) if "visited" in run else np.nan,
        nodes=facts.get("nodes", np.nan),
        boxes=facts.get("boxes", np.nan),
        megabytes=facts["bytes"] / 1e6 if "bytes" in facts else np.nan,
        extraction=facts.get("extraction", np.nan),
        remarks=remarks(facts),
    )


def remarks(facts: dict[str, Any]) -> str:
    """Errors that a package raised, and searches that a limit stopped."""
    stopped = [f"{facts['unproven']} stopped by a limit"] if facts.get("unproven") else []
    return "; ".join([*facts.get("errors", []), *stopped])


class Lines:
    """Lines that can be asked for by what they are about."""

    def __init__(self, lines: list[Line]) -> None:
        self.all = lines

    def of(self, system: str, data: str, norm: str | None = None, trees: int = 100, depth: int = 5) -> list[Line]:
        """One line per seed."""
        return list(self._matching(system, data, norm, trees, depth))

    def _matching(self, system: str, data: str, norm: str | None, trees: int, depth: int) -> Iterator[Line]:
        for found in self.all:
            at = found.setting
            is_asked = (found.system, at.data, at.trees, at.depth) == (system, data, trees, depth)
            if is_asked and not found.refused and norm in (None, found.norm):
                yield found

    def first(self, system: str, data: str, **where: Any) -> list[Line]:
        """One line per seed, in the first norm of the system."""
        found = self.of(system, data, **where)
        return [each for each in found if each.norm == found[0].norm]

    def refusal(self, system: str, data: str) -> str:
        """Why there is no line; "" where there is one or nothing was tried."""
        reasons = [each.refused for each in self.all if each.system == system and each.setting.data == data]
        return reasons[0] if reasons and all(reasons) else ""


def mean(lines: list[Line], value: str | Callable[[Line], float]) -> float:
    """Over seeds; NaN where there is nothing."""
    numbers = [getattr(each, value) if isinstance(value, str) else value(each) for each in lines]
    kept = [number for number in numbers if np.isfinite(number)]
    return float(np.mean(kept)) if kept else np.nan


def spread(lines: list[Line], value: str) -> float:
    numbers = [getattr(each, value) for each in lines]
    return float(np.std(numbers)) if numbers else np.nan
