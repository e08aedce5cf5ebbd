import _thread
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from cfmaps import CounterfactualMap
from cfmaps.box_tree import BoxTree, Nearest
from oracles import box_distances, box_gaps, nearest_boxes

POWERS = {"l1": 1, "l2": 2, "linf": np.inf, 3: 3, 1.7: 1.7}
norms = st.sampled_from(list(POWERS))
numbers = st.one_of(st.integers(-4, 4).map(float), st.floats(-100, 100))
grid = st.integers(-3, 3).map(float)


@st.composite
def boxes_and_points(draw, elements=numbers):
    """Lower and upper ends, points to ask from, and a leaf size."""
    n_features = draw(st.integers(1, 4))
    shape = (draw(st.integers(1, 30)), n_features)
    ends = draw(hnp.arrays(np.float64, (2, *shape), elements=elements))
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    point_boxes = draw(hnp.arrays(bool, shape[:1]))
    upper[point_boxes] = lower[point_boxes]
    lower[draw(hnp.arrays(bool, shape, fill=st.just(False)))] = -np.inf
    upper[draw(hnp.arrays(bool, shape, fill=st.just(False)))] = np.inf
    X = draw(hnp.arrays(np.float64, (draw(st.integers(1, 3)), n_features), elements=elements))
    return lower, upper, X, draw(st.integers(1, 9))


def random_boxes(n_boxes, n_features, seed=0):
    rng = np.random.default_rng(seed)
    centre, half = rng.random((n_boxes, n_features)), rng.random((n_boxes, n_features)) * 0.05
    return centre - half, centre + half


def assert_is_nearest(found, X, lower, upper, p, weights=1.0):
    """The claims of ``found`` hold and no box is nearer."""
    np.testing.assert_allclose(found.distance, nearest_boxes(X, lower, upper, p, weights), rtol=1e-12, atol=1e-322)
    assert (lower[found.index] <= found.point).all()
    assert (found.point <= upper[found.index]).all()
    own = [box_distances(x, lower[[i]], upper[[i]], p, weights)[0] for x, i in zip(X, found.index, strict=True)]
    np.testing.assert_allclose(found.distance, own, rtol=1e-12, atol=1e-322)
    np.testing.assert_array_equal(
        np.abs(X - found.point), [box_gaps(x, lower[i], upper[i]) for x, i in zip(X, found.index, strict=True)]
    )


@settings(max_examples=200, deadline=None)
@given(boxes_and_points(), norms)
def test_no_box_is_nearer_than_the_one_found(case, norm):
    lower, upper, X, leaf_size = case
    tree = BoxTree(lower, upper, leaf_size=leaf_size)
    found = tree.nearest(X, norm)
    assert_is_nearest(found, X, lower, upper, POWERS[norm])
    assert (found.bound >= found.distance).all()
    assert (found.visited <= tree.n_nodes).all()
    assert (found.visited >= 1).all()


@settings(max_examples=100, deadline=None)
@given(boxes_and_points(), norms, st.integers(0, 2**32 - 1))
def test_weights_multiply_the_gaps(case, norm, seed):
    lower, upper, X, leaf_size = case
    weights = np.random.default_rng(seed).uniform(0.01, 100, X.shape[1])
    found = BoxTree(lower, upper, leaf_size=leaf_size).nearest(X, norm, weights=weights)
    assert_is_nearest(found, X, lower, upper, POWERS[norm], weights)


@settings(max_examples=200, deadline=None)
@given(boxes_and_points(grid), st.sampled_from([1, 2, 3, np.inf]))
def test_the_lowest_index_wins_a_tie(case, p):
    lower, upper, X, leaf_size = case
    found = BoxTree(lower, upper, leaf_size=leaf_size).nearest(X, p)
    for x, index in zip(X, found.index, strict=True):
        gaps = box_gaps(x, lower, upper)  # whole numbers: their powers are exact
        assert index == np.argmin(gaps.max(axis=1) if p == np.inf else np.sum(gaps**p, axis=1))


