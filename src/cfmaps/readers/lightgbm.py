"""LightGBM's trees, exactly as its ``predict`` computes.

LightGBM compares in float64, reads what lies within 1e-35 of zero as zero, and adds
float64 leaves from zero, one tree after the other. Everything is read from the text
LightGBM itself writes, so a file needs no library and a live model goes the same way.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers.bisection import BoolArray, FloatArray, last_true
from cfmaps.readers.nodes import IntArray, Order, in_columns

_CATEGORICAL, _DEFAULT_LEFT, _MISSING = 1, 2, 12
_MISSING_NONE, _MISSING_ZERO = 0, 4
# Inputs this close to zero do not reach the trees; the library's constant is a float32.
_ZERO_BAND = float(np.float32(1e-35))
# Objectives whose output is the score itself.
_IDENTITY = {
    "regression", "regression_l1", "l2", "l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg",
}  # fmt: skip

Section = dict[str, str]


def read(model: Any) -> Ensemble:
    """The ensemble of a Booster, or of LGBMClassifier, LGBMRegressor and LGBMRanker."""
    if type(model).__name__ == "Booster":
        return read_text(model.model_to_string())
    if not hasattr(type(model), "booster_"):
        raise UnsupportedModel(f"{type(model).__name__} of lightgbm is not supported; expected a Booster or LGBMModel")
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"model must be fitted, got a {type(model).__name__} that is not: call fit first")
    if callable(model.objective):
        raise UnsupportedModel("a custom objective is not supported: its predict gives scores, no labels")
    return read_text(model.booster_.model_to_string(), classes=getattr(model, "classes_", None))


def read_text(text: str, *, classes: npt.NDArray[Any] | None = None) -> Ensemble:
    """The ensemble of a model file's text; without ``classes`` the labels are the indices of the classes."""
    head, trees = _sections(text)
    n_groups = int(head["num_tree_per_iteration"])
    forest = _Forest.of(trees)
    group = np.arange(len(trees)) % n_groups
    names = tuple(head["feature_names"].split())
    are_given = names != tuple(f"Column_{column}" for column in range(len(names)))
    return Ensemble(
        feature=forest.feature,
        threshold=forest.threshold,
        left=forest.order.left,
        right=forest.order.right,
        roots=forest.order.roots,
        value=in_columns(forest.value, group[forest.order.tree], n_groups),
        init=np.zeros(n_groups),
        n_features=int(head["max_feature_idx"]) + 1,
        divisor=len(trees) / n_groups if "average_output" in head else 1.0,
        number=np.float64,
        sum_number=np.float64,
        zero_band=_ZERO_BAND,
        missing_left=forest.missing_left,
        **_categories(head, forest),
        feature_names=names if are_given else None,
        **_decision(head, n_groups, classes),
    )


def _sections(text: str) -> tuple[Section, list[Section]]:
    """The lines ``name=value`` of the head and of every tree; what follows the trees under names of its own."""
    body, _, rest = text.partition("end of trees")
    head, *trees = body.split("\nTree=")
    if not head.startswith("tree") or not rest:
        raise UnsupportedModel("the text is no complete LightGBM model: expected 'tree' first and 'end of trees' last")
    if not trees:
        raise UnsupportedModel("a model without trees is not supported")
    section = _lines(head)
    for line in rest.splitlines():
        if line.startswith(("[categorical_feature:", "pandas_categorical:")):
            name, _, value = line.strip("[").partition(":")
            section[name] = value
    return section, [_lines(tree) for tree in trees]


def _lines(text: str) -> Section:
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}


def _decision(head: Section, n_groups: int, classes: npt.NDArray[Any] | None) -> dict[str, Any]:
    """How scores become what predict returns."""
    objective, *options = head.get("objective", "custom").split()
    settings = dict(option.partition(":")[::2] for option in options)
    if objective in ("binary", "cross_entropy"):
        steepness = float(settings.get("sigmoid", 1.0))
        labels = np.arange(2) if classes is None else _two(classes)
        link = "logistic64" if steepness == 1.0 else ""
        return {"rule": "bands", "cuts": [above_half(steepness)], "classes": labels, "link": link}
    if objective == "multiclass":
        return {"rule": "softmax64", "classes": np.arange(n_groups) if classes is None else classes}
    if objective in _IDENTITY and "sqrt" not in settings and n_groups == 1 and classes is None:
        return {"rule": "value", "classes": None, "link": "identity"}
    name = head.get("objective", "custom")
    raise UnsupportedModel(f"objective {name} is not supported: what predict makes of a score is not checked yet")


