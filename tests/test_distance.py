import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfmaps.distance import Distance
from cfmaps.features import Features, Numeric, OneHot

NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf, 1: 1.0, 2.0: 2.0, 3: 3.0, math.inf: math.inf, 1.5: 1.5}
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)
WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3)


@pytest.mark.parametrize(("norm", "p"), NORMS.items())
def test_a_norm_is_its_exponent(norm, p):
    assert Distance(norm).p == p


@given(NUMBERS, NUMBERS, WEIGHTS, st.sampled_from(list(NORMS)))
def test_between_is_the_weighted_norm(x, y, weights, norm):
    expected = np.linalg.norm(np.array(weights) * (np.array(x) - y), ord=NORMS[norm])
    assert Distance(norm, weights).between(x, y) == pytest.approx(expected, rel=1e-12)


def test_between_takes_rows():
    assert Distance("l2").between([[0, 0], [3, 0]], [3, 4]).tolist() == [5.0, 4.0]
    assert Distance("l2").between(np.zeros((0, 2)), [3, 4]).shape == (0,)


@pytest.mark.parametrize("p", [2, 10, 300])
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_between_does_not_leave_the_range_of_float64(p, size):
    assert Distance(p).between([0, 0], [size, size]) == pytest.approx(size * 2 ** (1 / p), rel=1e-12)


@pytest.mark.parametrize("norm", ["l3", "L1", 0.5, 0, -1, math.nan, -math.inf, None, [2], 1j])
def test_other_norms_are_refused(norm):
    with pytest.raises(ValueError, match="norm must be 'l1', 'l2', 'linf' or a number >= 1, got"):
        Distance(norm)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 0], ValueError, "weights must be positive, got 0.0 for column 1"),
        ([-1, 1], ValueError, "weights must be positive, got -1.0 for column 0"),
        ([1, math.nan], ValueError, r"weights\[1\] is nan"),
        ([1, math.inf], ValueError, r"weights\[1\] is inf"),
        ([1, 1, 1], ValueError, "weights must be 2 numbers, one per column, got 3"),
        ([], ValueError, "weights must be 2 numbers"),
        (2.0, ValueError, "weights must be one row"),
        ([[1, 1]], ValueError, "weights must be one row"),
        (["a", "b"], TypeError, "weights must hold numbers"),
        ({"c": 1}, ValueError, "weights name the column 'c', expected some of"),
        ({"a": 0}, ValueError, "weights must be positive, got 0.0 for column 0"),
        ({"a": "1"}, TypeError, r"weights\['a'\] must be a number"),
        ({"a": math.inf}, ValueError, r"weights\['a'\] must be finite"),
        ("size", ValueError, "weights must be None, numbers, a mapping or one of"),
        ("mad", ValueError, "weights='mad' needs data"),
    ],
)
def test_other_weights_are_refused(weights, error, message):
    with pytest.raises(error, match=message):
        Distance.resolve("l1", weights, ["a", "b"])


def test_weights_resolve_per_column():
    assert Distance.resolve("l1", None, 2).weights is None
    assert Distance.resolve("l1", [2, 3], 2).weights.tolist() == [2, 3]
    assert Distance.resolve("l1", {"b": 4}, ["a", "b"]).weights.tolist() == [1, 4]
    assert Distance.resolve("l1", {"x1": 4}, 2).weights.tolist() == [1, 4]


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, lambda rows: pl.DataFrame(rows, orient="row")])
@pytest.mark.parametrize(
    ("kind", "spread"), [("range", [4.0, 1.0, 8.0]), ("mad", [1.0, 1.0, 2.0]), ("std", [np.sqrt(2), 1.0, np.sqrt(8)])]
)
def test_spread_becomes_weights_and_no_spread_becomes_one(make, kind, spread):
    data = make([[0.0, 7.0, 0.0], [1.0, 7.0, 2.0], [2.0, 7.0, 4.0], [3.0, 7.0, 6.0], [4.0, 7.0, 8.0]])
    found = Distance.resolve("l1", kind, 3, data=data)
    np.testing.assert_allclose(found.weights, 1 / np.array(spread), rtol=1e-15)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2, 3]], "data must have 2 columns, got 3"),
        ([[1, np.nan]], r"data\[0, 'b'\] is nan"),
        (np.empty((0, 2)), "data must hold at least one row"),
        ([[0, 0], [0, 5e-324]], "weights.* is inf"),
    ],
)
def test_data_that_gives_no_spread_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Distance.resolve("l1", "range", ["a", "b"], data=data)


def test_a_distance_resolves_to_itself():
    distance = Distance("l2", [1, 2])
    again = Distance.resolve(distance, None, 2)
    assert (again.p, again.weights.tolist()) == (2.0, [1, 2])
    with pytest.raises(ValueError, match="weights must not be given twice"):
        Distance.resolve(distance, [1, 2], 2)
    with pytest.raises(ValueError, match="weights must be 3 numbers"):
        Distance.resolve(distance, None, 3)


def categories(group, positions, n_columns):
    """Every row a group may be in, all else zero."""
    rows = np.zeros((group.n_categories, n_columns))
    rows[np.arange(len(positions)), positions] = 1
    return rows


@pytest.mark.parametrize("gap", [None, 0.5, 3.0])
@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf", 3])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 7.0, 3.0]])
def test_category_costs_are_powered_distances(gap, optional, norm, weights):
    group = OneHot("g", columns=["a", "b", "c"], optional=optional, gap=gap)
    features = Features([group, Numeric("n")], columns=["b", "a", "n", "c"])
    distance = Distance(norm, weights)
    rows = categories(group, features.positions[0], 4)
    (costs,) = distance.category_costs(features)
    apart = distance.between(rows[:, np.newaxis], rows, features=features)
    np.testing.assert_allclose(costs, apart if norm == "linf" else apart**distance.p, rtol=1e-12)


def test_a_change_of_category_costs_what_the_columns_cost():
    features = Features([OneHot("g", columns=["a", "b"]), OneHot("h", columns=["c", "d"], gap=1.0)])
    for norm, cost in (("l1", 2.0), ("l2", 2.0), ("linf", 1.0)):
        plain, with_gap = Distance(norm).category_costs(features)
        assert (plain[0, 1], with_gap[0, 1]) == (cost, 1.0)
    assert Distance("l2").between([1, 0, 1, 0], [0, 1, 1, 0], features=features) == math.sqrt(2)
    assert Distance("l2").between([1, 0, 1, 0], [1, 0, 0, 1], features=features) == 1.0


def test_a_gap_weighs_as_its_groups_heaviest_column():
    features = Features([OneHot("g", columns=["a", "b"], gap=2.0)])
    assert Distance("l2", [3, 5]).category_costs(features)[0][0, 1] == 100.0
    assert Distance("linf", [3, 5]).between([1, 0], [0, 1], features=features) == 10.0


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_costs_that_leave_float64_are_refused(weight):
    features = Features([OneHot("g", columns=["a", "b"])])
    with pytest.raises(ValueError, match="weights and gap of feature 'g' to the power 3 leave float64's range"):
        Distance(3, [weight, weight]).category_costs(features)
    assert Distance("linf", [weight, weight]).category_costs(features)[0][0, 1] == weight


def test_features_without_groups_have_no_category_costs():
    assert Distance().category_costs(Features.numeric(3)) == ()