def test_equal_boxes_give_the_first_of_them():
    found = BoxTree(np.ones((50, 3)), np.full((50, 3), 2.0), leaf_size=2).nearest(np.zeros((1, 3)))
    assert found.index.tolist() == [0]
    assert found.distance.tolist() == [3.0]


@pytest.mark.parametrize("norm", POWERS)
@pytest.mark.parametrize("n_features", [1, 9, 200])
def test_many_boxes_in_few_and_many_dimensions(norm, n_features):
    lower, upper = random_boxes(2000 // n_features + 300, n_features)
    X = np.random.default_rng(1).random((10, n_features))
    assert_is_nearest(BoxTree(lower, upper).nearest(X, norm), X, lower, upper, POWERS[norm])


@pytest.mark.parametrize("norm", POWERS)
def test_inside_a_box_the_distance_is_zero_and_the_point_stays(norm):
    lower, upper = random_boxes(500, 3)
    X = (lower + upper) / 2
    found = BoxTree(lower, upper).nearest(X, norm)
    assert not found.distance.any()
    np.testing.assert_array_equal(found.point, X)


def test_a_search_opens_few_of_the_nodes():
    lower, upper = random_boxes(20_000, 3)
    tree = BoxTree(lower, upper)
    found = tree.nearest(np.random.default_rng(1).random((100, 3)))
    assert tree.n_nodes == 2 * (20_000 / 8) - 1
    assert found.visited.mean() < tree.n_nodes / 50
    assert np.isfinite(found.bound).all()


def test_a_feature_without_limits_does_not_blur_the_others():
    lower, upper = random_boxes(20_000, 3)
    lower[:, 0], upper[:, 0], upper[::2, 1] = -np.inf, np.inf, np.inf
    tree = BoxTree(lower, upper)
    assert tree.nearest(np.random.default_rng(1).uniform(-1, 0, (100, 3))).visited.mean() < tree.n_nodes / 50


def test_the_bound_covers_nodes_set_aside_before_the_end():
    # Left of 0 the first leaf, at 2 but with its points at 5; right of it a node at 3 whose leaves are at 21 and 22.
    points = [[-1, 4], [-4, 1], [2, 20], [2.5, 20], [20, 1], [20, 1.5]]
    found = BoxTree(points, points, leaf_size=2).nearest([[0, 0]])
    assert found.distance.tolist() == [5.0]
    assert found.visited.tolist() == [3]
    assert found.bound.tolist() == [21.0]


def test_the_bound_is_infinite_when_everything_was_opened():
    assert BoxTree([[1.0]], [[2.0]]).nearest([[0.0]]).bound.tolist() == [np.inf]


@settings(max_examples=100, deadline=None)
@given(boxes_and_points(), norms)
def test_boxes_nearer_than_the_bound_were_all_measured(case, norm):
    lower, upper, X, _ = case
    found = BoxTree(lower, upper, leaf_size=1).nearest(X, norm)
    for x, bound, visited in zip(X, found.bound, found.visited, strict=True):
        nearer = box_distances(x, lower, upper, POWERS[norm]) < bound * (1 - 1e-12)
        assert nearer.sum() <= visited


def test_without_boxes_nothing_is_found():
    found = BoxTree(np.empty((0, 2)), np.empty((0, 2))).nearest([[1, 2]], "l2")
    assert found.index.tolist() == [-1]
    assert found.distance.tolist() == found.bound.tolist() == [np.inf]
    assert np.isnan(found.point).all()
    assert found.visited.tolist() == [0]


def test_without_rows_the_answer_is_empty():
    found = BoxTree([[0, 0]], [[1, 1]]).nearest(np.empty((0, 2)))
    assert found.index.shape == found.distance.shape == found.visited.shape == found.bound.shape == (0,)
    assert found.point.shape == (0, 2)


@pytest.mark.parametrize("p", [2, 3, 2.5, 10, 1000, 1e6, 1e300])
@pytest.mark.parametrize("unit", [1e-310, 1e-200, 1.0, 1e200, 1e306])
def test_powers_neither_overflow_nor_vanish(p, unit):
    lower = np.array([[9.0, 9.0], [3.0, 4.0], [3.0, 4.25]]) * unit
    found = BoxTree(lower, lower).nearest([[0, 0]], p)
    assert found.index.tolist() == [1]
    np.testing.assert_allclose(
        found.distance, box_distances(0, lower[[1]], lower[[1]], p), rtol=1e-9 if unit < 1e-300 else 1e-12
    )
    assert found.bound[0] >= found.distance[0]


def test_tiny_gaps_are_not_taken_for_none():
    found = BoxTree([[1e-200], [0.0]], [[1.0], [0.0]]).nearest([[0.0], [1e-250]], 3)
    assert found.index.tolist() == [1, 1]
    np.testing.assert_allclose(found.distance, [0.0, 1e-250])


def test_an_overflowing_distance_elsewhere_is_no_proof_of_infinity():
    lower = np.array([[1.0], [1e160], [2e160], [3e160]])
    found = BoxTree(lower, lower, leaf_size=1).nearest([[0.0]], "l2")
    assert found.distance.tolist() == [1.0]
    assert 1.0 <= found.bound[0] <= 1e160


def test_the_boxes_are_copied():
    lower, upper = np.zeros((3, 2)), np.ones((3, 2))
    tree = BoxTree(lower, upper)
    lower += 100
    upper += 100
    assert tree.nearest([[0.5, 0.5]]).distance.tolist() == [0.0]


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda a: a.astype(np.float32), lambda a: np.repeat(a, 2, 0)[::2]]
)
def test_any_layout_of_the_ends_gives_the_same_answers(change):
    lower = np.arange(24.0).reshape(8, 3)
    X = np.array([[5.0, 7.0, 2.0]])
    lower.flags.writeable = False
    expected = BoxTree(lower, lower + 1).nearest(X)
    found = BoxTree(change(lower), change(lower + 1)).nearest(np.asfortranarray(X))
    assert found.index == expected.index
    assert found.distance == expected.distance


