"""What an answer must keep: constraints named by feature, composed freely, kept exactly.

Each constraint says by itself whether a change from one row to another keeps it (``holds``,
in exact arithmetic, sharing no code with the search) and how it reads as text (``str``),
which `cfmaps.parse_constraints` reads back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from cfmaps import _check
from cfmaps.conditions import (
    AllOf,
    AnyOf,
    Condition,
    Constraint,
    Implies,
    Not,
    Row,
    category,
    compare,
    decimal,
    is_called,
    plain,
    quoted,
    shown,
)

__all__ = [
    "AllOf",
    "AnyOf",
    "Condition",
    "Constraint",
    "Decrease",
    "Forbid",
    "Freeze",
    "Implies",
    "Increase",
    "Linear",
    "MaxChanges",
    "Not",
    "Range",
    "Robust",
    "Row",
    "Step",
    "category",
    "decimal",
]


@dataclass(frozen=True, slots=True, init=False)
class Freeze(Constraint):
    """Features that must stay as they are.

    >>> print(Freeze("age", "sex"))
    freeze age, sex
    """

    names: tuple[str, ...]

    def __init__(self, *names: str | Iterable[str]) -> None:
        object.__setattr__(self, "names", _names("Freeze", names))

    def holds(self, before: Row, after: Row) -> bool:
        return all(before[name] == after[name] for name in self.names)

    def features(self) -> tuple[str, ...]:
        return self.names

    def __str__(self) -> str:
        return f"freeze {', '.join(map(quoted, self.names))}"


@dataclass(frozen=True, slots=True)
class Range(Constraint):
    """A number within closed limits.

    >>> print(Range("age", 18, 65))
    18 <= age <= 65
    """

    feature: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        low, high = (None if end is None else _check.number(end, "Range") for end in (self.low, self.high))
        if low is not None and high is not None and low > high:
            raise ValueError(f"Range of {self.feature!r} must have low <= high, got {low} and {high}")
        if low is None and high is None:
            raise ValueError(f"Range of {self.feature!r} needs low or high, got neither")

    def holds(self, before: Row, after: Row) -> bool:
        value = after[self.feature]
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def __str__(self) -> str:
        name = quoted(self.feature)
        if self.high is None:
            return f"{name} >= {shown(self.low)}"
        return (
            f"{name} <= {shown(self.high)}"
            if self.low is None
            else (f"{shown(self.low)} <= {name} <= {shown(self.high)}")
        )


@dataclass(frozen=True, slots=True)
class _Monotone(Constraint):
    feature: str
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_most is not None and _check.number(self.at_most, "at_most") < 0:
            raise ValueError(f"at_most must not be negative, got {self.at_most}")

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def _words(self, verb: str) -> str:
        limit = "" if self.at_most is None else f" by {shown(self.at_most)}"
        return f"{quoted(self.feature)} {verb}{limit}"


@dataclass(frozen=True, slots=True)
class Increase(_Monotone):
    """A number that may only rise, by ``at_most`` if given.

    >>> print(Increase("age"), Increase("income", at_most=500), sep="; ")
    age increases; income increases by 500
    """

    def holds(self, before: Row, after: Row) -> bool:
        rise = Fraction(after[self.feature]) - Fraction(before[self.feature])
        return rise >= 0 and (self.at_most is None or rise <= decimal(self.at_most))

    def __str__(self) -> str:
        return self._words("increases")


@dataclass(frozen=True, slots=True)
class Decrease(_Monotone):
    """A number that may only fall, by ``at_most`` if given.

    >>> print(Decrease("debt"))
    debt decreases
    """

    def holds(self, before: Row, after: Row) -> bool:
        fall = Fraction(before[self.feature]) - Fraction(after[self.feature])
        return fall >= 0 and (self.at_most is None or fall <= decimal(self.at_most))

    def __str__(self) -> str:
        return self._words("decreases")


@dataclass(frozen=True, slots=True)
class Step(Constraint):
    """A grid of allowed values: a value may stay as it is, and lies on the grid if it changes.

    ``start + i * size`` for whole i, each as the nearest number the model can tell apart
    (``start="current"`` counts from the row's own value), or the listed ``values``.

    >>> print(Step("loan", 500), Step("term", values=[12, 24]), sep="; ")
    loan step 500; term step in 12, 24
    """

    feature: str
    size: float | None = None
    start: float | str = 0.0
    values: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.values is None):
            raise ValueError(f"Step of {self.feature!r} needs either size or values")
        if self.size is not None and _check.number(self.size, "size") <= 0:
            raise ValueError(f"Step of {self.feature!r} must have a positive size, got {self.size}")
        if self.start != "current":
            _check.number(self.start, "start")
        if self.values is not None:
            values = tuple(sorted({_check.number(value, "values") for value in self.values}))
            if not values:
                raise ValueError(f"Step of {self.feature!r} needs at least one value")
            object.__setattr__(self, "values", values)

    def holds(self, before: Row, after: Row) -> bool:
        old, new = before[self.feature], after[self.feature]
        number = after.number
        if old == new:
            return True
        if self.values is not None:
            return any(float(number(value)) == new or value == new for value in self.values)
        start = old if self.start == "current" else float(self.start)
        near = round((new - start) / float(self.size or 1))
        return any(float(number(start + (near + i) * float(self.size or 1))) == new for i in (-1, 0, 1))

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def __str__(self) -> str:
        name = quoted(self.feature)
        if self.values is not None:
            return f"{name} step in {', '.join(map(shown, self.values))}"
        start = "" if self.start == 0 else f" from {self.start if self.start == 'current' else shown(self.start)}"
        return f"{name} step {shown(self.size)}{start}"


@dataclass(frozen=True, slots=True)
class Forbid(Constraint):
    """A transition that may not happen; None stands for any value.

    >>> print(Forbid("job", "nurse", "clerk"))
    job not nurse -> clerk
    """

    feature: str
    before: Any = None
    after: Any = None

    def holds(self, before: Row, after: Row) -> bool:
        old, new = before[self.feature], after[self.feature]
        return old == new or not (
            is_called(self.feature, old, self.before) and is_called(self.feature, new, self.after)
        )

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def __str__(self) -> str:
        old, new = ("any" if value is None else shown(value) for value in (self.before, self.after))
        return f"{quoted(self.feature)} not {old} -> {new}"


@dataclass(frozen=True, slots=True)
class MaxChanges(Constraint):
    """At most so many features change.

    >>> print(MaxChanges(2))
    changes <= 2
    """

    most: int

    def __post_init__(self) -> None:
        _check.whole(self.most, "MaxChanges", 0)

    def holds(self, before: Row, after: Row) -> bool:
        return sum(bool(before[name] != after[name]) for name in before.names) <= self.most

    def features(self) -> tuple[str, ...]:
        return ()

    def __str__(self) -> str:
        return f"changes <= {self.most}"


@dataclass(frozen=True, slots=True, init=False)
class Robust(Constraint):
    """The answer keeps its label wherever its numbers move by up to a margin, within the limits of their features.

    A number moves every number; a mapping those it names, each by its own margin. Categories
    stay. Whether it holds depends on the model, so ``holds`` cannot tell: it is the search that does.

    >>> print(Robust(0.5), Robust({"income": 2}), sep="; ")
    robust 0.5; robust income 2
    """

    margins: tuple[tuple[str, float], ...]

    def __init__(self, margin: float | Mapping[str, float]) -> None:
        named = dict(margin) if isinstance(margin, Mapping) else {"": margin}
        if any(_check.number(value, "robust") < 0 for value in named.values()):
            raise ValueError(f"robust must not be negative, got {margin!r}")
        object.__setattr__(self, "margins", tuple((name, float(value)) for name, value in named.items()))

    def holds(self, before: Row, after: Row) -> bool:
        return True

    def features(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.margins if name)

    def __str__(self) -> str:
        parts = (f"{quoted(name)} {shown(value)}" if name else shown(value) for name, value in self.margins)
        return f"robust {', '.join(parts)}"


def with_margin(constraints: Any, margin: Any) -> Any:
    """Constraints in whatever form, and a margin if there is one."""
    if margin is None:
        return constraints
    listed = (constraints,) if isinstance(constraints, str | Constraint | Mapping) else tuple(constraints)
    return (*listed, Robust(margin))


@dataclass(frozen=True, slots=True, init=False)
class Linear(Constraint):
    """A linear relation between numbers; a one-hot column counts as 0 or 1.

    Coefficients are the decimals they are written as: 0.1 is a tenth. An equality is for
    whole, listed and stepped numbers; between real numbers say within what they are equal.

    >>> print(Linear("debt <= 0.4 * income"))
    debt - 0.4 * income <= 0
    >>> Linear({"a": 2, "b": 1}, "<=", 10) == Linear("2 a + b <= 10")
    True
    """

    shares: tuple[tuple[str, Fraction], ...]
    operator: str
    most: Fraction

    def __init__(
        self, shares: Mapping[str, float | Fraction] | str, operator: str = "<=", most: float | Fraction = 0
    ) -> None:
        if isinstance(shares, str):
            from cfmaps.clauses import linear

            shares, operator, most = linear(shares)
        if operator not in ("<=", ">=", "=="):
            raise ValueError(f"operator of Linear must be '<=', '>=' or '==', got {operator!r}")
        exact = tuple((name, decimal(share)) for name, share in shares.items() if decimal(share) != 0)
        if not exact:
            raise ValueError("Linear needs a feature whose coefficient is not 0")
        object.__setattr__(self, "shares", exact)
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "most", decimal(most))

    def rows(self) -> list[tuple[dict[str, float], float]]:
        """As relations ``sum(share * value) <= most`` in whole numbers."""
        scale = lcm(self.most.denominator, *(share.denominator for _, share in self.shares))
        shares = {name: float(share * scale) for name, share in self.shares}
        most = float(self.most * scale)
        if max(abs(most), *map(abs, shares.values())) > 2**53:
            raise ValueError(f"{self}: its numbers have too many digits")
        turned = ({name: -share for name, share in shares.items()}, -most)
        return {"<=": [(shares, most)], ">=": [turned], "==": [(shares, most), turned]}[self.operator]

    def holds(self, before: Row, after: Row) -> bool:
        total = sum((share * Fraction(after[name]) for name, share in self.shares), Fraction(0))
        return compare(total, self.operator, self.most)

    def features(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.shares)

    def __str__(self) -> str:
        text = ""
        for name, share in self.shares:
            sign = ("-" if share < 0 else "") if not text else (" - " if share < 0 else " + ")
            factor = "" if abs(share) == 1 else f"{plain(abs(share))} * "
            text += f"{sign}{factor}{quoted(name)}"
        return f"{text} {self.operator} {plain(self.most)}"


def _names(kind: str, names: tuple[str | Iterable[str], ...]) -> tuple[str, ...]:
    flat = tuple(name for entry in names for name in ([entry] if isinstance(entry, str) else entry))
    if not flat or not all(isinstance(name, str) for name in flat):
        raise TypeError(f"{kind} needs names of features, got {names!r}")
    return flat
