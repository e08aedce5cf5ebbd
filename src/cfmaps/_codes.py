"""Categories in the caller's own values become the codes a model takes, and codes become categories again."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps._shapes import LikeRows
from cfmaps.features import Categorical, Features

FloatArray = npt.NDArray[np.float64]


class Coder:
    """Translates the categorical columns of some features whose categories are no codes."""

    def __init__(self, features: Features) -> None:
        placed = zip(features.positions, features, strict=True)
        self.entries = {
            int(positions[0]): entry
            for positions, entry in placed
            if isinstance(entry, Categorical) and not entry.are_codes
        }

    def __bool__(self) -> bool:
        return bool(self.entries)

    def encode(self, X: Any, name: str) -> Any:
        """``X`` with codes for categories, of the same shape; NaN for missing values."""
        frame = _frame(X)
        if frame is None:
            array = np.array(X, dtype=object)
            for position, entry in self.entries.items():
                if position < array.shape[-1]:
                    column = array[..., position]
                    array[..., position] = _codes(entry, np.atleast_1d(column), name).reshape(np.shape(column))
            return _numbers(array)
        import narwhals as nw

        for position, entry in self.entries.items():
            if position < len(frame.columns):
                codes = _codes(entry, frame[frame.columns[position]].to_list(), name)
                series = nw.new_series(frame.columns[position], codes, backend=nw.get_native_namespace(frame))
                frame = frame.with_columns(_aligned(series, frame))
        return frame.to_native()

    def decode(self, position: int, codes: FloatArray) -> list[Any]:
        """The categories of one column; None for missing values."""
        entry = self.entries[position]
        return [None if code != code else entry.category_of(code) for code in codes.tolist()]


class InCategories(LikeRows):
    """Rows as they came, categories in the caller's own values."""

    def __init__(self, inner: LikeRows, coder: Coder, given: Any) -> None:
        self._inner, self._coder = inner, coder
        self.frame = inner.frame
        self._given = given

    def all(self, rows: FloatArray) -> Any:
        """All rows."""
        return self._decoded(self._inner.all(rows), rows)

    def one(self, row: FloatArray, index: int) -> Any:
        """The row that stands at ``index``."""
        answer = self._inner.one(row, index)
        return self._decoded(answer, row[np.newaxis] if _frame(answer) is not None else row)

    def _decoded(self, answer: Any, rows: FloatArray) -> Any:
        frame = _frame(answer)
        if frame is None:
            array = np.array(rows, dtype=object)
            for position in self._coder.entries:
                categories = self._coder.decode(position, np.atleast_1d(rows[..., position]))
                array[..., position] = categories if rows.ndim > 1 else categories[0]
            return _as_series(array, answer)
        import narwhals as nw

        for position in self._coder.entries:
            name = frame.columns[position]
            categories = self._coder.decode(position, rows[:, position])
            column = nw.new_series(name, categories, self._dtype(name), backend=nw.get_native_namespace(frame))
            frame = frame.with_columns(_aligned(column, frame))
        return frame.to_native()

    def _dtype(self, name: str) -> Any:
        given = _frame(self._given)
        return None if given is None else given[name].dtype


def _frame(X: Any) -> Any:
    """A narwhals frame, or None for what is none."""
    if isinstance(X, np.ndarray | list | tuple) or np.isscalar(X):
        return None
    import narwhals as nw

    return nw.from_native(X, eager_only=True) if nw.dependencies.is_into_dataframe(X) else None


def _aligned(column: Any, frame: Any) -> Any:
    import narwhals as nw

    index = nw.maybe_get_index(frame)
    return column if index is None else nw.maybe_set_index(column, index=index)


def _as_series(array: npt.NDArray[Any], answer: Any) -> Any:
    """A row like the series it came as."""
    if isinstance(answer, np.ndarray):
        return array
    series: Any = type(answer)(array.tolist(), dtype=object)
    if hasattr(answer, "index"):
        series.index = answer.index
        series.name = answer.name
    return series


def _codes(entry: Categorical, values: Any, name: str) -> FloatArray:
    code_of = dict(zip(entry.categories, entry.codes or (), strict=True))
    codes = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None or value != value:
            continue
        if value not in code_of:
            got = f"got {value!r} in row {row} of {name}"
            raise ValueError(f"feature {entry.name!r}: expected one of {list(entry.categories)}, {got}")
        codes[row] = code_of[value]
    return codes


def _numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array  # the check that follows says what is wrong
