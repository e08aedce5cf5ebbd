import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfmaps.features import Binary, Features, Integer, Numeric, OneHot, Ordinal

MIXED = Features(
    [
        Numeric("income", low=0),
        Integer("age", low=18, high=100),
        OneHot("job", columns=["clerk", "nurse"]),
        Ordinal("grade", values=[1, 2.5, 3]),
        OneHot("pet", columns=["cat", "dog"], optional=True),
        Binary("owner"),
    ],
    columns=["income", "clerk", "age", "nurse", "grade", "cat", "owner", "dog"],
)
GOOD_ROW = [12.5, 1, 40, 0, 2.5, 0, 1, 0]


def row_with(**changes):
    row = np.array([GOOD_ROW], dtype=float)
    for column, value in changes.items():
        row[0, MIXED.columns.index(column)] = value
    return row


def test_features_know_their_names_columns_and_positions():
    assert MIXED.names == ("income", "age", "job", "grade", "pet", "owner")
    assert (len(MIXED), MIXED.n_columns) == (6, 8)
    assert [positions.tolist() for positions in MIXED.positions] == [[0], [2], [1, 3], [4], [5, 7], [6]]
    assert [entry.name for entry in MIXED] == list(MIXED.names)


def test_features_are_values():
    assert Features.numeric(2, ["a", "b"]) == Features([Numeric("a"), Numeric("b")])
    assert Features.numeric(2) != Features.numeric(3)
    assert hash(Features.numeric(2)) == hash(Features.numeric(2))
    assert Features([OneHot("g", columns=["a", "b"])]) != Features(
        [OneHot("g", columns=["a", "b"])], columns=["b", "a"]
    )


@pytest.mark.parametrize(
    "row",
    [
        GOOD_ROW,
        row_with(income=-5, age=17)[0],
        row_with(cat=1)[0],
        row_with(clerk=0, nurse=1)[0],
        row_with(age=-1e30)[0],
    ],
)
def test_admissible_rows_pass_and_limits_do_not_bind_queries(row):
    MIXED.check_rows(np.array([row, GOOD_ROW], dtype=float))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"age": 40.5}, "feature 'age': expected an integer, got 40.5 in row 1"),
        ({"grade": 2}, r"feature 'grade': expected one of \[1.0, 2.5, 3.0\], got 2.0 in row 1"),
        ({"grade": 99}, "feature 'grade'"),
        ({"owner": 0.5}, "feature 'owner': expected 0 or 1, got 0.5 in row 1"),
        ({"owner": 1e200}, "feature 'owner': expected 0 or 1"),
        ({"nurse": 1}, r"feature 'job': expected exactly one of its columns to be 1, got \[1.0, 1.0\] in row 1"),
        ({"clerk": 0}, r"feature 'job': expected exactly one of its columns to be 1, got \[0.0, 0.0\] in row 1"),
        ({"clerk": 0.5, "nurse": 0.5}, "feature 'job'"),
        ({"cat": 1, "dog": 1}, "feature 'pet': expected at most one of its columns to be 1"),
    ],
)
def test_an_inadmissible_row_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        MIXED.check_rows(np.concatenate([row_with(), row_with(**changes)]))


@given(st.lists(st.sampled_from([0.0, 1.0, 0.5, 2.5, 3.0, 40.0, -1.0]), min_size=8, max_size=8))
@settings(max_examples=300)
def test_all_features_at_once_agree_with_one_at_a_time(row):
    _, clerk, age, nurse, grade, cat, owner, dog = row
    admissible = (
        age == int(age)
        and grade in (1, 2.5, 3)
        and owner in (0, 1)
        and (clerk, nurse) in [(0, 1), (1, 0)]
        and (cat, dog) in [(0, 0), (0, 1), (1, 0)]
    )
    try:
        MIXED.check_rows(np.array([row]))
    except ValueError:
        assert not admissible
    else:
        assert admissible


def test_an_ordinal_may_come_through_float32():
    features = Features([Ordinal("share", values=[0.1, 0.7])])
    features.check_rows(np.array([[0.1], [np.float32(0.7)]], dtype=float))
    with pytest.raises(ValueError, match=r"got 0\.100001 in row 0"):
        features.check_rows(np.array([[0.100001]]))


