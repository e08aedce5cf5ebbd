"""scikit-learn's decision trees and forests, exactly as their ``predict`` computes.

Since scikit-learn 1.3 a leaf stores the fractions ``predict_proba`` adds; they
are used as stored, since normalising them again would change the last bit.
"""

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.sklearn_trees import families, fitted, flat, names_of, takes_missing

_CLASSIFIERS = {"DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"}
_REGRESSORS = {"DecisionTreeRegressor", "ExtraTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"}
_FORESTS = {"RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor", "ExtraTreesRegressor"}
# Which module reads what else is supported.
_ELSEWHERE = {
    "GradientBoostingClassifier": "sklearn_boosting",
    "GradientBoostingRegressor": "sklearn_boosting",
    "HistGradientBoostingClassifier": "sklearn_histogram",
    "HistGradientBoostingRegressor": "sklearn_histogram",
    "AdaBoostClassifier": "sklearn_adaboost",
    "BaggingClassifier": "sklearn_bagging",
    "BaggingRegressor": "sklearn_bagging",
}
_REASONS = {
    "AdaBoostRegressor": "it predicts a weighted median of trees, which is no sum",
    "IsolationForest": "it scores outliers, and has no classes to choose between",
    "StackingClassifier": "its last step is no sum of trees",
    "StackingRegressor": "its last step is no sum of trees",
} | dict.fromkeys(
    ["Pipeline", "GridSearchCV", "RandomizedSearchCV", "CalibratedClassifierCV"],
    "pass the fitted tree model inside it, and rows as that estimator sees them",
)


def read(model: Any, *, votes: str) -> Ensemble:
    """The ensemble of a fitted tree model."""
    own = families(model)
    if own & (_CLASSIFIERS | _REGRESSORS):
        return _trees(model, is_forest=bool(own & _FORESTS), votes=votes)
    module = next((_ELSEWHERE[family] for family in _ELSEWHERE if family in own), None)
    if module is None:
        name = type(model).__name__
        expected = f"expected one of {', '.join(sorted(_CLASSIFIERS | _REGRESSORS | set(_ELSEWHERE)))}"
        reason = next((_REASONS[family] for family in _REASONS if family in own), expected)
        raise UnsupportedModel(f"{name} is not supported: {reason}")
    if votes != "soft":
        raise ValueError(f"votes={votes!r} is for trees and forests, got a {type(model).__name__}")
    ensemble: Ensemble = import_module(f"cfmaps.readers.{module}").read(model)
    return ensemble


def _trees(model: Any, *, is_forest: bool, votes: str) -> Ensemble:
    estimators = fitted(model, "estimators_") if is_forest else [model]
    trees = [fitted(estimator, "tree_") for estimator in estimators]
    if model.n_outputs_ > 1:
        raise UnsupportedModel(f"{type(model).__name__} with {model.n_outputs_} outputs is not supported: expected one")
    nodes, value, _ = flat(trees)
    if not takes_missing(estimators[0]):
        del nodes["missing_left"]
    return Ensemble(
        **nodes,
        value=_one_vote(value) if votes == "hard" else value,
        init=np.zeros(value.shape[1]),
        n_features=int(model.n_features_in_),
        divisor=float(len(trees)) if votes == "soft" else 1.0,
        feature_names=names_of(model),
        **_decision(model, votes),
    )


def _decision(model: Any, votes: str) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return {"classes": classes, "link": "identity" if votes == "soft" else ""}
    if votes != "soft":
        raise ValueError(f"votes={votes!r} is for classifiers, got a {type(model).__name__}")
    return {"classes": None, "rule": "value", "link": "identity"}


def _one_vote(value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 for the class a leaf prefers (the first, if several), 0 for the others."""
    votes: npt.NDArray[np.float64] = np.eye(value.shape[1])[np.argmax(value, axis=1)]
    return votes
