"""Every answer of many random models against an enumeration of all cells by the model's own predict.

Run as a script it prints what it compared and ends with "0 differences", or with their list.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cfmaps import CounterfactualMap
from models import NUMERIC_KINDS, Case, nudge_thresholds, random_model, split_points
from oracles import nearest_candidates, on_the_grid, predictions, respects, row_distances

MOST_CANDIDATES = 20_000
MOST_TARGETS = 4
MOST_COLD = 6
LARGE_EVERY = 50
NEAR = 1e-12
NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf, 3: 3.0, 1.5: 1.5}
FORESTS = ("forest", "extra_trees")
UNLIMITED = {"max_depth": None}
PURE = UNLIMITED | {"n_rows": 80, "family": "forest", "bootstrap": False}

SHAPES: dict[str, dict[str, Any]] = {
    "any": {},
    "ties": PURE | {"kinds": ("halves", "ordinal", "integer"), "n_features": 3, "max_features": 1},
    "slivers": {"kinds": ("slivers", "halves"), "nudge": True, "n_rows": 60} | UNLIMITED,
    "nudged": {
        "kinds": ("halves", "uniform", "limited", "huge"),
        "nudge": True,
        "n_features": 2,
        "n_trees": 4,
        "depth": 5,
    },
    "groups": {"kinds": ("one_hot", "optional", "binary", "ordinal", "whole"), "depth": 6, "n_rows": 60},
    "limits": {"kinds": ("limited", "integer", "off_grid"), "n_features": 3, "n_trees": 5, "depth": 5},
    "many classes": {"n_classes": 12, "n_features": 2, "n_rows": 120, "depth": 6},
    "nine classes": {"n_classes": 9, "n_features": 1, "n_rows": 100, "family": "extra_trees"} | UNLIMITED,
    "many leaves": {"kinds": ("wide",), "n_features": 2, "n_rows": 250, "n_trees": 5, "family": "forest"} | UNLIMITED,
    "many trees": {"kinds": ("wide", "halves"), "n_features": 2, "n_trees": 40, "family": "forest"} | UNLIMITED,
    "one column": {"kinds": ("dense", "wide", "limited"), "n_features": 1, "n_rows": 200} | UNLIMITED,
    "few used": {"kinds": NUMERIC_KINDS, "n_features": 200, "family": "forest", "n_trees": 2, "depth": 2},
}
LARGE_SHAPES: dict[str, dict[str, Any]] = {
    "two columns": {"kinds": ("dense",), "n_features": 2},
    "three columns": {"kinds": ("dense", "dense", "one_hot"), "n_features": 3},
}


@dataclass
class Tally:
    """How often what was compared, and what differed."""

    counts: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    name: str = ""

    def check(self, kind: str, agree: Any, *shown: Any) -> None:
        """Counts every row; a row that does not agree is kept with its entries of ``shown``."""
        agree = np.atleast_1d(agree)
        self.counts[kind] += len(agree)
        for row in np.flatnonzero(~agree):
            self.differences.append(
                f"{self.name}: {kind}, row {row}: " + " | ".join(str(values[row]) for values in shown)
            )

    @contextmanager
    def named(self, name: str, trial: "Trial") -> Iterator[None]:
        """Differences bear this name, and an exception is one of them."""
        self.name = name
        self.seen[name.split()[0] + " models"] += 1
        try:
            yield
        except Exception as error:
            self.differences.append(f"{name}: {type(error).__name__}: {error}")


@dataclass(frozen=True)
class Trial:
    """A model, how it votes, and what is asked: a target (None: any other label) for every row."""

    case: Case
    votes: str
    rows: np.ndarray
    targets: list[Any]

    def map(self):
        return CounterfactualMap(self.case.model, features=self.case.features, votes=self.votes)

    def predict(self, rows):
        return predictions(self.case.model, rows, self.votes)

    def subset(self, chosen):
        """The same model asked about some of the rows only."""
        return Trial(self.case, self.votes, self.rows[chosen], [self.targets[row] for row in chosen])


@dataclass(frozen=True)
class Measure:
    """A distance in the words of the library and of the oracle."""

    norm: Any
    p: float
    weights: np.ndarray | None

    @classmethod
    def drawn(cls, rng, norm, n_columns):
        spread = rng.integers(4)
        if spread == 0:
            return cls(norm, NORMS[norm], None)
        drawn = [
            rng.uniform(0.1, 3, n_columns),
            rng.choice([0.5, 1.0, 2.0], n_columns),
            10 ** rng.uniform(-3, 3, n_columns),
        ]
        return cls(norm, NORMS[norm], drawn[spread - 1])

    def ask(self, cfmap, trial, n_threads=1):
        return cfmap.explain_many(
            trial.rows, target=trial.targets, distance=self.norm, weights=self.weights, n_threads=n_threads
        )

    def distances(self, x, rows, features):
        weights = np.ones(len(x)) if self.weights is None else self.weights
        return row_distances(x, rows, features, self.p, weights)


@dataclass(frozen=True)
class Enumeration:
    """The oracle: per query the candidate rows, and what the model says of them."""

    grid: np.ndarray
    own: np.ndarray
    rows: list[np.ndarray]
    labels: list[np.ndarray]

    @classmethod
    def of(cls, trial):
        splits = split_points(trial.case.model, trial.case.features)
        queries, of_row = np.unique(trial.rows, axis=0, return_inverse=True)
        grid = np.array([on_the_grid(trial.case.features, x) for x in queries])
        rows = [nearest_candidates(trial.case.features, splits, x) for x in grid]
        labels = np.split(trial.predict(np.concatenate(rows)), np.cumsum([len(block) for block in rows])[:-1])
        chosen = of_row.ravel()
        return cls(grid[chosen], trial.predict(trial.rows), [rows[k] for k in chosen], [labels[k] for k in chosen])

    def distances(self, trial, measure):
        """The smallest distance of every row to its target, inf where no candidate has it."""
        found = np.zeros(len(self.grid))
        for row, target in enumerate(trial.targets):
            if target == self.own[row]:
                continue
            wanted = self.labels[row] != self.own[row] if target is None else self.labels[row] == target
            away = measure.distances(self.grid[row], self.rows[row][wanted], trial.case.features)
            found[row] = away.min(initial=np.inf)
        return found


def drawn_trial(rng, shape):
    """A trial of this shape that the oracle can enumerate."""
    while True:
        trial = asked(rng, random_model(rng, n_queries=5, **SHAPES[shape]))
        if n_candidates(trial.case) <= MOST_CANDIDATES:
            return trial


def asked(rng, case):
    """Every query with no target, its own label, and a few labels."""
    classes = case.model.classes_
    votes = "hard" if rng.random() < 0.3 else "soft"
    own = predictions(case.model, case.queries, votes)
    rows, targets = [], []
    for x, label in zip(case.queries, own, strict=True):
        labels = [None, label, *rng.permutation(classes)[:MOST_TARGETS]]
        rows += [x] * len(labels)
        targets += labels
    order = rng.permutation(len(rows))
    return Trial(case, votes, np.array(rows)[order], [targets[row] for row in order])


def n_candidates(case):
    """About how many rows the oracle would enumerate for one query."""
    splits = split_points(case.model, case.features)
    per_feature = [
        2.0 * len(splits[columns[0]]) + 1 if len(columns) == 1 else len(columns) + 1
        for columns in case.features.positions
    ]
    return np.prod(per_feature)


def compare(trial, rng, tally):
    """One model: every norm in every state of the map, against each other and against the oracle."""
    oracle = Enumeration.of(trial)
    asked_before, complete = trial.map(), trial.map()
    n_nodes = complete.build(n_threads=1).n_nodes
    asked_about = []
    for norm in NORMS:
        measure = Measure.drawn(rng, norm, trial.rows.shape[1])
        answers = measure.ask(complete, trial)
        compare_with_oracle(trial, measure, answers, oracle, tally)
        compare_states(trial, measure, answers, states(trial, rng, n_nodes) | {"asked before": asked_before}, tally)
        compare_box_trees(trial, measure, complete, answers, oracle, tally)
        asked_about.append((measure, answers))
    measure, answers = asked_about[rng.integers(len(asked_about))]
    cold = rng.permutation(len(trial.rows))[:MOST_COLD]
    compare_cold(trial.subset(cold), measure, answers.distances[cold], answers.points[cold], tally)
    compare_predictions(trial, oracle, np.concatenate([answers.points for _, answers in asked_about]), tally)


def compare_with_oracle(trial, measure, answers, oracle, tally):
    expected, distances = oracle.distances(trial, measure), answers.distances
    statuses = np.where(np.isfinite(expected), "optimal", "infeasible")
    context = (trial.rows, trial.targets, [measure] * len(expected))
    tally.check("status", answers.statuses == statuses, answers.statuses, statuses, *context)
    tally.check("distance", same(distances, expected), distances, expected, *context)
    tally.check("lower bound", answers.lower_bounds == distances, answers.lower_bounds, distances, *context)
    tally.check("infimum", answers.infima <= distances * (1 + NEAR), answers.infima, distances, *context)
    compare_points(trial, measure, answers, oracle, tally)


def compare_points(trial, measure, answers, oracle, tally):
    """Each point is as far as it says, holds what its features may hold, and moves no more than it must."""
    features = trial.case.features
    for row, (x, point) in enumerate(zip(trial.rows, answers.points, strict=True)):
        if np.isnan(point).any():
            tally.check("no point", np.isinf(answers.distances[row]), [point])
            continue
        grid = on_the_grid(features, point)
        away = measure.distances(oracle.grid[row], grid[np.newaxis], features)[0]
        context = ([point], [x], [trial.targets[row]], [measure])
        tally.check("own distance", same(answers.distances[row], away), [answers.distances[row]], [away], *context)
        is_itself = trial.targets[row] == oracle.own[row]
        tally.check("domain", bool((point == x).all()) if is_itself else respects(features, grid), *context)
        tally.check("unmoved values", bool(((grid != oracle.grid[row]) | (point == x)).all()), *context)


def states(trial, rng, n_nodes):
    """A new map, and one built in part."""
    half_grown = trial.map()
    half_grown.build(max_nodes=int(rng.integers(1, n_nodes + 1)), n_threads=1)
    return {"fresh": trial.map(), "half grown": half_grown}


def compare_states(trial, measure, answers, maps, tally):
    """What a map has grown does not change an answer, to the last bit."""
    for state, cfmap in maps.items():
        others = measure.ask(cfmap, trial, n_threads=2 if state == "fresh" and len(trial.rows) % 4 == 0 else 1)
        compare_answers(state, trial, measure, others, answers.distances, answers.points, tally)


def compare_answers(state, trial, measure, others, distances, points, tally):
    agree = (others.distances == distances) & same_points(others.points, points)
    shown = (others.distances, distances, others.points, points, trial.rows, trial.targets)
    tally.check(state, agree, *shown, [measure] * len(agree))


def compare_cold(trial, measure, distances, points, tally):
    for row in range(len(trial.rows)):
        alone = trial.subset([row])
        others = measure.ask(alone.map(), alone)
        compare_answers("cold", alone, measure, others, distances[[row]], points[[row]], tally)


def compare_box_trees(trial, measure, complete, answers, oracle, tally):
    """The paper's index over the same boxes; it knows no gaps of groups."""
    features, targets = trial.case.features, np.array(trial.targets, dtype=object)
    if any(getattr(entry, "gap", None) is not None for entry in features):
        return
    for label in trial.case.model.classes_:
        rows = np.flatnonzero((targets == label) & (oracle.own != label))
        tree = complete.box_tree(label, leaf_size=2)
        found = tree.nearest(oracle.grid[rows], measure.norm, weights=measure.weights).distance
        expected = answers.distances[rows]
        tally.check(
            "box tree", same(found, expected), found, expected, trial.rows[rows], targets[rows], [measure] * len(rows)
        )


