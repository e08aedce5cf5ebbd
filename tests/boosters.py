"""Boosted models of every library and task, and rows placed on and beside all their cuts."""

import warnings

import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier

from cfmaps.readers import read

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


def xgboost(task, **options):
    """``task`` is the number of classes, or 0 for regression."""
    return (XGBClassifier if task else XGBRegressor)(**{"n_jobs": 1, "max_depth": 4} | options)


def xgboost_forest(task, **options):
    assert task
    return XGBRFClassifier(**{"n_jobs": 1, "max_depth": 4} | options)


def lightgbm(task, **options):
    fixed = {
        "verbose": -1,
        "n_jobs": 1,
        "min_child_samples": 5,
        "num_leaves": 12,
        "min_data_per_group": 5,
        "cat_smooth": 1,
    }
    return (LGBMClassifier if task else LGBMRegressor)(**fixed | options)


def catboost(task, **options):
    if task > 2:
        options = {"loss_function": "MultiClass"} | options
    return (CatBoostClassifier if task else CatBoostRegressor)(**QUIET | {"depth": 4} | options)


def data(rng, task, *, n_rows=300, n_features=5, missing=0.1, dtype=np.float64):
    """Rows with ties, zeros and holes, and a target that they only half explain."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, 0] = rng.integers(-2, 3, n_rows)
    X[rng.random(X.shape) < 0.05] = 0.0
    signal = X @ rng.normal(size=n_features) + rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    y = signal.argsort().argsort() * task // n_rows if task else signal
    return X.astype(dtype), y


def probes(rng, ensemble, n_rows, *, missing=True):
    """Rows whose every value is on a cut, one number of the grid beside it, zero or nearly, huge or missing."""
    columns = [rng.choice(_pool(rng, ensemble, column, missing), n_rows) for column in range(ensemble.n_features)]
    return np.stack(columns, axis=1)


def _pool(rng, ensemble, column, missing):
    holes = [np.nan] if missing and ensemble.takes_missing else []
    if ensemble.categories and column in ensemble.categories:
        values = ensemble.categories[column]
        return np.array([float(code) for code, value in enumerate(values) if value is not None] + holes)
    number = ensemble.number
    with np.errstate(all="ignore"):
        cuts = np.unique(ensemble.threshold[ensemble.feature == column]).astype(number)
        sides = [np.nextafter(cuts, number(away)) for away in (-np.inf, np.inf)]
    near_zero = [0.0, -0.0, 1e-36, -1e-36, 1.1e-35]
    numbers = np.concatenate([cuts, *sides, near_zero, [1e30, -1e30], rng.normal(size=5)]).astype(number)
    numbers = numbers[np.isfinite(numbers)].astype(np.float64)
    return np.append(numbers, np.repeat(holes, 1 + len(numbers) // 10))


def native_scores(model, rows):
    """The raw scores of the live model, shape (n_rows, n_scores)."""
    library = type(model).__module__.split(".")[0]
    if library == "catboost":
        raw = model.predict(rows, prediction_type="RawFormulaVal")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            raw = model.predict(rows, **{"output_margin" if library == "xgboost" else "raw_score": True})
        if getattr(model, "boosting_type", "") == "rf":
            raw = raw / model.booster_.current_iteration()
    return np.asarray(raw, dtype=np.float64).reshape(len(rows), -1)


def assert_computes_the_same(model, rows):
    ensemble = read(model)
    np.testing.assert_array_equal(ensemble.scores(rows), native_scores(model, rows))
    if ensemble.rule == "value":
        np.testing.assert_array_equal(ensemble.scores(rows)[:, 0], model.predict(rows))
    else:
        np.testing.assert_array_equal(ensemble.classes[ensemble.labels(rows)], np.ravel(model.predict(rows)))
