"""scikit-learn's AdaBoostClassifier, exactly as its ``predict`` computes.

Each tree votes with its weight for the class its leaf prefers and shares the same
weight, negative, among the others. With two classes both sums are each other's
opposites, so the decision is twice one of them.
"""

from typing import Any

import numpy as np

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.sklearn_trees import expect_trees, fitted, flat, names_of


def read(model: Any) -> Ensemble:
    """The ensemble of an AdaBoostClassifier of trees."""
    estimators = fitted(model, "estimators_")
    expect_trees(estimators, model)
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModel(
            "AdaBoostClassifier with algorithm='SAMME.R' is not supported: it adds logarithms; use 'SAMME'"
        )
    nodes, value, counts = flat([estimator.tree_ for estimator in estimators])
    del nodes["missing_left"]  # its predict refuses NaN
    weights = np.asarray(model.estimator_weights_[: len(estimators)], dtype=np.float64)
    preferred = np.concatenate(
        [
            np.searchsorted(model.classes_, estimator.classes_[own.argmax(axis=1)])
            for estimator, own in zip(estimators, np.split(value, np.cumsum(counts)[:-1]), strict=True)
        ]
    )
    votes = _votes(np.repeat(weights, counts), preferred, len(model.classes_))
    return Ensemble(
        **nodes,
        value=votes,
        init=np.zeros(votes.shape[1]),
        n_features=int(model.n_features_in_),
        feature_names=names_of(model),
        divisor=float(model.estimator_weights_.sum()),
        **_decision(model),
    )


def _votes(weight: Any, preferred: Any, n_classes: int) -> Any:
    if n_classes == 2:
        return np.where(preferred == 1, weight, -weight)[:, np.newaxis]
    others = -1 / (n_classes - 1) * weight
    return np.where(preferred[:, np.newaxis] == np.arange(n_classes), weight[:, np.newaxis], others[:, np.newaxis])


def _decision(model: Any) -> dict[str, Any]:
    if len(model.classes_) != 2:
        return {"classes": model.classes_}
    cut = np.nextafter(0.0, 1.0)
    return {"classes": model.classes_, "rule": "bands", "cuts": [cut], "scale": 2.0, "link": "adaboost"}
