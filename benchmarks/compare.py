"""The peers on the same rows, each within a budget, and whose distances are smaller."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import ours
from datasets import DataSet
from peers import Answer, Ocean, Treecf, Veritas
from sklearn.ensemble import RandomForestClassifier

from cfmaps import Distance, Features

# Queries of ours in every mean: a few fast ones right after a slow peer would measure its empty caches.
LEAST_TIMED = 75


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
    n = len(answers)
    pairs = zip(rows[:n], answers, strict=True)
    found = [row if answer.counterfactual is None else answer.counterfactual for row, answer in pairs]
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


@dataclass(frozen=True, slots=True)
class Beside:
    """A peer's run and ours on the same rows in the same norm, one right after the other."""

    run: Run
    cold: ours.Cold
    warm: ours.Warm

    @property
    def times_search(self) -> float:
        """How many of our first questions fit into one of the peer's, model loaded on both sides."""
        return self.run.mean / float(self.cold.explain.mean())

    @property
    def times_both(self) -> float:
        """The same when ours, and only ours, reads the model every time."""
        return self.run.mean / float(self.cold.both.mean())

    @property
    def times_fresh(self) -> float:
        """The same when both sides read the model for every question."""
        return (self.run.prepare + self.run.mean) / float(self.cold.both.mean())

    @property
    def times_warm(self) -> float:
        """The same on a whole map, one question at a time."""
        return self.run.mean / float(self.warm.explain.mean())

    @property
    def times_many(self) -> float:
        """The same when all rows are asked in one call, on one thread."""
        return self.run.mean / self.warm.many

    def verdict(self, rows: np.ndarray) -> Verdict:
        """Whose answers are nearer; equal means within the rounding that the peer allows itself."""
        difference = self.run.distances - self.cold.distances
        within = allowance(self.run, rows)
        return Verdict(
            equal=int((self.run.valid & (abs(difference) <= within)).sum()),
            ours_nearer=int((self.run.valid & (difference > within)).sum()),
            theirs_nearer=int((self.run.valid & (difference < -within)).sum()),
            invalid=int((~self.run.valid).sum()),
        )


def beside(
    run: Run,
    whole: ours.Whole,
    model: RandomForestClassifier,
    features: Features | None,
    rows: np.ndarray,
    targets: np.ndarray,
) -> Beside:
    """Ask our fresh maps and our whole map what the peer was asked."""
    rows, targets, repeats = rows[: run.n], targets[: run.n], -(-LEAST_TIMED // run.n)
    cold = ours.cold(model, features, rows, targets, run.norm, repeats=repeats)
    return Beside(run, cold, ours.warm(whole.cfmap, rows, targets, run.norm, repeats=repeats))


def allowance(run: Run, rows: np.ndarray) -> float:
    """A float32 step per column, oceanpy's fixed step per column, and veritas' bracket."""
    steps = np.spacing(np.abs(rows).max(axis=0).astype(np.float32)).sum() + rows.shape[1] * 2.4e-7
    return float(steps) + (1e-3 if run.norm == "linf" else 0.0)
