"""Every rule, sum type and link against plain enumeration by the ensemble's own scores."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfmaps import CounterfactualMap
from cfmaps.ensemble import Ensemble
from ensembles import RULES, all_points, random_ensemble, stump


def ask_everything(ensemble, rng):
    """Both a cold and a whole map find, for every label, what enumeration finds."""
    cold, whole = CounterfactualMap(ensemble), CounterfactualMap(ensemble)
    whole.build(n_threads=1)
    lattice = whole.partition.lattice
    for x in rng.choice([-2.0, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0], size=(4, ensemble.n_features)):
        grid = lattice.round(x)
        points = all_points(lattice, grid)
        labels = ensemble.labels(points)
        away = np.abs(points - grid).sum(axis=1)
        for code, label in enumerate(ensemble.classes):
            expected = 0.0 if ensemble.labels([x])[0] == code else away[labels == code].min(initial=np.inf)
            for cfmap in (cold, whole):
                e = cfmap.explain(x, target=label)
                assert e.distance == pytest.approx(expected, rel=1e-12)
                assert e.status == ("optimal" if np.isfinite(expected) else "infeasible")
                if np.isfinite(expected):
                    assert ensemble.labels([e.counterfactual])[0] == code


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_answers_equal_enumeration(rule, seed):
    rng = np.random.default_rng(seed)
    ask_everything(random_ensemble(rng, rule=rule), rng)


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_the_whole_map_labels_every_cell(rule, seed):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, rule=rule)
    cfmap = CounterfactualMap(ensemble)
    cfmap.build(n_threads=1)
    points = all_points(cfmap.partition.lattice, np.zeros(ensemble.n_features))
    labels = ensemble.labels(points)
    boxes = cfmap.partition.boxes()
    inside = ((points[:, np.newaxis] >= boxes.lower) & (points[:, np.newaxis] <= boxes.upper)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert boxes.label[inside.argmax(axis=1)].tolist() == labels.tolist()


def test_a_cut_is_reached_exactly_where_the_score_equals_it():
    at = stump([[0.25], [0.1]], rule="bands", cuts=[0.25], classes=["low", "high"])
    assert at.classes[at.labels([[0.0], [1.0]])].tolist() == ["high", "low"]
    above = replace(at, cuts=[np.nextafter(0.25, 1)])
    assert above.classes[above.labels([[0.0]])].tolist() == ["low"]
    assert CounterfactualMap(above).explain([0.0], target="high").status == "infeasible"


def test_different_scores_may_tie_in_a_softmax():
    near = stump([[0.0, 2.0**-26], [0.0, 0.5]], rule="softmax32", classes=[0, 1])
    assert near.labels([[0.0], [1.0]]).tolist() == [0, 1]
    assert replace(near, rule="argmax").labels([[0.0]]).tolist() == [1]
    assert CounterfactualMap(near).explain([1.0], target=0).distance == pytest.approx(0.5)


def test_float32_sums_depend_on_their_order():
    """1 + 2**-24 + 2**-24 is 1 in float32, from left to right; the other way round it is more."""
    values = [[1.0], [2.0**-24], [2.0**-24]]
    leaves = {"feature": [-1] * 3, "threshold": [0] * 3, "left": [-1] * 3, "right": [-1] * 3, "init": [0]}
    options = {"n_features": 1, "rule": "bands", "cuts": [1 + 2.0**-23], "classes": [0, 1], "sum_number": np.float32}
    forwards = Ensemble(**leaves, **options, value=values, roots=[0, 1, 2])
    backwards = Ensemble(**leaves, **options, value=values[::-1], roots=[0, 1, 2])
    assert forwards.labels([[0.0]]).tolist() == [0]
    assert backwards.labels([[0.0]]).tolist() == [1]
    assert CounterfactualMap(forwards).explain([0.0], target=1).status == "infeasible"
    assert CounterfactualMap(backwards).explain([0.0]).source == 1


def test_inputs_near_zero_are_read_as_zero():
    ensemble = stump([[0.0], [1.0]], rule="bands", cuts=[0.5], classes=["l", "r"], number=np.float64)
    for threshold in (0.0, 1e-36, -1e-36, -1e-35, 1e-35):
        banded = replace(ensemble, threshold=[threshold, 0, 0], zero_band=1e-35)
        rows = np.array([-2e-35, -1e-35, -1e-37, 0.0, 1e-37, 1e-35, np.nextafter(1e-35, 1), 2e-35])
        read = np.where(np.abs(rows) <= 1e-35, 0.0, rows)
        assert (banded.labels(rows[:, np.newaxis]) == 0).tolist() == (read <= threshold).tolist()
