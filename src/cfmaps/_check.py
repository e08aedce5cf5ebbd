"""What callers pass becomes finite float64 arrays of the right shape, or a clear error.

Results may share memory with what was passed: treat them as read-only.
"""

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def matrix(
    X: Any, name: str, n_columns: int, *, columns: Sequence[str] | None = None, missing: bool = False
) -> FloatArray:
    """Rows of numbers as a C-contiguous float64 array of shape (n_rows, n_columns).

    Takes numpy arrays, nested lists and frames (pandas, polars); the columns of
    a frame are checked against ``columns`` when both are named. With ``missing`` the
    rows may hold NaN.

    >>> matrix([[1, 2], [3, 4]], "X", 2)
    array([[1., 2.],
           [3., 4.]])
    """
    if type(X) is not np.ndarray or X.dtype != np.float64:
        X = _numbers(X, name, columns)
    if X.ndim != 2:
        hint = "; for one row pass X.reshape(1, -1)" if X.ndim == 1 else ""
        raise ValueError(f"{name} must be 2-D with {n_columns} columns, got {X.ndim}-D of shape {X.shape}{hint}")
    _expect_width(X.shape[1], name, n_columns)
    return _finite(np.ascontiguousarray(X), name, columns, missing)


def row(
    x: Any, name: str, n_columns: int, *, columns: Sequence[str] | None = None, missing: bool = False
) -> FloatArray:
    """One row of numbers as a C-contiguous float64 array of shape (n_columns,).

    Takes 1-D arrays, lists, series, and frames (pandas, polars) of one row.

    >>> row([1, 2], "x", 2)
    array([1., 2.])
    """
    if type(x) is not np.ndarray or x.dtype != np.float64:
        x = _numbers(x, name, columns, one_row=True)
    if x.ndim != 1:
        hint = f"; for its first row pass {name}[0]" if x.ndim == 2 and len(x) else ""
        raise ValueError(
            f"{name} must be one row (1-D with {n_columns} values), got {x.ndim}-D of shape {x.shape}{hint}"
        )
    _expect_width(x.shape[0], name, n_columns)
    return _finite(np.ascontiguousarray(x), name, columns, missing)


def same_names(given: Sequence[Any], expected: Sequence[str], name: str) -> None:
    """Column names must be the model's, in the model's order, as scikit-learn asks."""
    for name_given, name_expected in zip(given, expected, strict=False):
        if name_given != name_expected:
            order = " (the same names in another order)" if sorted(map(str, given)) == sorted(expected) else ""
            raise ValueError(f"columns of {name}: expected {name_expected!r}, got {name_given!r}{order}")
    _expect_width(len(given), name, len(expected))


def distinct(names: Iterable[str], what: str, problem: str) -> None:
    """No name may occur twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} {problem}")
        seen.add(name)


def number(value: Any, name: str) -> float:
    """A finite number as a float.

    >>> number(2, "gap")
    2.0
    """
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


def whole(value: Any, name: str, least: int) -> int:
    """A whole number that is at least ``least``.

    >>> whole(np.int64(2), "max_nodes", 1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def seconds(value: Any, name: str) -> float:
    """A time that is not negative; None stands for no end of it.

    >>> seconds(None, "time_limit")
    inf
    """
    if value is None:
        return math.inf
    if number(value, name) < 0:
        raise ValueError(f"{name} must be at least 0 seconds, got {value!r}")
    return float(value)


def threads(value: Any, name: str) -> int:
    """How many threads to use: all cores this process may run on when None."""
    if value is not None:
        return whole(value, name, 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _expect_width(width: int, name: str, n_columns: int) -> None:
    if width != n_columns:
        raise ValueError(f"{name} must have {n_columns} columns, got {width}")


def _finite(array: FloatArray, name: str, columns: Sequence[str] | None, missing: bool) -> FloatArray:
    # The sum of squares is finite only if every number is: one pass, no temporary array.
    if math.isfinite(np.vdot(array, array)):
        return array
    bad = np.argwhere(np.isinf(array) if missing else ~np.isfinite(array))
    if len(bad):
        *which_row, column = bad[0].tolist()
        place = ", ".join([*map(str, which_row), repr(columns[column]) if columns else str(column)])
        raise ValueError(f"{name}[{place}] is {array[tuple(bad[0])]}; expected finite numbers")
    return array


def _numbers(X: Any, name: str, columns: Sequence[str] | None, *, one_row: bool = False) -> FloatArray:
    """A float64 array of whatever shape ``X`` has."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{name} must hold numbers everywhere, got a MaskedArray")
    if isinstance(X, np.ndarray):
        return _floats(X, name)
    if isinstance(X, list | tuple):
        return _floats(_array(X, name), name)
    import narwhals as nw

    if nw.dependencies.is_into_dataframe(X):
        frame = _frame_numbers(nw.from_native(X, eager_only=True), name, columns)
        return frame[0] if one_row and len(frame) == 1 else frame
    if nw.dependencies.is_into_series(X):
        labels = nw.maybe_get_index(nw.from_native(X, series_only=True))
        if columns is not None and labels is not None and all(isinstance(label, str) for label in labels):
            same_names(list(labels), columns, name)
    array = _array(X, name)
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"{name} must be an array, nested lists or a pandas or polars frame, got {type(X).__name__}")
    return _floats(array, name)


def _array(X: Any, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} must be rows of equal length: {error}") from None


def _floats(array: npt.NDArray[Any], name: str) -> FloatArray:
    if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and _holds_text(array)):
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers: {error}") from None


def _holds_text(array: npt.NDArray[Any]) -> bool:
    return any(isinstance(item, str | bytes) for item in array.flat)


def _frame_numbers(frame: Any, name: str, columns: Sequence[str] | None) -> FloatArray:
    import narwhals as nw

    if columns is not None and all(isinstance(column, str) for column in frame.columns):
        same_names(frame.columns, columns, name)
    for column, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise TypeError(f"column {column!r} of {name} must hold numbers, got {dtype}")
    values = np.empty(frame.shape, dtype=np.float64)
    for index, column in enumerate(frame.iter_columns()):
        values[:, index] = column.cast(nw.Float64).to_numpy()
    return values