def test_four_threads_on_one_tree_give_the_answers_of_one():
    lower, upper = random_boxes(5000, 4)
    tree = BoxTree(lower, upper)
    parts = [np.random.default_rng(seed).random((300, 4)) for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(tree.nearest, parts))
    for X, found in zip(parts, together, strict=True):
        alone = tree.nearest(X)
        for field in Nearest.__slots__:
            np.testing.assert_array_equal(getattr(found, field), getattr(alone, field))


def lattice_boxes(n_boxes, n_features, n_ends, seed=0):
    """Boxes whose ends are among a few numbers, and points on and beside them."""
    rng = np.random.default_rng(seed)
    ends = np.concatenate([[-np.inf], np.sort(rng.normal(size=n_ends - 2)), [np.inf]])
    low, high = np.sort(rng.integers(0, n_ends, (2, n_boxes, n_features)), axis=0)
    lower, upper = ends[np.minimum(low, n_ends - 2)], ends[np.maximum(high, 1)]
    X = rng.choice(ends[1:-1], (40, n_features))
    X[::2] = np.nextafter(X[::2], np.inf)
    return lower, upper, X


@pytest.mark.parametrize("norm", POWERS)
@pytest.mark.parametrize("n_ends", [3, 17, 256, 257, 500])
def test_few_ends_are_kept_as_codes_and_give_the_same_answers(norm, n_ends):
    lower, upper, X = lattice_boxes(4000, 3, n_ends)
    tree = BoxTree(lower, upper, leaf_size=5)
    weights = np.array([0.3, 1.0, 7.0])
    assert_is_nearest(tree.nearest(X, norm, weights=weights), X, lower, upper, POWERS[norm], weights)
    # Far more ends make the tree keep numbers: the same boxes must get the same answers, bit for bit.
    more = np.random.default_rng(2).uniform(1e9, 2e9, (6000, 3))
    plain = BoxTree(np.vstack([lower, more]), np.vstack([upper, more]), leaf_size=5)
    assert plain.n_bytes > 3 * tree.n_bytes
    own, others = tree.nearest(X, norm, weights=weights), plain.nearest(X, norm, weights=weights)
    for field in ("index", "distance", "point"):
        np.testing.assert_array_equal(getattr(own, field), getattr(others, field))


