"""Constraints by themselves: what they say, how they read, what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from cfmaps import (
    AllOf,
    AnyOf,
    Condition,
    Decrease,
    Forbid,
    Freeze,
    Implies,
    Increase,
    Linear,
    MaxChanges,
    Not,
    Range,
    Step,
    parse_constraints,
)
from cfmaps.constraints import Row

TEXTS = [
    "freeze a, b",
    "freeze `my column`",
    "age >= current",
    "age >= current - 2",
    "age <= current + 0.5",
    "debt - 0.4 * income <= 0",
    "2 * a - 3 * b >= -1",
    "if owner == 1 then income >= 20000",
    "if owner == 1 then (income >= 20000 or age > 30)",
    "job not nurse -> clerk",
    "grade not any -> 3",
    "loan step 500 from current",
    "term step in 12, 24",
    "a < 3 or (b > 2 and c == 'x y')",
    "not (a < 3)",
    "job == clerk or job == nurse",
    "18 <= age <= 65",
    "income increases by 500",
    "debt decreases",
    "changes <= 2",
    "a - b == 0",
]


def row(**values):
    return Row(values, tuple(values), np.float32)


@pytest.mark.parametrize("text", TEXTS)
def test_a_constraint_reads_as_it_is_written(text):
    (constraint,) = parse_constraints(text)
    assert str(constraint) == text
    assert parse_constraints(constraint.to_dict()) == [constraint]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("debt <= 0.4 * income", "debt - 0.4 * income <= 0"),
        ("2a + b <= 10", "2 * a + b <= 10"),
        ("owner == 1 => income >= 20000", "if owner == 1 then income >= 20000"),
        ("job in clerk, nurse", "job == clerk or job == nurse"),
        ("10 >= 2a", "a <= 5"),
        ("a >= 3 # at least", "a >= 3"),
    ],
)
def test_there_are_several_ways_to_say_it(text, same):
    assert parse_constraints(text) == parse_constraints(same)


def test_json_is_read_as_text_or_as_arguments():
    source = '["freeze a", {"Range": {"feature": "age", "low": 18}}, {"maxchanges": 2}, {"constraint": "a <= b"}]'
    expected = [Freeze("a"), Range("age", 18), MaxChanges(2), Linear({"a": 1, "b": -1}, "<=", 0)]
    assert parse_constraints(source) == expected
    assert parse_constraints({"constraints": ["freeze a"]}) == [Freeze("a")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("age >=", "constraint 'age >=': expected a number or a name, got its end"),
        ("a + <= 3", "expected a number or a name, got '<='"),
        ("freeze", "expected the name of a feature, got its end"),
        ("if a < 2 the b > 2", "expected conditions on single features here"),
        ("a $ b", "expected a number, a name or an operator, got \\$ b"),
        ("x step -3", "constraint 'x step -3': Step of 'x' must have a positive size"),
        ("65 <= age <= 18", "must have low <= high, got 65.0 and 18.0"),
        ("changes <= 1.5", "expected a whole number"),
        ("age >= 2 current", "compared with current"),
        ('{"Rang": {}}', "expected one key among"),
        ('{"Range": {"high": 2}}', "Range"),
        ("[1,", "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_named(text, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        parse_constraints(text)


@pytest.mark.parametrize(
    ("constraint", "after", "holds"),
    [
        (Freeze("a"), {"a": 1.0}, True),
        (Freeze("a"), {"a": 1.5}, False),
        (Range("a", 0, 1), {"a": 1.0}, True),
        (Range("a", high=0.5), {"a": 1.0}, False),
        (Increase("a", at_most=0.5), {"a": 1.5}, True),
        (Increase("a", at_most=0.5), {"a": 1.6}, False),
        (Decrease("a"), {"a": 1.1}, False),
        (Step("a", 0.5), {"a": 1.5}, True),
        (Step("a", 0.5), {"a": 1.6}, False),
        (Step("a", 0.1), {"a": float(np.float32(0.3))}, True),
        (Step("a", 0.3, "current"), {"a": float(np.float32(1.3))}, True),
        (Step("a", values=[4, 5]), {"a": 4.0}, True),
        (Step("a", values=[4, 5]), {"a": 1.0}, True),
        (Forbid("job", "nurse", "clerk"), {"job": "job=clerk"}, False),
        (Forbid("job", "nurse", None), {"job": "job=cook"}, False),
        (Forbid("job", "cook", "clerk"), {"job": "job=clerk"}, True),
        (MaxChanges(1), {"a": 2.0}, True),
        (MaxChanges(1), {"a": 2.0, "job": "job=cook"}, False),
        (Linear("a + 0.1 b <= 0.3"), {"a": 0.0, "b": 3.0}, True),
        (Linear({"a": 1, "b": 0.1}, ">=", 0.3), {"a": 0.0, "b": 3.0}, True),
        (Condition("job", "!=", "nurse"), {}, False),
        (Condition("a", ">", 0, relative=True), {"a": 1.0}, False),
        (AnyOf("a > 3", "b == 2"), {}, True),
        (AllOf("a > 3", "b == 2"), {}, False),
        (Not("a > 3"), {}, True),
        (Implies("a >= 1", "b >= 3"), {}, False),
        (Implies("a > 1", "b >= 3"), {}, True),
    ],
)
def test_what_a_constraint_allows(constraint, after, holds):
    before = row(a=1.0, b=2.0, job="job=nurse")
    changed = Row(dict(before) | after, before.names, np.float32)
    assert constraint.holds(before, changed) is holds


def test_operators_join_conditions():
    a, b = Condition("a", ">", 1), Condition("b", "<", 2)
    assert (a & b, a | b, ~a) == (AllOf(a, b), AnyOf(a, b), Not(a))


def test_coefficients_are_the_decimals_they_are_written_as():
    ((shares, most),) = Linear({"a": 0.1, "b": -0.25}, "<=", 0.3).rows()
    assert (shares, most) == ({"a": 2.0, "b": -5.0}, 6.0)
    assert Linear("a <= 0.1").shares == (("a", Fraction(1)),)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Freeze(), "needs names"),
        (lambda: Range("a"), "needs low or high"),
        (lambda: Increase("a", at_most=-1), "must not be negative"),
        (lambda: Step("a"), "either size or values"),
        (lambda: MaxChanges(-1), "at least 0"),
        (lambda: Linear({"a": 0}), "coefficient is not 0"),
        (lambda: Linear({"a": 1}, "<", 2), "operator of Linear"),
        (lambda: Linear({"a": 1.2345678901234567, "b": 7e15}, "<=", 1).rows(), "too many digits"),
        (lambda: Condition("a", "=", 2), "operator must be one of"),
        (lambda: AnyOf(), "at least one condition"),
        (lambda: AnyOf(Freeze("a")), "expected a Condition"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(make, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        make()
