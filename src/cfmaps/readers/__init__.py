"""From a fitted model to an :class:`~cfmaps.ensemble.Ensemble`, one module per library."""

from typing import Any

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel


def read(model: Any, *, votes: str = "soft") -> Ensemble:
    """The ensemble a fitted model computes with.

    Parameters
    ----------
    model : fitted tree model of scikit-learn, or Ensemble
        Trees, forests, GradientBoosting, HistGradientBoosting, AdaBoostClassifier, and Bagging
        of trees; classifiers and regressors.
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
    if _comes_from(model, "sklearn"):
        from cfmaps.readers import sklearn

        return sklearn.read(model, votes=votes)
    raise UnsupportedModel(
        f"{type(model).__name__} is not supported; expected an Ensemble or a fitted DecisionTreeClassifier, "
        "ExtraTreeClassifier, RandomForestClassifier or ExtraTreesClassifier of scikit-learn"
    )


def _comes_from(model: Any, library: str) -> bool:
    return any(parent.__module__.split(".")[0] == library for parent in type(model).__mro__)
