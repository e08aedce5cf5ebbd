"""Alternatives and margins against enumeration of all cells."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier

from cfmaps import CounterfactualMap, MaxChanges, Robust
from constrained import Measure, keeps
from models import random_model
from oracles import on_the_grid
from random_constraints import random_constraints

KINDS = ("halves", "integers", "uniform", "limited", "integer", "ordinal", "binary", "one_hot", "optional")
NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}


def cells_of(cfmap, grid):
    """The nearest row of every combination of cells."""
    lattice = cfmap.partition.lattice
    cells = np.array(list(product(*(range(n) for n in lattice.n_cells))))
    return cells, lattice.nearest(grid, cells)


def irreducible(features, own, rows):
    """The rows that no other lies before on the way from a row's own values."""
    kept = []
    for i, row in enumerate(rows):
        others = np.delete(rows, i, axis=0)
        between = np.ones(len(others), dtype=bool)
        for entry, columns in zip(features, features.positions, strict=True):
            a, b, x = others[:, columns], row[columns], own[columns]
            if len(columns) > 1:
                between &= (a == b).all(axis=1) | (a == x).all(axis=1)
            else:
                between &= (((x <= a) & (a <= b)) | ((b <= a) & (a <= x))).all(axis=1)
            del entry
        if not between.any():
            kept.append(i)
    return kept


def small_case(seed, **options):
    rng = np.random.default_rng(seed)
    sizes = {
        "n_features": int(rng.integers(1, 4)),
        "n_trees": int(rng.integers(1, 4)),
        "depth": int(rng.integers(1, 4)),
    }
    return rng, random_model(rng, kinds=KINDS, n_queries=1, **sizes | options)


@pytest.mark.parametrize("seed", range(24))
def test_alternatives_are_all_irreducible_answers_in_order(seed):
    rng, case = small_case(seed)
    cfmap = CounterfactualMap(case.model, features=case.features)
    x = case.queries[0]
    grid = on_the_grid(case.features, x)
    own = case.model.predict(x[np.newaxis])[0]
    norm = str(rng.choice(list(NORMS)))
    constraints = random_constraints(rng, case, x, kinds=["freeze", "max_changes"], n=int(rng.integers(2)))
    _, rows = cells_of(cfmap, grid)
    rows = np.unique(rows, axis=0)
    rows = rows[case.model.predict(rows) != own]
    rows = rows[[keeps(case.features, constraints, grid, row) for row in rows]] if len(rows) else rows
    chosen = rows[irreducible(case.features, grid, rows)] if len(rows) else rows
    measure = Measure(NORMS[norm], np.ones(case.features.n_columns), {})
    expected = np.sort(distances_of(measure, case.features, grid, chosen))
    found = cfmap.alternatives(x, k=None, tolerance=1e9, distance=norm, constraints=constraints)
    if len(expected) == 0:
        assert len(found) == 1
        assert found[0].status == "infeasible"
        return
    assert np.asarray([e.distance for e in found]) == pytest.approx(expected, rel=1e-12)
    points = {tuple(row) for row in cfmap.partition.lattice.round(found.explanations.points)}
    assert points == {tuple(row) for row in chosen}
    some = cfmap.alternatives(x, k=3, distance=norm, constraints=constraints)
    assert [e.distance for e in some] == pytest.approx(expected[:3], rel=1e-12)
    near = cfmap.alternatives(x, k=None, tolerance=0.5, distance=norm, constraints=constraints)
    assert len(near) == (expected <= expected[0] * 1.5).sum()
    assert near.complete_within == pytest.approx(expected[0] * 1.5)


def distances_of(measure, features, own, rows):
    def value(row, entry, columns):
        if len(columns) == 1:
            return row[columns[0]]
        return float(row[columns].argmax()) if row[columns].any() else float(len(columns))

    places = list(zip(features, features.positions, strict=True))
    gaps = [
        [measure.gap(features, k, value(own, *place), value(row, *place)) for k, place in enumerate(places)]
        for row in rows
    ]
    return np.linalg.norm(np.array(gaps).reshape(-1, len(places)), ord=measure.p, axis=1) if len(gaps) else np.empty(0)


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 8, size=(300, 4)).astype(float)
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, X.sum(axis=1) > 14)
    return CounterfactualMap(model), X


def test_one_answer_for_each_set_of_changed_features(forest):
    cfmap, X = forest
    for x in X[:10]:
        everything = cfmap.alternatives(x, k=None, tolerance=1)
        best = {}
        for e in everything:
            best.setdefault(frozenset(change.feature for change in e.changes()), e.distance)
        diverse = cfmap.alternatives(x, k=None, tolerance=1, diverse_by="features")
        got = {frozenset(change.feature for change in e.changes()): e.distance for e in diverse}
        assert got == best


