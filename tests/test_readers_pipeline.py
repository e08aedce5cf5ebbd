"""Pipelines are explained in their raw columns: what pulled-back cuts say is what the pipeline says."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import boosters
from cfmaps import CounterfactualMap
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import read
from cfmaps.readers.pipeline import RawRows

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "income": RNG.exponential(size=N) * 1e5,
        "job": RNG.choice(["clerk", "nurse", "cook", "smith"], N),
        "grade": RNG.integers(0, 6, N),
        "score": RNG.normal(size=N),
    }
)
HOLES = FRAME.assign(age=FRAME.age.where(RNG.random(N) < 0.9))
Y = ((FRAME.age > 50) + (FRAME.job == "cook") + FRAME.grade % 2 + (FRAME.income > 7e4) > 1).astype(int).to_numpy()
NUMBERS, CATEGORIES = ["age", "income", "score"], ["job", "grade"]


def forest(**options):
    return RandomForestClassifier(**{"n_estimators": 15, "max_depth": 5, "random_state": 0} | options)


def scaled_and_encoded(**options):
    encoder = OneHotEncoder(**{"sparse_output": False} | options)
    return make_column_transformer((StandardScaler(), NUMBERS), (encoder, CATEGORIES))


PIPELINES = {
    "scaler": (lambda: make_pipeline(StandardScaler(), forest()), FRAME[NUMBERS]),
    "scalers": (
        lambda: make_pipeline(MinMaxScaler(), RobustScaler(), MaxAbsScaler(), forest()),
        FRAME[NUMBERS].to_numpy(),
    ),
    "one step": (lambda: make_pipeline(forest()), FRAME[NUMBERS]),
    "nothing": (lambda: make_pipeline("passthrough", forest()), FRAME[NUMBERS]),
    "one-hot, xgboost": (lambda: make_pipeline(scaled_and_encoded(), boosters.xgboost(2, n_estimators=15)), FRAME),
    "one-hot, lightgbm": (lambda: make_pipeline(scaled_and_encoded(), boosters.lightgbm(2, n_estimators=15)), FRAME),
    "one-hot, catboost": (lambda: make_pipeline(scaled_and_encoded(), boosters.catboost(2, n_estimators=15)), FRAME),
    "sparse": (lambda: make_pipeline(scaled_and_encoded(sparse_output=True), forest()), FRAME),
    "sparse, xgboost": (
        lambda: make_pipeline(OneHotEncoder(), boosters.xgboost(2, n_estimators=15)),
        FRAME[CATEGORIES],
    ),
    "ordinal": (
        lambda: make_pipeline(
            make_column_transformer(
                (OrdinalEncoder(), CATEGORIES), (MinMaxScaler(), ["income"]), remainder="passthrough"
            ),
            forest(),
        ),
        FRAME,
    ),
    "categories of the model": (
        lambda: make_pipeline(
            make_column_transformer((OrdinalEncoder(), CATEGORIES), remainder="passthrough"),
            HistGradientBoostingClassifier(max_iter=10, categorical_features=[0, 1]),
        ),
        FRAME,
    ),
    "imputers": (
        lambda: make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()), NUMBERS),
                (OneHotEncoder(handle_unknown="ignore"), CATEGORIES),
            ),
            forest(),
        ),
        HOLES,
    ),
    "missing values of the model": (
        lambda: make_pipeline(StandardScaler(), boosters.xgboost(2, n_estimators=15)),
        HOLES[NUMBERS],
    ),
    "bins, rare categories": (
        lambda: make_pipeline(
            make_column_transformer(
                (KBinsDiscretizer(5, encode="ordinal", strategy="uniform"), NUMBERS),
                (OneHotEncoder(drop="first", min_frequency=90, handle_unknown="infrequent_if_exist"), CATEGORIES),
            ),
            forest(),
        ),
        FRAME,
    ),
    "target encoder": (
        lambda: make_pipeline(
            make_column_transformer((TargetEncoder(cv=2), CATEGORIES), remainder=StandardScaler()), forest()
        ),
        FRAME,
    ),
    "arrays of objects": (
        lambda: make_pipeline(
            ColumnTransformer([("numbers", StandardScaler(), [0, 1, -1]), ("rest", OneHotEncoder(), slice(2, 4))]),
            forest(),
        ),
        FRAME.to_numpy(dtype=object),
    ),
    "selected columns": (lambda: make_pipeline(StandardScaler(), SelectKBest(k=2), forest()), FRAME[NUMBERS]),
    "several classes": (lambda: make_pipeline(StandardScaler(), boosters.lightgbm(3, n_estimators=8)), FRAME[NUMBERS]),
}


def fitted(name):
    make, rows = PIPELINES[name]
    y = Y + (FRAME.score > 1).to_numpy() if name == "several classes" else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(rows, y), rows


def raw_probes(ensemble, n_rows):
    """Rows whose numbers lie on a raw cut or one float64 beside it, and whose categories are any."""
    columns = []
    for column in range(ensemble.n_features):
        if ensemble.categories and column in ensemble.categories:
            pool = np.arange(len(ensemble.categories[column]), dtype=float)
        else:
            cuts = np.unique(ensemble.threshold[ensemble.feature == column])
            cuts = cuts[np.isfinite(cuts)]
            pool = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf), [0.0, 1.5, -3e5]])
        missing = [np.nan] * (1 + len(pool) // 8) if ensemble.takes_missing else []
        columns.append(RNG.choice(np.append(pool, missing), n_rows))
    return np.stack(columns, axis=1)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:Found unknown categories")
@pytest.mark.parametrize("name", PIPELINES)
def test_raw_cuts_say_what_the_pipeline_says(name):
    model, _ = fitted(name)
    ensemble = read(model)
    rows = raw_probes(ensemble, 1500)
    predicted = np.ravel(model.predict(RawRows.of(model, ensemble.categories)(rows)))
    assert ensemble.classes[ensemble.labels(rows)].tolist() == predicted.tolist()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", PIPELINES)
def test_answers_in_raw_columns_flip_the_pipeline(name):
    model, rows = fitted(name)
    asked = rows.dropna().iloc[:20] if hasattr(rows, "dropna") else rows[:20]
    found = CounterfactualMap(model).explain_many(asked)
    assert set(found.statuses) == {"optimal"}
    assert (np.ravel(model.predict(found.counterfactuals)) != np.ravel(model.predict(asked))).all()
    if hasattr(rows, "columns"):
        assert list(found.counterfactuals.columns) == list(rows.columns)


def test_the_nearest_raw_number_flips_and_the_one_before_does_not():
    x = FRAME[["income"]]
    model = make_pipeline(StandardScaler(), MinMaxScaler(), forest(n_estimators=1, max_depth=1)).fit(x, x.income > 7e4)
    cut = read(model).threshold[0]
    both = pd.DataFrame({"income": [cut, np.nextafter(cut, np.inf)]})
    assert model.predict(both).tolist() == [False, True]
    found = CounterfactualMap(model).explain([cut])
    assert found.counterfactual.tolist() == [np.nextafter(cut, np.inf)]


def test_a_row_with_a_missing_value_that_is_imputed_is_explained():
    model, rows = fitted("imputers")
    asked = rows[rows.age.isna()].iloc[:5]
    found = CounterfactualMap(model).explain_many(asked)
    assert found.counterfactuals.age.isna().all()
    assert (model.predict(found.counterfactuals) != model.predict(asked)).all()


def test_frames_of_polars_go_in_and_come_out():
    model, _ = fitted("one-hot, lightgbm")
    asked = pl.DataFrame(FRAME.iloc[:5].to_dict(orient="list"))
    found = CounterfactualMap(model).explain_many(asked).counterfactuals
    assert found.schema == asked.schema
    assert set(found["job"]) <= set(FRAME.job)


def test_an_unknown_category_is_refused():
    model, _ = fitted("one-hot, xgboost")
    with pytest.raises(ValueError, match=r"feature 'job': expected one of .*, got 'pilot'"):
        CounterfactualMap(model).explain(FRAME.assign(job="pilot").iloc[[0]])


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (
            [PolynomialFeatures()],
            "a pipeline with PolynomialFeatures is not supported: expected steps that take one column",
        ),
        ([FunctionTransformer(np.sin)], r"FunctionTransformer\(sin\) is not supported"),
        ([KBinsDiscretizer(3, strategy="uniform")], r"KBinsDiscretizer\(encode='onehot'\) is not supported"),
        ([SimpleImputer(missing_values=-1)], r"SimpleImputer\(missing_values=-1\) is not supported"),
    ],
)
def test_steps_that_cannot_be_pulled_back_exactly_are_refused(steps, reason):
    model = make_pipeline(*steps, forest()).fit(FRAME[NUMBERS], Y)
    with pytest.raises(UnsupportedModel, match=reason):
        read(model)


def test_xgboost_behind_a_sparse_matrix_of_numbers_is_refused():
    front = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), CATEGORIES), sparse_threshold=1.0)
    model = make_pipeline(front, boosters.xgboost(2, n_estimators=3)).fit(FRAME, Y)
    with pytest.raises(UnsupportedModel, match="takes a number that is 0 for missing"):
        read(model)


def test_an_unfitted_pipeline_is_refused():
    with pytest.raises(ValueError, match="must be fitted"):
        read(Pipeline([("scale", StandardScaler()), ("model", forest())]))
