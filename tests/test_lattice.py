import time

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.ensemble import RandomForestClassifier

from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.features import Binary, Features, Integer, Numeric, OneHot, Ordinal
from cfmaps.lattice import Lattice
from cfmaps.readers import read
from models import KINDS, NUMERIC_KINDS, beside, cases, random_model

LARGEST = float(np.finfo(np.float32).max)


def stumps(thresholds, column=0, n_features=1):
    """One stump per threshold; what they vote for does not matter here."""
    n = len(thresholds)
    base = 3 * np.arange(n)
    column, nothing = np.broadcast_to(column, n), np.full(n, -1)
    return Ensemble(
        feature=np.stack([column, nothing, nothing], axis=1).ravel(),
        threshold=np.stack([thresholds, np.zeros(n), np.zeros(n)], axis=1).ravel(),
        left=np.stack([base + 1, nothing, nothing], axis=1).ravel(),
        right=np.stack([base + 2, nothing, nothing], axis=1).ravel(),
        roots=base,
        value=np.zeros((3 * n, 2)),
        init=[0, 0],
        classes=[0, 1],
        n_features=n_features,
    )


def one_axis(thresholds, entry):
    return Lattice.of(stumps(thresholds), Features([entry]))


def probes(entry, thresholds):
    """Admissible numbers of one ordered feature, some in every cell there can be."""
    if isinstance(entry, Ordinal):
        return np.array(entry.values)
    if isinstance(entry, Binary):
        return np.array([0.0, 1.0])
    near = np.concatenate([*closed_sides(thresholds, np.float32), [0.0, -LARGEST, LARGEST]])
    near = near[np.isfinite(near)]
    limits = [end for end in (entry.low, entry.high) if end is not None]
    near = np.concatenate([near, *(beside([end]) for end in limits)])
    if isinstance(entry, Integer):
        near = np.unique(np.concatenate([np.floor(near), np.ceil(near), [*limits]]))
    low = -np.inf if entry.low is None else entry.low
    high = np.inf if entry.high is None else entry.high
    return np.unique(near[(near >= low) & (near <= high)])


def rows_over(features, ensemble, axis):
    """Rows that differ in one feature and hold each of its admissible probes."""
    entry, positions = features.entries[axis], features.positions[axis]
    if isinstance(entry, OneHot):
        values = np.eye(len(positions))
        values = np.concatenate([values, np.zeros((int(entry.optional), len(positions)))])
    else:
        values = probes(entry, ensemble.threshold[ensemble.feature == positions[0]])[:, np.newaxis]
    rows = np.zeros((len(values), features.n_columns))
    rows[:, positions] = values
    return rows


def goes_left(lattice, node, cells):
    """Where the lattice sends cells at a node."""
    test = lattice.node_test[node]
    if test < 0:
        return np.full(len(cells), test == -2)
    cell, rank = cells[:, lattice.test_axis[test]], lattice.test_rank[test]
    return lattice.test_sets[rank][cell] if lattice.categorical[lattice.test_axis[test]] else cell <= rank


def check_against_the_trees(lattice):
    ensemble, features = lattice.ensemble, lattice.features
    for axis, positions in enumerate(lattice.axis_columns):
        rows = rows_over(features, ensemble, axis)
        cells = lattice.cells(rows)
        patterns = [np.zeros(len(rows), dtype=bool)]
        for node in np.flatnonzero(np.isin(ensemble.feature, positions)):
            truth = rows[:, ensemble.feature[node]].astype(np.float32) <= ensemble.threshold[node]
            assert goes_left(lattice, node, cells).tolist() == truth.tolist()
            assert (lattice.node_test[node] < 0) == (truth.all() or not truth.any())
            patterns.append(truth)
        distinct = len(np.unique(np.stack(patterns, axis=1), axis=0))
        assert np.unique(cells[:, axis]).tolist() == list(range(lattice.n_cells[axis]))
        assert lattice.categorical[axis] or distinct == lattice.n_cells[axis]


def check_structure(lattice):
    assert (lattice.node_test == -1).tolist() == (lattice.ensemble.feature < 0).tolist()
    assert lattice.cell_start.tolist() == [0, *np.cumsum(lattice.n_cells)]
    tests = list(zip(lattice.test_axis.tolist(), lattice.test_rank.tolist(), strict=True))
    assert tests == sorted(set(tests))
    assert lattice.n_tests == len(tests)
    used = lattice.node_test[lattice.node_test >= 0]
    assert np.unique(used).tolist() == list(range(len(tests)))
    for axis in range(lattice.n_axes):
        check_cells(lattice, axis)


