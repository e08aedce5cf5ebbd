"""Answers come back as queries went in: columns, dtype, index and library."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class LikeRows:
    """Turns float64 rows into what the rows came as: an array, or a frame with its dtypes and index.

    A dtype that cannot hold the values (2.5 in a column of integers) gives way to float64.
    """

    def __init__(self, given: Any) -> None:
        self._dtype = given.dtype if isinstance(given, np.ndarray) and given.dtype.kind in "fiub" else None
        self.frame: Any = None if isinstance(given, np.ndarray | list | tuple) else given

    def all(self, rows: FloatArray) -> Any:
        """All rows."""
        return _fitting(rows, self._dtype) if self.frame is None else self._framed(rows, slice(None))

    def one(self, row: FloatArray, index: int) -> Any:
        """The row that stands at ``index``: an array, or a frame of one row."""
        if self.frame is None:
            return _fitting(row, self._dtype)
        return self._framed(row[np.newaxis], slice(index, index + 1))

    def _framed(self, rows: FloatArray, place: slice | list[int]) -> Any:
        import narwhals as nw

        frame: Any = nw.from_native(self.frame, eager_only=True)
        columns = zip(frame.iter_columns(), rows.T.copy(), strict=True)
        return frame[place].with_columns(*(_like(column, values) for column, values in columns)).to_native()


class LikeSome(LikeRows):
    """The same for some of the rows: a row is asked for by its place among these."""

    def __init__(self, shape: LikeRows, rows: npt.NDArray[np.intp]) -> None:
        self._shape, self._rows = shape, rows
        self.frame = shape.frame

    def one(self, row: FloatArray, index: int) -> Any:
        """The row that stands at ``index`` of the chosen ones."""
        return self._shape.one(row, int(self._rows[index]))


class LikeRow(LikeRows):
    """The same for a single row: an array, list, series or frame of one row."""

    def one(self, row: FloatArray, index: int) -> Any:
        """The row."""
        given = self.frame
        if given is None or hasattr(given, "columns"):
            return super().one(row, index)
        import narwhals as nw

        series = nw.from_native(given, series_only=True)
        answer = _like(series, row.copy()).to_native()
        if hasattr(given, "index"):
            answer.index = given.index
        return answer


class LikeOneRow(LikeRow):
    """The same for several answers to a single row."""

    def all(self, rows: FloatArray) -> Any:
        """All answers: an array, or a frame with the row's index repeated."""
        if self.frame is None or not hasattr(self.frame, "columns"):
            return _fitting(rows, self._dtype)
        return self._framed(rows, [0] * len(rows))

    def one(self, row: FloatArray, index: int) -> Any:
        """One answer, as the row came."""
        return super().one(row, 0)


def _fitting(rows: FloatArray, dtype: Any) -> npt.NDArray[Any]:
    if dtype is None or dtype == rows.dtype or (dtype.kind != "f" and not np.isfinite(rows).all()):
        return rows
    with np.errstate(over="ignore", invalid="ignore"):
        answer = rows.astype(dtype)
    return answer if np.array_equal(answer.astype(np.float64), rows, equal_nan=True) else rows


def _like(column: Any, values: FloatArray) -> Any:
    """A series of the same name, of the same dtype if that holds the values."""
    import narwhals as nw

    series = nw.new_series(column.name, values, backend=nw.get_native_namespace(column))
    dtype = column.dtype
    if not (dtype.is_numeric() or dtype == nw.Boolean) or not (dtype.is_float() or np.isfinite(values).all()):
        return series
    cast = series.cast(dtype)
    return cast if np.array_equal(cast.to_numpy().astype(np.float64), values, equal_nan=True) else series