def compare_predictions(trial, oracle, points, tally):
    """The model's own word on every answer."""
    repeats = len(points) // len(trial.rows)
    targets, own = np.array(trial.targets * repeats, dtype=object), np.tile(oracle.own, repeats)
    found = np.flatnonzero(~np.isnan(points).any(axis=1))
    predicted = trial.predict(points[found]) if len(found) else own[found]
    any_other = np.array([target is None for target in targets[found]], dtype=bool)
    agree = np.where(any_other, predicted != own[found], predicted == targets[found])
    tally.check("predict", agree.astype(bool), predicted, targets[found], points[found])


def same(left, right):
    """Equal, or within a relative 1e-12; zero and infinity only equal themselves."""
    left, right = np.asarray(left), np.asarray(right)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore"):
        return (left == right) | (finite & (np.abs(left - right) <= NEAR * np.minimum(np.abs(left), np.abs(right))))


def same_points(left, right):
    return ((left == right) | (np.isnan(left) & np.isnan(right))).all(axis=1)


def large_trial(rng, shape):
    """A forest of unlimited depth; nobody could enumerate its cells."""
    sizes = {"n_trees": int(rng.integers(5, 21)), "n_rows": int(rng.integers(100, 400)), "max_depth": None}
    case = random_model(rng, n_queries=3, family=str(rng.choice(FORESTS)), **sizes, **LARGE_SHAPES[shape])
    if rng.random() < 0.3:
        nudge_thresholds(rng, case.model)
    return asked(rng, case)


