"""cfmaps on one thread: fresh maps, whole maps, and what they take."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import DataSet

from cfmaps import Binary, CounterfactualMap, Explanation, Features, Growth, Numeric, OneHot


@dataclass(frozen=True, slots=True)
class Cold:
    """One fresh map per query: seconds to make it and to ask it, and the answers."""

    construct: np.ndarray
    explain: np.ndarray
    distances: np.ndarray

    @property
    def both(self) -> np.ndarray:
        """Seconds from the fitted model to the answer."""
        return self.construct + self.explain


@dataclass(frozen=True, slots=True)
class Warm:
    """Seconds per query on a map that is there already: one at a time, many in one call, and predict's confirmation."""

    explain: np.ndarray
    many: float
    confirm_one: float
    confirm_many: float
    distances: np.ndarray
    n_visited: float


@dataclass(frozen=True, slots=True)
class Whole:
    """A map built on one core; ``seconds`` counts reading the model, too."""

    cfmap: CounterfactualMap
    growth: Growth
    seconds: float

    @property
    def bytes_per_node(self) -> float:
        return self.cfmap.partition.n_bytes / self.growth.n_nodes


def columns(data: DataSet, *, gap: float | None = None) -> Features | None:
    """What the peers are told about the columns: flags and one-hot groups; all others are free on the line."""
    if "binary" not in data.kinds and not data.groups:
        return None
    names = [f"x{j}" for j in range(len(data.kinds))]
    grouped = {j for group in data.groups.values() for j in group}
    groups = [OneHot(name, columns=[names[j] for j in group], gap=gap) for name, group in data.groups.items()]
    single = [
        Binary(name) if kind == "binary" else Numeric(name)
        for j, (name, kind) in enumerate(zip(names, data.kinds, strict=True))
        if j not in grouped
    ]
    return Features([*groups, *single], columns=names)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def cold(
    model: Any, features: Features | None, rows: np.ndarray, targets: np.ndarray, norm: str, *, repeats: int = 3
) -> Cold:
    """Ask every row of a map of its own; times are means over ``repeats``."""
    cold_query(model, features, rows[0], targets[0], norm)
    queries = list(zip(rows, targets, strict=True))
    answers = [[cold_query(model, features, *query, norm) for query in queries] for _ in range(repeats)]
    return Cold(*np.array(answers).mean(axis=0).T)


def cold_query(
    model: Any, features: Features | None, row: np.ndarray, target: Any, norm: str
) -> tuple[float, float, float]:
    """Seconds to make a map, seconds to ask it one question, and the distance it finds."""
    construct, cfmap = seconds(lambda: CounterfactualMap(model, features=features))
    explain, answer = seconds(lambda: cfmap.explain(row, target=target, distance=norm))
    return construct, explain, answer.distance


def build(model: Any, features: Features | None, **budgets: Any) -> Whole:
    """The whole map, or as much of it as the budgets allow, on one core."""
    spent, cfmap = seconds(lambda: CounterfactualMap(model, features=features))
    growth = cfmap.build(n_threads=1, **budgets)
    return Whole(cfmap, growth, spent + growth.seconds)


def warm(cfmap: CounterfactualMap, rows: np.ndarray, targets: np.ndarray, norm: str, *, repeats: int = 3) -> Warm:
    """Ask a map that is there already; the first question in a norm prepares its costs and is not timed."""
    cfmap.explain(rows[0], target=targets[0], distance=norm)
    # All searches come before the first predict, which would empty the processor's caches between them.
    singles = [asked(cfmap, rows, targets, norm) for _ in range(repeats)]
    batches = [
        seconds(lambda: cfmap.explain_many(rows, target=targets, distance=norm, n_threads=1)) for _ in range(repeats)
    ]
    confirm_one = [seconds(lambda answer=answer: answer.counterfactual)[0] for _, answer in singles[0]]
    answers = batches[0][1]
    confirm_many, _ = seconds(lambda: answers.counterfactuals)
    return Warm(
        explain=np.array([[spent for spent, _ in single] for single in singles]).mean(axis=0),
        many=float(np.mean([spent for spent, _ in batches])) / len(rows),
        confirm_one=float(np.mean(confirm_one)),
        confirm_many=confirm_many / len(rows),
        distances=answers.distances,
        n_visited=float(answers.n_visited.mean()),
    )


def asked(
    cfmap: CounterfactualMap, rows: np.ndarray, targets: np.ndarray, norm: str
) -> list[tuple[float, Explanation]]:
    """Seconds and answer of one question after the other."""
    return [
        seconds(lambda row=row, target=target: cfmap.explain(row, target=target, distance=norm))
        for row, target in zip(rows, targets, strict=True)
    ]
