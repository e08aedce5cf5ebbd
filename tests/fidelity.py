"""What ensembles compute beside what the libraries do, on rows placed on and beside every cut.

Run as a script it prints, per library and task, the rows compared, the labels that
differed and the scores that differed in any bit, and ends with the number of differences.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import sklearn_models
from cfmaps import CounterfactualMap
from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.readers import read
from cfmaps.readers.outputs import rows_of

EXTREME = [0.0, -0.0, 1e-36, -1e-36, 1e-30, 1e30, -1e30]


@dataclass(frozen=True)
class Task:
    """A model to compare: how to fit it, and its own predictions and scores for rows of codes.

    ``scores`` gives what must equal the ensemble's scores in every bit, or None.
    """

    library: str
    name: str
    fit: Callable[[], Any]
    predict: Callable[[Any, Ensemble, np.ndarray], np.ndarray]
    scores: Callable[[Any, Ensemble, np.ndarray], np.ndarray | None]


def tasks():
    """All tasks; a library adds its own here."""
    return [*of_sklearn(), *of_boosters()]


def of_sklearn():
    for family, named in sklearn_models.tasks().items():
        for name, fit in named.items():
            yield Task(
                f"scikit-learn {family}",
                name,
                fit,
                lambda model, ensemble, rows: model.predict(rows_of(model, ensemble)(rows)),
                lambda model, ensemble, rows: sklearn_models.raw_scores(model, rows_of(model, ensemble)(rows)),
            )


def of_boosters():
    import boosters

    for make in (boosters.xgboost, boosters.lightgbm, boosters.catboost):
        for n_classes in (2, 3, 5, 0):
            for n_trees, missing in ((1, 0.0), (100, 0.1), (300, 0.0)):
                size = f"{n_trees} trees" + (", missing values" if missing else "")
                yield Task(
                    make.__name__,
                    f"{f'{n_classes} classes' if n_classes else 'regression'}, {size}",
                    partial(_fitted_booster, make, n_classes, n_trees, missing),
                    lambda model, ensemble, rows: np.ravel(model.predict(rows)),
                    lambda model, ensemble, rows: boosters.native_scores(model, rows),
                )


def _fitted_booster(make, n_classes, n_trees, missing):
    import boosters

    rng = np.random.default_rng([n_classes, n_trees])
    X, y = boosters.data(rng, n_classes, missing=missing)
    return make(n_classes, n_estimators=n_trees).fit(X, y, sample_weight=rng.random(len(X)) if missing else None)


def probes(rng, ensemble, n_rows):
    """Rows whose values stand on cuts, beside them, or far out; missing where the model takes that."""
    rows = np.empty((n_rows, ensemble.n_features))
    for column in range(ensemble.n_features):
        rows[:, column] = rng.choice(_pool(rng, ensemble, column), n_rows)
    if ensemble.takes_missing:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _pool(rng, ensemble, column):
    nodes = ensemble.feature == column
    if ensemble.category_set is not None and (ensemble.category_set[nodes] >= 0).any():
        values = (ensemble.categories or {}).get(column) or [*range(ensemble.category_sets.shape[1])]
        return np.flatnonzero([value is not None for value in values]).astype(float)
    cuts = ensemble.threshold[nodes]
    cuts = cuts[np.isfinite(cuts)]
    left, right = closed_sides(cuts, ensemble.number)
    below = np.nextafter(left.astype(ensemble.number), ensemble.number(-np.inf))
    between = cuts * (1 + rng.choice([-3e-8, 3e-8, 0.0], len(cuts)))
    values = np.concatenate([left, right, below, between, EXTREME])
    with np.errstate(over="ignore"):
        return values[np.isfinite(values.astype(ensemble.number))]


def compare(task, n_rows, *, seed=0, model=None):
    """The model's ensemble, and how many labels and scores differ: None where there are none to compare."""
    model = model or task.fit()
    ensemble = read(model)
    rows = probes(np.random.default_rng(seed), ensemble, n_rows)
    with threadpool_limits(1):
        native, scores = task.predict(model, ensemble, rows), task.scores(model, ensemble, rows)
    own_scores = ensemble.scores(rows)
    labels = None if ensemble.rule == "value" else int((ensemble.classes[ensemble.labels(rows)] != native).sum())
    return ensemble, labels, None if scores is None else int((own_scores != scores).any(axis=1).sum())


def unconfirmed(task, n_queries, *, seed=0, model=None):
    """How many counterfactuals of how many queries the library's own predict does not confirm, and how many were found.

    A query is explained for half a second at most.
    """
    model = model or task.fit()
    cfmap = CounterfactualMap(model)
    if cfmap.ensemble.rule == "value":
        return 0, 0
    rows = probes(np.random.default_rng(seed), cfmap.ensemble, n_queries)
    rows[np.abs(rows) > 1e20] = 1.0
    with threadpool_limits(1):
        cfmap.build(time_limit=5.0, max_nodes=2_000_000)
        many = asked_in_codes(cfmap, rows)
        found = np.flatnonzero(np.isfinite(many.distances) & (many.distances > 0))
        if not len(found):
            return 0, 0
        answers, before = many._replies.points[found], task.predict(model, cfmap.ensemble, rows[found])
        after = task.predict(model, cfmap.ensemble, answers)
    return int(((before == after) | (after != many.targets[found])).sum()), len(found)


def asked_in_codes(cfmap, rows):
    """Answers to rows of codes, asked in the words of the map's features."""
    words = rows.astype(object)
    for position, entry in cfmap._coder.entries.items():
        known = dict(zip(entry.codes, entry.categories, strict=True))
        words[:, position] = [known.get(code) for code in rows[:, position]]
    return cfmap.explain_many(words if cfmap._coder else rows, time_limit=0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=0, help="explain this many rows too, and ask predict")
    parser.add_argument("--only", default="", help="libraries whose name contains this")
    options = parser.parse_args()
    total = 0
    print(f"{'library':<34}{'task':<34}{'trees':>6}{'rows':>9}{'labels':>8}{'scores':>8}{'seconds':>9}")
    for task in tasks():
        if options.only not in task.library:
            continue
        start = time.perf_counter()
        ensemble, labels, scores = compare(task, options.rows)
        total += (labels or 0) + (scores or 0)
        shown = ["-" if count is None else str(count) for count in (labels, scores)]
        row = f"{ensemble.n_trees:>6}{options.rows:>9}{shown[0]:>8}{shown[1]:>8}{time.perf_counter() - start:>9.1f}"
        if options.queries:
            wrong, found = unconfirmed(task, options.queries)
            total += wrong
            row += f"{found:>8} counterfactuals, {wrong} not confirmed"
        print(f"{task.library:<34}{task.name:<34}{row}", flush=True)
    print(f"{total} differences")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
