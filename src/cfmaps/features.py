"""What the columns of a model mean: kinds, limits, and which values an answer may hold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps._kinds import Kinds
from cfmaps.kinds import Binary, Categorical, Feature, Integer, Numeric, OneHot, Ordinal, check_names

__all__ = ["Binary", "Categorical", "Feature", "Features", "Integer", "Numeric", "OneHot", "Ordinal"]

IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, init=False)
class Features:
    """The features of a model; together they cover each of its columns exactly once.

    Parameters
    ----------
    entries : iterable of Numeric, Integer, Ordinal, Binary, OneHot, Categorical
    columns : sequence of str, optional
        The model's columns in the model's order. Without it they are those of the
        entries, laid one after the other; groups whose columns are apart need it.

    Examples
    --------
    >>> features = Features([Integer("age", low=18), OneHot("job", columns=["clerk", "nurse"])])
    >>> features.names, features.columns
    (('age', 'job'), ('age', 'clerk', 'nurse'))
    >>> features.check_rows(np.array([[30.0, 1.0, 1.0]]))
    Traceback (most recent call last):
        ...
    ValueError: feature 'job': expected exactly one of its columns to be 1, got [1.0, 1.0] in row 0
    """

    entries: tuple[Feature, ...]
    columns: tuple[str, ...]
    positions: tuple[IntArray, ...] = field(compare=False, repr=False)
    _kinds: Kinds = field(compare=False, repr=False)

    def __init__(self, entries: Iterable[Feature], *, columns: Sequence[str] | None = None) -> None:
        entries = tuple(entries)
        if not entries:
            raise ValueError("entries must not be empty")
        for entry in (entry for entry in entries if not isinstance(entry, Feature)):
            raise TypeError(f"entries must be Numeric, Integer, Ordinal, Binary, OneHot or Categorical, got {entry!r}")
        _check.distinct((entry.name for entry in entries), "feature", "is given twice")
        claimed = [column for entry in entries for column in entry.columns]
        _check.distinct(claimed, "column", "belongs to two features")
        where = _places(claimed, claimed if columns is None else columns)
        positions = tuple(np.array([where[column] for column in entry.columns]) for entry in entries)
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "columns", tuple(where))
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "_kinds", _kinds(entries, positions))

    @classmethod
    def numeric(cls, n: int, names: Sequence[str] | None = None) -> "Features":
        """Every column a number, free on the whole line.

        >>> Features.numeric(2).names
        ('x0', 'x1')
        """
        if names is not None and len(names) != n:
            raise ValueError(f"names must be {n} names, got {len(names)}")
        return cls(Numeric(name) for name in (names if names is not None else [f"x{i}" for i in range(n)]))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        one_hot: Mapping[str, Sequence[str]] | None = None,
        integer: Iterable[str] = (),
        ordinal: Mapping[str, Sequence[float]] | Iterable[str] = (),
        binary: Iterable[str] = (),
    ) -> "Features":
        """Features of a pandas or polars frame; what is not named is inferred.

        Columns that hold both 0 and 1 and nothing else, or booleans, are Binary, all
        others Numeric. An ordinal named without values takes those of the frame.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 40], "owner": [0, 1], "grade": [1, 3]})
        >>> print(*Features.from_frame(frame, integer=["age"], ordinal=["grade"]), sep="; ")
        Integer(name='age', low=None, high=None); Binary(name='owner'); Ordinal(name='grade', values=(1.0, 3.0))
        """
        import narwhals as nw

        native = nw.from_native(frame, eager_only=True)
        columns = native.columns
        check_names(*columns)
        named: list[Feature] = [OneHot(name, columns=members) for name, members in (one_hot or {}).items()]
        named += [*map(Integer, integer), *map(Binary, binary)]
        for name in ordinal:
            _places([name], columns, complete=False)
            values = ordinal[name] if isinstance(ordinal, Mapping) else native[name].unique().to_list()
            named.append(Ordinal(name, values=values))
        claimed = [column for entry in named for column in entry.columns]
        where = _places(claimed, columns, complete=False)
        named += [_inferred(name, native[name]) for name in columns if name not in claimed]
        named.sort(key=lambda entry: min(where[column] for column in entry.columns))
        return cls(named, columns=columns)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per feature."""
        return tuple(entry.name for entry in self.entries)

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def check_rows(self, X: npt.NDArray[np.float64]) -> None:
        """Raise ValueError unless every row of ``X``, shape (n_rows, n_columns), is admissible.

        Integers must be whole, ordinals one of their values, binaries 0 or 1 and groups
        have one column on. Limits may be exceeded: they bind the answer, not the query.
        """
        if self._kinds.admit(X):
            return
        if np.isnan(X).any():
            return self.check_rows(self._filled(X))
        for entry, positions in zip(self.entries, self.positions, strict=True):
            good = _admissible(entry, X[:, positions])
            if not good.all():
                row = int(np.argmin(good))
                got = X[row, positions].tolist() if len(positions) > 1 else X[row, positions[0]]
                raise ValueError(f"feature {entry.name!r}: expected {_expectation(entry)}, got {got} in row {row}")

    def _filled(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """``X`` with something admissible for every value that may be missing."""
        filled = X.copy()
        for entry, positions in zip(self.entries, self.positions, strict=True):
            missing = np.isnan(X[:, positions[0]])
            if isinstance(entry, OneHot):
                if np.isnan(X[:, positions]).any():
                    raise ValueError(f"feature {entry.name!r}: a one-hot group has no missing values, got NaN")
            elif missing.any():
                listed = _listed_values(entry) if isinstance(entry, Ordinal | Categorical) else (0.0,)
                filled[missing, positions[0]] = listed[0]
        return filled


def _kinds(entries: tuple[Feature, ...], positions: tuple[IntArray, ...]) -> Kinds:
    placed = [(entry, places.tolist()) for entry, places in zip(entries, positions, strict=True)]
    return Kinds(
        integers=[place for entry, places in placed if isinstance(entry, Integer) for place in places],
        bits=[place for entry, places in placed if isinstance(entry, Binary | OneHot) for place in places],
        groups=[(places, entry.optional) for entry, places in placed if isinstance(entry, OneHot)],
        scales=[
            (places[0], _listed_values(entry)) for entry, places in placed if isinstance(entry, Ordinal | Categorical)
        ],
    )


def _listed_values(entry: Ordinal | Categorical) -> Sequence[float]:
    return entry.values if isinstance(entry, Ordinal) else [float(code) for code in entry.codes or ()]


def _admissible(entry: Feature, columns: npt.NDArray[np.float64]) -> BoolArray:
    """Per row, whether the columns of one feature hold what it may hold."""
    first = columns[:, 0]
    if isinstance(entry, Integer):
        return np.asarray(first == np.floor(first))
    if isinstance(entry, Binary):
        return np.asarray((first == 0) | (first == 1))
    if isinstance(entry, Ordinal | Categorical):
        return _listed(first, np.array(_listed_values(entry)))
    if isinstance(entry, OneHot):
        on = columns.sum(axis=1)
        bits = ((columns == 0) | (columns == 1)).all(axis=1)
        return np.asarray(bits & ((on == 1) | (entry.optional & (on == 0))))
    return np.ones(len(first), dtype=bool)


def _listed(column: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> BoolArray:
    """Whether each number is one of ``values``, or is one of them after a trip through float32."""
    exact = np.isin(column, values)
    if exact.all():
        return exact
    with np.errstate(over="ignore"):
        return exact | np.isin(column, values.astype(np.float32).astype(np.float64))


def _expectation(entry: Feature) -> str:
    if isinstance(entry, OneHot):
        return f"{'at most' if entry.optional else 'exactly'} one of its columns to be 1"
    if isinstance(entry, Ordinal):
        return f"one of {list(entry.values)}"
    if isinstance(entry, Categorical):
        return f"one of {list(entry.categories)}"
    return "an integer" if isinstance(entry, Integer) else "0 or 1"


def _inferred(name: str, series: Any) -> Feature:
    import narwhals as nw

    is_binary = series.dtype == nw.Boolean or set(series.unique().to_list()) == {0, 1}
    return Binary(name) if is_binary else Numeric(name)


def _places(claimed: Sequence[str], columns: Sequence[str], *, complete: bool = True) -> dict[str, int]:
    """The position of each model column, after checking that ``claimed`` covers them."""
    _check.distinct(columns, "column", "occurs twice in columns")
    where = {column: index for index, column in enumerate(columns)}
    for column in claimed:
        if column not in where:
            raise ValueError(f"column {column!r} is not one of the columns {list(columns)}")
    if complete and len(claimed) < len(columns):
        missing = next(column for column in columns if column not in set(claimed))
        raise ValueError(f"column {missing!r} belongs to no feature; expected each column in exactly one")
    return where
