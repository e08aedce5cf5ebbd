import json

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import boosters
from boosters import assert_computes_the_same
from cfmaps import CounterfactualMap
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read
from cfmaps.readers.outputs import native_predict

X, Y = boosters.data(np.random.default_rng(0), 2)
X3, Y3 = boosters.data(np.random.default_rng(1), 3)


# Since 3.1 a model knows the categories of the frame it was trained on.
STORED = tuple(map(int, xgb.__version__.split(".")[:2])) >= (3, 1)
CODES = {1: (0, 1, 2, 3, 4, None), 2: (0, 1, 2, 3, 4, 5, None)}


def on_cuts(model, n_rows=400, **options):
    return boosters.probes(np.random.default_rng(2), read(model), n_rows, **options)


@pytest.mark.parametrize("task", [0, 2, 3])
@pytest.mark.parametrize("base_score", [None, 0.3])
def test_dropped_trees_round_as_the_estimator_and_as_the_booster_do(task, base_score):
    x, y = boosters.data(np.random.default_rng(3), task)
    model = boosters.xgboost(task, n_estimators=30, booster="dart", rate_drop=0.3, base_score=base_score).fit(x, y)
    rows = on_cuts(model)
    assert_computes_the_same(model, rows)
    booster = model.get_booster()
    margins = booster.predict(xgb.DMatrix(rows), output_margin=True).reshape(len(rows), -1)
    np.testing.assert_array_equal(read(booster).scores(rows), margins)


@pytest.mark.parametrize("task", [2, 3])
def test_forests_and_boosted_forests(task):
    x, y = boosters.data(np.random.default_rng(4), task)
    assert_computes_the_same(boosters.xgboost_forest(task, n_estimators=10).fit(x, y), x)
    assert_computes_the_same(boosters.xgboost(task, n_estimators=4, num_parallel_tree=3).fit(x, y), x)


@pytest.mark.parametrize("task", [2, 3])
def test_after_early_stopping_the_estimator_stops_at_the_best_round_and_the_booster_does_not(task):
    x, y = boosters.data(np.random.default_rng(5), task)
    model = boosters.xgboost(task, n_estimators=60, num_parallel_tree=2, early_stopping_rounds=3, learning_rate=1.0)
    model.fit(x[:150], y[:150], eval_set=[(x[150:], y[150:])], verbose=False)
    per_round = 2 * (task if task > 2 else 1)
    assert read(model).n_trees == per_round * (model.best_iteration + 1) < read(model.get_booster()).n_trees
    assert_computes_the_same(model, on_cuts(model))


@pytest.mark.parametrize("base_score", [0.1, 0.50381804, 0.7, 0.999])
def test_the_base_score_becomes_a_margin_as_the_library_rounds_it(base_score):
    assert_computes_the_same(boosters.xgboost(2, n_estimators=3, base_score=base_score).fit(X, Y), X)


@pytest.mark.parametrize(
    "policy", [{"grow_policy": "lossguide", "max_leaves": 9}, {"gamma": 2.0}, {"tree_method": "exact"}]
)
def test_ways_to_grow_and_prune(policy):
    assert_computes_the_same(boosters.xgboost(2, n_estimators=20, **policy).fit(X, Y), X)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:hinge", "binary:logitraw"])
def test_a_label_switches_exactly_where_the_library_switches(objective):
    for margin in np.float32([0.0, 8.9e-8, 8.95e-8, 9.7e-8, 0.5, 0.50000006, -1e-9, 1e-30]):
        booster = one_leaf(margin, objective)
        ensemble, rows = read(booster), np.zeros((1, 1))
        assert ensemble.scores(rows)[0, 0] == booster.predict(xgb.DMatrix(rows), output_margin=True)[0] == margin
        assert ensemble.labels(rows)[0] == int(booster.predict(xgb.DMatrix(rows))[0] > 0.5)


def one_leaf(margin, objective):
    """A booster whose margin is a number of choice."""
    booster = xgb.train({"objective": objective, "nthread": 1}, xgb.DMatrix(np.zeros((2, 1)), label=[0, 1]), 1)
    document = json.loads(booster.save_raw("json"))
    document["learner"]["learner_model_param"]["base_score"] = "5E-1" if objective == "binary:logistic" else "0"
    document["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"] = [float(margin)]
    booster.load_model(bytearray(json.dumps(document).encode()))
    return booster


