"""XGBoost's trees, exactly as its ``predict`` computes.

XGBoost casts inputs to float32, sends ``x < split`` left and adds float32 leaves to the
base score in float32, one tree after the other. Everything is read from the documents
XGBoost itself writes (JSON, or the same as UBJSON), so a file needs no library and a
live model goes the same way.
"""

import ctypes
import ctypes.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import ubjson
from cfmaps.readers.nodes import IntArray, Order, in_columns, shifted

Document = dict[str, Any]
Float32Array = npt.NDArray[np.float32]

# The probability exceeds 1/2 from the first float32 above 1.5 * 2**-24: below, 1 + exp(-margin) rounds to 2.
_ABOVE_HALF = float(np.nextafter(np.float32(1.5 * 2**-24), np.float32(1)))
_BINARY_CUTS = {
    "binary:logistic": _ABOVE_HALF,
    "binary:hinge": float(np.nextafter(np.float32(0), np.float32(1))),
    "binary:logitraw": float(np.nextafter(np.float32(0.5), np.float32(1))),
}
_SOFTMAX_RULES = {"multi:softprob": "softmax32", "multi:softmax": "argmax"}
# Objectives whose output is the margin itself.
_IDENTITY = {
    "reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror",
    "reg:quantileerror", "rank:pairwise", "rank:ndcg", "rank:map",
}  # fmt: skip
_LOGISTIC = {"binary:logistic", "reg:logistic"}


def read(model: Any) -> Ensemble:
    """The ensemble of a Booster, or of XGBClassifier, XGBRegressor, XGBRanker and their random forests."""
    if type(model).__name__ == "Booster":
        return read_document(document_of(model))
    if not hasattr(model, "get_booster"):
        raise UnsupportedModel(f"{type(model).__name__} of xgboost is not supported; expected a Booster or an XGBModel")
    _expect_readable(model)
    document = document_of(model.get_booster())
    missing = float("nan") if model.missing is None else float(model.missing)
    return read_document(document, as_estimator=True, missing=missing)


def document_of(booster: Any) -> Document:
    """What the live booster would write into a file."""
    return dict(ubjson.loads(bytes(booster.save_raw(raw_format="ubj"))))


def read_document(document: Document, *, as_estimator: bool = False, missing: float = math.nan) -> Ensemble:
    """The ensemble of a parsed model file.

    ``as_estimator`` uses the best iteration of early stopping, as the scikit-learn
    wrappers do; a file written by one says so itself, a Booster uses all trees.
    """
    learner = document["learner"]
    attributes = learner.get("attributes", {})
    as_estimator = as_estimator or "scikit_learn" in attributes
    stop = int(attributes["best_iteration"]) + 1 if as_estimator and "best_iteration" in attributes else None
    if not math.isnan(missing):
        raise UnsupportedModel(f"missing={missing} is not supported: only NaN can stand for a missing value")
    objective, n_groups = learner["objective"]["name"], _n_groups(learner)
    forest = _Forest.of(learner["gradient_booster"], n_groups, stop)
    init = _base_margin(learner, n_groups)
    group = forest.group[forest.order.tree]
    return Ensemble(
        feature=forest.feature,
        threshold=forest.threshold,
        left=forest.order.left,
        right=forest.order.right,
        roots=forest.order.roots,
        value=in_columns(forest.added(init[group] if as_estimator else 0), group, n_groups),
        init=init,
        n_features=int(learner["learner_model_param"]["num_feature"]),
        number=np.float32,
        sum_number=np.float32,
        missing_left=forest.missing_left,
        **_category_sets(learner, forest),
        feature_names=tuple(learner.get("feature_names", ())) or None,
        **_decision(objective, n_groups),
    )


def _expect_readable(model: Any) -> None:
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"model must be fitted, got a {type(model).__name__} that is not: call fit first")
    if callable(model.objective):
        raise UnsupportedModel("a custom objective is not supported: what it makes of a score is not known")
    if getattr(model, "n_classes_", None) == 2 and str(model.objective).startswith("multi:"):
        raise UnsupportedModel(f"{model.objective} with 2 classes is not supported: its predict gives no labels")


