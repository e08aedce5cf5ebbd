"""Plausible answers against enumeration of all cells, and scikit-learn's own scores."""

from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier

from cfmaps import CounterfactualMap, Isolation, Live, MaxChanges, Near
from constrained import keeps, limits
from models import random_model
from oracles import on_the_grid

KINDS = ("halves", "integers", "uniform", "limited", "integer", "ordinal", "binary", "one_hot")


def small_case(seed):
    rng = np.random.default_rng(seed)
    sizes = {
        "n_features": int(rng.integers(1, 4)),
        "n_trees": int(rng.integers(1, 4)),
        "depth": int(rng.integers(1, 4)),
    }
    return rng, random_model(rng, kinds=KINDS, n_queries=2, **sizes)


def candidates(features, grid, edges):
    """Rows at and beside all edges of every column, combined."""
    choices = []
    for entry, columns in zip(features, features.positions, strict=True):
        if len(columns) > 1:
            choices.append(np.eye(len(columns)))
            continue
        low, high = limits(entry)
        edge = np.array([*edges[columns[0]], grid[columns[0]], low, high])
        finite = np.clip(edge[np.isfinite(edge)], low, high)
        kind = type(entry).__name__
        if kind == "Integer":
            finite = np.concatenate([np.floor(finite), np.ceil(finite), np.floor(finite) + 1])
        elif kind == "Ordinal":
            finite = np.array(entry.values)
        elif kind == "Binary":
            finite = np.array([0.0, 1.0])
        else:
            near = finite.astype(np.float32)
            sides = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
            finite = np.concatenate([near, *sides]).astype(float)
        good = np.unique(finite)
        choices.append(good[(good >= low) & (good <= high)][:, np.newaxis])
    rows = np.empty((int(np.prod([len(c) for c in choices])), len(grid)))
    for place, pick in enumerate(product(*choices)):
        for columns, values in zip(features.positions, pick, strict=True):
            rows[place, columns] = values
    return rows


def edges_of(forests, n_columns):
    trees = [tree.tree_ for forest in forests for tree in getattr(forest, "estimators_", [forest])]
    return [np.concatenate([tree.threshold[tree.feature == column] for tree in trees]) for column in range(n_columns)]


def distance(features, rows, grid):
    away = np.abs(rows - grid)
    for entry, columns in zip(features, features.positions, strict=True):
        if getattr(entry, "gap", None) is not None:
            changed = away[:, columns].any(axis=1) * entry.gap
            away[:, columns] = 0
            away[:, columns[0]] = changed
    return away.sum(axis=1)


def expected(case, x, plausible, edges, constraints):
    grid = on_the_grid(case.features, x)
    rows = candidates(case.features, grid, edges)
    own = case.model.predict(x[np.newaxis])[0]
    rows = rows[(case.model.predict(rows) != own) & plausible(rows)] if len(rows) else rows
    rows = rows[[keeps(case.features, constraints, grid, row) for row in rows]] if len(rows) else rows
    return distance(case.features, rows, grid).min(initial=np.inf)


@pytest.mark.parametrize("seed", range(14))
def test_isolation_is_a_further_forest_in_the_same_search(seed):
    rng, case = small_case(seed)
    forest = IsolationForest(n_estimators=int(rng.integers(1, 4)), max_samples=8, random_state=seed).fit(case.X_train)
    limit = float(np.quantile(forest.score_samples(case.X_train), rng.choice([0.1, 0.5, 0.9])))
    constraints = [MaxChanges(1)] if rng.random() < 0.3 else []
    edges = edges_of([case.model, forest], case.features.n_columns)
    cfmap = CounterfactualMap(case.model, features=case.features)
    for x in case.queries:
        e = cfmap.explain(x, constraints=[*constraints, Isolation(forest, limit)])
        best = expected(case, x, lambda rows: forest.score_samples(rows) >= limit, edges, constraints)
        assert e.distance == pytest.approx(best, rel=1e-12)
        assert e.status == ("optimal" if np.isfinite(best) else "infeasible")
        if np.isfinite(best):
            assert forest.score_samples(np.asarray(e.counterfactual)[np.newaxis])[0] >= limit


