"""Constraints as people write them: one clause a line, or JSON."""

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

from cfmaps import constraints
from cfmaps.constraints import (
    AllOf,
    AnyOf,
    Condition,
    Constraint,
    Decrease,
    Forbid,
    Freeze,
    Implies,
    Increase,
    Linear,
    MaxChanges,
    Not,
    Range,
    Robust,
    Step,
    decimal,
)

_WORD = r"[^\W\d][\w.]*"
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(rf"\s*(?:({_NUMBER})|({_WORD})|`([^`]+)`|'([^']*)'|\"([^\"]*)\"|(<=|>=|==|!=|=>|->|[-+*<>=(),]))")
_KEYWORDS = {
    "freeze",
    "if",
    "then",
    "or",
    "and",
    "not",
    "in",
    "step",
    "from",
    "increases",
    "decreases",
    "by",
    "current",
}
_MIRRORED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "==": "==", "!=": "!="}


def parse(source: Any) -> list[Constraint]:
    """Constraints from text, JSON, or a sequence of any of these and of constraints.

    Clauses stand on lines of their own or between semicolons; # begins a comment. JSON is
    a list of clauses, or of objects such as ``{"Range": {"feature": "age", "low": 18}}``.

    Raises
    ------
    ValueError
        Naming the clause that cannot be read, and where.

    Examples
    --------
    >>> print(*parse("freeze sex; age >= current; debt <= 0.4 * income; changes <= 2"), sep="; ")
    freeze sex; age >= current; debt - 0.4 * income <= 0; changes <= 2
    >>> parse('["18 <= age <= 65", {"Freeze": ["sex"]}]')
    [Range(feature='age', low=18.0, high=65.0), Freeze(names=('sex',))]
    >>> parse("age >= ")
    Traceback (most recent call last):
        ...
    ValueError: constraint 'age >=': expected a number or a name, got its end
    """
    if isinstance(source, str):
        if source.lstrip().startswith(("[", "{")):
            return parse(_from_json(source))
        lines = [clause.strip() for line in source.splitlines() for clause in line.split("#")[0].split(";")]
        return [_Reader(line).statement() for line in lines if line]
    if isinstance(source, Constraint):
        return [source]
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if not hasattr(source, "__iter__"):
        raise TypeError(f"constraints must be constraints, text or JSON, got {source!r}")
    return [constraint for entry in source for constraint in parse(entry)]


def condition(text: str) -> Constraint:
    """One condition on single features, as `Implies` and its like take it."""
    reader = _Reader(text)
    return reader.whole(reader.logic)


def linear(text: str) -> tuple[dict[str, Fraction], str, Fraction]:
    """Shares, operator and right side of a linear relation."""
    reader = _Reader(text)
    left = reader.expression()
    operator = reader.operator()
    right = reader.expression()
    reader.end()
    return _moved(left, operator, right)


def is_word(name: str) -> bool:
    """Whether a name can stand in a clause without quotes."""
    return re.fullmatch(_WORD, name) is not None and name not in _KEYWORDS | {"changes", "any"}


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"constraints are not valid JSON: {error}") from None


def _from_mapping(entry: Mapping[str, Any]) -> list[Constraint]:
    if "constraints" in entry:
        return parse(entry["constraints"])
    if "constraint" in entry:
        return parse(str(entry["constraint"]))
    kinds = {kind.lower(): kind for kind in _KINDS}
    kind = kinds.get(str(next(iter(entry), "")).lower())
    if len(entry) != 1 or kind is None:
        raise ValueError(f"constraint {dict(entry)!r}: expected one key among {sorted(_KINDS)}")
    arguments = next(iter(entry.values()))
    make: Callable[..., Constraint] = getattr(constraints, kind)
    try:
        if isinstance(arguments, Mapping):
            return [make(**arguments)]
        return [make(*arguments)] if isinstance(arguments, list) else [make(arguments)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"constraint {dict(entry)!r}: {error}") from None


_KINDS = (
    "AllOf",
    "AnyOf",
    "Condition",
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
    "Step",
)


class _Expression:
    """A sum of shares of features, of the row's own value, and a number; or a category's name."""

    def __init__(self) -> None:
        self.shares: dict[str, Fraction] = {}
        self.current = Fraction(0)
        self.constant = Fraction(0)
        self.text: str | None = None

    @property
    def word(self) -> str | None:
        """The one name it consists of."""
        bare = len(self.shares) == 1 and not self.current and not self.constant
        return next(iter(self.shares)) if bare and set(self.shares.values()) == {Fraction(1)} else None