def _n_groups(learner: Document) -> int:
    parameters = learner["learner_model_param"]
    if int(parameters.get("num_target", 1)) > 1:
        raise UnsupportedModel(f"{parameters['num_target']} outputs are not supported: expected one")
    return max(int(parameters["num_class"]), 1)


def _decision(objective: str, n_groups: int) -> dict[str, Any]:
    """How scores become what predict returns."""
    if objective in _BINARY_CUTS:
        link = "logistic32" if objective == "binary:logistic" else ""
        return {"rule": "bands", "cuts": [_BINARY_CUTS[objective]], "classes": np.arange(2), "link": link}
    if objective in _SOFTMAX_RULES:
        return {"rule": _SOFTMAX_RULES[objective], "classes": np.arange(n_groups)}
    if objective in _IDENTITY and n_groups == 1:
        return {"rule": "value", "classes": None, "link": "identity"}
    raise UnsupportedModel(f"objective {objective} is not supported: what predict makes of a score is not checked yet")


def _base_margin(learner: Document, n_groups: int) -> npt.NDArray[np.float64]:
    """What the sum starts with: the base score before the link."""
    text = str(learner["learner_model_param"]["base_score"]).strip("[]")
    base = np.array([float(part) for part in text.split(",")]).astype(np.float32)
    if learner["objective"]["name"] in _LOGISTIC:
        base = np.array([-_logf(odds) for odds in (np.float32(1) / base - np.float32(1)).tolist()], dtype=np.float32)
    return np.broadcast_to(base, n_groups).astype(np.float64)


def _logf(number: float) -> float:
    """The C library's ``logf``, which XGBoost calls: numpy's and a rounded ``log`` differ in the last bit."""
    try:
        function = ctypes.CDLL(ctypes.util.find_library("m")).logf
    except (OSError, AttributeError):
        return math.log(number)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    return float(function(number))


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """The nodes of all trees in use, in an Ensemble's order."""

    model: Document
    trees: list[Document]
    order: Order
    group: IntArray
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    missing_left: npt.NDArray[np.bool_]
    value: Float32Array
    weight: Float32Array | None

    @classmethod
    def of(cls, booster: Document, n_groups: int, stop: int | None) -> "_Forest":
        model = _model_of(booster)
        trees, group = _used_trees(model, n_groups, stop)
        left, roots, _ = shifted([entry["left_children"] for entry in trees])
        right, _, _ = shifted([entry["right_children"] for entry in trees])
        order = Order.of(left, right, roots)
        split = _joined(trees, "split_conditions", np.float32)[order.nodes]
        leaf = order.left < 0
        # Where a node tests a category, its split condition means nothing, and is NaN in some versions.
        is_number = ~leaf & ~_joined(trees, "split_type", np.bool_)[order.nodes]
        weight = np.asarray(booster["weight_drop"]).astype(np.float32) if booster["name"] == "dart" else None
        return cls(
            model=model,
            trees=trees,
            order=order,
            group=group,
            feature=np.where(leaf, -1, _joined(trees, "split_indices", np.int32)[order.nodes]),
            threshold=np.where(is_number, last_below(split), 0.0),
            missing_left=_joined(trees, "default_left", np.bool_)[order.nodes],
            value=np.where(leaf, split, np.float32(0)),
            weight=None if weight is None else weight[order.tree],
        )

    def added(self, base: npt.ArrayLike) -> Float32Array:
        """What a leaf adds: its value, times the weight of its tree after dropouts.

        The estimators predict in place, which sets the ``base`` score into every tree of a
        dart model and takes it out again before weighting: that rounds.
        """
        if self.weight is None:
            return self.value
        start = np.asarray(base, dtype=np.float32)
        return np.where(self.order.left < 0, ((start + self.value) - start) * self.weight, np.float32(0))

    def listed_categories(self) -> tuple[IntArray, list[IntArray]]:
        """The nodes that test a category, and the codes each sends right."""
        place = np.full(sum(len(tree["left_children"]) for tree in self.trees) + 1, -1, dtype=np.intp)
        place[self.order.nodes] = np.arange(len(self.order.nodes))
        nodes, codes, start = [], [], 0
        for tree in self.trees:
            sizes = np.asarray(tree.get("categories_sizes", ()), dtype=np.intp)
            members = np.asarray(tree.get("categories", ()), dtype=np.intp)
            nodes.append(start + np.asarray(tree.get("categories_nodes", ()), dtype=np.intp))
            codes += np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []
            start += len(tree["left_children"])
        used = place[np.concatenate(nodes)]
        return used[used >= 0], [listed for node, listed in zip(used, codes, strict=True) if node >= 0]


