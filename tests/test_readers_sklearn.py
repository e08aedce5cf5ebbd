import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.features import Features
from cfmaps.readers import read
from models import MODELS, beside, cases, split_points

RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, size=(200, 3)).astype(float)


def assert_computes_the_same(model, rows):
    ensemble = read(model)
    np.testing.assert_array_equal(ensemble.scores(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(ensemble.classes[ensemble.labels(rows)], model.predict(rows))


def on_and_beside_thresholds(model, n_rows=300):
    splits = split_points(model, Features.numeric(model.n_features_in_))
    pools = [np.concatenate([beside(split), split, [-1.0, 9.0]]) for split in splits]
    return np.stack([RNG.choice(pool, size=n_rows) for pool in pools], axis=1)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_scores_and_labels_are_the_models_own_bit_for_bit(case):
    assert_computes_the_same(case.model, np.concatenate([case.queries, case.X_train]))


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
@pytest.mark.parametrize("weighting", ["none", "samples", "balanced", "leaf"])
def test_weights_and_classes_of_every_family(family, n_classes, weighting):
    y = RNG.permutation(np.arange(len(X)) % n_classes)
    options = {
        "none": {},
        "samples": {},
        "balanced": {"class_weight": "balanced"},
        "leaf": {"min_weight_fraction_leaf": 0.05, "max_leaf_nodes": 9, "ccp_alpha": 0.001},
    }[weighting]
    weights = RNG.random(len(X)) * (RNG.random(len(X)) < 0.9) if weighting == "samples" else None
    model = MODELS[family](max_depth=5, random_state=0, **options).fit(X, y, sample_weight=weights)
    assert_computes_the_same(model, on_and_beside_thresholds(model))


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 2.0], [7, 3], [b"n", b"y"]])
def test_labels_are_of_any_type(labels):
    y = np.array(labels)[(X[:, 0] > 2).astype(int)]
    assert_computes_the_same(RandomForestClassifier(5, random_state=0).fit(X, y), X)


def test_hard_votes_are_the_majority_of_the_trees():
    y = RNG.integers(0, 3, size=len(X))
    model = RandomForestClassifier(4, max_depth=2, random_state=0).fit(X, y)
    ensemble = read(model, votes="hard")
    rows = on_and_beside_thresholds(model)
    votes = np.stack([tree.predict(rows).astype(int) for tree in model.estimators_])
    counts = np.stack([(votes == k).sum(axis=0) for k in range(3)], axis=1)
    assert ensemble.scores(rows).tolist() == counts.tolist()
    assert ensemble.labels(rows).tolist() == [row.index(max(row)) for row in counts.tolist()]
    assert (np.sort(counts, axis=1)[:, -1] == np.sort(counts, axis=1)[:, -2]).any()


def test_a_model_trained_with_missing_values_answers_complete_rows():
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    holes[:60, 0] = np.nan
    model = RandomForestClassifier(20, random_state=0).fit(holes, np.arange(len(X)) < 60)
    assert np.isinf(read(model).threshold).any()
    assert_computes_the_same(model, on_and_beside_thresholds(model)[:, :3].clip(-1e30, 1e30))


def test_column_names_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ExtraTreesClassifier(3, random_state=0).fit(frame, X[:, 0] > 2)
    assert read(model).feature_names == ("a", "b", "c")
    assert_computes_the_same(model, frame)
    with pytest.raises(ValueError, match=r"expected 'a', got 'c' \(the same names in another order\)"):
        read(model).labels(frame[["c", "b", "a"]])


def test_a_subclass_is_read_as_what_it_is():
    class Forest(RandomForestClassifier):
        pass

    assert_computes_the_same(Forest(3, random_state=0).fit(X, X[:, 0] > 2), X)


def test_an_ensemble_passes_through():
    ensemble = read(DecisionTreeClassifier().fit(X, X[:, 0] > 2))
    assert isinstance(ensemble, Ensemble)
    assert read(ensemble) is ensemble
    with pytest.raises(ValueError, match="votes='hard' needs the model itself"):
        read(ensemble, votes="hard")


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(),
        GradientBoostingClassifier(),
        HistGradientBoostingClassifier(),
        AdaBoostClassifier(),
        BaggingClassifier(),
    ],
)
def test_an_unfitted_model_is_refused(model):
    with pytest.raises(ValueError, match="must be fitted"):
        read(model)


class Stranger(BaseEstimator):
    pass


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (AdaBoostRegressor(), "AdaBoostRegressor is not supported: it predicts a weighted median"),
        (IsolationForest(), "IsolationForest is not supported: it scores outliers"),
        (
            BaggingClassifier(LogisticRegression()).fit(X, X[:, 0] > 2),
            "BaggingClassifier of LogisticRegression is not supported: expected single trees in it",
        ),
        (
            AdaBoostClassifier(RandomForestClassifier(2), n_estimators=2).fit(X, X[:, 0] > 2),
            "AdaBoostClassifier of RandomForestClassifier is not supported",
        ),
        (
            GradientBoostingClassifier(init=LogisticRegression(), n_estimators=2).fit(X, X[:, 0] > 2),
            "GradientBoostingClassifier that starts at a LogisticRegression is not supported",
        ),
        (RandomForestRegressor(2).fit(X, X[:, :2]), "RandomForestRegressor with 2 outputs"),
        (LogisticRegression(), "LogisticRegression is not supported: expected one of"),
        (Stranger(), "Stranger is not supported: expected one of"),
        ({}, "dict is not supported; expected an Ensemble, the path of a model file, or a fitted tree model"),
        (None, "NoneType is not supported"),
        (DecisionTreeClassifier, "ABCMeta is not supported"),
        (DecisionTreeClassifier().fit(X, np.stack([X[:, 0] > 2, X[:, 1] > 2], axis=1)), "with 2 outputs"),
    ],
)
def test_other_models_are_refused_with_the_reason(model, reason):
    with pytest.raises(UnsupportedModel, match=reason):
        read(model)


def test_hard_votes_are_for_classifying_trees():
    with pytest.raises(ValueError, match="votes='hard' is for trees and forests, got a GradientBoostingClassifier"):
        read(GradientBoostingClassifier(n_estimators=2).fit(X, X[:, 0] > 2), votes="hard")
    with pytest.raises(ValueError, match="votes='hard' is for classifiers, got a RandomForestRegressor"):
        read(RandomForestRegressor(2).fit(X, X[:, 0]), votes="hard")


def test_unknown_votes_are_refused():
    with pytest.raises(ValueError, match="votes must be 'soft' or 'hard', got 'loud'"):
        read(DecisionTreeClassifier(), votes="loud")


def test_reading_an_ensemble_imports_no_model_library():
    program = (
        "import sys; from cfmaps.ensemble import Ensemble; from cfmaps.readers import read; "
        "read(Ensemble([-1], [0], [-1], [-1], [0], [[1]], [0], ['a'], 1)); "
        "print([name for name in ('sklearn', 'xgboost', 'lightgbm') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_float64_rows_are_rounded_as_the_model_rounds_them(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(100, 3))
    model = ExtraTreesClassifier(4, max_depth=4, random_state=seed).fit(rows.astype(np.float32), rows[:, 0] > 0)
    probes = np.stack(
        [rng.choice(np.append(split, 0.0), size=50) for split in split_points(model, Features.numeric(3))]
    )
    assert_computes_the_same(model, probes.T * (1 + rng.choice([-6e-8, -3e-8, 0, 3e-8, 6e-8], size=(50, 3))))
