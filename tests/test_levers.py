"""The menu of minimal sets, and coalitions, against asking for every set by itself."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from cfmaps import CounterfactualMap, Freeze
from models import random_model


@pytest.mark.parametrize("seed", range(12))
def test_levers_are_the_minimal_sets_that_suffice(seed):
    rng = np.random.default_rng(seed)
    case = random_model(rng, n_features=int(rng.integers(2, 5)), n_trees=int(rng.integers(1, 6)), n_queries=1)
    cfmap, x, names = CounterfactualMap(case.model, features=case.features), case.queries[0], case.features.names
    constraints = ["changes <= 2"] if rng.random() < 0.3 else []
    alone = {
        one: cfmap.explain(
            x, constraints=[*constraints, Freeze(*set(names) - set(one))] if set(names) - set(one) else constraints
        )
        for size in (1, 2, 3)
        for one in combinations(names, min(size, len(names)))
    }
    suffices = {one for one, e in alone.items() if e.status == "optimal"}
    minimal = {one for one in suffices if not any(set(other) < set(one) for other in suffices)}
    menu = cfmap.levers(x, constraints=constraints)
    assert {lever.features for lever in menu} == minimal
    for lever in menu:
        assert lever.explanation.distance == alone[lever.features].distance
        assert {change.feature for change in lever.explanation.changes()} <= set(lever.features)
    assert set(menu.insufficient) == set(alone) - suffices
    assert menu.undecided == ()


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 8, size=(300, 5)).astype(float)
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, X.sum(axis=1) > 17)
    return CounterfactualMap(model), X


def test_coalitions_change_nothing_else(forest):
    cfmap, X = forest
    parties = {"left": ["x0", "x1"], "right": ["x3", "x4"], "nobody else": "x2"}
    for x in X[:10]:
        found = cfmap.coalitions(x, parties)
        assert list(found) == list(parties)
        left = cfmap.explain(x, constraints="freeze x2, x3, x4")
        assert (found["left"].status, found["left"].distance) == (left.status, left.distance)
        assert all(change.feature in ("x3", "x4") for change in found["right"].changes())


def test_a_menu_may_be_kept_to_some_features(forest):
    cfmap, X = forest
    menu = cfmap.levers(X[0], among=["x1", "x3"], max_features=5)
    assert {name for one in menu.insufficient for name in one} <= {"x1", "x3"}


def test_names_that_nobody_has_are_refused(forest):
    cfmap, X = forest
    with pytest.raises(ValueError, match="among must be features among"):
        cfmap.levers(X[0], among=["rent"])
    with pytest.raises(ValueError, match=r"coalitions\['a'\] must be features"):
        cfmap.coalitions(X[0], {"a": ["rent"]})
    with pytest.raises(TypeError, match="coalitions must be a mapping"):
        cfmap.coalitions(X[0], ["x1"])