def _category_sets(learner: Document, forest: _Forest) -> dict[str, Any]:
    """The sets of the nodes, and the values of the columns they test."""
    nodes, listed = forest.listed_categories()
    categories = _stored_categories(forest.model, learner.get("feature_types") or ())
    columns = forest.feature[nodes]
    for column in set(columns.tolist()) - set(categories):
        # Codes that no set names all go the same way; which of them the training data held is not known.
        largest = max(int(codes.max()) for codes, tested in zip(listed, columns, strict=True) if tested == column)
        categories[column] = (*range(largest + 1), None)
    if not categories:
        return {}
    sets = np.ones((len(listed), max(map(len, categories.values()))), dtype=bool)
    for row, codes in enumerate(listed):
        sets[row, codes] = False
    category_set = np.full(len(forest.feature), -1)
    category_set[nodes] = np.arange(len(nodes))
    return {"category_set": category_set, "category_sets": sets, "categories": categories}


def _stored_categories(model: Document, types: Sequence[str]) -> dict[int, tuple[Any, ...]]:
    """The values of the categorical columns of the frame that the model was trained on, since XGBoost 3.1."""
    stored = enumerate(model.get("cats", {}).get("enc", ()))
    return {column: _values(entry) for column, entry in stored if types[column] == "c" and len(entry["values"])}


def _values(entry: Document) -> tuple[Any, ...]:
    """Numbers as they are; texts are one string of bytes, and where each begins."""
    if "offsets" not in entry:
        return tuple(np.asarray(entry["values"]).tolist())
    text, offsets = np.asarray(entry["values"]).astype(np.uint8).tobytes(), np.asarray(entry["offsets"]).tolist()
    if not text.isascii():
        # XGBoost counts letters where it cuts bytes (seen in 3.2), so other texts are stored damaged: codes remain.
        return tuple(range(len(offsets) - 1))
    return tuple(text[start:end].decode() for start, end in pairwise(offsets))


def last_below(split: Float32Array) -> npt.NDArray[np.float64]:
    """The threshold t that makes ``x <= t`` the test ``x < split``."""
    with np.errstate(all="ignore"):
        below: npt.NDArray[np.float64] = np.nextafter(split, np.float32(-np.inf)).astype(np.float64)
    return below


def _model_of(booster: Document) -> Document:
    if booster["name"] not in ("gbtree", "dart"):
        raise UnsupportedModel(f"booster {booster['name']} is not supported: it is no sum of trees")
    return dict((booster["gbtree"] if booster["name"] == "dart" else booster)["model"])


def _used_trees(model: Document, n_groups: int, stop: int | None) -> tuple[list[Document], IntArray]:
    """The trees that predict adds, and the score each adds to."""
    n_parallel = max(int(model["gbtree_model_param"].get("num_parallel_tree", 1)), 1)
    trees = model["trees"][: None if stop is None else stop * n_parallel * n_groups]
    if not trees:
        raise UnsupportedModel("a model without trees is not supported")
    if any(int(tree["tree_param"].get("size_leaf_vector", 0)) > 1 for tree in trees):
        raise UnsupportedModel("leaves that hold vectors (multi_output_tree) are not supported")
    return trees, np.asarray(model["tree_info"], dtype=np.intp)[: len(trees)]


def _joined(trees: list[Document], name: str, dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.asarray(tree[name]).astype(dtype) for tree in trees])