def test_no_rows_are_admissible():
    MIXED.check_rows(np.empty((0, 8)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Numeric("a", low=2, high=1), ValueError, "feature 'a': low must not exceed high, got 2 and 1"),
        (lambda: Numeric("a", low=np.nan), ValueError, "feature 'a': low must be finite"),
        (lambda: Numeric("a", high=np.inf), ValueError, "feature 'a': high must be finite"),
        (lambda: Numeric("a", low="1"), TypeError, "feature 'a': low must be a number"),
        (lambda: Numeric(3), TypeError, "name must be text, got 3"),
        (lambda: Integer("a", low=0.2, high=0.8), ValueError, "feature 'a': no integer lies between"),
        (lambda: Ordinal("a", values=[]), ValueError, "feature 'a': values must be distinct and not empty"),
        (lambda: Ordinal("a", values=[1, 1.0]), ValueError, "feature 'a': values must be distinct"),
        (lambda: Ordinal("a", values=[1, np.nan]), ValueError, "feature 'a': values must be finite"),
        (lambda: Ordinal("a", values=["low"]), TypeError, "feature 'a': values must be a number"),
        (lambda: OneHot("g", columns=["a"]), ValueError, "feature 'g': columns must be two or more"),
        (lambda: OneHot("g", columns="ab"), TypeError, "feature 'g': columns must be a list of names"),
        (lambda: OneHot("g", columns=["a", 1]), TypeError, "name must be text, got 1"),
        (lambda: OneHot("g", columns=["a", "b"], gap=0), ValueError, "feature 'g': gap must be positive"),
        (lambda: Features([]), ValueError, "entries must not be empty"),
        (lambda: Features(["a"]), TypeError, "entries must be Numeric"),
        (lambda: Features([Numeric("a"), Binary("a")]), ValueError, "feature 'a' is given twice"),
        (lambda: Features([Numeric("a"), OneHot("g", columns=["a", "b"])]), ValueError, "column 'a' belongs to two"),
        (lambda: Features([OneHot("g", columns=["a", "a"])]), ValueError, "column 'a' belongs to two"),
        (lambda: Features([Numeric("a")], columns=["a", "b"]), ValueError, "column 'b' belongs to no feature"),
        (lambda: Features([Numeric("a")], columns=["b"]), ValueError, "column 'a' is not one of the columns"),
        (lambda: Features([Numeric("a")], columns=["a", "a"]), ValueError, "column 'a' occurs twice in columns"),
        (lambda: Features.numeric(2, ["a"]), ValueError, "names must be 2 names, got 1"),
    ],
)
def test_features_that_make_no_sense_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("frame_type", [pd.DataFrame, pl.DataFrame])
def test_features_follow_from_a_frame(frame_type):
    frame = frame_type(
        {
            "clerk": [1, 0, 0],
            "age": [30, 40, 50],
            "nurse": [0, 1, 1],
            "owner": [True, True, True],
            "zero": [0, 0, 0],
            "flag": [0.0, 1.0, 1.0],
            "size": [1, 3, 3],
            "grade": [1, 2, 2],
        }
    )
    features = Features.from_frame(
        frame, one_hot={"job": ["clerk", "nurse"]}, integer=["age"], ordinal={"grade": [1, 2, 3]}
    )
    assert list(features) == [
        OneHot("job", columns=["clerk", "nurse"]),
        Integer("age"),
        Binary("owner"),
        Numeric("zero"),
        Binary("flag"),
        Numeric("size"),
        Ordinal("grade", values=[1, 2, 3]),
    ]
    assert features.columns == tuple(frame.columns)
    assert Features.from_frame(frame, ordinal=["size"]).entries[6] == Ordinal("size", values=[1, 3])
    assert Features.from_frame(frame, binary=["zero"]).entries[4] == Binary("zero")


@pytest.mark.parametrize(
    "options", [{"integer": ["b"]}, {"ordinal": ["b"]}, {"binary": ["b"]}, {"one_hot": {"g": ["a", "b"]}}]
)
def test_unknown_columns_of_a_frame_are_named(options):
    with pytest.raises(ValueError, match="column 'b' is not one of the columns"):
        Features.from_frame(pd.DataFrame({"a": [1.0]}), **options)
