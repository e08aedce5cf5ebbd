"""Conditions on single features and what is made of them, and the base of all constraints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from cfmaps import _check

OPERATORS = ("<=", ">=", "<", ">", "==", "!=")
_SWAPPED = {"<=": ">", ">": "<=", ">=": "<", "<": ">=", "==": "!=", "!=": "=="}


class Row(dict[str, Any]):
    """A row's values by feature and by column; a one-hot group has the name of its column that is on.

    Attributes
    ----------
    names : tuple of str
        The features.
    number : numpy floating type
        What the model casts its input to.
    """

    __slots__ = ("names", "number")

    def __init__(self, values: Mapping[str, Any], names: tuple[str, ...], number: Callable[[float], Any]) -> None:
        super().__init__(values)
        self.names = names
        self.number = number


class Constraint:
    """Base of all constraints."""

    __slots__ = ()

    def holds(self, before: Row, after: Row) -> bool:
        """Whether changing one row into the other keeps the constraint."""
        raise NotImplementedError

    def features(self) -> tuple[str, ...]:
        """The names it mentions."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; `parse` reads them back."""
        return {"constraint": str(self)}

    def __and__(self, other: "Constraint") -> "AllOf":
        return AllOf(self, other)

    def __or__(self, other: "Constraint") -> "AnyOf":
        return AnyOf(self, other)

    def __invert__(self) -> "Not":
        return Not(self)


@dataclass(frozen=True, slots=True)
class Condition(Constraint):
    """One feature compared with a value, a category, or (``relative``) the row's own value plus that much.

    >>> print(Condition("age", ">=", 25), Condition("age", ">=", 2, relative=True), sep="; ")
    age >= 25; age >= current + 2
    """

    feature: str
    operator: str
    value: Any = 0
    relative: bool = False

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator must be one of {OPERATORS}, got {self.operator!r}")
        if not isinstance(self.value, str | None):
            _check.number(self.value, f"{self.feature} {self.operator}")

    def negated(self) -> "Condition":
        """The condition that holds where this one does not."""
        return Condition(self.feature, _SWAPPED[self.operator], self.value, self.relative)

    def holds(self, before: Row, after: Row) -> bool:
        value = after[self.feature]
        if isinstance(value, str | None):
            equal = value == before[self.feature] if self.relative else is_called(self.feature, value, self.value)
            return equal == (self.operator == "==")
        if self.relative:
            return compare(Fraction(value) - Fraction(before[self.feature]), self.operator, decimal(self.value))
        return compare(value, self.operator, float(self.value))

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def __str__(self) -> str:
        right = shown(self.value)
        if self.relative:
            offset = decimal(self.value)
            right = "current" + (f" {'+' if offset > 0 else '-'} {plain(abs(offset))}" if offset else "")
        return f"{quoted(self.feature)} {self.operator} {right}"


@dataclass(frozen=True, slots=True, init=False)
class _Compound(Constraint):
    parts: tuple[Constraint, ...]

    def __init__(self, *parts: Constraint | str) -> None:
        read = tuple(map(_simple, parts))
        if not read:
            raise ValueError(f"{type(self).__name__} needs at least one condition")
        object.__setattr__(self, "parts", read)

    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.features()))


@dataclass(frozen=True, slots=True, init=False)
class AnyOf(_Compound):
    """At least one of several conditions holds.

    >>> print(AnyOf("age >= 25", "owner == 1"))
    age >= 25 or owner == 1
    """

    def holds(self, before: Row, after: Row) -> bool:
        return any(part.holds(before, after) for part in self.parts)

    def __str__(self) -> str:
        return " or ".join(map(_nested, self.parts))


@dataclass(frozen=True, slots=True, init=False)
class AllOf(_Compound):
    """Several conditions hold together.

    >>> print(AllOf("age >= 25", "owner == 1"))
    age >= 25 and owner == 1
    """

    def holds(self, before: Row, after: Row) -> bool:
        return all(part.holds(before, after) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(map(_nested, self.parts))


@dataclass(frozen=True, slots=True, init=False)
class Not(_Compound):
    """A condition does not hold.

    >>> print(Not("age < 25"))
    not (age < 25)
    """

    def __init__(self, part: Constraint | str) -> None:
        object.__setattr__(self, "parts", (_simple(part),))

    def holds(self, before: Row, after: Row) -> bool:
        return not self.parts[0].holds(before, after)

    def __str__(self) -> str:
        return f"not ({self.parts[0]})"


@dataclass(frozen=True, slots=True, init=False)
class Implies(_Compound):
    """Where the first condition holds, so does the second.

    >>> print(Implies("owner == 1", "income >= 20000"))
    if owner == 1 then income >= 20000
    """

    def __init__(self, condition: Constraint | str, consequence: Constraint | str) -> None:
        object.__setattr__(self, "parts", (_simple(condition), _simple(consequence)))

    def holds(self, before: Row, after: Row) -> bool:
        return not self.parts[0].holds(before, after) or self.parts[1].holds(before, after)

    def __str__(self) -> str:
        return f"if {_nested(self.parts[0])} then {_nested(self.parts[1])}"


def decimal(value: Any) -> Fraction:
    """A number as the decimal it is written as.

    >>> decimal(0.1)
    Fraction(1, 10)
    """
    if isinstance(value, Fraction):
        return value
    number = _check.number(value, "a number of a constraint")
    return Fraction(repr(number)) if isfinite(number) else Fraction(0)


def category(feature: str, wanted: Any, columns: Sequence[str]) -> str | None:
    """The column of a one-hot group that a category's name means: its own, or what follows the group's name."""
    if wanted in columns:
        return str(wanted)
    return next((column for column in columns if is_called(feature, column, wanted)), None)


def is_called(feature: str, value: Any, wanted: Any) -> bool:
    """Whether a value, or the column of a category, is what a constraint calls by a value or a short name."""
    if wanted is None or value == wanted:
        return True
    if not isinstance(value, str):
        return value is None and wanted == "none"
    short = value[len(feature) :].lstrip("=_:. -") if value.startswith(feature) else value
    return short == str(wanted)


def compare(left: Any, operator: str, right: Any) -> bool:
    return bool(
        {
            "<=": left <= right,
            ">=": left >= right,
            "<": left < right,
            ">": left > right,
            "==": left == right,
            "!=": left != right,
        }[operator]
    )


def _simple(part: Constraint | str) -> Constraint:
    if isinstance(part, str):
        from cfmaps.clauses import condition

        return condition(part)
    from cfmaps.constraints import Range

    if not isinstance(part, Condition | _Compound | Range):
        raise TypeError(f"expected a Condition, Range, AnyOf, AllOf, Not, Implies or their text, got {part!r}")
    return part


def _nested(part: Constraint) -> str:
    return f"({part})" if isinstance(part, _Compound) else str(part)


def quoted(name: str) -> str:
    from cfmaps.clauses import is_word

    return name if is_word(name) else f"`{name}`"


def shown(value: Any) -> str:
    if isinstance(value, str):
        return value if value.isidentifier() else repr(value)
    return plain(decimal(value))


def plain(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
