"""A map of a feasible region answers as the whole map does under the same constraints."""

import numpy as np
import pytest

from cfmaps import CounterfactualMap, Features, Integer, Numeric, OneHot, Ordinal, restricted
from models import random_model


@pytest.mark.parametrize("seed", range(12))
def test_a_narrow_map_gives_the_answers_under_its_constraints(seed):
    rng = np.random.default_rng(seed)
    case = random_model(rng, n_features=3, kinds=("halves", "limited", "uniform", "integer"), n_queries=6)
    rules = []
    for entry, columns in zip(case.features, case.features.positions, strict=True):
        values = np.sort(case.X_train[:, columns[0]])
        high, low = float(np.float32(values[-2])), entry.low
        if low is None or high >= low:
            rules.append(f"{entry.name} <= {high!r}")
    narrow = CounterfactualMap(case.model, features=restricted(case.features, rules))
    whole = CounterfactualMap(case.model, features=case.features)
    assert narrow.build().n_nodes <= whole.build().n_nodes
    one, other = narrow.explain_many(case.queries), whole.explain_many(case.queries, constraints=rules)
    assert (one.distances == other.distances).all()
    assert (one.statuses == other.statuses).all()


def test_what_depends_on_the_row_is_refused():
    features = Features([Numeric("a"), Ordinal("g", values=[1, 2]), OneHot("j", columns=["j=x", "j=y"])])
    assert restricted(features, "a >= 1; a <= 3; a <= 2").entries[0] == Numeric("a", low=1.0, high=2.0)
    assert restricted(Features([Integer("n")]), "n <= 2").entries[0] == Integer("n", high=2.0)
    for rule, problem in (
        ("a increases", "expected a range"),
        ("b <= 1", "expected a feature among"),
        ("g >= 3", "expected a number"),
        ("j <= 1", "expected a number"),
    ):
        with pytest.raises(ValueError, match=problem):
            restricted(features, rule)
