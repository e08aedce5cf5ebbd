"""scikit-learn's GradientBoosting, exactly as its ``predict`` computes.

Raw scores start at the prior and add ``learning_rate * leaf`` in float64, stage by
stage; two classes are told apart by ``raw >= 0``.
"""

from typing import Any

import numpy as np

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.sklearn_trees import families, fitted, flat, names_of


def read(model: Any) -> Ensemble:
    """The ensemble of a GradientBoostingClassifier or GradientBoostingRegressor."""
    stages = fitted(model, "estimators_")
    nodes, value, counts = flat([tree.tree_ for stage in stages for tree in stage])
    del nodes["missing_left"]  # its predict refuses NaN
    n_scores = stages.shape[1]
    score = np.repeat(np.tile(np.arange(n_scores), len(stages)), counts)
    added = np.zeros((len(value), n_scores))
    added[np.arange(len(value)), score] = model.learning_rate * value[:, 0]
    return Ensemble(
        **nodes,
        value=added,
        init=_prior(model),
        n_features=int(model.n_features_in_),
        feature_names=names_of(model),
        **_decision(model, n_scores),
    )


def _prior(model: Any) -> Any:
    """What raw scores start at; it must not depend on the row."""
    init = model.init_
    if not isinstance(init, str) and not families(init) & {"DummyClassifier", "DummyRegressor"}:
        raise UnsupportedModel(
            f"{type(model).__name__} that starts at a {type(init).__name__} is not supported: "
            "it adds what is no sum of trees; leave init as it is"
        )
    return model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]


def _decision(model: Any, n_scores: int) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return {"classes": None, "rule": "value", "link": "identity"}
    if n_scores > 1:
        return {"classes": classes}
    return {"classes": classes, "rule": "bands", "cuts": [0.0], "link": _LINKS.get(model.loss, "")}


_LINKS = {"log_loss": "expit", "exponential": "expit_twice"}
