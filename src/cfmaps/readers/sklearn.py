"""scikit-learn's decision trees and forests, exactly as their ``predict`` computes.

Since scikit-learn 1.3 a leaf stores the fractions ``predict_proba`` adds; they
are used as stored, since normalising them again would change the last bit.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel

_TREES = {"DecisionTreeClassifier", "ExtraTreeClassifier"}
_FORESTS = {"RandomForestClassifier", "ExtraTreesClassifier"}
_WRAPPERS = {"Pipeline", "GridSearchCV", "RandomizedSearchCV", "CalibratedClassifierCV"}


def read(model: Any, *, votes: str) -> Ensemble:
    """The ensemble of a fitted tree or forest classifier."""
    families = {parent.__name__ for parent in type(model).__mro__ if parent.__module__.startswith("sklearn.")}
    if families & _FORESTS:
        estimators = _fitted(model, "estimators_")
        trees, divisor = [estimator.tree_ for estimator in estimators], float(len(estimators))
    elif families & _TREES:
        trees, divisor = [_fitted(model, "tree_")], 1.0
    else:
        raise UnsupportedModel(f"{type(model).__name__} is not supported: {_reason(type(model).__name__)}")
    if model.n_outputs_ > 1:
        raise UnsupportedModel(f"{type(model).__name__} with {model.n_outputs_} outputs is not supported: expected one")
    return _ensemble(model, trees, divisor=divisor, votes=votes)


def _fitted(model: Any, attribute: str) -> Any:
    if not hasattr(model, attribute):
        raise ValueError(f"model must be fitted, got a {type(model).__name__} that is not: call fit first")
    return getattr(model, attribute)


def _reason(name: str) -> str:
    if name in _WRAPPERS:
        return "pass the fitted tree or forest inside it, and rows as that estimator sees them"
    if name.endswith("Regressor"):
        return "it predicts a number, expected a classifier"
    if "Boost" in name:
        return "boosted trees are not read yet, expected a single tree, a random forest or extra trees"
    return f"expected one of {', '.join(sorted(_TREES | _FORESTS))}"


def _ensemble(model: Any, trees: list[Any], *, divisor: float, votes: str) -> Ensemble:
    nodes, value, counts = _flat(trees)
    roots = np.cumsum(counts) - counts
    left, right = nodes["left_child"], nodes["right_child"]
    leaf = left < 0
    shift = np.repeat(roots, counts)
    names = getattr(model, "feature_names_in_", None)
    return Ensemble(
        feature=np.where(leaf, -1, nodes["feature"]),
        threshold=np.where(leaf, 0.0, nodes["threshold"]),
        left=np.where(leaf, -1, left + shift),
        right=np.where(leaf, -1, right + shift),
        roots=roots,
        value=_one_vote(value) if votes == "hard" else value,
        init=np.zeros(value.shape[1]),
        classes=model.classes_,
        n_features=int(model.n_features_in_),
        divisor=1.0 if votes == "hard" else divisor,
        link="" if votes == "hard" else "identity",
        feature_names=None if names is None else tuple(map(str, names)),
    )


def _flat(trees: list[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """All nodes as scikit-learn keeps them, what each adds, and how many each tree has.

    A tree's state is its memory as it is; joining bytes is ten times faster than joining records.
    """
    states = [tree.__getstate__() for tree in trees]
    nodes = [state["nodes"] for state in states]
    value = np.concatenate([state["values"] for state in states])[:, 0, :]
    joined = np.frombuffer(b"".join(nodes), dtype=nodes[0].dtype)
    return joined, value, np.array([len(own) for own in nodes])


def _one_vote(value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 for the class a leaf prefers (the first, if several), 0 for the others."""
    votes: npt.NDArray[np.float64] = np.eye(value.shape[1])[np.argmax(value, axis=1)]
    return votes
