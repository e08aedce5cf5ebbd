import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from cfmaps import CounterfactualMap
from models import cases

LARGEST = float(np.finfo(np.float32).max)


def partition_of(model, features=None):
    return CounterfactualMap(model, features=features).partition


def iris(**options):
    X, y = load_iris(return_X_y=True)
    return RandomForestClassifier(random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def forest():
    """A map of some 100,000 nodes."""
    X, y = load_breast_cancer(return_X_y=True)
    return RandomForestClassifier(30, max_depth=5, random_state=0).fit(X[:, :5], y)


@pytest.fixture(scope="module")
def hard_forest():
    """A map that nobody completes."""
    X, y = load_breast_cancer(return_X_y=True)
    return RandomForestClassifier(100, max_depth=5, random_state=0).fit(X, y)


def n_points(lattice, lower, upper):
    """How many points of the lattice lie in a box with one category per group."""
    count = 1
    for axis in np.flatnonzero(~lattice.categorical):
        cells = slice(lattice.cell_start[axis], lattice.cell_start[axis + 1])
        column = lattice.axis_columns[axis][0]
        count *= int(((lattice.low[cells] >= lower[column]) & (lattice.high[cells] <= upper[column])).sum())
    return count


def overlaps(boxes):
    """Whether two boxes share a point, for all pairs."""
    meet = (boxes.lower[:, None] <= boxes.upper[None]) & (boxes.lower[None] <= boxes.upper[:, None])
    return meet.all(axis=2)


@given(cases(max_features=3, max_trees=6, max_depth=3))
@settings(max_examples=60, deadline=None)
def test_boxes_cover_the_lattice_once_and_bear_the_models_labels(case):
    partition = partition_of(case.model, case.features)
    growth = partition.build()
    assert growth.complete
    assert partition.is_complete
    boxes = partition.boxes(single_categories=True)
    counts = [n_points(partition.lattice, *ends) for ends in zip(boxes.lower, boxes.upper, strict=True)]
    assert sum(counts) == partition.lattice.n_points
    assert min(counts) > 0
    assert (overlaps(boxes) == np.eye(len(boxes), dtype=bool)).all()
    labels = case.model.classes_[boxes.label]
    for end in (boxes.lower, boxes.upper):
        assert (case.model.predict(np.clip(end, -LARGEST, LARGEST)) == labels).all()


@given(cases(max_trees=6, max_depth=3), st.data())
@settings(max_examples=40, deadline=None)
def test_the_map_is_the_same_whatever_made_it_grow(case, data):
    at_once = partition_of(case.model, case.features)
    at_once.build(n_threads=1)
    cfmap = CounterfactualMap(case.model, features=case.features)
    cfmap.explain_many(case.queries, n_threads=1)
    while not cfmap.build(max_nodes=cfmap.partition.n_nodes + data.draw(st.integers(2, 40))).complete:
        assert (cfmap.partition.boxes().label == -1).any()
    for one, other in zip(parts(at_once), parts(cfmap.partition), strict=True):
        assert one.tolist() == other.tolist()
    assert cfmap.partition.n_nodes == at_once.n_nodes == 2 * at_once.n_boxes - 1


def parts(partition):
    boxes = partition.boxes()
    return boxes.lower, boxes.upper, boxes.label


def test_boxes_of_one_label_are_those_boxes():
    partition = partition_of(iris(n_estimators=10, max_depth=3))
    partition.build()
    boxes = partition.boxes()
    assert len(boxes) == partition.n_boxes
    for label in range(3):
        assert partition.boxes(label).lower.tolist() == boxes.lower[boxes.label == label].tolist()


def test_nothing_is_known_before_anything_is_asked():
    partition = partition_of(iris(n_estimators=10))
    boxes = partition.boxes()
    assert (partition.is_complete, partition.n_nodes, partition.n_boxes) == (False, 1, 0)
    assert (boxes.lower.tolist(), boxes.upper.tolist(), boxes.label.tolist()) == ([[-np.inf] * 4], [[np.inf] * 4], [-1])


def test_leaves_of_one_label_merge():
    X, y = np.arange(12.0)[:, np.newaxis], [0] * 5 + [1] + [0] * 6
    model = DecisionTreeClassifier(max_leaf_nodes=3).fit(X, y)
    assert model.get_n_leaves() == 3
    partition = partition_of(model)
    assert partition.build().n_boxes == 3
    model = DecisionTreeClassifier(max_leaf_nodes=2).fit(X, y)
    assert (model.get_n_leaves(), partition_of(model).build().n_boxes) == (2, 1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_node_takes_at_most_16_bytes(forest, n_threads):
    partition = partition_of(forest)
    partition.build(n_threads=n_threads)
    assert partition.n_nodes >= 1000
    assert partition.n_bytes <= 16 * partition.n_nodes


def test_a_build_that_ran_out_of_nodes_says_so_and_goes_on_later(forest):
    partition = partition_of(forest)
    first = partition.build(max_nodes=1000, n_threads=1)  # of several, one may leave what another could have used
    assert (first.complete, first.reason) == (False, "nodes")
    assert 900 < first.n_nodes == partition.n_nodes <= 1000
    assert not partition.is_complete
    assert -1 in partition.boxes().label
    again = partition.build(max_nodes=1000, n_threads=1)
    assert (again.reason, again.n_nodes) == ("nodes", first.n_nodes)
    last = partition.build()
    assert (last.complete, last.reason) == (True, "complete")
    assert (last.n_nodes, last.n_boxes) == (partition.n_nodes, partition.n_boxes)
    assert -1 not in partition.boxes().label
    assert partition.build(max_nodes=1).complete


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("max_nodes", [1, 3, 50, 3000, 300_000])
def test_a_budget_of_nodes_is_kept_and_used(hard_forest, max_nodes, n_threads):
    growth = partition_of(hard_forest).build(max_nodes=max_nodes, n_threads=n_threads)
    assert growth.reason == "nodes"
    assert 0.8 * max_nodes - 2 <= growth.n_nodes <= max_nodes


def test_a_build_that_ran_out_of_memory_says_so(hard_forest):
    partition = partition_of(hard_forest)
    growth = partition.build(max_memory=1 << 20)
    assert (growth.complete, growth.reason) == (False, "memory")
    assert growth.n_nodes > 10_000
    assert partition.build(max_nodes=100, max_memory=1 << 30).reason == "nodes"
    assert partition.n_bytes <= 1 << 20


def test_a_build_that_ran_out_of_time_says_so(hard_forest):
    partition = partition_of(hard_forest)
    growth = partition.build(time_limit=0.05)
    assert (growth.complete, growth.reason) == (False, "time")
    assert 0.05 <= growth.seconds < 5.0
    assert partition.n_nodes == growth.n_nodes > 1
    assert partition.build(time_limit=0).reason == "time"


def test_queries_grow_the_map_up_to_its_size(forest):
    X = np.random.default_rng(0).uniform(5, 30, size=(20, 5))
    cfmap, fixed = CounterfactualMap(forest), CounterfactualMap(forest)
    fixed.partition.max_nodes = 0
    sizes = [cfmap.partition.n_nodes]
    for x in X:
        assert cfmap.explain(x).distance == fixed.explain(x).distance
        sizes.append(cfmap.partition.n_nodes)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 100
    assert fixed.partition.n_nodes == 1
    assert (cfmap.partition.max_nodes, fixed.partition.max_nodes) == (1 << 24, 0)


def test_the_region_of_a_point_keeps_its_label(forest):
    partition = partition_of(forest)
    X = np.random.default_rng(1).uniform(5, 30, size=(20, 5)).astype(np.float32).astype(np.float64)
    for x, label in zip(X, forest.predict(X), strict=True):
        lower, upper = partition.region(partition.lattice.cells(x[np.newaxis])[0])
        assert ((lower <= x) & (x <= upper)).all()
        corners = np.where(np.random.default_rng(2).random((50, 5)) < 0.5, lower, upper)
        assert (forest.predict(np.clip(corners, -1e30, 1e30)) == label).all()


@pytest.mark.parametrize("norm", ["l1", 1.5, "l2", "linf"])
def test_among_cells_that_rounding_makes_equally_dear_the_nearest_wins_on_every_map(norm):
    X = np.arange(12.0)[:, np.newaxis]
    model = DecisionTreeClassifier().fit(X, [0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 2, 2])
    whole = CounterfactualMap(model)
    whole.build()
    for cfmap in (whole, CounterfactualMap(model)):
        assert cfmap.explain([2.36e31], target=1, distance=norm).counterfactual.item() == 7.5
        assert cfmap.explain([-2.36e31], target=1, distance=norm).counterfactual.item() == np.nextafter(
            np.float32(0.5), np.float32(1)
        )


def test_a_stopped_question_leaves_nothing_behind(forest):
    rows = load_breast_cancer().data[:30, :5]
    expected = CounterfactualMap(forest).explain_many(rows)
    partial = CounterfactualMap(forest)
    partial.build(max_nodes=5_000)
    for row, distance in zip(rows, expected.distances, strict=True):
        for seconds in (0.0, 1e-5, 1e-4):
            assert partial.explain(row, time_limit=seconds).lower_bound <= distance
        assert partial.explain(row).distance == distance
