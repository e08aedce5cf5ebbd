"""The import check: what was read predicts as the live model does, on, below and above its cuts."""

import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.errors import UnsupportedModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Predict = Callable[[FloatArray], npt.NDArray[Any]]

_COPIED = {"BaseForest", "BaseDecisionTree"}
_MOST_PROBES = 20_000
_MOST_VISITS = 1_000_000  # of trees by probes
_TREES_AT_ONCE = 50
_HUGE = 1e12
_SPECIAL = (0.0, -0.0, 1e-36, -1e-36, 1e30, -1e30)
# What a model was found to compute, as long as the model lives: a second map of it need not ask again.
_VERIFIED: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()


def is_copy(model: Any) -> bool:
    """Whether there is nothing to check: an ensemble, a file, or trees that are copied as they are."""
    own = {parent.__name__ for parent in type(model).__mro__}
    return bool(own & _COPIED) or isinstance(model, Ensemble | str | os.PathLike)


def verify(model: Any, ensemble: Ensemble, predict: Predict, scores: Predict | None = None) -> None:
    """Compare the ensemble with the live model, once for each state of a model.

    Every probe reaches a node and holds the last number that goes left there, the one
    below, the first that goes right, a missing value, or an extreme one; of categories
    one of either side. Of large models some nodes are probed: 20,000 rows, or
    fewer so that trees times rows stay below a million. Labels
    must be equal, and scores, where the model shows them, to a few units in the last place.

    Raises
    ------
    UnsupportedModel
        Naming the tree, the node and the probe on which both disagree.
    """
    state = _state(ensemble)
    try:
        if _VERIFIED.get(model) == state:
            return
    except TypeError:  # not hashable: asked every time
        pass
    rows, nodes = probes(ensemble)
    try:
        compare(ensemble, predict, rows, nodes, scores=scores)
    except UnsupportedModel:
        raise
    except ValueError:  # steps before the trees may overflow: no such row will be asked about
        near = ~(np.abs(rows) > _HUGE).any(axis=1)
        compare(ensemble, predict, rows[near], nodes[near], scores=scores)
    try:
        _VERIFIED[model] = state
    except TypeError:
        return


def compare(
    ensemble: Ensemble, predict: Predict, rows: FloatArray, nodes: IntArray, *, scores: Predict | None = None
) -> None:
    """Refuse the model unless both say the same of every row; ``nodes`` are what rows were made for."""
    if not len(rows):
        return
    own_scores = ensemble.scores(rows)
    if ensemble.rule != "value":
        labels = ensemble.classes[ensemble.labels(rows)]
        native = np.asarray(predict(rows))
        same: npt.NDArray[np.bool_] = np.asarray(labels == native, dtype=bool)
        _expect(same, ensemble, rows, nodes, "predict", native, labels)
    elif ensemble.link in ("", "identity"):
        scores = scores or predict
    if scores is not None:
        native = np.asarray(scores(rows)).reshape(len(rows), -1)
        agree = np.asarray(_close(own_scores, native, ensemble).all(axis=1))
        _expect(agree, ensemble, rows, nodes, "the score", native, own_scores)


def _expect(
    agree: npt.NDArray[np.bool_],
    ensemble: Ensemble,
    rows: FloatArray,
    nodes: IntArray,
    what: str,
    native: npt.NDArray[Any],
    own: npt.NDArray[Any],
) -> None:
    if agree.all():
        return
    place = int(agree.argmin())
    node = int(nodes[place])
    tree = int(np.searchsorted(ensemble.roots, node, side="right")) - 1
    raise UnsupportedModel(
        f"the model does not predict as its trees say: at tree {tree}, node {node} "
        f"(column {ensemble.feature[node]}, threshold {float(ensemble.threshold[node])!r}) {what} is "
        f"{native[place].tolist()!r}, by the trees {own[place].tolist()!r}, for {rows[place].tolist()}"
    )


def probes(ensemble: Ensemble) -> tuple[FloatArray, IntArray]:
    """Rows that reach nodes and stand on and beside their cuts, and the node each was made for."""
    inner = _chosen(ensemble)
    reaching = _reaching_rows(ensemble, inner)
    rows, nodes = [], []
    for values in _values_at(ensemble, inner):
        probe = reaching.copy()
        given = ~np.isnan(values) if not ensemble.takes_missing else np.ones(len(inner), dtype=bool)
        probe[np.arange(len(inner)), ensemble.feature[inner]] = values
        rows.append(probe[given])
        nodes.append(inner[given])
    if not len(inner):
        return np.empty((0, ensemble.n_features)), np.empty(0, dtype=np.intp)
    return np.concatenate(rows), np.concatenate(nodes)


