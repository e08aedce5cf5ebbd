import re
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import boosters
from boosters import assert_computes_the_same
from cfmaps import CounterfactualMap
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read
from cfmaps.readers.lightgbm import above_half
from cfmaps.readers.outputs import native_predict

X, Y = boosters.data(np.random.default_rng(0), 2)
SMALL = {"verbose": -1, "num_threads": 1, "min_child_samples": 5, "num_leaves": 8}


def on_cuts(model, n_rows=400, **options):
    return boosters.probes(np.random.default_rng(2), read(model), n_rows, **options)


@pytest.mark.parametrize("task", [0, 2, 3])
@pytest.mark.parametrize(
    "boosting", [{"boosting_type": "dart"}, {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}]
)
@pytest.mark.parametrize("missing", [0, 0.2])
def test_dropped_trees_and_averaged_trees(task, boosting, missing):
    x, y = boosters.data(np.random.default_rng(3), task, missing=missing)
    model = boosters.lightgbm(task, n_estimators=25, **boosting).fit(x, y)
    assert_computes_the_same(model, on_cuts(model))


@pytest.mark.parametrize("task", [2, 3])
def test_after_early_stopping_trees_end_at_the_best_round(task):
    x, y = boosters.data(np.random.default_rng(4), task)
    model = boosters.lightgbm(task, n_estimators=80, learning_rate=0.7)
    # Newer versions would rather have eval_X and eval_y, older ones know eval_set only.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x[:150], y[:150], eval_set=[(x[150:], y[150:])], callbacks=[lgb.early_stopping(3, verbose=False)])
    assert read(model).n_trees == model.best_iteration_ * (task if task > 2 else 1)
    assert_computes_the_same(model, on_cuts(model))


def test_what_lies_within_the_zero_band_is_zero():
    x = np.random.default_rng(5).integers(0, 2, (200, 3)).astype(float)
    model = boosters.lightgbm(2, n_estimators=3).fit(x, (x.sum(axis=1) > 1.5).astype(int))
    band = float(np.float32(1e-35))
    tiny = np.array(
        [0.0, -0.0, 1e-36, -1e-36, band, -band, np.nextafter(band, 1), -np.nextafter(band, 1), 5e-324, np.nan]
    )
    rows = np.stack([np.random.default_rng(6).choice(tiny, 400) for _ in range(3)], axis=1)
    assert_computes_the_same(model, rows)
    found = CounterfactualMap(model).explain([0.0, 0.0, 0.0], target=1)
    assert model.predict([found.counterfactual]).tolist() == [1]
    assert 0 < found.distance < 1e-34


@pytest.mark.parametrize("steepness", [0.3, 1.0, 2.5])
def test_a_label_switches_exactly_where_the_library_switches(steepness):
    cut = above_half(steepness)
    for score in (cut, np.nextafter(cut, 0), 0.0, 1e-12, -1e-12):
        booster = one_leaf(score, steepness)
        probability = booster.predict(np.zeros((1, 1)))[0]
        assert read(booster).labels([[0.0]]).tolist() == [int(probability > 1 - probability)] == [int(score >= cut)]


def one_leaf(score, steepness):
    """A booster whose score is a number of choice."""
    options = SMALL | {"objective": "binary", "sigmoid": steepness}
    text = lgb.train(options, lgb.Dataset(np.zeros((50, 1)), np.arange(50) % 2), 1).model_to_string()
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("tree_sizes="))
    return lgb.Booster(model_str=re.sub(r"leaf_value=.*", f"leaf_value={score:.17g}", text))


@pytest.mark.parametrize(
    "objective", ["regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg"]
)
def test_outputs_that_are_the_score(objective):
    group = [len(X)] if "rank" in objective else None
    booster = lgb.train(SMALL | {"objective": objective}, lgb.Dataset(X, Y, group=group), 10)
    rows = on_cuts(booster)
    np.testing.assert_array_equal(read(booster).scores(rows)[:, 0], booster.predict(rows))


