"""The kinds of features: what the columns of a model may mean."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from cfmaps import _check

_MISSING = ("keep", "set", "fill", "free")


@dataclass(frozen=True, slots=True)
class _OneColumn:
    """A feature that is one column of the model, of the same name.

    Of a model that takes missing values, ``missing`` says what an answer may do: "keep" a
    value a value and a missing value missing, "set" a value to missing, "fill" a missing
    value, or both ("free"). Either counts as a gap of ``missing_gap``.
    """

    name: str
    _: KW_ONLY
    missing: str = field(default="keep", repr=False)
    missing_gap: float = field(default=1.0, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def _check(self) -> None:
        check_names(self.name)
        if self.missing not in _MISSING:
            raise ValueError(f"feature {self.name!r}: missing must be one of {_MISSING}, got {self.missing!r}")
        if _check.number(self.missing_gap, f"feature {self.name!r}: missing_gap") <= 0:
            raise ValueError(f"feature {self.name!r}: missing_gap must be positive, got {self.missing_gap}")


@dataclass(frozen=True, slots=True)
class Numeric(_OneColumn):
    """A number, free on the real line or within closed limits.

    >>> Numeric("income", low=0)
    Numeric(name='income', low=0, high=None)
    """

    _: KW_ONLY
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        self._check()
        _check_limits(self.name, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Integer(_OneColumn):
    """A whole number, free or within closed limits.

    >>> Integer("age", low=18, high=100).columns
    ('age',)
    """

    _: KW_ONLY
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        self._check()
        _check_limits(self.name, self.low, self.high)
        if self.low is not None and self.high is not None and math.ceil(self.low) > math.floor(self.high):
            raise ValueError(f"feature {self.name!r}: no integer lies between low={self.low} and high={self.high}")


@dataclass(frozen=True, slots=True)
class Ordinal(_OneColumn):
    """One of a few numbers, kept in ascending order.

    >>> Ordinal("grade", values=[3, 1, 2]).values
    (1.0, 2.0, 3.0)
    """

    _: KW_ONLY
    values: Sequence[float]

    def __post_init__(self) -> None:
        self._check()
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

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class Categorical(_OneColumn):
    """One of a few categories in a single column that the model takes as a code.

    Parameters
    ----------
    name : str
    categories : sequence
        The categories an answer may have, in the caller's own values.
    codes : sequence of whole numbers, optional
        What the model takes for each. Without it, categories that are whole numbers are
        their own codes, others are numbered from 0 in the order given.
    gap : float
        A change of category counts as a gap of this size.

    Examples
    --------
    >>> Categorical("job", categories=["clerk", "nurse"]).codes
    (0, 1)
    >>> Categorical("region", categories=[5, 2]).codes
    (2, 5)
    """

    _: KW_ONLY
    categories: Sequence[Any]
    codes: Sequence[int] | None = field(default=None, repr=False)
    gap: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        self._check()
        if isinstance(self.categories, str) or not len(self.categories):
            raise ValueError(f"feature {self.name!r}: categories must be a list, got {self.categories!r}")
        _check.distinct(self.categories, f"feature {self.name!r}: category", "is given twice")
        if _check.number(self.gap, f"feature {self.name!r}: gap") <= 0:
            raise ValueError(f"feature {self.name!r}: gap must be positive, got {self.gap}")
        codes = _codes(self.name, self.categories, self.codes)
        order = sorted(range(len(codes)), key=codes.__getitem__)
        object.__setattr__(self, "codes", tuple(codes[place] for place in order))
        object.__setattr__(self, "categories", tuple(_plain(self.categories[place]) for place in order))

    @classmethod
    def listed(cls, name: str, categories: Sequence[Any]) -> "Categorical":
        """One category per code from 0; None at a code that no answer may have."""
        known = [code for code, category in enumerate(categories) if category is not None]
        return cls(name, categories=[categories[code] for code in known], codes=known)

    def category_of(self, code: float) -> Any:
        """The category that the model takes as ``code``."""
        return self.categories[(self.codes or ()).index(int(code))]

    @property
    def are_codes(self) -> bool:
        """Whether the categories are what the model itself takes."""
        return tuple(self.categories) == self.codes


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _codes(name: str, categories: Sequence[Any], codes: Sequence[int] | None) -> list[int]:
    if codes is None:
        numbers = all(_is_whole(category) and category >= 0 for category in categories)
        return [int(category) for category in categories] if numbers else list(range(len(categories)))
    if len(codes) != len(categories) or len(set(codes)) < len(codes) or not all(map(_is_whole, codes)):
        raise ValueError(f"feature {name!r}: codes must be one distinct whole number per category, got {list(codes)}")
    return [_check.whole(int(code), f"feature {name!r}: codes", 0) for code in codes]


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return False
    return float(value).is_integer()


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
        check_names(self.name, *self.columns)
        if len(self.columns) < 2:
            raise ValueError(f"feature {self.name!r}: columns must be two or more, got {list(self.columns)}")
        if self.gap is not None and _check.number(self.gap, f"feature {self.name!r}: gap") <= 0:
            raise ValueError(f"feature {self.name!r}: gap must be positive, got {self.gap}")

    @property
    def n_categories(self) -> int:
        """Categories a row may be in; "none", when allowed, is the last."""
        return len(self.columns) + self.optional


Feature: TypeAlias = Numeric | Integer | Ordinal | Binary | OneHot | Categorical


def check_names(*names: object) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"name must be text, got {name!r}")


def _check_limits(name: str, low: float | None, high: float | None) -> None:
    limits = {"low": low, "high": high}
    given = [_check.number(value, f"feature {name!r}: {which}") for which, value in limits.items() if value is not None]
    if len(given) == 2 and given[0] > given[1]:
        raise ValueError(f"feature {name!r}: low must not exceed high, got {low} and {high}")