def test_answers_apart_and_in_regions_of_their_own(forest):
    cfmap, X = forest
    apart = cfmap.alternatives(X[0], k=4, diverse_by="distance", separation=1.5)
    points = apart.explanations.points
    gaps = np.abs(points[:, np.newaxis] - points).sum(axis=2)[np.triu_indices(len(points), 1)]
    assert (gaps >= 1.5).all()
    for e, other in zip(*[list(cfmap.alternatives(X[0], k=4, diverse_by="region"))[i:] for i in (0, 1)], strict=False):
        point = np.asarray(other.counterfactual, dtype=float)
        assert not ((e.region.lower <= point) & (point <= e.region.upper)).all()


def test_frames_come_back_as_they_went_in(forest):
    cfmap, X = forest
    for library in (pd, pl):
        frame = library.DataFrame({f"x{k}": X[:1, k] for k in range(4)})
        found = cfmap.alternatives(frame, k=3)
        assert isinstance(found[1].counterfactual, library.DataFrame)
        assert isinstance(found.explanations.counterfactuals, library.DataFrame)
        assert len(found.to_frame()) == len(found) == 3
        assert (np.diff([e.distance for e in found]) >= 0).all()


def test_wishes_that_make_no_sense_are_refused(forest):
    cfmap, X = forest
    for wishes, problem in (
        ({"k": None}, "k or tolerance"),
        ({"k": 0}, "k must be at least 1"),
        ({"tolerance": -1}, "tolerance must not be negative"),
        ({"diverse_by": "luck"}, "diverse_by must be one of"),
        ({"constraints": "x0 <= x1"}, "cannot be listed"),
    ):
        with pytest.raises(ValueError, match=problem):
            cfmap.alternatives(X[0], **wishes)


@pytest.mark.parametrize("seed", range(24))
def test_robust_answers_are_those_of_enumeration(seed):
    rng, case = small_case(seed, n_features=int(np.random.default_rng(seed).integers(1, 3)))
    cfmap = CounterfactualMap(case.model, features=case.features)
    x = case.queries[0]
    grid = on_the_grid(case.features, x)
    margin = float(rng.choice([0.3, 0.5, 1.0]))
    target = rng.choice(case.model.classes_)
    constraints = [MaxChanges(1)] if rng.random() < 0.3 else []
    answer = cfmap.explain(x, target=target, robust=margin, constraints=constraints)
    expected = robust_distance(cfmap, case, grid, target, margin, constraints)
    assert answer.distance == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert answer.status == ("optimal" if np.isfinite(expected) else "infeasible")


def robust_distance(cfmap, case, grid, target, margin, constraints):
    """The least distance to a row whose surrounding cells all have the label, by trying rows where that may begin."""
    lattice = cfmap.partition.lattice
    choices = []
    for axis in range(lattice.n_axes):
        own = slice(lattice.cell_start[axis], lattice.cell_start[axis + 1])
        if lattice.categorical[axis]:
            choices.append([(c, [c]) for c in range(lattice.n_cells[axis])])
            continue
        low, high = lattice.low[own], lattice.high[own]
        x = grid[lattice.axis_columns[axis][0]]
        edges = [x, *low, *high, *(low + margin), *(low - margin), *(high + margin), *(high - margin)]
        finite = np.array([edge for edge in edges if np.isfinite(edge)])
        tried = np.unique(np.concatenate([finite, *(step(finite, up) for up in (-1, 1))]))
        tried = tried[admissible(case.features.entries[axis], tried, low[0], high[-1])]
        choices.append(
            [(v, [c for c in range(len(low)) if low[c] <= v + margin and high[c] >= v - margin]) for v in tried]
        )
    best = np.inf
    for choice in product(*choices):
        row = grid.copy()
        for axis, (value, _) in enumerate(choice):
            columns = lattice.axis_columns[axis]
            row[columns] = np.arange(len(columns)) == value if lattice.categorical[axis] else value
        away = np.abs(row - grid)
        for entry, columns in zip(case.features, case.features.positions, strict=True):
            if getattr(entry, "gap", None) is not None:
                away[columns] = np.append(away[columns].any() * entry.gap, np.zeros(len(columns) - 1))
        if away.sum() >= best or not keeps(case.features, constraints, grid, row):
            continue
        reached = np.array(list(product(*(cells for _, cells in choice))))
        if (case.model.predict(lattice.nearest(row, reached)) == target).all():
            best = away.sum()
    return best


def step(values, direction):
    return np.nextafter(values.astype(np.float32), np.float32(direction * np.inf)).astype(float)


def admissible(entry, values, low, high):
    kind = type(entry).__name__
    good = (values >= low) & (values <= high)
    if kind in ("Integer", "Binary"):
        good &= values == np.floor(values)
    elif kind == "Ordinal":
        good &= np.isin(values, entry.values)
    else:
        good &= values == values.astype(np.float32)
    return good


def test_a_margin_is_a_constraint_like_others(forest):
    cfmap, X = forest
    for x in X[:5]:
        by_name = cfmap.explain(x, constraints=["robust x0 1, x1 0.5"])
        assert by_name.distance == cfmap.explain(x, robust={"x0": 1, "x1": 0.5}).distance
        assert by_name.distance <= cfmap.explain(x, constraints=[Robust(1)]).distance
        assert by_name.distance >= cfmap.explain(x).distance