@pytest.mark.parametrize(("task", "objective"), [(2, "binary"), (2, "cross_entropy"), (3, "multiclass")])
def test_a_booster_gives_labels_as_the_estimator_would(task, objective):
    x, y = boosters.data(np.random.default_rng(7), task)
    options = SMALL | {"objective": objective} | ({"num_class": task} if task > 2 else {})
    booster = lgb.train(options, lgb.Dataset(x, y), 10)
    ensemble, rows = read(booster), on_cuts(booster)
    output = booster.predict(rows)
    labels = output.argmax(axis=1) if task > 2 else output > 0.5
    assert ensemble.labels(rows).tolist() == labels.astype(int).tolist()
    assert native_predict(booster, ensemble)(rows).tolist() == ensemble.labels(rows).tolist()


def test_a_target_of_one_value_makes_one_leaf():
    model = boosters.lightgbm(0, n_estimators=3).fit(X, np.full(len(X), 2.5))
    assert_computes_the_same(model, X)


# ---- categories ----


@pytest.mark.parametrize("task", [0, 2, 3])
def test_categories_given_as_codes(task):
    rng = np.random.default_rng(8)
    x, y = boosters.data(rng, task, n_rows=500)
    x[:, 1], x[:, 3] = rng.integers(0, 70, 500), rng.choice([1, 2, 8], 500)
    y = y if task else y + (x[:, 1] % 3)
    model = boosters.lightgbm(task, n_estimators=20).fit(x, y, categorical_feature=[1, 3])
    ensemble = read(model)
    assert set(ensemble.categories) == {1, 3}
    assert [value for value in ensemble.categories[3] if value is not None] == [1, 2, 8]
    rows = on_cuts(model)
    rows[::7, 1] = 65
    assert_computes_the_same(model, rows)


def test_categories_are_read_with_the_values_of_the_frame():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(size=300),
            "job": pd.Categorical(rng.choice(["clerk", "nurse", "çook"], 300)),
            "grade": rng.integers(0, 4, 300),
        }
    )
    model = boosters.lightgbm(2, n_estimators=9).fit(frame, (frame.job.cat.codes + frame.grade) % 2)
    ensemble = read(model)
    assert {column: tuple(values) for column, values in ensemble.categories.items()} == {1: ("clerk", "nurse", "çook")}
    rows = on_cuts(model)
    job = pd.Categorical.from_codes(np.where(np.isnan(rows[:, 1]), -1, rows[:, 1]).astype(int), ensemble.categories[1])
    named = pd.DataFrame({"amount": rows[:, 0], "job": job, "grade": rows[:, 2]})
    assert ensemble.labels(rows).tolist() == model.predict(named).tolist()
    assert native_predict(model, ensemble)(rows).tolist() == ensemble.labels(rows).tolist()


# ---- refusals ----


def custom(labels, scores):
    return scores - labels, np.ones_like(scores)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lgb.LGBMRegressor(linear_tree=True, **SMALL), r"linear leaves \(linear_tree\) are not supported"),
        (lgb.LGBMClassifier(zero_as_missing=True, **SMALL), "zero_as_missing is not supported"),
        (lgb.LGBMClassifier(objective=custom, **SMALL), "a custom objective is not supported"),
        (lgb.LGBMRegressor(objective="poisson", **SMALL), "objective poisson is not supported"),
        (lgb.LGBMRegressor(reg_sqrt=True, **SMALL), "objective regression sqrt is not supported"),
        (lgb.LGBMClassifier(objective="multiclassova", **SMALL), "objective multiclassova"),
    ],
)
def test_models_that_cannot_be_read_exactly_are_refused(model, reason):
    y = Y + (X[:, 1] > 0) if "ova" in reason else Y
    with pytest.raises(UnsupportedModel, match=reason):
        read(model.fit(X, y))