def _two(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if len(classes) != 2:
        raise UnsupportedModel(f"a binary model with {len(classes)} class is not supported: expected two")
    return classes


def _categories(head: Section, forest: "_Forest") -> dict[str, Any]:
    """The sets of the nodes, and which codes of a categorical column the training data held."""
    infos = head["feature_infos"].split()
    columns = {column: _codes(info) for column, info in enumerate(infos) if re.fullmatch(r"-?\d+(:-?\d+)*", info)}
    if not columns and not len(forest.category_sets):
        return {}
    stored = json.loads(head.get("pandas_categorical", "null")) or []
    if len(stored) == len(columns):
        columns = {column: tuple(values) for column, values in zip(columns, stored, strict=True)}
    n_codes = max(map(len, columns.values()))
    sets = np.zeros((len(forest.category_sets), max(n_codes, forest.category_sets.shape[1])), dtype=bool)
    sets[:, : forest.category_sets.shape[1]] = forest.category_sets
    return {"category_set": forest.category_set, "category_sets": sets, "categories": columns}


def _codes(info: str) -> tuple[int | None, ...]:
    """Codes up to the largest one seen, None for those never seen.

    >>> _codes("-1:3:1")
    (None, 1, None, 3)
    """
    seen = {int(code) for code in info.split(":")}
    return tuple(code if code in seen else None for code in range(max(seen) + 1))


def above_half(steepness: float) -> float:
    """The first score whose probability ``1 / (1 + exp(-steepness * score))`` exceeds 1/2.

    >>> above_half(1.0)
    1.665334536937735e-16
    """

    def is_half(score: FloatArray) -> BoolArray:
        return np.array([1.0 / (1.0 + math.exp(-steepness * x)) <= 0.5 for x in score.tolist()])

    last = last_true(is_half, np.zeros(1), np.array([1.0 / steepness]))
    return float(np.nextafter(last, np.inf)[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """The nodes of all trees in an Ensemble's order.

    In the file the inner nodes and the leaves of a tree are counted apart; here a tree
    has its inner nodes first.
    """

    order: Order
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    value: FloatArray
    missing_left: npt.NDArray[np.bool_]
    category_set: npt.NDArray[np.int32]
    category_sets: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trees: list[Section]) -> "_Forest":
        if any(int(tree.get("is_linear", 0)) for tree in trees):
            raise UnsupportedModel("linear leaves (linear_tree) are not supported: the score is not constant on boxes")
        n_leaves = np.array([int(tree["num_leaves"]) for tree in trees])
        starts = np.cumsum(2 * n_leaves - 1) - (2 * n_leaves - 1)
        inner, leaves = _spread(starts, n_leaves - 1), _spread(starts + n_leaves - 1, n_leaves)

        def nodes(values: npt.NDArray[Any], places: IntArray, otherwise: Any) -> npt.NDArray[Any]:
            array = np.full(len(inner) + len(leaves), otherwise, dtype=values.dtype)
            array[places] = values
            return array

        first, first_leaf = np.repeat([starts, starts + n_leaves - 1], n_leaves - 1, axis=1)
        sides = [_joined(trees, side, int, len(inner)) for side in ("left_child", "right_child")]
        children = [np.where(side < 0, first_leaf + ~side, first + side) for side in sides]
        order = Order.of(nodes(children[0], inner, -1), nodes(children[1], inner, -1), starts)
        tests = _Tests.of(trees, n_leaves - 1)
        return cls(
            order=order,
            feature=nodes(tests.feature, inner, -1)[order.nodes],
            threshold=nodes(tests.threshold, inner, 0.0)[order.nodes],
            value=nodes(_joined(trees, "leaf_value", float, len(leaves)), leaves, 0.0)[order.nodes],
            missing_left=nodes(tests.missing_left, inner, False)[order.nodes],
            category_set=nodes(tests.category_set, inner, -1)[order.nodes],
            category_sets=tests.category_sets,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Tests:
    """What the inner nodes of all trees ask."""

    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    missing_left: npt.NDArray[np.bool_]
    category_set: npt.NDArray[np.int32]
    category_sets: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trees: list[Section], n_inner: IntArray) -> "_Tests":
        n = int(n_inner.sum())
        kind = _joined(trees, "decision_type", int, n)
        threshold = _joined(trees, "threshold", float, n)
        categorical = (kind & _CATEGORICAL) > 0
        missing = kind & _MISSING
        if (missing[~categorical] == _MISSING_ZERO).any():
            raise UnsupportedModel("zero_as_missing is not supported: zero has no cell of its own")
        # A column without missing values in training reads NaN as 0; a category that is missing goes right.
        missing_left = np.where(missing == _MISSING_NONE, threshold >= 0, (kind & _DEFAULT_LEFT) > 0) & ~categorical
        n_sets = np.array([int(tree.get("num_cat", 0)) for tree in trees])
        first_set = np.repeat(np.cumsum(n_sets) - n_sets, n_inner)
        return cls(
            feature=_joined(trees, "split_feature", int, n).astype(np.int32),
            threshold=np.where(categorical, 0.0, threshold),
            missing_left=missing_left,
            category_set=np.where(categorical, first_set + np.where(categorical, threshold, 0).astype(int), -1),
            category_sets=_category_sets([tree for tree, n in zip(trees, n_sets, strict=True) if n]),
        )


def _category_sets(trees: list[Section]) -> npt.NDArray[np.bool_]:
    """Per set the codes that go left, from words of 32 bits each."""
    words = []
    for tree in trees:
        ends = np.array(tree["cat_boundaries"].split(), dtype=int)
        words += np.split(np.array(tree["cat_threshold"].split(), dtype="<u4"), ends[1:-1])
    table = np.zeros((len(words), max(map(len, words), default=0)), dtype="<u4")
    for row, own in zip(table, words, strict=True):
        row[: len(own)] = own
    return np.unpackbits(table.view(np.uint8), axis=1, bitorder="little").astype(bool)


def _spread(starts: IntArray, counts: IntArray) -> IntArray:
    """The numbers ``start, ..., start + count - 1`` of each pair, in a row.

    >>> _spread(np.array([0, 7]), np.array([2, 3])).tolist()
    [0, 1, 7, 8, 9]
    """
    ends = np.cumsum(counts)
    spread: IntArray = np.repeat(starts - (ends - counts), counts) + np.arange(int(counts.sum()))
    return spread


def _joined(trees: list[Section], name: str, number: type, n_expected: int) -> npt.NDArray[Any]:
    """The numbers that the trees list under one name."""
    joined: npt.NDArray[Any] = np.array([number(text) for tree in trees for text in tree[name].split()], dtype=number)
    if len(joined) != n_expected:
        raise UnsupportedModel(f"the model lists {len(joined)} numbers as {name}, expected {n_expected}")
    return joined