def check_cells(lattice, axis):
    cells = slice(lattice.cell_start[axis], lattice.cell_start[axis + 1])
    ends = [lattice.low[cells], lattice.high[cells], lattice.real_low[cells], lattice.real_high[cells]]
    if lattice.categorical[axis]:
        assert not np.any(ends)
        return
    low, high, real_low, real_high = ends
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()
    assert (real_low <= low).all()
    assert (high <= real_high).all()
    assert (real_high[:-1] <= real_low[1:]).all()


@given(cases())
@settings(max_examples=150, deadline=None)
def test_cells_and_tests_agree_with_the_trees(case):
    lattice = Lattice.of(read(case.model), case.features)
    check_structure(lattice)
    check_against_the_trees(lattice)
    queries = lattice.round(case.queries)
    assert (case.model.predict(queries) == case.model.predict(case.queries)).all()
    cells = lattice.cells(queries)
    assert ((cells >= 0) & (cells < lattice.n_cells)).all()
    assert lattice.n_points == np.prod([int(n) for n in lattice.n_cells])


@given(cases())
@settings(max_examples=60, deadline=None)
def test_rows_of_the_same_cells_are_the_same_to_the_model(case):
    lattice = Lattice.of(read(case.model), case.features)
    rng = np.random.default_rng(0)
    cells = rng.integers(0, lattice.n_cells, size=(50, lattice.n_axes))
    points = [
        lattice.nearest(row, cells) for row in (*lattice.round(case.queries[:3]), np.zeros(case.X_train.shape[1]))
    ]
    for point in points:
        case.features.check_rows(point)
        assert lattice.cells(lattice.round(point)).tolist() == cells.tolist()
        assert (case.model.predict_proba(point) == case.model.predict_proba(points[0])).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("one_hot", "optional")])
def test_nearest_is_the_nearest_admissible_value(kind):
    rng = np.random.default_rng(5)
    case = random_model(rng, n_features=1, kinds=[kind], n_queries=20, depth=3, n_classes=2)
    lattice = Lattice.of(read(case.model), case.features)
    admissible = rows_over(case.features, lattice.ensemble, 0)
    if kind == "whole":
        admissible = np.arange(-20.0, 21.0)[:, np.newaxis]
    homes = lattice.cells(lattice.round(admissible))[:, 0]
    for x in np.concatenate([lattice.round(case.queries), rng.normal(size=(20, 1)).astype(np.float32)]):
        for cell in range(lattice.n_cells[0]):
            found = lattice.nearest(x, np.array([cell]))
            stays = kind in NUMERIC_KINDS and lattice.low[cell] <= x[0] <= lattice.high[cell]
            best = 0.0 if stays else np.abs(admissible[homes == cell] - x).min()
            assert np.abs(found - x).tolist() == [best]


def test_neighbouring_float32_thresholds_make_sliver_cells():
    below, at, above = beside([7.0])
    lattice = one_axis([below, at, (at + above) / 2, at], Numeric("a"))
    assert lattice.high.tolist() == [below, at, np.inf]
    assert lattice.low.tolist() == [-np.inf, at, above]
    assert lattice.node_test.tolist() == [0, -1, -1, 1, -1, -1, 1, -1, -1, 1, -1, -1]


def test_real_ends_come_from_the_thresholds_themselves():
    left, right = (side.item() for side in closed_sides(0.1, np.float32))
    lattice = one_axis([0.1, 0.1 + 1e-12, 0.5], Numeric("a"))
    assert lattice.high.tolist() == [left, 0.5, np.inf]
    assert lattice.low[1] == right
    assert lattice.real_high.tolist() == [0.1, 0.5, np.inf]
    assert lattice.real_low.tolist() == [-np.inf, 0.1 + 1e-12, 0.5]


def test_limits_round_inward_and_drop_the_cuts_beyond_them():
    lattice = one_axis([-1.0, 0.1, 0.5, 2.0], Numeric("a", low=0.1, high=0.7))
    inside = closed_sides(0.1, np.float32)[1].item()
    assert lattice.low[0] == inside
    assert lattice.high[-1] == closed_sides(0.7, np.float32)[0].item()
    assert (lattice.real_low[0], lattice.real_high[-1]) == (0.1, 0.7)
    assert lattice.node_test[::3].tolist() == [-3, -3, 0, -2]


def test_a_limit_on_a_threshold_still_cuts_when_both_sides_remain():
    assert one_axis([0.5], Numeric("a", low=0.5)).n_cells.tolist() == [2]
    assert one_axis([0.5], Numeric("a", high=0.5)).node_test[0] == -2


