"""Every wrong call is a ValueError or TypeError that says what is wrong, or has a defined answer."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from cfmaps import Binary, CounterfactualMap, Distance, Features, Integer, Numeric, OneHot, Ordinal, UnsupportedModel

COLUMNS = ["age", "grade", "owner", "clerk", "nurse"]
FEATURES = Features(
    [
        Integer("age", low=18, high=60),
        Ordinal("grade", values=[1, 2, 3]),
        Binary("owner"),
        OneHot("job", columns=["clerk", "nurse"]),
    ]
)
GOOD = [30.0, 2.0, 1.0, 0.0, 1.0]


def rows(n=80):
    rng = np.random.default_rng(0)
    job = rng.integers(2, size=n)
    return np.column_stack(
        [rng.integers(18, 61, n), rng.integers(1, 4, n), rng.integers(2, size=n), job, 1 - job]
    ).astype(float)


X = rows()
Y = np.where(X @ [0.1, 1.0, 2.0, 1.0, 0.0] > 7, "yes", "no")
MODEL = RandomForestClassifier(10, max_depth=4, random_state=0).fit(pd.DataFrame(X, columns=COLUMNS), Y)


@pytest.fixture(scope="module")
def cfmap():
    return CounterfactualMap(MODEL, features=FEATURES)


def changed(position, value):
    row = np.array(GOOD)
    row[position] = value
    return row


def refuses(call, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert type(caught.value) in (error, UnsupportedModel)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (RandomForestClassifier(), ValueError, "model must be fitted, got a RandomForestClassifier that is not"),
        (DecisionTreeClassifier(), ValueError, "model must be fitted, got a DecisionTreeClassifier that is not"),
        (AdaBoostRegressor(n_estimators=2).fit(X, X[:, 0]), UnsupportedModel, "it predicts a weighted median of trees"),
        (
            make_pipeline(PCA(), DecisionTreeClassifier()).fit(X, Y),
            UnsupportedModel,
            "a pipeline with PCA is not supported",
        ),
        (LogisticRegression(), UnsupportedModel, "LogisticRegression is not supported: expected one of"),
        (DecisionTreeClassifier().fit(X, X[:, 3:]), UnsupportedModel, "with 2 outputs is not supported: expected one"),
        (RandomForestClassifier, UnsupportedModel, "expected an Ensemble, the path of a model file, or a fitted"),
        ("model.pkl", FileNotFoundError, "No such file"),
        (None, UnsupportedModel, "NoneType is not supported"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_with_the_reason(model, error, message):
    refuses(lambda: CounterfactualMap(model), error, message)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"features": ["age"]}, TypeError, "features must be a cfmaps.Features, got list"),
        ({"features": Features.numeric(4)}, ValueError, "columns of features: expected 'age', got 'x0'"),
        ({"features": Features(map(Numeric, reversed(COLUMNS)))}, ValueError, "the same names in another order"),
        ({"votes": "loud"}, ValueError, "votes must be 'soft' or 'hard', got 'loud'"),
        ({"data": X[:, :3]}, ValueError, "data must have 5 columns, got 3"),
        ({"data": np.where(X == 30, np.nan, X)}, ValueError, "'age'] is nan; expected finite numbers"),
        ({"data": pd.DataFrame(X)[[1, 0, 2, 3, 4]].set_axis(list("abcde"), axis=1)}, ValueError, "got 'a'"),
    ],
)
def test_a_map_of_something_else_is_refused(options, error, message):
    refuses(lambda: CounterfactualMap(MODEL, **options), error, message)


def test_features_must_be_as_many_as_the_models_columns():
    model = DecisionTreeClassifier().fit(X, Y)
    refuses(
        lambda: CounterfactualMap(model, features=Features.numeric(4)),
        ValueError,
        "features must cover the model's 5 columns, got 4",
    )


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (GOOD[:4], ValueError, "x must have 5 columns, got 4"),
        ([*GOOD, 0.0], ValueError, "x must have 5 columns, got 6"),
        ([GOOD], ValueError, "x must be one row (1-D with 5 values), got 2-D of shape (1, 5); for its first row"),
        (X, ValueError, "got 2-D of shape (80, 5)"),
        (7.0, ValueError, "x must be one row (1-D with 5 values), got 0-D"),
        (None, TypeError, "x must be an array, nested lists or a pandas or polars frame, got NoneType"),
        (dict(zip(COLUMNS, GOOD, strict=True)), TypeError, "x must be an array, nested lists or a pandas or"),
        ("a row", TypeError, "x must hold numbers, got dtype"),
        (["30", 2, 1, 0, 1], TypeError, "x must hold numbers, got dtype"),
        (np.array(GOOD, dtype=complex), TypeError, "x must hold numbers, got dtype complex128"),
        (np.ma.masked_array(GOOD, mask=[1, 0, 0, 0, 0]), TypeError, "x must hold numbers everywhere"),
        (changed(3, np.nan), ValueError, "feature 'job': a one-hot group has no missing values, got NaN"),
        (changed(3, -np.inf), ValueError, "x['clerk'] is -inf; expected finite numbers"),
        (changed(0, 1e39), ValueError, "is 1e+39; expected numbers within float32's range"),
        (changed(0, 30.5), ValueError, "feature 'age': expected an integer, got 30.5"),
        (changed(1, 5.0), ValueError, "feature 'grade': expected one of [1.0, 2.0, 3.0], got 5.0"),
        (changed(2, 2.0), ValueError, "feature 'owner': expected 0 or 1, got 2.0"),
        (changed(3, 1.0), ValueError, "feature 'job': expected exactly one of its columns to be 1, got [1.0, 1.0]"),
        (changed(4, 0.0), ValueError, "feature 'job': expected exactly one of its columns to be 1, got [0.0, 0.0]"),
        (changed(4, 0.5), ValueError, "feature 'job': expected exactly one"),
        (pd.Series(GOOD, index=COLUMNS[::-1]), ValueError, "columns of x: expected 'age', got 'nurse'"),
        (pd.DataFrame([GOOD, GOOD], columns=COLUMNS), ValueError, "got 2-D of shape (2, 5)"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(cfmap, x, error, message):
    refuses(lambda: cfmap.explain(x), error, message)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (X[0], ValueError, "X must be 2-D with 5 columns, got 1-D of shape (5,); for one row pass X.reshape(1, -1)"),
        (X[:, :2], ValueError, "X must have 5 columns, got 2"),
        (X[np.newaxis], ValueError, "X must be 2-D with 5 columns, got 3-D"),
        ([GOOD, GOOD[:2]], ValueError, "X must be rows of equal length"),
        (np.where(np.arange(80)[:, None] == 7, np.inf, X), ValueError, "X[7, 'age'] is inf; expected finite"),
        (np.array([GOOD, changed(3, 1.0)]), ValueError, "feature 'job': expected exactly one of its columns to be 1"),
        (np.array([GOOD, changed(3, 1.0)]), ValueError, "in row 1"),
        (pd.DataFrame(X, columns=[*COLUMNS[:4], "nurses"]), ValueError, "expected 'nurse', got 'nurses'"),
        (pl.DataFrame(X, schema=COLUMNS[::-1]), ValueError, "the same names in another order"),
        (pl.DataFrame(X, schema=COLUMNS).lazy(), TypeError, "got LazyFrame"),
        (pd.DataFrame({"age": ["30"], "grade": 2, "owner": 1, "clerk": 0, "nurse": 1}), TypeError, "column 'age'"),
        (scipy.sparse.csr_array(X), TypeError, "got csr_array"),
    ],
)
def test_rows_that_make_no_sense_are_refused(cfmap, rows, error, message):
    refuses(lambda: cfmap.explain_many(rows), error, message)


@pytest.mark.parametrize("target", ["maybe", "YES", 1, True, np.nan, ["yes"], {"yes": 1}, b"yes"])
def test_a_label_the_model_does_not_have_is_refused(cfmap, target):
    with pytest.raises(ValueError, match="target must be one of the model's labels") as caught:
        cfmap.explain(GOOD, target=target)
    assert "['no', 'yes'], got " in str(caught.value)


def test_labels_come_one_per_row_or_alone(cfmap):
    refuses(lambda: cfmap.explain_many(X, target=["yes"]), ValueError, "one label or one per row of X (80), got 1")
    refuses(lambda: cfmap.explain_many(X[:2], target=["yes", "ja"]), ValueError, "labels ['no', 'yes'], got 'ja'")


@pytest.mark.parametrize("distance", ["l3", "euclidean", 0.5, 0, -1, np.nan, None, [1]])
def test_a_distance_that_is_no_norm_is_refused(cfmap, distance):
    message = f"must be 'l1', 'l2', 'linf' or a number >= 1, got {distance!r}"
    refuses(lambda: cfmap.explain(GOOD, distance=distance), ValueError, message)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 1, 0, 1, 1], ValueError, "weights must be positive, got 0.0 for column 2"),
        ([1, 1, -2, 1, 1], ValueError, "weights must be positive, got -2.0 for column 2"),
        ([1, 1, np.nan, 1, 1], ValueError, "weights[2] is nan; expected finite numbers"),
        ([1, 1, np.inf, 1, 1], ValueError, "weights[2] is inf; expected finite numbers"),
        ([1, 1], ValueError, "weights must be 5 numbers, one per column, got 2"),
        (2.0, ValueError, "weights must be one row"),
        ({"owner": 0}, ValueError, "weights must be positive, got 0.0 for column 2"),
        ({"wages": 2}, ValueError, "weights name the column 'wages', expected some of ['age', "),
        ({"age": "2"}, TypeError, "weights['age'] must be a number, got '2'"),
        ("variance", ValueError, "weights must be None, numbers, a mapping or one of ['range', 'mad', 'std']"),
        ("mad", ValueError, "weights='mad' needs data to measure the spread of, got None"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(cfmap, weights, error, message):
    refuses(lambda: cfmap.explain(GOOD, weights=weights), error, message)


def test_weights_are_given_once_and_fit_the_columns(cfmap):
    both = {"distance": Distance("l2", np.ones(5)), "weights": np.ones(5)}
    refuses(lambda: cfmap.explain(GOOD, **both), ValueError, "weights must not be given twice")
    refuses(lambda: cfmap.explain(GOOD, distance=Distance("l2", np.ones(4))), ValueError, "weights must be 5 numbers")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"time_limit": -1}, ValueError, "time_limit must be at least 0 seconds, got -1"),
        ({"time_limit": np.nan}, ValueError, "time_limit must be finite, got nan"),
        ({"time_limit": "1 s"}, TypeError, "time_limit must be a number, got '1 s'"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1, got 0"),
        ({"n_threads": -1}, ValueError, "n_threads must be at least 1, got -1"),
        ({"n_threads": 1.5}, TypeError, "n_threads must be a whole number, got 1.5"),
        ({"n_threads": True}, TypeError, "n_threads must be a whole number, got True"),
    ],
)
def test_limits_are_numbers(cfmap, options, error, message):
    refuses(lambda: cfmap.explain_many(X, **options), error, message)
    refuses(lambda: cfmap.build(**options), error, message)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_nodes": 0}, ValueError, "max_nodes must be at least 1, got 0"),
        ({"max_nodes": 1e3}, TypeError, "max_nodes must be a whole number, got 1000.0"),
        ({"max_memory": "1 GB"}, TypeError, "max_memory must be a whole number, got '1 GB'"),
        ({"max_memory": -5}, ValueError, "max_memory must be at least 1, got -5"),
        ({"progress": 5}, TypeError, "progress must be True, False or a callable, got 5"),
    ],
)
def test_budgets_are_whole_numbers(cfmap, options, error, message):
    refuses(lambda: cfmap.build(**options), error, message)


def test_parts_of_the_map_are_asked_for_by_what_there_is(cfmap):
    partition = CounterfactualMap(MODEL, features=FEATURES).partition
    refuses(lambda: partition.boxes(2), ValueError, "label must be an index below 2, got 2")
    refuses(lambda: partition.boxes("yes"), TypeError, "label must be a whole number, got 'yes'")
    refuses(lambda: partition.region(np.zeros(3, dtype=int)), ValueError, "cells must be one per axis, each below")
    refuses(lambda: partition.region(np.array([-1, 0, 0, 0])), ValueError, "got [-1, 0, 0, 0]")
    refuses(lambda: setattr(partition, "max_nodes", -1), ValueError, "max_nodes must be at least 0, got -1")
    refuses(lambda: CounterfactualMap(MODEL).box_tree("yes"), ValueError, "the map is not complete: call build() first")


def test_a_box_tree_is_of_one_label():
    built = CounterfactualMap(MODEL, features=FEATURES)
    built.build()
    refuses(lambda: built.box_tree("ja"), ValueError, "label must be one of the model's labels ['no', 'yes'], got 'ja'")
    refuses(lambda: built.box_tree(None), ValueError, "label must be one of the model's labels ['no', 'yes'], got None")


def test_explanations_are_indexed_by_whole_numbers(cfmap):
    many = cfmap.explain_many(X[:3])
    with pytest.raises(IndexError, match="index must be within 3 explanations, got 3"):
        many[3]
    with pytest.raises(TypeError):
        many["0"]


def test_a_bad_call_leaves_the_map_as_it_was(cfmap):
    before = cfmap.explain(GOOD).distance
    refuses(lambda: cfmap.explain(changed(4, 0.5)), ValueError, "feature 'job'")
    assert cfmap.explain(GOOD).distance == before


# Unusual input with a defined answer


@pytest.mark.parametrize("distance", ["l1", "l2", "linf", 3])
def test_a_row_in_the_target_class_is_its_own_answer(cfmap, distance):
    for row, label in zip(X[:5], MODEL.predict(pd.DataFrame(X[:5], columns=COLUMNS)), strict=True):
        found = cfmap.explain(row, target=label, distance=distance)
        assert (found.status, found.distance, found.lower_bound, found.infimum) == ("optimal", 0.0, 0.0, 0.0)
        assert found.source == found.target == label
        assert found.counterfactual.tolist() == row.tolist()
        assert found.changes() == []


def expect_infeasible(found):
    assert (found.status, found.distance, found.lower_bound) == ("infeasible", np.inf, np.inf)
    assert (found.counterfactual, found.target, found.region, found.changes()) == (None, None, None, [])
    assert "proven" in str(found)


def test_a_label_out_of_reach_is_proven_infeasible():
    only_low = Features([Numeric("a", high=1.5)])
    model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    free, fenced = CounterfactualMap(model), CounterfactualMap(model, features=only_low)
    assert free.explain([0.0], target="high").distance == 1.5 + 2**-23
    expect_infeasible(fenced.explain([0.0], target="high"))
    expect_infeasible(fenced.explain([0.0]))
    # Its limits bind the answer, not the query.
    assert fenced.explain([2.0], target="low").counterfactual.tolist() == [1.5]
    many = fenced.explain_many([[0.0], [2.0]], target=["high", "low"])
    assert many.statuses.tolist() == ["infeasible", "optimal"]
    assert many.targets.tolist() == [None, "low"]
    assert np.isnan(many.counterfactuals).tolist() == [[True], [False]]


def test_a_label_that_no_leaf_prefers_is_proven_infeasible():
    model = DecisionTreeClassifier(max_depth=1).fit([[0.0], [0.0], [0.0], [1.0]], ["a", "a", "rare", "b"])
    cfmap = CounterfactualMap(model)
    for _ in range(2):
        expect_infeasible(cfmap.explain([0.0], target="rare"))
        cfmap.build()


def test_a_model_of_one_class_has_no_other():
    model = RandomForestClassifier(3).fit(X, np.full(len(X), "yes"))
    cfmap = CounterfactualMap(model)
    expect_infeasible(cfmap.explain(X[0]))
    assert cfmap.explain(X[0], target="yes").distance == 0.0
    assert cfmap.is_complete or cfmap.build().complete


@pytest.mark.parametrize(
    "empty",
    [np.empty((0, 5)), pd.DataFrame(X[:0], columns=COLUMNS), pl.DataFrame(X[:0], schema=COLUMNS)],
    ids=["numpy", "pandas", "polars"],
)
def test_no_rows_have_no_explanations(cfmap, empty):
    many = cfmap.explain_many(empty, target=[])
    assert len(many) == len(list(many)) == len(many.distances) == len(many.targets) == len(many.infima) == 0
    assert many.counterfactuals.shape == (0, 5)
    assert type(many.counterfactuals) is type(empty)
    assert len(many.to_frame()) == 0
    assert repr(many) == "Explanations(0 rows)"
    assert "<table>" in many._repr_html_()


def frozen(array):
    array = array.copy()
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    "rows",
    [
        X[:6].tolist(),
        tuple(map(tuple, X[:6])),
        frozen(X[:6]),
        np.asfortranarray(X[:6]),
        np.repeat(X[:6], 2, axis=1)[:, ::2],
        X[5::-1][::-1],
        X[:6].astype(">f8"),
        X[:6].astype(object),
        X[:6].astype(np.int8),
        X[:6].astype(np.float32),
        pd.DataFrame(X[:6], columns=COLUMNS).astype("Int32"),
        pd.DataFrame(X[:6]),
    ],
)
def test_arrays_of_every_layout_and_type_give_the_same_answers(cfmap, rows):
    expected = cfmap.explain_many(X[:6].copy())
    found = cfmap.explain_many(rows)
    assert found.distances.tolist() == expected.distances.tolist()
    assert found.points.tolist() == expected.points.tolist()


def test_what_happens_to_the_array_later_does_not_change_the_question(cfmap):
    x = np.array(GOOD)
    found = cfmap.explain(x)
    answer, distance = cfmap.explain(GOOD).counterfactual, found.distance
    x[:] = 0.0
    assert found.query.tolist() == GOOD
    assert found.counterfactual.tolist() == answer.tolist()
    assert Distance("l1").between(found.query, found.counterfactual) == distance
