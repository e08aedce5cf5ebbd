"""scikit-learn's HistGradientBoosting, exactly as its ``predict`` computes.

Inputs are compared in float64 and leaves added in float64, iteration by iteration.
Categorical columns come first inside the model, and their values are replaced by
their ranks: those ranks are the codes here, ``categories`` holds the values.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.readers.sklearn_trees import fitted, names_of

_LINKS = {"poisson": "exp", "gamma": "exp"}


def read(model: Any) -> Ensemble:
    """The ensemble of a HistGradientBoostingClassifier or HistGradientBoostingRegressor."""
    iterations = fitted(model, "_predictors")
    predictors = [predictor for iteration in iterations for predictor in iteration]
    counts = np.array([len(predictor.nodes) for predictor in predictors])
    roots = np.cumsum(counts) - counts
    nodes = np.concatenate([predictor.nodes for predictor in predictors])
    leaf, shift = nodes["is_leaf"] != 0, np.repeat(roots, counts)
    n_scores = len(iterations[0])
    score = np.repeat(np.tile(np.arange(n_scores), len(iterations)), counts)
    added = np.zeros((len(nodes), n_scores))
    added[np.arange(len(nodes)), score] = nodes["value"]
    columns = _columns(model)
    return Ensemble(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=np.where(leaf | (nodes["is_categorical"] != 0), 0.0, nodes["num_threshold"]),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64) + shift),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64) + shift),
        roots=roots,
        value=added,
        init=np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1),
        n_features=int(model.n_features_in_),
        number=np.float64,
        missing_left=nodes["missing_go_to_left"] != 0,
        feature_names=names_of(model),
        **_sets(model, predictors, nodes, counts, columns),
        **_decision(model, n_scores),
    )


def _columns(model: Any) -> npt.NDArray[np.intp]:
    """The input column behind each column inside the model."""
    categorical = model.is_categorical_
    if categorical is None:
        return np.arange(model.n_features_in_)
    return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)])


def _sets(model: Any, predictors: list[Any], nodes: Any, counts: Any, columns: Any) -> dict[str, Any]:
    """The sets of the nodes, and the values of the categorical columns."""
    if model.is_categorical_ is None:
        return {}
    encoder = model._preprocessor.named_transformers_["encoder"]
    values = [
        [value for value in known.tolist() if value == value and value is not None] for known in encoder.categories_
    ]
    bits = np.concatenate([predictor.raw_left_cat_bitsets.reshape(-1, 8) for predictor in predictors])
    first = np.cumsum([0, *(len(predictor.raw_left_cat_bitsets) for predictor in predictors)])[:-1]
    in_words = np.ascontiguousarray(bits, dtype="<u4").view(np.uint8)
    sets = np.unpackbits(in_words, axis=1, bitorder="little").astype(bool)
    chosen = np.repeat(first, counts) + nodes["bitset_idx"].astype(np.int64)
    return {
        "category_set": np.where((nodes["is_categorical"] != 0) & (nodes["is_leaf"] == 0), chosen, -1),
        "category_sets": sets[:, : max(1, *map(len, values))]
        if len(sets)
        else np.zeros((0, max(1, *map(len, values)))),
        "categories": {int(column): tuple(known) for column, known in zip(columns, values, strict=False)},
    }


def _known(categories: list[Any]) -> list[Any]:
    """Categories without the mark of missing values, which comes last."""
    return [value for value in categories if value is not None and value == value]


def _decision(model: Any, n_scores: int) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return {"classes": None, "rule": "value", "link": _LINKS.get(model.loss, "identity")}
    if n_scores > 1:
        return {"classes": classes}
    return {"classes": classes, "rule": "bands", "cuts": [np.nextafter(0.0, 1.0)], "link": "expit"}
