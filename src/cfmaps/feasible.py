"""Features narrowed to a feasible region, so that a map of it is smaller and faster."""

from dataclasses import replace
from typing import Any

from cfmaps.clauses import parse
from cfmaps.constraints import Range
from cfmaps.features import Feature, Features
from cfmaps.kinds import Integer, Numeric


def restricted(features: Features, constraints: Any) -> Features:
    """Features that admit only what constraints do that are the same for every row.

    A map of them leaves out all regions beyond: it is smaller, and every answer keeps the
    constraints without being asked to. Takes `Range` of numbers; what depends on the row
    belongs into the question, and so does a limit on an ordinal, whose values rows must have.

    Parameters
    ----------
    features : Features
    constraints : sequence of constraints, text or JSON

    Examples
    --------
    >>> features = Features([Integer("age", low=18), Numeric("income")])
    >>> print(*restricted(features, "age <= 65; income >= 20"), sep="; ")
    Integer(name='age', low=18, high=65.0); Numeric(name='income', low=20.0, high=None)
    """
    entries = {entry.name: entry for entry in features}
    for constraint in parse(constraints):
        if not isinstance(constraint, Range):
            raise ValueError(f"constraint {str(constraint)!r}: expected a range, the same for every row")
        if constraint.feature not in entries:
            raise ValueError(f"constraint {str(constraint)!r}: expected a feature among {list(entries)}")
        entries[constraint.feature] = _narrowed(entries[constraint.feature], constraint)
    return Features(entries.values(), columns=features.columns)


def _narrowed(entry: Feature, constraint: Range) -> Feature:
    if not isinstance(entry, Numeric | Integer):
        raise ValueError(f"constraint {str(constraint)!r}: expected a number, got {entry}")
    lows = [end for end in (entry.low, constraint.low) if end is not None]
    highs = [end for end in (entry.high, constraint.high) if end is not None]
    return replace(entry, low=max(lows, default=None), high=min(highs, default=None))