def _chosen(ensemble: Ensemble) -> IntArray:
    """Inner nodes to probe: all, or evenly among them."""
    inner = np.flatnonzero(ensemble.feature >= 0)
    most = min(_MOST_PROBES, _MOST_VISITS // ensemble.n_trees) // (4 + len(_SPECIAL))
    return inner if len(inner) <= most else inner[np.linspace(0, len(inner) - 1, max(most, 1)).astype(np.intp)]


def _values_at(ensemble: Ensemble, inner: IntArray) -> list[FloatArray]:
    """Values for the column that each node tests, one array per kind of probe; NaN where there is none."""
    threshold = ensemble.threshold[inner]
    left, right = closed_sides(threshold, ensemble.number)
    with np.errstate(all="ignore"):
        below = np.nextafter(left.astype(ensemble.number), ensemble.number(-np.inf)).astype(np.float64)
    kinds = [left, below, right, *(np.full(len(inner), value) for value in _SPECIAL)]
    # Beside an infinite threshold are numbers so large that a scaler before the model overflows.
    kinds = [np.where(np.isfinite(values) & np.isfinite(threshold), values, 0.0) for values in kinds]
    if ensemble.category_set is not None:
        tests_set = ensemble.category_set[inner] >= 0
        codes = _codes_at(ensemble, inner)
        kinds = [np.where(tests_set, codes[k % 2], values) for k, values in enumerate(kinds)]
    return [*kinds, np.full(len(inner), np.nan)] if ensemble.takes_missing else kinds


def _codes_at(ensemble: Ensemble, inner: IntArray) -> list[FloatArray]:
    """For every node an admissible code that goes left and one that goes right, if there are such."""
    codes = np.zeros((2, len(inner)))
    sets = np.zeros((0, 1), dtype=bool) if ensemble.category_sets is None else ensemble.category_sets
    chosen = np.full(len(inner), -1) if ensemble.category_set is None else ensemble.category_set[inner]
    for place in np.flatnonzero(chosen >= 0):
        known = _admissible_codes(ensemble, int(ensemble.feature[inner[place]]), sets.shape[1])
        goes_left = sets[chosen[place]][known]
        for side, wanted in enumerate((goes_left, ~goes_left)):
            codes[side, place] = known[int(wanted.argmax())]
    return list(codes)


def _admissible_codes(ensemble: Ensemble, column: int, n_codes: int) -> IntArray:
    listed = (ensemble.categories or {}).get(column)
    codes = np.arange(n_codes if listed is None else len(listed))
    return codes if listed is None else codes[[value is not None for value in listed]]


def _reaching_rows(ensemble: Ensemble, inner: IntArray) -> FloatArray:
    """For every given node a row that reaches it, if any does."""
    place = np.full(ensemble.n_nodes, -1)
    place[inner] = np.arange(len(inner))
    reaching = np.zeros((len(inner), ensemble.n_features))
    for roots in np.array_split(ensemble.roots.astype(np.intp), -(-ensemble.n_trees // _TREES_AT_ONCE)):
        for level, rows in _levels(ensemble, roots):
            wanted = place[level] >= 0
            reaching[place[level[wanted]]] = rows[wanted]
    return reaching


def _levels(ensemble: Ensemble, level: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
    """Inner nodes of some trees, level by level, and rows that reach them: each a step from its parent's row."""
    rows = np.zeros((len(level), ensemble.n_features))
    while (inner := ensemble.feature[level] >= 0).any():
        level, rows = level[inner], rows[inner]
        yield level, rows
        left, right = rows.copy(), rows
        column, every = ensemble.feature[level], np.arange(len(level))
        left[every, column], right[every, column] = _near_sides(ensemble, level, rows[every, column])
        rows = np.concatenate([left, right])
        level = np.concatenate([ensemble.left[level], ensemble.right[level]]).astype(np.intp)


def _near_sides(ensemble: Ensemble, level: IntArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is left of each node's test and right of it, and nearest to the value that came there."""
    left, right = closed_sides(ensemble.threshold[level], ensemble.number)
    left, right = np.minimum(value, left), np.maximum(value, right)
    if ensemble.category_set is not None:
        by_set, codes = ensemble.category_set[level] >= 0, _codes_at(ensemble, level)
        left, right = np.where(by_set, codes[0], left), np.where(by_set, codes[1], right)
    return np.where(np.isfinite(left), left, 0.0), np.where(np.isfinite(right), right, 0.0)


def _close(own: FloatArray, native: npt.NDArray[Any], ensemble: Ensemble) -> npt.NDArray[np.bool_]:
    """Equal to a few units in the last place: a forest that predicts on several threads adds in any order."""
    step = 8 * float(np.finfo(ensemble.sum_number).eps)
    exact = np.asarray(native, dtype=np.float64)
    return np.asarray(np.abs(own - exact) <= step * np.maximum(np.abs(own), np.abs(exact)))


def _state(ensemble: Ensemble) -> int:
    values = (getattr(ensemble, field.name) for field in fields(ensemble))
    return hash(tuple(value.tobytes() if isinstance(value, np.ndarray) else repr(value) for value in values))
