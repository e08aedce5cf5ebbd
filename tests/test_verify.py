from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from cfmaps import CounterfactualMap, UnsupportedModel
from cfmaps.readers import read
from cfmaps.verify import compare, probes, verify
from sklearn_models import fitted

MODEL = fitted(GradientBoostingClassifier(n_estimators=10, random_state=0), 0)
ENSEMBLE = read(MODEL)


class Counting:
    """A model whose predict is counted."""

    def __init__(self):
        self.calls = 0

    def predict(self, rows):
        self.calls += 1
        return MODEL.predict(rows)


def test_every_probe_reaches_the_node_it_was_made_for():
    rows, nodes = probes(ENSEMBLE)
    inner = np.flatnonzero(ENSEMBLE.feature >= 0)
    assert np.unique(nodes).tolist() == inner.tolist()
    on_the_cut = slice(0, 2 * len(inner))
    visited = [path_of(ENSEMBLE, row, node) for row, node in zip(rows[on_the_cut], nodes[on_the_cut], strict=True)]
    assert np.mean(visited) > 0.9


def path_of(ensemble, row, node):
    """Whether a row passes through a node."""
    at = ensemble.roots[np.searchsorted(ensemble.roots, node, side="right") - 1]
    while at != node and ensemble.feature[at] >= 0:
        goes_left = np.float32(row[ensemble.feature[at]]) <= ensemble.threshold[at]
        at = ensemble.left[at] if goes_left else ensemble.right[at]
    return at == node


@pytest.mark.parametrize("wrong", ["threshold", "leaf", "cut", "column"])
def test_whatever_is_read_wrong_is_noticed(wrong):
    node = int(np.flatnonzero(ENSEMBLE.feature >= 0)[0])
    changed = {name: getattr(ENSEMBLE, name).copy() for name in ("threshold", "value", "feature")}
    if wrong == "threshold":
        changed["threshold"][node] = np.nextafter(np.float32(changed["threshold"][node]), np.float32(np.inf))
    elif wrong == "leaf":
        changed["value"] = -changed["value"]
    elif wrong == "column":
        changed["feature"][node] = (changed["feature"][node] + 1) % ENSEMBLE.n_features
    other = replace(ENSEMBLE, **changed, cuts=[10.0] if wrong == "cut" else ENSEMBLE.cuts)
    with pytest.raises(
        UnsupportedModel, match=r"at tree \d+, node \d+ \(column \d, threshold .*\) (predict|the score) is"
    ):
        compare(other, MODEL.predict, *probes_of_both(other), scores=MODEL.decision_function)


def probes_of_both(other):
    ours, theirs = probes(other), probes(ENSEMBLE)
    return np.concatenate([ours[0], theirs[0]]), np.concatenate([ours[1], theirs[1]])


def test_a_model_is_asked_once_for_each_state():
    model = Counting()
    for _ in range(3):
        verify(model, ENSEMBLE, model.predict)
    assert model.calls == 1
    verify(model, replace(ENSEMBLE, init=ENSEMBLE.init + 1e-9), model.predict)
    assert model.calls == 2


def test_the_map_refuses_a_model_that_was_tampered_with():
    model = fitted(HistGradientBoostingClassifier(max_iter=5), 1)
    model._predictors[0][0].nodes["num_threshold"][0] = 1e9
    CounterfactualMap(model)
    broken = fitted(HistGradientBoostingClassifier(max_iter=5), 1)
    broken.predict = lambda rows: np.zeros(len(rows), dtype=int)
    with pytest.raises(UnsupportedModel, match="does not predict as its trees say"):
        CounterfactualMap(broken)
    assert CounterfactualMap(broken, verify=False).explain(np.zeros(5)).status
    with pytest.raises(ValueError, match="verify must be True, False or 'auto'"):
        CounterfactualMap(broken, verify="maybe")


def test_forests_are_checked_on_request_only():
    model = fitted(RandomForestClassifier(5, max_depth=3), 0)
    calls = []
    predict = model.predict
    model.predict = lambda rows: calls.append(len(rows)) or predict(rows)
    CounterfactualMap(model)
    assert not calls
    CounterfactualMap(model, verify=True)
    assert len(calls) == 1
