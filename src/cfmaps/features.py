"""What the columns of a model mean: kinds, limits, and which values an answer may hold."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _check
from cfmaps._kinds import Kinds

IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


class _OneColumn:
    """A feature that is one column of the model, of the same name."""

    __slots__ = ()
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Numeric(_OneColumn):
    """A number, free on the real line or within closed limits.

    >>> Numeric("income", low=0)
    Numeric(name='income', low=0, high=None)
    """

    name: str
    _: KW_ONLY
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_limits(self.name, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Integer(_OneColumn):
    """A whole number, free or within closed limits.

    >>> Integer("age", low=18, high=100).columns
    ('age',)
    """

    name: str
    _: KW_ONLY
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_limits(self.name, self.low, self.high)
        if self.low is not None and self.high is not None and math.ceil(self.low) > math.floor(self.high):
            raise ValueError(f"feature {self.name!r}: no integer lies between low={self.low} and high={self.high}")


@dataclass(frozen=True, slots=True)
class Ordinal(_OneColumn):
    """One of a few numbers, kept in ascending order.

    >>> Ordinal("grade", values=[3, 1, 2]).values
    (1.0, 2.0, 3.0)
    """

    name: str
    _: KW_ONLY
    values: Sequence[float]

    def __post_init__(self) -> None:
        _check_name(self.name)
        values = sorted(_check.number(value, f"feature {self.name!r}: values") for value in self.values)
        if not values or len(set(values)) < len(values):
            raise ValueError(f"feature {self.name!r}: values must be distinct and not empty, got {list(self.values)}")
        # Adding 0.0 turns -0.0 into 0.0, so that what is shown is what was compared.
        object.__setattr__(self, "values", tuple(value + 0.0 for value in values))


@dataclass(frozen=True, slots=True)
class Binary(_OneColumn):
    """0 or 1.

    >>> Binary("owner").columns
    ('owner',)
    """

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class OneHot:
    """A category spread over 0/1 columns of the model of which exactly one is on.

    Parameters
    ----------
    name : str
    columns : sequence of str
        The model's columns, one per category; they need not be neighbours.
    optional : bool
        Whether none may be on.
    gap : float, optional
        Counts a change of category as one coordinate that moves this far, instead
        of as the two columns that change.

    Examples
    --------
    >>> OneHot("job", columns=["job=clerk", "job=nurse"]).n_categories
    2
    """

    name: str
    _: KW_ONLY
    columns: Sequence[str]
    optional: bool = False
    gap: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise TypeError(f"feature {self.name!r}: columns must be a list of names, got the text {self.columns!r}")
        object.__setattr__(self, "columns", tuple(self.columns))
        _check_name(self.name, *self.columns)
        if len(self.columns) < 2:
            raise ValueError(f"feature {self.name!r}: columns must be two or more, got {list(self.columns)}")
        if self.gap is not None and _check.number(self.gap, f"feature {self.name!r}: gap") <= 0:
            raise ValueError(f"feature {self.name!r}: gap must be positive, got {self.gap}")

    @property
    def n_categories(self) -> int:
        """Categories a row may be in; "none", when allowed, is the last."""
        return len(self.columns) + self.optional


Feature: TypeAlias = Numeric | Integer | Ordinal | Binary | OneHot


@dataclass(frozen=True, slots=True, init=False)
class Features:
    """The features of a model; together they cover each of its columns exactly once.

    Parameters
    ----------
    entries : iterable of Numeric, Integer, Ordinal, Binary, OneHot
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
            raise TypeError(f"entries must be Numeric, Integer, Ordinal, Binary or OneHot, got {entry!r}")
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
        _check_name(*columns)
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
        for entry, positions in zip(self.entries, self.positions, strict=True):
            good = _admissible(entry, X[:, positions])
            if not good.all():
                row = int(np.argmin(good))
                got = X[row, positions].tolist() if len(positions) > 1 else X[row, positions[0]]
                raise ValueError(f"feature {entry.name!r}: expected {_expectation(entry)}, got {got} in row {row}")


def _kinds(entries: tuple[Feature, ...], positions: tuple[IntArray, ...]) -> Kinds:
    placed = [(entry, places.tolist()) for entry, places in zip(entries, positions, strict=True)]
    return Kinds(
        integers=[place for entry, places in placed if isinstance(entry, Integer) for place in places],
        bits=[place for entry, places in placed if isinstance(entry, Binary | OneHot) for place in places],
        groups=[(places, entry.optional) for entry, places in placed if isinstance(entry, OneHot)],
        scales=[(places[0], entry.values) for entry, places in placed if isinstance(entry, Ordinal)],
    )


def _admissible(entry: Feature, columns: npt.NDArray[np.float64]) -> BoolArray:
    """Per row, whether the columns of one feature hold what it may hold."""
    first = columns[:, 0]
    if isinstance(entry, Integer):
        return np.asarray(first == np.floor(first))
    if isinstance(entry, Binary):
        return np.asarray((first == 0) | (first == 1))
    if isinstance(entry, Ordinal):
        return _listed(first, np.array(entry.values))
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


def _check_name(*names: object) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"name must be text, got {name!r}")


def _check_limits(name: str, low: float | None, high: float | None) -> None:
    limits = {"low": low, "high": high}
    given = [_check.number(value, f"feature {name!r}: {which}") for which, value in limits.items() if value is not None]
    if len(given) == 2 and given[0] > given[1]:
        raise ValueError(f"feature {name!r}: low must not exceed high, got {low} and {high}")
