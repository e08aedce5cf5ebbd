import time

import numpy as np
import pytest

from cfmaps.ensemble import Ensemble, closed_sides
from models import beside

# Two trees: x0 <= 0.5 ? (x1 <= 2 ? a : b) : c, and a lone leaf.
TREES = {
    "feature": [0, 1, -1, -1, -1, -1],
    "threshold": [0.5, 2.0, 0, 0, 0, 0],
    "left": [1, 2, -1, -1, -1, -1],
    "right": [4, 3, -1, -1, -1, -1],
    "roots": [0, 5],
    "value": [[0, 0], [0, 0], [0.25, 0.75], [0.5, 0.5], [1, 0], [0, 0.5]],
    "init": [0.0, 0.0],
    "classes": ["no", "yes"],
    "n_features": 2,
}


def walk(ensemble, x):
    """One row through every tree, one comparison at a time."""
    leaves = []
    for node in ensemble.roots.tolist():
        while ensemble.feature[node] >= 0:
            number = float(ensemble.number(x[ensemble.feature[node]]))
            node = (ensemble.left if number <= ensemble.threshold[node] else ensemble.right)[node]
        leaves.append(int(node))
    return leaves


def test_rows_reach_the_leaves_of_a_walk():
    ensemble = Ensemble(**TREES)
    X = np.array([[a, b] for a in beside([0.5]) for b in beside([2.0])])
    assert ensemble.leaves(X).tolist() == [walk(ensemble, x) for x in X]
    assert (ensemble.n_nodes, ensemble.n_trees, ensemble.n_scores) == (6, 2, 2)


def test_scores_add_init_and_leaves_then_divide():
    ensemble = Ensemble(**{**TREES, "init": [0.5, 0.25]}, divisor=2)
    assert ensemble.scores([[0, 0], [0, 3], [1, 0]]).tolist() == [[0.375, 0.75], [0.5, 0.625], [0.75, 0.375]]


def test_the_first_of_equal_scores_wins():
    ensemble = Ensemble(**{**TREES, "init": [0.5, 0.0]})
    assert ensemble.scores([[0, 3]]).tolist() == [[1.0, 1.0]]
    assert ensemble.labels([[0, 3], [0, 0]]).tolist() == [0, 1]


def test_no_rows_have_no_labels():
    assert Ensemble(**TREES).scores(np.empty((0, 2))).shape == (0, 2)


def test_numbers_beyond_the_number_type_are_refused():
    with pytest.raises(ValueError, match=r"X\[0, 1\] is 1e\+39; expected numbers within float32's range"):
        Ensemble(**TREES).labels([[0, 1e39]])


def test_an_ensemble_may_compare_in_float64():
    tiny = np.nextafter(0.5, 1)
    single, double = Ensemble(**TREES), Ensemble(**TREES, number=np.float64)
    assert single.leaves([[tiny, 0]])[0, 0] == 2
    assert double.leaves([[tiny, 0]])[0, 0] == 4


def test_infinite_thresholds_send_every_number_one_way():
    ensemble = Ensemble(**{**TREES, "threshold": [np.inf, -np.inf, 0, 0, 0, 0]})
    assert ensemble.leaves([[3e38, -3e38]])[0, 0] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature": [0, 2, -1, -1, -1, -1]}, r"feature must lie in -1\.\.1, got -1\.\.2"),
        ({"feature": [0, 1, -2, -1, -1, -1]}, r"feature must lie in -1\.\.1"),
        ({"feature": []}, "feature must be 1-D and not empty"),
        ({"roots": []}, "roots must be 1-D and not empty"),
        ({"threshold": [0.5]}, r"threshold must have shape \(6,\), got \(1,\)"),
        ({"threshold": [0.5, np.nan, 0, 0, 0, 0]}, "threshold must not be NaN, got NaN at node 1"),
        ({"value": np.zeros((6, 3))}, r"value must have shape \(6, 2\)"),
        ({"value": np.full((6, 2), np.inf)}, "value must be finite"),
        ({"init": [0, np.nan]}, "init must be finite"),
        ({"classes": ["no"]}, r"classes must have shape \(2,\)"),
        ({"left": [1, 2, 3, -1, -1, -1]}, "left and right must be -1 at a leaf"),
        ({"left": [1, 6, -1, -1, -1, -1]}, r"children must lie in 0\.\.5, got 1\.\.6"),
        ({"left": [-1, 2, -1, -1, -1, -1]}, r"children must lie in 0\.\.5"),
        ({"left": [1, 0, -1, -1, -1, -1]}, "left and right must come after their parent"),
        ({"left": [2, 1, -1, -1, -1, -1]}, "left and right must come after their parent"),
        ({"left": [1, 3, -1, -1, -1, -1]}, "reached exactly once, got 0 times for node 2"),
        ({"roots": [0, 6]}, r"roots must lie in 0\.\.5, got 0\.\.6"),
        ({"roots": [0]}, "reached exactly once, got 0 times for node 5"),
        ({"roots": [0, 5, 1]}, "reached exactly once, got 2 times for node 1"),
        ({"divisor": 0}, "divisor must be positive"),
        ({"rule": "sign"}, "rule must be one of"),
        ({"feature_names": ("a",)}, "feature_names must be 2 names, got 1"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Ensemble(**{**TREES, **changes})


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_the_two_sides_of_a_split_are_neighbours(number):
    rng = np.random.default_rng(0)
    threshold = np.concatenate(
        [rng.normal(size=500) * 10.0 ** rng.integers(-44, 38, size=500), [0.0, -0.0, 1e-46, -1e-46]]
    )
    left, right = closed_sides(threshold, number)
    assert (left <= threshold).all()
    assert (threshold < right).all()
    assert (number(left) == left).all()
    assert (np.nextafter(number(left), number(np.inf)) == right).all()


@pytest.mark.parametrize(
    ("threshold", "left", "right"),
    [
        (np.inf, np.inf, np.inf),
        (-np.inf, -np.inf, -float(np.finfo(np.float32).max)),
        (1e39, float(np.finfo(np.float32).max), np.inf),
        (-1e39, -np.inf, -float(np.finfo(np.float32).max)),
        (float(np.finfo(np.float32).max), float(np.finfo(np.float32).max), np.inf),
    ],
)
def test_thresholds_at_the_ends_of_float32(threshold, left, right):
    assert [side.item() for side in closed_sides(threshold, np.float32)] == [left, right]


def test_checking_structure_takes_less_than_a_third_of_a_millisecond():
    tree = np.arange(63)
    inner = tree < 31
    parts = {
        "feature": np.where(inner, tree % 8, -1),
        "left": np.where(inner, 2 * tree + 1, -1),
        "right": np.where(inner, 2 * tree + 2, -1),
    }
    shift = np.repeat(np.arange(100) * 63, 63)
    feature, left, right = (np.tile(parts[name], 100) for name in ("feature", "left", "right"))
    arrays = {"feature": feature, "left": left + shift * (left >= 0), "right": right + shift * (right >= 0)}
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        Ensemble(
            **arrays,
            threshold=np.zeros(6300),
            roots=np.arange(100) * 63,
            value=np.ones((6300, 2)),
            init=[0, 0],
            classes=[0, 1],
            n_features=8,
        )
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 3e-4
