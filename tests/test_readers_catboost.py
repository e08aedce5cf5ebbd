import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor

import boosters
from boosters import assert_computes_the_same
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read
from cfmaps.readers.outputs import native_predict

X, Y = boosters.data(np.random.default_rng(0), 2)


def on_cuts(model, n_rows=400, **options):
    return boosters.probes(np.random.default_rng(2), read(model), n_rows, **options)


@pytest.mark.parametrize("task", [0, 2, 3])
@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_ways_to_grow_and_where_missing_values_go(task, policy, nan_mode):
    x, y = boosters.data(np.random.default_rng(3), task)
    x[:, 2] = np.nan_to_num(x[:, 2])
    model = boosters.catboost(task, n_estimators=15, grow_policy=policy, nan_mode=nan_mode).fit(x, y)
    assert_computes_the_same(model, on_cuts(model))


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_many_classes(loss):
    x, y = boosters.data(np.random.default_rng(4), 4)
    model = boosters.catboost(4, n_estimators=15, loss_function=loss).fit(x, y)
    assert_computes_the_same(model, on_cuts(model))


@pytest.mark.parametrize("loss", ["RMSE", "MAE", "Quantile:alpha=0.3", "Huber:delta=1.0", "LogCosh", "MAPE"])
def test_outputs_that_are_the_score(loss):
    x, y = boosters.data(np.random.default_rng(5), 0)
    model = boosters.catboost(0, n_estimators=15, loss_function=loss).fit(x, y)
    assert_computes_the_same(model, on_cuts(model))


def test_after_early_stopping_trees_end_at_the_best_round():
    model = boosters.catboost(2, n_estimators=200, learning_rate=0.9)
    model.fit(X[:150], Y[:150], eval_set=(X[150:], Y[150:]), early_stopping_rounds=4)
    assert read(model).n_trees == model.tree_count_ < 200
    assert_computes_the_same(model, on_cuts(model))


def test_a_scale_and_a_bias_of_its_own():
    model = boosters.catboost(2, n_estimators=10).fit(X, Y)
    model.set_scale_and_bias(0.37, 0.11)
    assert_computes_the_same(model, on_cuts(model))


@pytest.mark.parametrize("labels", [[False, True], [0.0, 2.5], [0.0, 1.0], ["n", "y"], [3, 7]])
def test_labels_are_of_any_type(labels):
    model = boosters.catboost(2, n_estimators=5).fit(X, np.array(labels)[Y])
    assert_computes_the_same(model, X)
    assert read(model).classes.tolist() == model.classes_.tolist()


def test_the_plain_class_gives_labels_too():
    options = boosters.QUIET | {"loss_function": "Logloss", "iterations": 5}
    model = CatBoost(options).fit(X, Y)
    ensemble = read(model)
    assert native_predict(model, ensemble)(X).tolist() == ensemble.classes[ensemble.labels(X)].tolist()
    assert model.predict(X, prediction_type="Class").tolist() == ensemble.classes[ensemble.labels(X)].tolist()


def counters():
    frame = pd.DataFrame({"a": np.nan_to_num(X[:, 1]), "job": np.random.default_rng(6).choice(list("uvwxyz"), len(X))})
    return CatBoostClassifier(**boosters.QUIET, n_estimators=5, one_hot_max_size=2, cat_features=["job"]).fit(
        frame, Y ^ (frame.job == "u")
    )


def thresholded():
    model = boosters.catboost(2, n_estimators=5).fit(X, Y)
    model.set_probability_threshold(0.3)
    return model


def counted():
    return CatBoostRegressor(**boosters.QUIET, n_estimators=5, loss_function="Poisson").fit(X, Y)


def several():
    options = {"n_estimators": 5, "loss_function": "MultiRMSE"}
    return CatBoostRegressor(**boosters.QUIET, **options).fit(X, np.column_stack([Y, 1 - Y]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (counters, r"splits on category counters \(CTR\) are not supported"),
        (thresholded, "a probability threshold of its own"),
        (counted, "loss function Poisson is not supported"),
        (several, "loss function MultiRMSE is not supported"),
    ],
)
def test_models_that_cannot_be_read_exactly_are_refused(make, reason):
    with pytest.raises(UnsupportedModel, match=reason):
        read(make())
