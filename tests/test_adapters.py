"""Code written for other libraries gets the answers of cfmaps."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps.adapters import dice_ml
from cfmaps.adapters.alibi import CounterFactual

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.integers(18, 70, 120), "pay": RNG.normal(3, 1, 120).round(2), "grade": RNG.integers(1, 4, 120)}
)
FRAME["good"] = np.where(FRAME.pay + FRAME.grade / 2 + FRAME.age / 40 > 5, "yes", "no")
X = FRAME[["age", "pay", "grade"]]


@pytest.fixture(scope="module")
def model():
    return RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, FRAME.good)


@pytest.fixture(scope="module")
def dice(model):
    data = dice_ml.Data(dataframe=FRAME, continuous_features=["age", "pay"], outcome_name="good")
    return dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"))


def test_dice_gives_the_smallest_change_in_its_frames(dice, model):
    found = dice.generate_counterfactuals(X[:6], total_CFs=1, desired_class="opposite")
    cfmap = cfmaps.CounterfactualMap(model, features=dice.cfmap.features)
    for row, example in enumerate(found.cf_examples_list):
        assert list(example.final_cfs_df.columns) == ["age", "pay", "grade", "good"]
        assert example.final_cfs_df["good"].iloc[0] == model.predict(example.final_cfs_df[X.columns])[0]
        assert example.final_cfs_df["good"].iloc[0] != example.test_instance_df["good"].iloc[0]
        assert example.explanations[0].distance == cfmap.explain(X.iloc[row]).distance
        assert example.final_cfs_df["grade"].iloc[0] in {1, 2, 3}
    assert len(found.visualize_as_dataframe()) == 6
    assert json.loads(found.to_json())[0][0]["status"] == "optimal"


def test_dice_takes_a_desired_class_and_polars(dice, model):
    found = dice.generate_counterfactuals(pl.from_pandas(X[:4]), desired_class="yes")
    assert {example.final_cfs_df["good"].iloc[0] for example in found.cf_examples_list} == {"yes"}


def test_dice_keeps_what_may_not_vary_and_the_permitted_range(dice):
    found = dice.generate_counterfactuals(
        X[:10], desired_class="yes", features_to_vary=["pay", "age"], permitted_range={"pay": [0, 5]}
    )
    for row, example in enumerate(found.cf_examples_list):
        for one in example.explanations:
            assert {change.feature for change in one.changes()} <= {"pay", "age"}
            if one.counterfactual is not None:
                assert 0 <= float(np.asarray(one.counterfactual)[0, 1]) <= 5
                assert float(np.asarray(one.counterfactual)[0, 2]) == X.grade.iloc[row]


def test_dice_gives_several_answers(dice, model):
    found = dice.generate_counterfactuals(X[:3], total_CFs=3, desired_class="opposite")
    for example in found.cf_examples_list:
        distances = [one.distance for one in example.explanations]
        assert len(distances) == len(example.final_cfs_df) == 3
        assert distances == sorted(distances)
        assert (model.predict(example.final_cfs_df[X.columns]) == example.final_cfs_df["good"]).all()


def test_dice_names_a_feature_it_does_not_know(dice):
    with pytest.raises(ValueError, match="features_to_vary and permitted_range name 'hair', expected some of"):
        dice.generate_counterfactuals(X[:1], features_to_vary=["hair"])


@pytest.mark.parametrize("method", ["predict", "predict_proba", None])
def test_alibi_takes_a_model_or_its_method(model, method):
    rows = X.to_numpy(dtype=float)
    plain = RandomForestClassifier(15, max_depth=4, random_state=0).fit(rows, FRAME.good)
    explainer = CounterFactual(getattr(plain, method) if method else plain, shape=(1, 3), distance_fn="l2")
    found = explainer.explain(rows[:1])
    assert plain.classes_[found.cf["class"]] == plain.predict(found.cf["X"])[0]
    assert plain.classes_[found.orig_class] == plain.predict(rows[:1])[0]
    assert found.cf["distance"] == pytest.approx(np.linalg.norm(found.cf["X"][0] - rows[0]), rel=1e-6)
    assert found.data["all"] == {0: [found.cf]}


def test_alibi_takes_an_index_of_a_class(model):
    rows = X.to_numpy(dtype=float)
    plain = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows, FRAME.good)
    assert CounterFactual(plain, target_class=1).explain(rows[:1]).cf["class"] == 1
    with pytest.raises(ValueError, match="target_class must be 'other' or an index below 2, got 'same'"):
        CounterFactual(plain, target_class="same")
    with pytest.raises(ValueError, match=r"X must have shape \(1, 3\), got \(2, 3\)"):
        CounterFactual(plain, shape=(1, 3)).explain(rows[:2])