def _moved(left: _Expression, operator: str, right: _Expression) -> tuple[dict[str, Fraction], str, Fraction]:
    shares = dict(left.shares)
    for name, share in right.shares.items():
        shares[name] = shares.get(name, Fraction(0)) - share
    return shares, operator, right.constant - left.constant


class _Reader:
    """Reads one clause from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(self.text):
            found = _TOKEN.match(self.text, place)
            if not found:
                self.fail("a number, a name or an operator", self.text[place:].strip())
            kinds = ("number", "word", "name", "text", "text", "sign")
            self.tokens.append(next((k, v) for k, v in zip(kinds, found.groups(), strict=True) if v is not None))
            place = found.end()
        self.place = 0

    def fail(self, expected: str, got: str | None = None) -> NoReturn:
        if got is None:
            got = repr(self.tokens[self.place][1]) if self.place < len(self.tokens) else "its end"
        raise ValueError(f"constraint {self.text!r}: expected {expected}, got {got}")

    def peek(self, *values: str, ahead: int = 0) -> bool:
        place = self.place + ahead
        return (
            place < len(self.tokens) and self.tokens[place][0] in ("word", "sign") and self.tokens[place][1] in values
        )

    def take(self, *values: str) -> bool:
        self.place += (found := self.peek(*values))
        return found

    def end(self) -> None:
        if self.place < len(self.tokens):
            self.fail("nothing more")

    def whole(self, read: Callable[[], Constraint]) -> Constraint:
        try:
            made = read()
        except (TypeError, ValueError) as error:
            raise (
                error if str(error).startswith("constraint ") else ValueError(f"constraint {self.text!r}: {error}")
            ) from None
        self.end()
        return made

    def statement(self) -> Constraint:
        return self.whole(self._statement)

    def _statement(self) -> Constraint:
        if self.take("freeze"):
            return Freeze(*self.listed(self.name))
        if self.peek("robust") and not self.peek("<=", ">=", "<", ">", "==", "!=", ahead=1):
            return self._robust()
        if self.peek("changes") and self.peek("<=", ahead=1):
            self.place += 2
            most = self.number()
            if most.denominator != 1:
                self.fail("a whole number", repr(float(most)))
            return MaxChanges(int(most))
        if len(self.tokens) > 1 and self.tokens[0][0] in ("word", "name"):
            for words, read in self._verbs.items():
                if self.peek(*words.split(), ahead=1):
                    name = self.name()
                    verb = self.tokens[self.place][1]
                    self.place += 1
                    return read(self, name, verb)
        return self.logic(top=True)

    def _robust(self) -> Constraint:
        self.place += 1
        if self.tokens[self.place : self.place + 1] and self.tokens[self.place][0] == "number":
            return Robust(float(self.number()))
        return Robust(dict(self.listed(lambda: (self.name(), float(self.number())))))

    def _monotone(self, name: str, verb: str) -> Constraint:
        limit = float(self.number()) if self.take("by") else None
        return (Increase if verb == "increases" else Decrease)(name, limit)

    def _step(self, name: str, verb: str) -> Constraint:
        if self.take("in"):
            return Step(name, values=[float(value) for value in self.listed(self.number)])
        size = float(self.number())
        start = ("current" if self.take("current") else float(self.number())) if self.take("from") else 0.0
        return Step(name, size, start)

    def _forbid(self, name: str, verb: str) -> Constraint:
        before = self.value()
        if not self.take("->"):
            self.fail("'->'")
        after = self.value()
        return Forbid(name, None if before == "any" else before, None if after == "any" else after)

    _verbs: ClassVar = {"increases decreases": _monotone, "step": _step, "not": _forbid}

    def logic(self, *, top: bool = False) -> Constraint:
        if self.take("if"):
            condition = self.any_of()
            if not self.take("then"):
                self.fail("'then'")
            return Implies(condition, self.any_of())
        first = self.any_of(top=top)
        return Implies(first, self.any_of()) if self.take("=>") else first

    def any_of(self, *, top: bool = False) -> Constraint:
        parts = [self.all_of(top=top)]
        while self.take("or"):
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else AnyOf(*parts)

    def all_of(self, *, top: bool = False) -> Constraint:
        parts = [self.unit(top=top)]
        while self.take("and"):
            parts.append(self.unit())
        return parts[0] if len(parts) == 1 else AllOf(*parts)

    def unit(self, *, top: bool = False) -> Constraint:
        if self.take("not"):
            return Not(self.unit())
        if self.take("("):
            inside = self.logic()
            if not self.take(")"):
                self.fail("')'")
            return inside
        return self.comparison(top=top)

    def comparison(self, *, top: bool) -> Constraint:
        left = self.expression()
        if left.word and self.take("in"):
            return AnyOf(*(Condition(left.word, "==", value) for value in self.listed(self.value)))
        operator = self.operator()
        right = self.expression()
        if right.word and not left.shares and self.peek("<=", "<"):
            return self._between(left, operator, right.word)
        return self._compared(left, operator, right, top=top)

    def _between(self, left: _Expression, operator: str, name: str) -> Constraint:
        second = self.operator()
        high = self.expression()
        if (operator, second) == ("<=", "<=") and not high.shares:
            return Range(name, float(left.constant), float(high.constant))
        return AllOf(
            Condition(name, _MIRRORED[operator], float(left.constant)), Condition(name, second, float(high.constant))
        )

    def _compared(self, left: _Expression, operator: str, right: _Expression, *, top: bool) -> Constraint:
        if left.word and operator in ("==", "!=") and (right.text or right.word):
            return Condition(left.word, operator, right.text or right.word)
        if right.text:
            self.fail("== or != before a category")
        if left.current or right.current:
            if not left.word or right.shares or right.current != 1:
                self.fail("a feature compared with current, as in age >= current + 2", "another use of it")
            return Condition(left.word, operator, float(right.constant), relative=True)
        shares, operator, most = _moved(left, operator, right)
        if len(shares) == 1:
            return self._single(*next(iter(shares.items())), operator, most, top=top)
        if not top:
            self.fail("conditions on single features here", "a relation between several")
        return Linear(shares, operator, most)

    def _single(self, name: str, share: Fraction, operator: str, most: Fraction, *, top: bool) -> Constraint:
        if share == 0:
            self.fail("a feature that does not cancel out", repr(name))
        operator = operator if share > 0 else _MIRRORED[operator]
        value = float(most / share)
        if top and operator in ("<=", ">=") and not self.peek("or", "and", "=>"):
            return Range(name, high=value) if operator == "<=" else Range(name, low=value)
        return Condition(name, operator, value)

    def operator(self) -> str:
        if self.take("="):
            return "=="
        if not self.peek("<=", ">=", "<", ">", "==", "!="):
            self.fail("<=, >=, <, >, == or !=")
        self.place += 1
        return self.tokens[self.place - 1][1]

    def expression(self) -> _Expression:
        total = _Expression()
        sign = -1 if self.take("-") else 1
        while True:
            self.term(total, sign)
            if not self.peek("+", "-"):
                return total
            sign = 1 if self.take("+") else -1
            self.take("-")

    def term(self, total: _Expression, sign: int) -> None:
        kind, value = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind == "text":
            self.place += 1
            total.text = value
            return
        if kind == "number":
            share = sign * self.number()
            starred = self.take("*")
            named = self.place < len(self.tokens) and self.tokens[self.place][0] in ("word", "name")
            if starred or (named and not self.peek("or", "and", "then", "in")):
                return self.add(total, share)
            total.constant += share
            return
        if kind not in ("word", "name"):
            self.fail("a number or a name")
        self.add(total, Fraction(sign))

    def add(self, total: _Expression, share: Fraction) -> None:
        if self.take("current"):
            total.current += share
            return
        name = self.name()
        if self.take("*"):
            share *= self.number()
        total.shares[name] = total.shares.get(name, Fraction(0)) + share

    def name(self) -> str:
        kind, value = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind not in ("word", "name") or (kind == "word" and value in _KEYWORDS):
            self.fail("the name of a feature")
        self.place += 1
        return value

    def number(self) -> Fraction:
        sign = -1 if self.take("-") else 1
        kind, value = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind != "number":
            self.fail("a number")
        self.place += 1
        return sign * decimal(float(value))

    def value(self) -> Any:
        kind, value = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind == "number" or self.peek("-"):
            return float(self.number())
        if kind == "text":
            self.place += 1
            return value
        return self.name()

    def listed(self, read: Callable[[], Any]) -> list[Any]:
        values = [read()]
        while self.take(","):
            values.append(read())
        return values
