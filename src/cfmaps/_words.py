"""Answers in plain sentences."""

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

from cfmaps import _tables
from cfmaps.features import Feature, OneHot

if TYPE_CHECKING:
    from cfmaps.explanation import Change, Explanation, Region

_DIGITS = 5


def describe(explanation: "Explanation", units: Mapping[str, str], features: tuple[Feature, ...]) -> str:
    """What has to change, between which values it may, and how sure that is."""
    label = _tables.shown
    if explanation.status == "infeasible":
        return _impossible(explanation)
    if explanation.target is None:
        bound = _number(explanation.lower_bound)
        return f"The search was stopped before it found an answer; none is nearer than {bound}."
    changes = explanation.changes()
    if not changes:
        return f"Nothing has to change: the model says {label(explanation.target)} already."
    entries = {entry.name: entry for entry in features}
    region = None if explanation.is_constrained else explanation.region
    said = [_change(change, entries[change.feature], region, units.get(change.feature, "")) for change in changes]
    sentence = f"The model says {label(explanation.target)} instead of {label(explanation.source)} if {_listed(said)}."
    return f"{sentence} {_certainty(explanation)}"


def _impossible(explanation: "Explanation") -> str:
    conflict = explanation.conflict
    if not conflict:
        return "No change leads to the wanted answer; this is proven."
    rules = _listed([f"“{constraint}”" for constraint in conflict])
    return f"No change that keeps {rules} leads to the wanted answer; this is proven, and none of them is idle."


def _certainty(explanation: "Explanation") -> str:
    kept = " that keeps the constraints" if explanation.is_constrained else ""
    if explanation.status == "optimal":
        return f"No smaller change{kept} does (distance {_number(explanation.distance)})."
    distance, bound = _number(explanation.distance), _number(explanation.lower_bound)
    return f"A smaller change{kept} may exist: the distance is {distance}, and none below {bound} does."


def _change(change: "Change", entry: Feature, region: "Region | None", unit: str) -> str:
    if isinstance(entry, OneHot):
        return f"{entry.name} is {category(entry, change.after)} instead of {category(entry, change.before)}"
    unit = f" {unit}" if unit else ""
    rises = change.after > change.before
    verb = "rises" if rises else "falls"
    start = f"{entry.name} {verb} from {_tables.shown(change.before)}{unit} to"
    if region is None:
        return f"{start} {_tables.shown(change.after)}{unit}"
    place = region.columns.index(entry.name)
    low, high = _inward(float(region.lower[place]), float(region.upper[place]))
    if low == high or (math.isfinite(low) and math.isfinite(high) and Decimal(repr(low)) > Decimal(repr(high))):
        return f"{start} {_tables.shown(change.after)}{unit}"
    if rises:
        return f"{start} {_span(low, high, unit)}" if math.isfinite(high) else f"{start} {_number(low)}{unit} or more"
    return f"{start} {_span(low, high, unit)}" if math.isfinite(low) else f"{start} {_number(high)}{unit} or less"


def _span(low: float, high: float, unit: str) -> str:
    return f"between {_number(low)} and {_number(high)}{unit}"


def category(group: OneHot, column: str | None) -> str:
    """A category by its short name: the column without the group's name before it."""
    if column is None:
        return "none"
    short = column[len(group.name) :].lstrip("=_:. -") if column.startswith(group.name) else column
    return short or column


def _inward(low: float, high: float) -> tuple[float, float]:
    """Ends of few digits that lie within an interval, so that what is read can be typed in."""
    return _rounded(low, ROUND_CEILING), _rounded(high, ROUND_FLOOR)


def _rounded(value: float, rounding: str) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    exact = Decimal(value)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1), rounding=rounding))


def _number(value: Any) -> str:
    return f"{value:.6g}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