def compare_large(trial, rng, tally):
    """Too many cells for the oracle: the map against itself in every state, its box trees and the model."""
    grid = np.array([on_the_grid(trial.case.features, x) for x in trial.rows])
    own = Enumeration(grid, trial.predict(trial.rows), [], [])
    complete, asked_before = trial.map(), trial.map()
    n_nodes = complete.build(n_threads=1, max_nodes=2_000_000).n_nodes
    for norm in rng.permutation(np.array(list(NORMS), dtype=object))[:3]:
        measure = Measure.drawn(rng, norm, trial.rows.shape[1])
        answers = measure.ask(complete, trial)
        compare_points(trial, measure, answers, own, tally)
        compare_states(trial, measure, answers, states(trial, rng, n_nodes) | {"asked before": asked_before}, tally)
        if complete.is_complete:
            compare_box_trees(trial, measure, complete, answers, own, tally)
        compare_predictions(trial, own, answers.points, tally)


def run(seed, n_models):
    """The tally of so many small models and a hundredth as many large ones."""
    tally = Tally()
    for index in range(n_models):
        one_model(seed, index, tally)
    for index in range(n_models // LARGE_EVERY):
        one_large_model(seed, index, tally)
    return tally


def one_model(seed, index, tally):
    """Model ``index`` of a campaign, whatever came before it."""
    shape = list(SHAPES)[index % len(SHAPES)]
    rng = np.random.default_rng([seed, index])
    trial = drawn_trial(rng, shape)
    with tally.named(f"model {index} ({shape}, {trial.votes} votes)", trial):
        compare(trial, rng, tally)


def one_large_model(seed, index, tally):
    shape = list(LARGE_SHAPES)[index % len(LARGE_SHAPES)]
    rng = np.random.default_rng([seed, index, 1])
    trial = large_trial(rng, shape)
    with tally.named(f"large model {index} ({shape}, {trial.votes} votes)", trial):
        compare_large(trial, rng, tally)


def report(tally):
    for name, count in sorted(tally.seen.items()):
        print(f"{count:>12,} {name}")
    for kind, count in sorted(tally.counts.items()):
        print(f"{count:>12,} comparisons: {kind}")
    print(f"{sum(tally.counts.values()):>12,} comparisons in all")
    for difference in tally.differences:
        print(difference)
    print(f"{len(tally.differences)} differences")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one model of the campaign, by its number")
    options = parser.parse_args()
    tally = Tally()
    if options.only is None:
        tally = run(options.seed, options.models)
    else:
        one_model(options.seed, options.only, tally)
    report(tally)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