@pytest.mark.parametrize(("n_ends", "n_bytes"), [(20, 1), (200, 4)])
def test_few_intervals_take_a_byte_each_and_few_ends_two(n_ends, n_bytes):
    lower, upper, _ = lattice_boxes(50_000, 9, n_ends)
    for_the_tree = 8 + 9 * n_bytes / 8
    assert BoxTree(lower, upper, leaf_size=16).n_bytes < 50_000 * (9 * n_bytes + for_the_tree)


def test_a_map_indexes_the_boxes_it_lists():
    X, y = load_iris(return_X_y=True)
    cfmap = CounterfactualMap(RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y))
    cfmap.build()
    for label in range(3):
        boxes = cfmap.partition.boxes(label, single_categories=True)
        listed, own = BoxTree(boxes.lower, boxes.upper), cfmap.box_tree(label)
        assert own.n_boxes == len(boxes)
        for norm in POWERS:
            expected, found = listed.nearest(X, norm), own.nearest(X, norm)
            for field in ("index", "distance", "point"):
                np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


def test_ctrl_c_stops_a_long_search():
    lower, upper = random_boxes(2000, 30)
    tree = BoxTree(lower, upper)
    X = np.random.default_rng(1).random((200_000, 30))  # ten seconds of work
    started = time.perf_counter()
    tree.nearest(X[:10_000])
    twentieth = time.perf_counter() - started
    started = time.perf_counter()
    threading.Timer(0.05, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        tree.nearest(X)
    assert time.perf_counter() - started < 10 * twentieth


def test_sizes_are_reported():
    tree = BoxTree(*random_boxes(1000, 5))
    assert tree.n_boxes == 1000
    assert tree.n_nodes == 249
    assert 1000 * 5 * 16 <= tree.n_bytes <= 2 * 1000 * 5 * 16
    assert repr(tree) == "BoxTree(n_boxes=1000, n_features=5)"


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0, np.nan]], [[1, 1]], r"box 0 .* got \[nan, 1.0\] for feature 1"),
        ([[0], [3]], [[1], [2]], r"box 1 .* got \[3.0, 2.0\] for feature 0"),
        ([[np.inf]], [[np.inf]], r"got \[inf, inf\]"),
        ([[-np.inf]], [[-np.inf]], r"got \[-inf, -inf\]"),
        ([[0, 0]], [[1]], r"same shape, got \(1, 2\) and \(1, 1\)"),
        ([0, 0], [1, 1], r"lower must be of shape .* got \(2,\)"),
        (np.empty((3, 0)), np.empty((3, 0)), r"lower must be of shape .* got \(3, 0\)"),
        ([[-1e308]], [[1]], "lower must hold numbers of magnitude up to .* got 1e.308"),
    ],
)
def test_a_wrong_box_is_named(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        BoxTree(lower, upper)


def test_ends_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match="lower must hold rows of numbers"):
        BoxTree([["a"]], [[1]])


def test_a_leaf_holds_at_least_one_box():
    with pytest.raises(ValueError, match="leaf_size must be at least 1, got 0"):
        BoxTree([[0]], [[1]], leaf_size=0)
    with pytest.raises(TypeError):
        BoxTree([[0]], [[1]], leaf_size=2.5)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[1]], {}, "X must have 2 columns, got 1"),
        ([1, 2], {}, "X must be 2-D"),
        ([[np.nan, 1]], {}, "X"),
        ([[np.inf, 1]], {}, "X"),
        ([[1e308, 1]], {}, "X must hold numbers of magnitude"),
        ([[8e307, 8e307]], {}, r"X\[0\] is farther from every box than the largest float64"),
        ([[1, 1]], {"distance": 0.5}, "0.5"),
        ([[1, 1]], {"distance": "cosine"}, "cosine"),
        ([[1, 1]], {"weights": [1, 0]}, "weights"),
        ([[1, 1]], {"weights": [1, 2, 3]}, "weights"),
    ],
)
def test_a_wrong_question_is_refused(X, options, message):
    tree = BoxTree([[-8e307, -8e307]], [[-8e307, -8e307]])
    with pytest.raises(ValueError, match=message):
        tree.nearest(X, **options)
