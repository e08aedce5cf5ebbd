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
    np.array(["ash", "birch", "cedar", "date", "elm", "fir", "gum", "hazel", "ivy", "juniper", "kapok", "larch"]),
    np.array([-3, 0, 2, 7, 11, 12, 20, 30, 31, 40, 50, 60]),
    np.array([-2.0, 0.0, 1.0, 4.0, 9.0, 16.0, 20.0, 25.0, 30.0, 31.0, 32.0, 40.0]),
]
NUMERIC_KINDS = ("halves", "integers", "slivers", "uniform", "limited", "wide", "dense", "huge")
KINDS = (*NUMERIC_KINDS, "integer", "whole", "ordinal", "off_grid", "binary", "one_hot", "optional")


@dataclass(frozen=True)
class Case:
    """A fitted model, what its columns mean, and admissible rows to ask about."""

    model: Any
    features: Features
    queries: np.ndarray = field(repr=False)
    X_train: np.ndarray = field(repr=False)


def random_model(
    rng,
    *,
    n_features=None,
    n_classes=None,
    n_trees=None,
    depth=None,
    family=None,
    kinds=KINDS,
    n_queries=8,
    n_rows=40,
    nudge=False,
    **options,
):
    """A :class:`Case`; what is not given is drawn. ``kinds`` are the column kinds to draw from.

    ``nudge`` moves thresholds after the fit, see `nudge_thresholds`; ``options`` go to the model as they are.
    """
    kinds = [str(rng.choice(kinds)) for _ in range(n_features or rng.integers(1, 5))]
    blocks = [_column(rng, kind, f"f{k}", n_rows) for k, kind in enumerate(kinds)]
    features = _shuffled(rng, [entry for entry, _, _ in blocks])
    X = _laid_out(features, [train for _, train, _ in blocks])
    options = {"max_depth": depth or int(rng.integers(1, 5))} | options
    model = _fitted(rng, X, family, n_classes or int(rng.integers(2, 5)), n_trees, options)
    if nudge:
        nudge_thresholds(rng, model)
    pools = [pool for _, _, pool in blocks]
    return Case(model, features, _queries(rng, features, pools, split_points(model, features), n_queries), X)


def split_points(model, features):
    """Per model column the sorted thresholds of all trees."""
    column = np.concatenate([tree.feature for tree in trees_of(model)])
    threshold = np.concatenate([tree.threshold for tree in trees_of(model)])
    return [np.unique(threshold[column == k]) for k in range(features.n_columns)]


def trees_of(model):
    return [estimator.tree_ for estimator in getattr(model, "estimators_", [model])]


def nudge_thresholds(rng, model):
    """Moves thresholds by a step of float32 or float64, a few to infinity.

    Trees then disagree about slivers, and leaves occur that no number reaches.
    """
    for tree in trees_of(model):
        single = tree.threshold.astype(np.float32)
        away = np.where(rng.random(len(single)) < 0.5, np.inf, -np.inf)
        choices = [
            tree.threshold,
            single,
            np.nextafter(single, away.astype(np.float32)),
            np.nextafter(tree.threshold, away),
            np.where(rng.random(len(single)) < 0.05, away, tree.threshold),
        ]
        tree.threshold[:] = np.choose(rng.integers(len(choices), size=len(single)), choices)


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


def _column(rng, kind, name, n_rows):
    """An entry, training values of shape (n_rows, n_columns), and values worth asking about."""
    if kind in ("one_hot", "optional"):
        return _group(rng, name, n_rows, optional=kind == "optional")
    entry, values = {
        "halves": (Numeric(name), np.arange(4.0)),
        "integers": (Numeric(name), 2.0 * np.arange(-2, 3)),
        "slivers": (Numeric(name), np.append(beside([7.0]), 10.0)),
        "uniform": (Numeric(name), rng.normal(size=12)),
        "limited": (Numeric(name, low=0.1, high=2.3), np.arange(0.0, 4.0, 0.5)),
        "wide": (Numeric(name), np.arange(12.0)),
        "dense": (Numeric(name), rng.normal(size=n_rows)),
        "huge": (Numeric(name), np.array([-1e32, -1e28, 0.0, 1e-3, 1e20, 1e32])),
        "integer": (Integer(name, low=-1, high=3), np.arange(-3.0, 6.0)),
        "whole": (Integer(name), np.arange(-3.0, 6.0)),
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


def _fitted(rng, X, family, n_classes, n_trees, options):
    y = rng.permutation(np.arange(len(X)) % n_classes)
    if rng.random() < 0.5:
        # A pattern to learn makes balanced trees; pure noise makes ties.
        y = (X @ rng.normal(size=X.shape[1])).argsort().argsort() * n_classes // len(X)
    family = family or str(rng.choice(list(MODELS)))
    options = {"random_state": int(rng.integers(2**31))} | options
    if family in ("forest", "extra_trees"):
        options["n_estimators"] = n_trees or int(rng.integers(1, 11))
    return MODELS[family](**options).fit(X, LABELS[rng.integers(len(LABELS))][y])


def _queries(rng, features, pools, splits, n_queries):
    blocks = []
    for entry, positions, pool in zip(features, features.positions, pools, strict=True):
        if isinstance(entry, Numeric):
            split = splits[positions[0]]
            split = split[np.isfinite(split)]
            pool = np.concatenate([pool, split, beside(split), rng.normal(size=3) * 5])
        elif isinstance(entry, Integer):
            pool = np.arange(-4.0, 7.0)
        blocks.append(rng.choice(pool if pool.ndim == 2 else pool[:, np.newaxis], size=n_queries))
    return _laid_out(features, blocks)
