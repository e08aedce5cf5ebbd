import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cfmaps import _check

NAMES = ("a", "b")


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, 4]],
        ((1, 2), (3, 4)),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[1, 2], [3, 4]], dtype=object),
        np.array([[1.0, 3.0], [2.0, 4.0]]).T,
        np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]])[:, ::2],
        np.array([[1.0, 2.0], [3.0, 4.0]], dtype=">f8"),
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pd.DataFrame([[1, 2], [3, 4]]),
        pd.DataFrame({"a": pd.array([1, 3], dtype="Int64"), "b": [2, 4]}),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
    ],
)
def test_rows_of_any_kind_become_the_same_array(X):
    found = _check.matrix(X, "X", 2, columns=NAMES)
    assert found.dtype == np.dtype("=f8")
    assert found.flags.c_contiguous
    assert found.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "x",
    [
        [1, 2],
        np.array([1, 2], dtype=np.uint8),
        np.array([1.0, 0.0, 2.0])[::2],
        pd.Series([1, 2], index=["a", "b"]),
        pd.Series([1, 2]),
        pl.Series([1, 2]),
        pd.DataFrame({"a": [1], "b": [2]}),
        pl.DataFrame({"a": [1], "b": [2]}),
    ],
)
def test_one_row_of_any_kind_becomes_the_same_array(x):
    assert _check.row(x, "x", 2, columns=NAMES).tolist() == [1.0, 2.0]


def test_read_only_arrays_are_borrowed_and_left_alone():
    X = np.array([[1.0, 2.0]])
    X.setflags(write=False)
    assert _check.matrix(X, "X", 2) is X
    assert _check.row(X[0], "x", 2).base is X


def test_no_rows_are_rows():
    assert _check.matrix(np.empty((0, 2)), "X", 2).shape == (0, 2)


def test_numbers_whose_squares_overflow_are_finite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _check.row(np.array([1e308, -1e308]), "x", 2).tolist() == [1e308, -1e308]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[1, 2, 3]], ValueError, "X must have 2 columns, got 3"),
        ([1, 2], ValueError, r"X must be 2-D with 2 columns, got 1-D of shape \(2,\); for one row"),
        (5, ValueError, "X must be 2-D with 2 columns, got 0-D"),
        ([[1, 2], [3]], ValueError, "X must be rows of equal length"),
        ([[1, 2], [3, np.nan]], ValueError, r"X\[1, 'b'\] is nan; expected finite"),
        ([[1, 2], [-np.inf, 2]], ValueError, r"X\[1, 'a'\] is -inf; expected finite"),
        ([["1", "2"]], TypeError, "X must hold numbers, got dtype <U1"),
        ([[1j, 2]], TypeError, "X must hold numbers, got dtype complex128"),
        (np.array([["1", 2]], dtype=object), TypeError, "X must hold numbers, got dtype object"),
        (np.array([[{}, 2]], dtype=object), TypeError, "X must hold numbers"),
        (pd.DataFrame({"a": ["u"], "b": [1]}), TypeError, "column 'a' of X must hold numbers"),
        (
            pl.DataFrame({"a": [1], "b": [None]}, schema={"a": pl.Int64, "b": pl.Float64}),
            ValueError,
            r"X\[0, 'b'\] is nan",
        ),
        (pd.DataFrame({"b": [1], "a": [2]}), ValueError, r"expected 'a', got 'b' \(the same names in another order\)"),
        (pd.DataFrame({"a": [1], "c": [2]}), ValueError, "columns of X: expected 'b', got 'c'$"),
        (pd.DataFrame({"a": [1]}), ValueError, "X must have 2 columns, got 1"),
    ],
)
def test_what_is_wrong_with_rows_is_said(X, error, message):
    with pytest.raises(error, match=message):
        _check.matrix(X, "X", 2, columns=NAMES)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ([[1, 2]], ValueError, r"x must be one row \(1-D with 2 values\), got 2-D of shape \(1, 2\)"),
        ([1, 2, 3], ValueError, "x must have 2 columns, got 3"),
        ([1, np.inf], ValueError, r"x\['b'\] is inf"),
        (pd.Series([1, 2], index=["b", "a"]), ValueError, "expected 'a', got 'b'"),
        (pd.DataFrame({"a": [1, 2], "b": [3, 4]}), ValueError, "x must be one row"),
        ("text", TypeError, "x must hold numbers"),
    ],
)
def test_what_is_wrong_with_one_row_is_said(x, error, message):
    with pytest.raises(error, match=message):
        _check.row(x, "x", 2, columns=NAMES)


@pytest.mark.parametrize(
    ("value", "error"), [("1", TypeError), (None, TypeError), (np.nan, ValueError), (np.inf, ValueError)]
)
def test_a_number_is_finite(value, error):
    with pytest.raises(error, match="gap must be"):
        _check.number(value, "gap")


def test_names_occur_once():
    _check.distinct(["a", "b"], "feature", "is given twice")
    with pytest.raises(ValueError, match="feature 'a' is given twice"):
        _check.distinct(["a", "b", "a"], "feature", "is given twice")