@pytest.mark.parametrize("seed", range(14))
def test_live_answers_share_all_leaves_with_a_row(seed):
    _, case = small_case(seed)
    data = case.X_train[:12]
    cfmap = CounterfactualMap(case.model, features=case.features)
    leaves = cfmap.ensemble.leaves(data)

    def is_live(rows):
        return (cfmap.ensemble.leaves(rows)[:, np.newaxis] == leaves).all(axis=2).any(axis=1)

    edges = edges_of([case.model], case.features.n_columns)
    for x in case.queries:
        e = cfmap.explain(x, constraints=[Live(data)])
        assert e.distance == pytest.approx(expected(case, x, is_live, edges, []), rel=1e-12)
        assert e.status == "infeasible" or is_live(np.asarray(e.counterfactual)[np.newaxis])[0]


@pytest.mark.parametrize("seed", range(14))
def test_near_answers_are_near_a_row(seed):
    _, case = small_case(seed)
    data = on_the_grid_all(case.features, case.X_train[:8])
    cfmap = CounterfactualMap(case.model, features=case.features)
    scale = np.ptp(data, axis=0)
    groups = np.concatenate([columns for columns in case.features.positions if len(columns) > 1] or [[]]).astype(int)

    def is_near(rows):
        gaps = np.abs(rows[:, np.newaxis] - data) <= 0.25 * scale + 1e-15
        gaps[:, :, groups] = rows[:, np.newaxis, groups] == data[:, groups]
        return gaps.all(axis=2).any(axis=1)

    split = edges_of([case.model], case.features.n_columns)
    ends = [
        np.concatenate([split[c], data[:, c] - 0.25 * scale[c], data[:, c] + 0.25 * scale[c]])
        for c in range(len(scale))
    ]
    for x in case.queries:
        e = cfmap.explain(x, constraints=[Near(data, 0.25)])
        assert e.distance == pytest.approx(expected(case, x, is_near, ends, []), rel=1e-12, abs=1e-12)


def on_the_grid_all(features, rows):
    return np.array([on_the_grid(features, row) for row in rows])


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, X.sum(axis=1) > 0)
    return CounterfactualMap(model), X


def test_scores_respect_the_limit_and_cost_something(forest):
    cfmap, X = forest
    judge = IsolationForest(n_estimators=50, random_state=0).fit(X)
    plain = cfmap.explain_many(X)
    kept = cfmap.explain_many(X, constraints=[Isolation(judge)])
    found = kept.statuses == "optimal"
    assert found.any()
    assert (judge.score_samples(kept.points[found]) >= judge.offset_).all()
    assert (kept.distances >= plain.distances).all()
    assert (kept.distances > plain.distances).any()


def test_plausible_constraints_go_together_and_name_conflicts(forest):
    cfmap, X = forest
    judge = IsolationForest(n_estimators=20, random_state=0).fit(X)
    together = [Live(X), Near(X, 0.3), Isolation(judge, -0.6)]
    for e in cfmap.explain_many(X[:5], constraints=[*together, "changes <= 3"]):
        alone = cfmap.explain(X[0], constraints=together[:1])
        assert e.status in ("optimal", "infeasible")
        assert alone.status == "optimal"
    never = Isolation(judge, 0.0)
    assert cfmap.explain(X[0], constraints=["changes <= 3", never]).conflict == (never,)


def test_what_is_no_isolation_forest_is_refused(forest):
    with pytest.raises(TypeError, match="fitted IsolationForest"):
        Isolation(IsolationForest())
    with pytest.raises(ValueError, match="within must not be negative"):
        Near(forest[1], -1)