@pytest.mark.parametrize(
    "objective", ["reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "rank:pairwise"]
)
def test_outputs_that_are_the_score(objective):
    booster = xgb.train({"objective": objective, "max_depth": 3}, xgb.DMatrix(X, label=Y), 10)
    rows = on_cuts(booster)
    np.testing.assert_array_equal(read(booster).scores(rows)[:, 0], booster.predict(xgb.DMatrix(rows)))


@pytest.mark.parametrize(
    ("task", "objective"), [(2, "binary:logistic"), (2, "binary:hinge"), (3, "multi:softprob"), (3, "multi:softmax")]
)
def test_a_booster_gives_labels_as_the_estimator_would(task, objective):
    x, y = boosters.data(np.random.default_rng(6), task)
    options = {"objective": objective, "max_depth": 3} | ({"num_class": task} if task > 2 else {})
    booster = xgb.train(options, xgb.DMatrix(x, label=y), 10)
    ensemble, rows = read(booster), on_cuts(booster)
    output = booster.predict(xgb.DMatrix(rows))
    labels = output.argmax(axis=1) if output.ndim == 2 else (output if task > 2 else output > 0.5)
    assert ensemble.labels(rows).tolist() == labels.astype(int).tolist()
    assert native_predict(booster, ensemble)(rows).tolist() == ensemble.labels(rows).tolist()
    found = CounterfactualMap(booster).explain(np.nan_to_num(x[0]), target=1)
    assert found.status == "optimal"
    assert read(booster).labels([found.counterfactual]).tolist() == [1]


def test_softmax_in_an_estimator_gives_the_argmax_of_the_scores():
    assert_computes_the_same(boosters.xgboost(3, n_estimators=5, objective="multi:softmax").fit(X3, Y3), X3)


# ---- categories ----


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "amount": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
            "job": pd.Categorical(rng.choice(["clerk", "nurse", "cook", "pilot", "smith"], 300)),
            "grade": pd.Categorical(rng.integers(3, 9, 300)),
        }
    )


@pytest.fixture(scope="module")
def categorical(frame):
    y = (frame.job.cat.codes % 2 + frame.grade.cat.codes % 3 + frame.amount.fillna(0) > 1.5).astype(int)
    return boosters.xgboost(2, n_estimators=15, enable_categorical=True, max_cat_to_onehot=3).fit(frame, y)


def test_categories_are_read_with_the_values_of_the_frame(categorical, frame):
    ensemble = read(categorical)
    assert ensemble.feature_names == ("amount", "job", "grade")
    stored = {1: ("clerk", "cook", "nurse", "pilot", "smith"), 2: (3, 4, 5, 6, 7, 8)}
    assert {column: tuple(values) for column, values in ensemble.categories.items()} == (stored if STORED else CODES)
    rows = on_cuts(categorical)
    coded = {
        name: pd.Categorical.from_codes(codes(rows[:, i]), frame[name].cat.categories)
        for i, name in ((1, "job"), (2, "grade"))
    }
    named = pd.DataFrame({"amount": rows[:, 0], **coded})
    margins = categorical.predict(named, output_margin=True)
    np.testing.assert_array_equal(ensemble.scores(rows)[:, 0], margins)
    assert ensemble.labels(rows).tolist() == categorical.predict(named).tolist()
    assert native_predict(categorical, ensemble)(rows).tolist() == ensemble.labels(rows).tolist()


def codes(column):
    return np.where(np.isnan(column), -1, column).astype(int)


def test_categories_given_as_codes():
    rng = np.random.default_rng(8)
    x = np.column_stack([rng.normal(size=300), rng.choice([0, 1, 2, 5, 6], 300)])
    y = x[:, 0] + x[:, 1] % 3 > 1
    model = boosters.xgboost(2, n_estimators=9, enable_categorical=True, feature_types=["q", "c"]).fit(x, y)
    ensemble = read(model)
    assert ensemble.categories[1][:2] == (0, 1)
    assert_computes_the_same(model, on_cuts(model))


def test_texts_that_xgboost_stores_damaged_are_left_as_codes(frame):
    renamed = frame.assign(job=frame.job.cat.rename_categories({"clerk": "clérk"}))
    model = boosters.xgboost(2, n_estimators=3, enable_categorical=True).fit(renamed, frame.grade.cat.codes % 2)
    found = read(model).categories.get(1, ())
    assert found[:5] in (("clérk", "cook", "nurse", "pilot", "smith"), (0, 1, 2, 3, 4), ())


# ---- refusals ----


def custom(labels, scores):
    return scores - labels, np.ones_like(scores)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            xgb.XGBRegressor(booster="gblinear", n_estimators=2),
            "booster gblinear is not supported: it is no sum of trees",
        ),
        (xgb.XGBRegressor(objective=custom, n_estimators=2), "a custom objective is not supported"),
        (xgb.XGBRegressor(objective="reg:gamma", n_estimators=2), "objective reg:gamma is not supported"),
        (xgb.XGBClassifier(missing=-999.0, n_estimators=2), r"missing=-999.0 is not supported: only NaN"),
    ],
)
def test_models_that_cannot_be_read_exactly_are_refused(model, reason):
    with pytest.raises(UnsupportedModel, match=reason):
        read(model.fit(np.nan_to_num(X), Y + (not isinstance(model, xgb.XGBClassifier))))


def test_several_outputs_are_refused():
    both = np.column_stack([Y, X[:, 1] > 0]).astype(int)
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        model = xgb.XGBRegressor(n_estimators=2, tree_method="hist", multi_strategy=strategy).fit(X, both)
        with pytest.raises(UnsupportedModel, match=r"2 outputs are not supported|leaves that hold vectors"):
            read(model)
