"""From a fitted model to an :class:`~cfmaps.ensemble.Ensemble`, one module per library."""

import os
from importlib import import_module
from typing import Any

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel

# Before scikit-learn, whose base classes their estimators share.
_BOOSTERS = ("xgboost", "lightgbm", "catboost")


def read(model: Any, *, votes: str = "soft") -> Ensemble:
    """The ensemble a fitted model computes with.

    Parameters
    ----------
    model : fitted estimator or Booster, path of a model file, or Ensemble
        Of scikit-learn: trees, forests, GradientBoosting, HistGradientBoosting,
        AdaBoostClassifier, and Bagging of trees; classifiers and regressors. Of XGBoost:
        gbtree and dart; of LightGBM: gbdt, dart and rf; of CatBoost: all growing policies.
        Files: XGBoost JSON or UBJSON, LightGBM text, CatBoost JSON; their library need not
        be installed. A Pipeline of scikit-learn that ends in one of these: over its raw columns.
    votes : {"soft", "hard"}
        "soft" is what the model's own ``predict`` does. "hard": each tree votes for
        the class its leaf prefers, the majority wins, ties go to the first class.

    Raises
    ------
    UnsupportedModel
        Naming the type and the reason.
    ValueError
        When the model is not fitted or ``votes`` is neither.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> read(DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])).threshold[0]
    np.float64(0.5)
    """
    if votes not in ("soft", "hard"):
        raise ValueError(f"votes must be 'soft' or 'hard', got {votes!r}")
    if isinstance(model, Ensemble):
        if votes != "soft":
            raise ValueError(f"votes={votes!r} needs the model itself, got an Ensemble")
        return model
    if isinstance(model, str | os.PathLike):
        from cfmaps.readers import files

        _expect_soft(votes, "a model file")
        return files.read(model)
    for library in _BOOSTERS:
        if _comes_from(model, library):
            _expect_soft(votes, library)
            ensemble: Ensemble = import_module(f"cfmaps.readers.{library}").read(model)
            return ensemble
    if is_pipeline(model):
        from cfmaps.readers import pipeline

        return pipeline.read(model, read(model[-1], votes=votes))
    if _comes_from(model, "sklearn"):
        from cfmaps.readers import sklearn

        return sklearn.read(model, votes=votes)
    raise UnsupportedModel(
        f"{type(model).__name__} is not supported; expected an Ensemble, the path of a model file, or a fitted tree "
        "model of scikit-learn, XGBoost, LightGBM or CatBoost"
    )


def _expect_soft(votes: str, what: str) -> None:
    if votes != "soft":
        raise ValueError(f"votes={votes!r} is for forests of scikit-learn, got {what}: its trees do not vote")


def is_pipeline(model: Any) -> bool:
    """Whether a model is a Pipeline of scikit-learn."""
    return any(parent.__name__ == "Pipeline" and _comes_from(model, "sklearn") for parent in type(model).__mro__)


def _comes_from(model: Any, library: str) -> bool:
    return any(parent.__module__.split(".")[0] == library for parent in type(model).__mro__)