@pytest.mark.parametrize(
    ("threshold", "test"),
    [
        (np.inf, -2),
        (-np.inf, -3),
        (1e39, -2),
        (-1e39, -3),
        (LARGEST, -2),
        (-LARGEST, 0),
        (1e-46, 0),
        (-1e-46, 0),
        (-0.0, 0),
    ],
)
def test_extreme_thresholds(threshold, test):
    lattice = one_axis([threshold], Numeric("a"))
    assert lattice.node_test[0] == test
    check_against_the_trees(lattice)


def test_zero_has_one_sign():
    lattice = one_axis([-0.0, 0.0, -1e-46], Numeric("a"))
    assert lattice.n_cells.tolist() == [3]
    assert not np.signbit(lattice.high[1])
    assert lattice.cells(np.array([[-0.0], [0.0]])).tolist() == [[1], [1]]


def test_integers_merge_cuts_between_the_same_whole_numbers():
    lattice = one_axis([0.2, 0.7, 1.0, 1.5, 4.5], Integer("a", high=9))
    assert lattice.low.tolist() == [-np.inf, 1, 2, 5]
    assert lattice.high.tolist() == [0, 1, 4, 9]
    assert lattice.real_low.tolist() == lattice.low.tolist()
    assert lattice.node_test[::3].tolist() == [0, 0, 1, 1, 2]


def test_large_integers_are_those_float32_can_hold():
    lattice = one_axis([2.0**24, 2.0**24 + 1, 2.0**24 + 2, 2.0**24 - 0.5], Integer("a", low=0, high=2**24 + 5))
    assert lattice.high.tolist() == [2**24 - 1, 2**24, 2**24 + 2, 2**24 + 4]
    assert lattice.low.tolist() == [0, 2**24, 2**24 + 2, 2**24 + 4]
    check_against_the_trees(lattice)


def test_ordinals_merge_cuts_and_keep_their_values():
    lattice = one_axis([0.05, 0.15, 0.25, 0.6, 0.9], Ordinal("a", values=[0.1, 0.2, 0.7, 0.8]))
    assert lattice.low.tolist() == [0.1, 0.2, 0.7]
    assert lattice.high.tolist() == [0.1, 0.2, 0.8]
    assert lattice.round(np.array([[np.float32(0.1)], [0.1], [0.8]])).tolist() == [[0.1], [0.1], [0.8]]
    assert lattice.nearest(np.array([0.55]), np.array([2])).tolist() == [0.7]


def test_an_ordinal_value_on_the_threshold_goes_where_the_model_sends_it():
    model_sees = float(np.float32(0.1))
    lattice = one_axis([0.1], Ordinal("a", values=[0.1, 0.2]))
    assert model_sees > 0.1
    assert lattice.node_test[0] == -3


def test_an_ordinal_threshold_on_a_value_sends_it_left():
    lattice = one_axis([1.0, 3.0], Ordinal("a", values=[1, 2, 3]))
    assert lattice.node_test[::3].tolist() == [0, -2]
    assert (lattice.high.tolist(), lattice.low.tolist()) == ([1, 3], [1, 2])


@pytest.mark.parametrize("x", [-3.0, 1.0, 1.4, 1.6, 2.0, 3.1, 5.4, 5.6, 9.0, 20.0])
def test_nearest_picks_the_nearest_of_an_ordinals_values_in_the_cell(x):
    lattice = one_axis([4.5], Ordinal("a", values=[1, 2, 4, 7, 9]))
    for cell, values in enumerate([[1, 2, 4], [7, 9]]):
        nearest = min(values, key=lambda value: abs(value - x))
        assert lattice.nearest(np.array([x]), np.array([cell])).tolist() == [nearest]


def test_ordinals_do_not_borrow_each_others_values():
    features = Features([Ordinal("a", values=[1, 2]), Ordinal("b", values=[7, 9])])
    lattice = Lattice.of(stumps([99.0], n_features=2), features)
    assert lattice.nearest(np.array([6.0, 3.0]), np.array([0, 0])).tolist() == [2.0, 7.0]


def test_listed_values_the_model_cannot_tell_apart_stay_themselves():
    values = [0.1, 0.1 + 1e-12, 0.3]
    lattice = one_axis([0.2], Ordinal("a", values=values))
    assert lattice.round(np.array(values)[:, np.newaxis]).ravel().tolist() == values


