"""CatBoost's trees, exactly as its ``predict`` computes.

CatBoost casts inputs to float32, sends ``x > border`` right, adds float64 leaves tree
after tree, then scales and shifts the sum. Everything is read from the JSON CatBoost
itself writes, so a file needs no library and a live model goes the same way.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.nodes import IntArray, Order, shifted

Document = dict[str, Any]
FloatArray = npt.NDArray[np.float64]

_BINARY = {"Logloss", "CrossEntropy"}
_MULTICLASS = {"MultiClass", "MultiClassOneVsAll"}
_IDENTITY = {
    "RMSE", "MAE", "Quantile", "Expectile", "MAPE", "Huber", "LogCosh", "Lq",
}  # fmt: skip


def read(model: Any) -> Ensemble:
    """The ensemble of a CatBoost, CatBoostClassifier or CatBoostRegressor."""
    if not hasattr(model, "is_fitted") or not hasattr(model, "save_model"):
        raise UnsupportedModel(f"{type(model).__name__} of catboost is not supported; expected a CatBoost model")
    if not model.is_fitted():
        raise ValueError(f"model must be fitted, got a {type(model).__name__} that is not: call fit first")
    return read_document(document_of(model))


def document_of(model: Any) -> Document:
    """What the live model writes into a file; it can write nowhere else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        return dict(json.loads(path.read_text()))


def read_document(document: Document) -> Ensemble:
    """The ensemble of a parsed model file."""
    columns = _Columns.of(document["features_info"])
    scale, bias = document["scale_and_bias"]
    grow = _oblivious if "oblivious_trees" in document else _free
    trees = [grow(tree, columns, len(bias)) for tree in document.get("oblivious_trees") or document.get("trees") or ()]
    if not trees:
        raise UnsupportedModel("a model without trees is not supported")
    left, roots, _ = shifted([tree.left for tree in trees])
    order = Order.of(left, shifted([tree.right for tree in trees])[0], roots)
    test = np.concatenate([tree.test for tree in trees])[order.nodes]
    return Ensemble(
        feature=np.where(test < 0, -1, columns.feature[test]),
        threshold=np.where(test < 0, 0.0, columns.border[test]),
        left=order.left,
        right=order.right,
        roots=order.roots,
        value=np.concatenate([tree.value for tree in trees])[order.nodes],
        init=np.zeros(len(bias)),
        n_features=columns.n,
        scale=float(scale),
        bias=np.array(bias, dtype=np.float64),
        number=np.float32,
        sum_number=np.float64,
        missing_left=columns.missing_left[test],
        feature_names=columns.names,
        **_decision(document["model_info"], len(bias)),
    )


def _decision(info: Document, n_groups: int) -> dict[str, Any]:
    """How scores become what predict returns."""
    loss = info["params"]["loss_function"]["type"]
    if "binclass_probability_threshold" in info:
        raise UnsupportedModel("a probability threshold of its own (set_probability_threshold) is not supported")
    if loss in _BINARY and n_groups == 1:
        return {"rule": "bands", "cuts": [np.nextafter(0.0, 1.0)], "classes": _labels(info, 2)}
    if loss in _MULTICLASS:
        return {"rule": "argmax", "classes": _labels(info, n_groups)}
    if loss in _IDENTITY and n_groups == 1:
        return {"rule": "value", "classes": None, "link": "identity"}
    raise UnsupportedModel(f"loss function {loss} is not supported: what predict makes of a score is not checked yet")


def _labels(info: Document, n: int) -> npt.NDArray[Any]:
    """The labels as predict returns them; JSON does not tell 1.0 from 1."""
    stored = info.get("class_params") or {}
    labels = np.array(stored.get("class_names") or range(n))
    return labels.astype(np.float64) if stored.get("class_label_type") == "Float" else labels


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Every test that the model may ask, by (kind and column, value): the column, the border, where NaN goes."""

    n: int
    names: tuple[str, ...] | None
    number: dict[tuple[int, float], int]
    feature: IntArray
    border: FloatArray
    missing_left: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, info: Document) -> "_Columns":
        for kind in ("text_features", "embedding_features"):
            if info.get(kind):
                raise UnsupportedModel(f"{kind.replace('_', ' ')} are not supported")
        floats = info.get("float_features") or []
        everything = floats + (info.get("categorical_features") or [])
        names = {entry["flat_feature_index"]: str(entry.get("feature_id") or "") for entry in everything}
        tests = [(entry, border) for entry in floats for border in entry["borders"] or ()]
        # A leaf asks the last test, whatever it is.
        tests = tests or [(everything[0] | {"feature_index": -1, "nan_value_treatment": "AsIs"}, 0.0)]
        return cls(
            n=max(names) + 1,
            names=tuple(names[column] for column in sorted(names)) if all(names.values()) else None,
            number={(entry["feature_index"], border): i for i, (entry, border) in enumerate(tests)},
            feature=np.array([entry["flat_feature_index"] for entry, _ in tests], dtype=np.intp),
            border=np.array([border for _, border in tests], dtype=np.float64),
            missing_left=np.array([entry["nan_value_treatment"] != "AsTrue" for entry, _ in tests], dtype=bool),
        )

    def of_split(self, split: Document) -> int:
        """The number of the test that a split asks."""
        if split["split_type"] == "FloatFeature":
            return self.number[split["float_feature_index"], split["border"]]
        if split["split_type"] == "OnlineCtr":
            raise UnsupportedModel(
                "splits on category counters (CTR) are not supported: they are statistics of the training data; "
                "train with one_hot_max_size at least the number of categories"
            )
        raise UnsupportedModel(f"splits of type {split['split_type']} are not supported")


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """The nodes of one tree; a leaf tests -1."""

    test: IntArray
    left: IntArray
    right: IntArray
    value: FloatArray


def _oblivious(tree: Document, columns: _Columns, n_groups: int) -> _Tree:
    """A tree whose levels ask one test each: its leaves are numbered by the answers, the first test last."""
    tests = [columns.of_split(split) for split in tree.get("splits") or ()]
    n_inner = 2 ** len(tests) - 1
    place = np.arange(2 * n_inner + 1)
    leaf = place >= n_inner
    value = np.zeros((len(place), n_groups))
    value[leaf] = np.reshape(tree["leaf_values"], (-1, n_groups))
    return _Tree(
        test=np.concatenate([np.repeat(tests[::-1], 2 ** np.arange(len(tests))), np.full(n_inner + 1, -1)]).astype(
            np.intp
        ),
        left=np.where(leaf, -1, 2 * place + 1),
        right=np.where(leaf, -1, 2 * place + 2),
        value=value,
    )


def _free(tree: Document, columns: _Columns, n_groups: int) -> _Tree:
    """A tree of nodes inside nodes."""
    nodes = [tree]
    children = []
    for node in nodes:
        sides = [node[side] for side in ("left", "right") if "split" in node]
        children.append([len(nodes), len(nodes) + 1] if sides else [-1, -1])
        nodes += sides
    left, right = np.array(children, dtype=np.intp).T
    return _Tree(
        test=np.array([columns.of_split(node["split"]) if "split" in node else -1 for node in nodes], dtype=np.intp),
        left=left,
        right=right,
        value=np.array([np.broadcast_to(node.get("value", 0.0), n_groups) for node in nodes], dtype=np.float64),
    )
