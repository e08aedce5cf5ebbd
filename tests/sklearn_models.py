"""Models of every supported family of scikit-learn, with missing values, categories, weights and early stopping."""

import numpy as np
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from threadpoolctl import threadpool_limits

N_ROWS = 400
# Before scikit-learn 1.6 the default was another algorithm.
SAMME = {"algorithm": "SAMME"} if AdaBoostClassifier().get_params().get("algorithm") == "SAMME.R" else {}


def table(seed, *, missing=False, categories=False):
    """Numbers with many ties, zeros of both signs; columns 1 and 3 may be categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 5)).round(1) * [1, 10, 1e-3, 1, 1e4]
    if categories:
        X[:, 1], X[:, 3] = rng.integers(0, 4, N_ROWS) * 10, rng.integers(2, 9, N_ROWS)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def labels(X, n_classes):
    known = np.nan_to_num(X)
    signal = known[:, 0] + np.sin(known[:, 1]) + (known[:, 3] % 3) / 2
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def numbers(X):
    known = np.nan_to_num(X)
    return 3 * known[:, 0] + known[:, 1] ** 2 / 50 + 0.1 * np.arange(len(X)) % 1


def fitted(model, seed, *, n_classes=2, missing=False, categories=False, weights=False, single=False):
    """The model, fitted; 0 classes for regression."""
    X = table(seed, missing=missing, categories=categories)
    y = labels(X, n_classes) if n_classes else np.abs(numbers(X))
    weight = np.random.default_rng(seed).random(len(X)) if weights else None
    # Threads that wait for each other spin: on a busy machine that takes a hundred times as long as one thread.
    with threadpool_limits(1):
        return model.fit(X.astype(np.float32) if single else X, y, sample_weight=weight)


def _two_to_five(make, **options):
    return {f"{k} classes": lambda k=k: fitted(make(), k, n_classes=k, **options) for k in (2, 3, 5)}


def tasks():
    """Per family and task a function that fits the model."""
    shallow = DecisionTreeClassifier(max_depth=3)
    stop = {"n_iter_no_change": 3, "validation_fraction": 0.2}
    return {
        "DecisionTree": _two_to_five(lambda: DecisionTreeClassifier(max_depth=6))
        | {
            "missing values": lambda: fitted(DecisionTreeClassifier(max_depth=8), 1, missing=True),
            "regression": lambda: fitted(DecisionTreeRegressor(max_depth=8), 2, n_classes=0, missing=True),
            "extra tree, weights": lambda: fitted(ExtraTreeClassifier(max_depth=7), 3, weights=True),
        },
        "RandomForest": _two_to_five(lambda: RandomForestClassifier(40, max_depth=6, random_state=0))
        | {
            "missing values": lambda: fitted(RandomForestClassifier(40, random_state=0), 1, missing=True, n_classes=3),
            "regression": lambda: fitted(RandomForestRegressor(40, max_depth=8, random_state=0), 2, n_classes=0),
            "300 trees, float32": lambda: fitted(
                RandomForestClassifier(300, max_depth=4, random_state=0), 4, single=True
            ),
        },
        "ExtraTrees": _two_to_five(lambda: ExtraTreesClassifier(40, max_depth=7, random_state=0))
        | {"regression": lambda: fitted(ExtraTreesRegressor(30, max_depth=8, random_state=0), 5, n_classes=0)},
        "GradientBoosting": _two_to_five(lambda: GradientBoostingClassifier(n_estimators=60, random_state=0))
        | {
            "early stopping": lambda: fitted(GradientBoostingClassifier(n_estimators=300, random_state=0, **stop), 6),
            "weights, zero start": lambda: fitted(
                GradientBoostingClassifier(n_estimators=50, init="zero", subsample=0.7, random_state=0), 7, weights=True
            ),
            "exponential loss": lambda: fitted(
                GradientBoostingClassifier(loss="exponential", n_estimators=50, random_state=0), 8
            ),
            "regression": lambda: fitted(GradientBoostingRegressor(n_estimators=80, random_state=0), 9, n_classes=0),
            "quantile": lambda: fitted(
                GradientBoostingRegressor(loss="quantile", n_estimators=40, random_state=0), 10, n_classes=0
            ),
        },
        "HistGradientBoosting": _two_to_five(lambda: HistGradientBoostingClassifier(max_iter=30), missing=True)
        | {
            "early stopping": lambda: fitted(HistGradientBoostingClassifier(max_iter=200, early_stopping=True), 6),
            "categories": lambda: fitted(
                HistGradientBoostingClassifier(max_iter=40, categorical_features=[1, 3]), 11, categories=True
            ),
            "categories, missing": lambda: fitted(
                HistGradientBoostingClassifier(max_iter=40, categorical_features=[3]),
                12,
                categories=True,
                missing=True,
                n_classes=3,
            ),
            "regression, float32": lambda: fitted(
                HistGradientBoostingRegressor(max_iter=40), 13, n_classes=0, missing=True, single=True
            ),
            "poisson": lambda: fitted(HistGradientBoostingRegressor(max_iter=40, loss="poisson"), 14, n_classes=0),
        },
        "AdaBoost": _two_to_five(lambda: AdaBoostClassifier(shallow, n_estimators=50, random_state=0, **SAMME)),
        "Bagging": _two_to_five(lambda: BaggingClassifier(n_estimators=30, max_features=0.6, random_state=0))
        | {
            "missing values": lambda: fitted(
                BaggingClassifier(n_estimators=20, random_state=0), 15, missing=True, n_classes=3
            ),
            "regression": lambda: fitted(
                BaggingRegressor(n_estimators=25, max_features=0.8, random_state=0), 16, n_classes=0
            ),
        },
    }


def raw_scores(model, rows):
    """The model's own scores, before a link; None where it shows none."""
    if hasattr(model, "_raw_predict"):
        is_single = "GradientBoosting" in type(model).__name__ and "Hist" not in type(model).__name__
        scores = model._raw_predict(np.asarray(rows, dtype=np.float32) if is_single else rows)
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(rows)
    else:
        scores = (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(rows)
    return scores.reshape(len(scores), -1)
