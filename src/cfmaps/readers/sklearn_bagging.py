"""scikit-learn's Bagging of single trees, exactly as its ``predict`` computes."""

from typing import Any

import numpy as np

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.sklearn_trees import expect_trees, fitted, flat, names_of, takes_missing


def read(model: Any) -> Ensemble:
    """The ensemble of a BaggingClassifier or BaggingRegressor of trees, each over its own columns."""
    estimators = fitted(model, "estimators_")
    expect_trees(estimators, model)
    nodes, value, counts = flat([estimator.tree_ for estimator in estimators])
    if getattr(model, "n_outputs_", 1) > 1 or estimators[0].n_outputs_ > 1:
        raise UnsupportedModel(f"{type(model).__name__} with several outputs is not supported: expected one")
    nodes["feature"] = _in_all_columns(nodes["feature"], model.estimators_features_, counts)
    if not takes_missing(estimators[0]):
        del nodes["missing_left"]
    classes = getattr(model, "classes_", None)
    value = value if classes is None else _in_all_classes(value_by_tree(estimators), len(classes))
    decision: dict[str, Any] = {"classes": classes} | ({"rule": "value"} if classes is None else {})
    return Ensemble(
        **nodes,
        value=value,
        init=np.zeros(value.shape[1]),
        n_features=int(model.n_features_in_),
        divisor=float(model.n_estimators),
        link="identity",
        feature_names=names_of(model),
        **decision,
    )


def value_by_tree(estimators: list[Any]) -> list[tuple[Any, Any]]:
    """Of every tree the classes it knows, as indices, and its leaves' fractions."""
    return [(np.asarray(e.classes_).astype(np.intp), e.tree_.value[:, 0, :]) for e in estimators]


def _in_all_columns(feature: Any, chosen: list[Any], counts: Any) -> Any:
    """A tree counts the columns it was given."""
    first = np.cumsum([0, *map(len, chosen)])[:-1]
    column = np.concatenate([np.asarray(columns) for columns in chosen])
    own = np.maximum(feature, 0) + np.repeat(first, counts)
    return np.where(feature < 0, -1, column[own])


def _in_all_classes(trees: list[tuple[Any, Any]], n_classes: int) -> Any:
    """A tree may have seen some of the classes only."""
    blocks = [np.zeros((len(value), n_classes)) for _, value in trees]
    for block, (classes, value) in zip(blocks, trees, strict=True):
        block[:, classes] = value
    return np.concatenate(blocks)
