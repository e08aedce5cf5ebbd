"""Answers come back as queries went in: columns, dtype and library."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class LikeRows:
    """Turns float64 rows into what the rows came as: an array, or a frame with its dtypes.

    A dtype that cannot hold the values (2.5 in a column of integers) gives way to float64.
    """

    def __init__(self, given: Any) -> None:
        self._dtype = given.dtype if isinstance(given, np.ndarray) and given.dtype.kind in "fiub" else None
        self.frame = None if isinstance(given, np.ndarray | list | tuple) else given

    def __call__(self, rows: FloatArray) -> Any:
        if self.frame is None:
            return _fitting(rows, self._dtype)
        import narwhals as nw

        frame = nw.from_native(self.frame, eager_only=True)
        columns = {
            name: nw.new_series(name, values, backend=nw.get_native_namespace(self.frame))
            for name, values in zip(frame.columns, rows.T.copy(), strict=True)
        }
        answers = nw.from_dict(columns)
        return answers.with_columns(
            *(_as_given(answers[name], frame[name].dtype) for name in frame.columns)
        ).to_native()


class LikeRow(LikeRows):
    """The same for one row: an array, list, series or frame of one row."""

    def __call__(self, rows: FloatArray) -> Any:
        given = self.frame
        if given is None:
            return super().__call__(rows)[0]
        if hasattr(given, "columns"):
            return super().__call__(rows)
        import narwhals as nw

        series = nw.from_native(given, series_only=True)
        answer = nw.new_series(series.name, rows[0].copy(), backend=nw.get_native_namespace(given))
        native = _as_given(answer, series.dtype).to_native()
        if nw.maybe_get_index(series) is not None:
            native.index = given.index
        return native


def _fitting(rows: FloatArray, dtype: Any) -> npt.NDArray[Any]:
    if dtype is None or dtype == rows.dtype or (dtype.kind != "f" and not np.isfinite(rows).all()):
        return rows
    with np.errstate(over="ignore", invalid="ignore"):
        answer = rows.astype(dtype)
    return answer if np.array_equal(answer.astype(np.float64), rows, equal_nan=True) else rows


def _as_given(series: Any, dtype: Any) -> Any:
    if series.dtype == dtype or not (dtype.is_integer() or dtype.is_float() or dtype == type(dtype)()):
        return series
    values = series.to_numpy()
    if not np.isfinite(values).all() and not dtype.is_float():
        return series
    cast = series.cast(dtype)
    return cast if np.array_equal(cast.to_numpy().astype(np.float64), values, equal_nan=True) else series
