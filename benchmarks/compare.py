"""The peers on the same rows, each within a budget, and whose distances are smaller."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import DataSet
from peers import Answer, Ocean, Treecf, Veritas
from sklearn.ensemble import RandomForestClassifier

from cfmaps import Distance, Features


@dataclass(frozen=True, slots=True)
class Run:
    """A peer's answers to the first rows: seconds each, distances, and which of them the forest confirms."""

    peer: str
    norm: str
    prepare: float
    seconds: np.ndarray
    distances: np.ndarray
    valid: np.ndarray
    n_unproven: int

    @property
    def n(self) -> int:
        return len(self.seconds)

    @property
    def mean(self) -> float:
        return float(self.seconds.mean())


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the valid answers of a peer compare with ours."""

    equal: int
    ours_nearer: int
    theirs_nearer: int
    invalid: int


def peers() -> list[tuple[Any, int]]:
    """The peers, and how many rows each is asked at most."""
    return [(Treecf(), 25), (Treecf(warm_start=False), 25), (Veritas(), 25), (Ocean(), 4)]


def run(
    peer: Any,
    model: RandomForestClassifier,
    data: DataSet,
    rows: np.ndarray,
    targets: np.ndarray,
    *,
    features: Features | None,
    budget: float,
) -> Run:
    """Ask a peer row by row until the budget of seconds is used up; at least once."""
    start = time.perf_counter()
    peer.prepare(model, data)
    prepared = time.perf_counter() - start
    answers: list[Answer] = []
    while len(answers) < len(rows) and (not answers or sum(answer.seconds for answer in answers) < budget):
        answers.append(peer.explain(rows[len(answers)], targets[len(answers)]))
    if hasattr(peer, "close"):
        peer.close()
    return judged(peer, model, rows, targets, answers, prepared, features)


def judged(
    peer: Any,
    model: RandomForestClassifier,
    rows: np.ndarray,
    targets: np.ndarray,
    answers: list[Answer],
    prepared: float,
    features: Features | None,
) -> Run:
    """Measure every answer with one ruler and ask the forest about it."""
    found = [row if answer.counterfactual is None else answer.counterfactual for row, answer in zip(rows, answers)]
    n = len(answers)
    return Run(
        peer=peer.name,
        norm=peer.norm,
        prepare=prepared,
        seconds=np.array([answer.seconds for answer in answers]),
        distances=Distance(peer.norm).between(rows[:n], np.array(found), features=features),
        # A row that was not answered is its own answer here, which has not the target's label.
        valid=model.predict(np.array(found)) == targets[:n],
        n_unproven=peer.unproven,
    )


def verdict(theirs: Run, ours: np.ndarray, rows: np.ndarray) -> Verdict:
    """Count; equal means within the rounding that the peer allows itself."""
    difference = theirs.distances - ours[: theirs.n]
    within = allowance(theirs, rows)
    return Verdict(
        equal=int((theirs.valid & (abs(difference) <= within)).sum()),
        ours_nearer=int((theirs.valid & (difference > within)).sum()),
        theirs_nearer=int((theirs.valid & (difference < -within)).sum()),
        invalid=int((~theirs.valid).sum()),
    )


def allowance(theirs: Run, rows: np.ndarray) -> float:
    """A float32 step per column, and veritas' bracket.

    treecf answers between the numbers that the model compares, oceanpy a fixed step beyond a threshold.
    """
    steps = np.spacing(np.abs(rows).max(axis=0).astype(np.float32)).sum() + rows.shape[1] * 2.4e-7
    return float(steps) + (1e-3 if theirs.norm == "linf" else 0.0)
