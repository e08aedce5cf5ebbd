"""Rows with missing values, native categories and targets on the output, against enumeration."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfmaps import Categorical, CounterfactualMap, Features, Interval, Numeric
from ensembles import stump
from enumeration import KINDS, differences


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_answers_equal_enumeration(kind, seed):
    assert differences(KINDS[kind], seed)[1] == []


def test_a_missing_value_stays_missing_and_is_never_set_unless_allowed():
    tree = stump([[1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"], missing_left=[False] * 3)
    missing, known = np.array([np.nan]), np.array([0.0])
    kept = CounterfactualMap(tree)
    assert kept.explain(missing).source == "yes"
    assert kept.explain(missing).status == "infeasible"
    assert kept.explain(known).distance == pytest.approx(0.5)
    free = CounterfactualMap(tree, features=Features([Numeric("a", missing="free", missing_gap=0.125)]))
    filled = free.explain(missing)
    assert (filled.distance, filled.counterfactual.tolist()) == (0.125, [0.0])
    assert [(change.before, change.after) for change in filled.changes()] == [(None, 0)]
    left_out = free.explain(known)
    assert (left_out.distance, np.isnan(left_out.counterfactual[0])) == (0.125, True)
    assert left_out.to_dict()["counterfactual"] == {"a": None}


def test_rows_with_and_without_missing_values_are_answered_together():
    tree = stump([[1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"], missing_left=[False] * 3)
    frame = pd.DataFrame({"a": [np.nan, 0.0, 2.0]}, index=["p", "q", "r"])
    many = CounterfactualMap(tree, features=Features([Numeric("a", missing="fill")])).explain_many(frame)
    assert many.distances.tolist() == pytest.approx([1.0, 0.5, 1.5])
    assert many.counterfactuals.index.tolist() == ["p", "q", "r"]
    assert [explanation.counterfactual.index[0] for explanation in many] == ["p", "q", "r"]
    assert [explanation.infimum for explanation in many] == many.infima.tolist()
    assert many[1].region.lower[0] > 0.5
    assert many.to_frame()["status"].tolist() == ["optimal"] * 3


def test_a_model_that_takes_no_missing_values_says_so():
    tree = stump([[1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"takes no missing values, got missing='set'"):
        CounterfactualMap(tree, features=Features([Numeric("a", missing="set")]))
    with pytest.raises(ValueError, match="expected finite numbers"):
        CounterfactualMap(tree).explain([np.nan])


def test_categories_come_and_go_in_the_callers_words():
    fields = {"category_set": [0, -1, -1], "category_sets": [[True, False, False]], "missing_left": [True] * 3}
    tree = stump([[1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"], **fields)
    job = Categorical("job", categories=["clerk", "nurse", "vet"], gap=2.0)
    cfmap = CounterfactualMap(tree, features=Features([job]))
    answer = cfmap.explain(["clerk"], target="yes")
    assert (answer.distance, answer.counterfactual.tolist()) == (2.0, ["nurse"])
    frame = pd.DataFrame({"job": pd.Categorical(["vet", "clerk"], categories=["clerk", "nurse", "vet"])})
    many = cfmap.explain_many(frame)
    assert many.counterfactuals["job"].tolist() == ["clerk", "nurse"]
    assert many[0].to_dict()["changes"] == [{"feature": "job", "before": "vet", "after": "clerk"}]
    with pytest.raises(ValueError, match=r"feature 'job': expected one of \['clerk', 'nurse', 'vet'\], got 'boss'"):
        cfmap.explain(["boss"])
    with pytest.raises(ValueError, match="expected a Categorical"):
        CounterfactualMap(tree, features=Features([Numeric("job")]))


def test_an_interval_needs_one_monotone_score():
    softmax = stump([[1.0, 0.0], [0.0, 1.0]], rule="softmax64", classes=["no", "yes"])
    with pytest.raises(ValueError, match="depends on the scores of all classes"):
        CounterfactualMap(softmax).explain([0.0], target=Interval(0.5, label="yes"))
    value = stump([[1.0], [2.0]], rule="value", classes=None)
    with pytest.raises(ValueError, match=r"target must be a cfmaps.Interval"):
        CounterfactualMap(value).explain([0.0])
    found = CounterfactualMap(value).explain([0.0], target=Interval(1.5))
    assert (found.source, found.target, found.distance) == (1.0, 2.0, pytest.approx(0.5))
    with pytest.raises(ValueError, match="low must not exceed high"):
        Interval(2, 1)


def test_scikit_learns_probabilities_are_scores():
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    many = CounterfactualMap(model).explain_many(X[:40], target=Interval(0.8, label=True))
    shares = model.predict_proba(many.counterfactuals)[:, 1]
    assert (shares >= 0.8).all()
    assert many.targets.tolist() == shares.tolist()
    assert (many.distances == 0).tolist() == (model.predict_proba(X[:40])[:, 1] >= 0.8).tolist()


def test_the_map_of_an_interval_is_built_by_name():
    value = stump([[1.0], [2.0]], rule="value", classes=None)
    cfmap = CounterfactualMap(value)
    assert cfmap.build(target=Interval(1.5)).n_boxes == 2
    assert cfmap.explain([0.0], target=Interval(1.5)).target == 2.0


def test_a_box_tree_is_refused_where_distances_are_none_of_numbers():
    tree = stump([[1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"], missing_left=[False] * 3)
    cfmap = CounterfactualMap(tree, features=Features([Numeric("a", missing="set")]))
    cfmap.build()
    with pytest.raises(ValueError, match="feature 'a' has categories or missing values"):
        cfmap.box_tree("yes")
