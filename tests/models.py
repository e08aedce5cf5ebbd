"""Small random models with nasty inputs: thresholds hit exactly, slivers, ties, groups and limits."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cfmaps.features import Binary, Features, Integer, Numeric, OneHot, Ordinal

MODELS = {
    "tree": DecisionTreeClassifier,
    "extra_tree": ExtraTreeClassifier,
    "forest": RandomForestClassifier,
    "extra_trees": ExtraTreesClassifier,
}
LABELS = [
    np.array(["ash", "birch", "cedar", "date", "elm"]),
    np.array([-3, 0, 2, 7, 11]),
    np.array([-2.0, 0.0, 1.0, 4.0, 9.0]),
]
NUMERIC_KINDS = ("halves", "integers", "slivers", "uniform", "limited")
KINDS = (*NUMERIC_KINDS, "integer", "ordinal", "off_grid", "binary", "one_hot", "optional")


@dataclass(frozen=True)
class Case:
    """A fitted model, what its columns mean, and admissible rows to ask about."""

    model: Any
    features: Features
    queries: np.ndarray = field(repr=False)
    X_train: np.ndarray = field(repr=False)


def random_model(
    rng, *, n_features=None, n_classes=None, n_trees=None, depth=None, family=None, kinds=KINDS, n_queries=8
):
    """A :class:`Case`; what is not given is drawn. ``kinds`` are the column kinds to draw from."""
    kinds = [str(rng.choice(kinds)) for _ in range(n_features or rng.integers(1, 5))]
    blocks = [_column(rng, kind, f"f{k}") for k, kind in enumerate(kinds)]
    features = _shuffled(rng, [entry for entry, _, _ in blocks])
    X = _laid_out(features, [train for _, train, _ in blocks])
    model = _fitted(rng, X, family, n_classes or int(rng.integers(2, 5)), n_trees, depth or int(rng.integers(1, 5)))
    pools = [pool for _, _, pool in blocks]
    return Case(model, features, _queries(rng, features, pools, split_points(model, features), n_queries), X)


def split_points(model, features):
    """Per model column the sorted thresholds of all trees."""
    trees = [estimator.tree_ for estimator in getattr(model, "estimators_", [model])]
    column = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    return [np.unique(threshold[column == k]) for k in range(features.n_columns)]


def beside(values):
    """The float32 numbers at and on both sides of each value, as float64."""
    single = np.asarray(values, dtype=np.float64).astype(np.float32)
    sides = [np.nextafter(single, np.float32(-np.inf)), single, np.nextafter(single, np.float32(np.inf))]
    return np.unique(np.concatenate(sides)).astype(np.float64)


@st.composite
def cases(draw, *, max_features=4, max_classes=4, max_trees=10, max_depth=4, kinds=KINDS, families=tuple(MODELS)):
    """Cases for hypothesis; sizes shrink towards one stump over one column."""
    return random_model(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        n_features=draw(st.integers(1, max_features)),
        n_classes=draw(st.integers(2, max_classes)),
        n_trees=draw(st.integers(1, max_trees)),
        depth=draw(st.integers(1, max_depth)),
        family=draw(st.sampled_from(families)),
        kinds=kinds,
    )


def _column(rng, kind, name, n_rows=40):
    """An entry, training values of shape (n_rows, n_columns), and values worth asking about."""
    if kind in ("one_hot", "optional"):
        return _group(rng, name, n_rows, optional=kind == "optional")
    entry, values = {
        "halves": (Numeric(name), np.arange(4.0)),
        "integers": (Numeric(name), 2.0 * np.arange(-2, 3)),
        "slivers": (Numeric(name), np.append(beside([7.0]), 10.0)),
        "uniform": (Numeric(name), rng.normal(size=12)),
        "limited": (Numeric(name, low=0.1, high=2.3), np.arange(0.0, 4.0, 0.5)),
        "integer": (Integer(name, low=-1, high=3), np.arange(-3.0, 6.0)),
        "ordinal": (Ordinal(name, values=[-4, 1, 2, 9]), np.array([-4.0, 1.0, 2.0, 9.0])),
        "off_grid": (Ordinal(name, values=[0.1, 0.2, 0.7]), np.array([0.1, 0.2, 0.7])),
        "binary": (Binary(name), np.arange(2.0)),
    }[kind]
    return entry, rng.choice(values, size=(n_rows, 1)), values


def _group(rng, name, n_rows, *, optional):
    size = int(rng.integers(2, 4))
    gap = None if rng.random() < 0.7 else 1.5
    entry = OneHot(name, columns=[f"{name}={i}" for i in range(size)], optional=optional, gap=gap)
    rows = np.eye(size + 1)[:, :size] if optional else np.eye(size)
    return entry, rng.choice(rows, size=n_rows), rows


def _shuffled(rng, entries):
    """Features whose groups may lie apart in the model's columns."""
    columns = [column for entry in entries for column in entry.columns]
    return Features(entries, columns=[str(column) for column in rng.permutation(columns)])


def _laid_out(features, blocks):
    X = np.empty((len(blocks[0]), features.n_columns))
    for positions, block in zip(features.positions, blocks, strict=True):
        X[:, positions] = block
    return X


def _fitted(rng, X, family, n_classes, n_trees, depth):
    y = rng.permutation(np.arange(len(X)) % n_classes)
    if rng.random() < 0.5:
        # A pattern to learn makes balanced trees; pure noise makes ties.
        y = (X @ rng.normal(size=X.shape[1])).argsort().argsort() * n_classes // len(X)
    family = family or str(rng.choice(list(MODELS)))
    options = {"max_depth": depth, "random_state": int(rng.integers(2**31))}
    if family in ("forest", "extra_trees"):
        options["n_estimators"] = n_trees or int(rng.integers(1, 11))
    return MODELS[family](**options).fit(X, LABELS[rng.integers(len(LABELS))][y])


def _queries(rng, features, pools, splits, n_queries):
    blocks = []
    for entry, positions, pool in zip(features, features.positions, pools, strict=True):
        if isinstance(entry, Numeric):
            pool = np.concatenate([pool, splits[positions[0]], beside(splits[positions[0]]), rng.normal(size=3) * 5])
        elif isinstance(entry, Integer):
            pool = np.arange(-4.0, 7.0)
        blocks.append(rng.choice(pool if pool.ndim == 2 else pool[:, np.newaxis], size=n_queries))
    return _laid_out(features, blocks)