def test_a_group_is_one_axis_whose_tests_split_off_one_category():
    features = Features(
        [Numeric("n"), OneHot("g", columns=["a", "b", "c"], optional=True)], columns=["b", "n", "a", "c"]
    )
    ensemble = stumps([0.5, 0.5, 0.0, 0.999, 1.0, -0.1, 3.0], column=[0, 2, 3, 0, 2, 3, 1], n_features=4)
    lattice = Lattice.of(ensemble, features)
    assert lattice.n_cells.tolist() == [2, 4]
    assert lattice.categorical.tolist() == [False, True]
    assert lattice.test_sets.tolist() == [
        [False, True, True, True],
        [True, False, True, True],
        [True, True, False, True],
    ]
    assert (lattice.test_axis.tolist(), lattice.test_rank.tolist()) == ([0, 1, 1, 1], [0, 0, 1, 2])
    assert lattice.node_test[::3].tolist() == [2, 1, 3, 2, -2, -3, 0]
    rows = np.array([[0.0, 5, 1, 0], [1, 5, 0, 0], [0, 5, 0, 1], [0, 5, 0, 0]])
    assert lattice.cells(rows)[:, 1].tolist() == [0, 1, 2, 3]
    assert lattice.nearest(rows[0], np.array([[1, 1], [0, 3]])).tolist() == [[1, 5, 0, 0], [0, 3, 0, 0]]


def test_queries_outside_limits_count_to_the_nearest_cell_and_move_inside():
    lattice = one_axis([0.5, 1.5], Integer("a", low=0, high=2))
    rows = np.array([[-9.0], [9.0]])
    assert lattice.cells(rows).tolist() == [[0], [2]]
    assert lattice.nearest(rows, lattice.cells(rows)).tolist() == [[0.0], [2.0]]


def test_queries_round_to_the_grid():
    lattice = one_axis([0.5], Numeric("a"))
    assert lattice.round(np.array([0.1])).tolist() == [float(np.float32(0.1))]
    with pytest.raises(ValueError, match="within float32's range"):
        lattice.round(np.array([[1e39]]))


def test_a_model_without_splits_has_one_cell():
    leaf = Ensemble([-1], [0], [-1], [-1], [0], [[1, 0]], [0, 0], [0, 1], 2)
    lattice = Lattice.of(leaf, Features([Numeric("a"), Integer("b", low=1, high=3)]))
    assert (lattice.n_points, lattice.n_tests, lattice.n_axes) == (1, 0, 2)
    assert lattice.test_sets.shape == (0, 0)
    assert lattice.nearest(np.zeros(2), np.zeros(2, dtype=int)).tolist() == [0, 1]
    assert lattice.cells(np.zeros((3, 2))).tolist() == [[0, 0]] * 3


def test_arrays_have_the_types_the_engine_expects():
    case = random_model(np.random.default_rng(1), kinds=["halves", "one_hot"], n_features=3)
    lattice = Lattice.of(read(case.model), case.features)
    expected = {
        np.int32: ["n_cells", "test_axis", "test_rank", "node_test"],
        np.int64: ["cell_start"],
        np.bool_: ["categorical", "test_sets"],
        np.float64: ["low", "high", "real_low", "real_high"],
    }
    for dtype, names in expected.items():
        for name in names:
            assert getattr(lattice, name).dtype == dtype, name
            assert getattr(lattice, name).flags.c_contiguous, name


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (Features.numeric(2), "features must cover the model's 1 columns, got 2"),
        (Features([Numeric("a", low=1e39)]), "feature 'a': its limits admit no number"),
        (Features([Integer("a", high=-1e39)]), "feature 'a': its limits admit no number"),
        (Features([Numeric("a", low=0.1, high=0.1)]), "feature 'a': its limits admit no number"),
        (Features([Integer("a", low=2**24 + 1, high=2**24 + 1)]), "feature 'a': its limits admit no number"),
        (Features([Ordinal("a", values=[0, 1e39])]), "feature 'a': its limits admit no number"),
    ],
)
def test_features_that_do_not_fit_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        Lattice.of(stumps([0.5]), features)


def test_column_names_must_be_the_models():
    ensemble = read(RandomForestClassifier(2).fit(np.eye(2), [0, 1]))
    named = Ensemble(
        **{name: getattr(ensemble, name) for name in Ensemble.__slots__ if name not in ("_", "feature_names")},
        feature_names=("a", "b"),
    )
    Lattice.of(named, Features.numeric(2, ["a", "b"]))
    with pytest.raises(ValueError, match="columns of features: expected 'a', got 'b'"):
        Lattice.of(named, Features.numeric(2, ["b", "a"]))


def test_a_hundred_trees_take_less_than_a_millisecond():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    ensemble = read(RandomForestClassifier(100, max_depth=5, random_state=0).fit(X, X[:, 0] * X[:, 1] > X[:, 2]))
    features = Features.numeric(20)
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        Lattice.of(ensemble, features)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1e-3
