"""Audits as HTML: one page without scripts or anything to fetch, readable on light and dark ground."""

import base64
import html
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cfmaps import plot
from cfmaps._tables import shown, table
from cfmaps.clauses import parse

if TYPE_CHECKING:
    from cfmaps.audit import Audit

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.85rem; display: block; overflow-x: auto; }
caption { text-align: left; padding-bottom: 0.3rem; }
th, td { padding: 0.25rem 0.55rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8886; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1.5rem 0; } figcaption { font-size: 0.9rem; } img { max-width: 100%; }
"""
_SUMMARY = {
    "rows": "rows", "in_need": "rows that need a change", "proven": "answers proven optimal, or proven not to exist",
    "stopped_early": "answers stopped early", "without_recourse": "rows without any way (proven)",
    "share_without_recourse": "share of them", "mean_cost": "mean cost of the others", "median_cost": "median cost",
    "highest_cost": "highest cost", "mean_changes": "features changed, mean",
    "median_distance_to_boundary": "median distance to the nearest other decision",
}  # fmt: skip


def page(audit: "Audit", title: str) -> str:
    """The whole report."""
    target = "any other decision" if audit.target is None else f"the decision {shown(audit.target)}"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>The smallest change that brings each row to {html.escape(target)}: global optima, each confirmed by the "
        f"model. {html.escape(_provenance(audit))}</p>",
        f"<p>{html.escape(_asked(audit))}</p>",
        _summary(audit),
        *(_group(audit, name) for name in audit.groups),
        "<h2>What changes</h2>",
        _changes(audit),
        _figure("Which features change how often", lambda ax: plot.changed_features(audit.explanations, ax=ax)),
        _figure("Cost and number of changes", lambda ax: plot.costs_by_changes(audit.explanations, ax=ax)),
        "<h2>Nearest to another decision</h2>",
        _flippable(audit),
        _figure("Distance of all rows to the decision boundary", lambda ax: plot.distances(audit.boundary, ax=ax)),
    ]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head><body>\n'
        + "\n".join(parts)
        + ("\n</body></html>\n")
    )


def tables(audit: "Audit") -> str:
    """The numbers alone, for a notebook."""
    groups = [_group_table(audit, name) for name in audit.groups]
    return "".join([_summary(audit), *groups, _changes(audit)])


def _provenance(audit: "Audit") -> str:
    origin = audit.cfmap.origin
    version = f" {origin['library_version']}" if origin.get("library_version") else ""
    return f"Model: {origin['model']} of {origin['library']}{version}, {audit.cfmap.ensemble.n_trees} trees."


def _asked(audit: "Audit") -> str:
    """What a cost is, and what had to hold."""
    asked = dict(audit.question)
    measure, weights = asked.pop("distance", "l1"), asked.pop("weights", None)
    norm = f"the {measure} norm" if isinstance(measure, str | int | float) else f"measured by {measure}"
    units = "in the columns' own units" if weights is None else f"weighted by {weights}"
    kept = [str(one) for one in parse(asked.pop("constraints", ()))]
    told = [
        f"A cost is {norm} of the change, {units}.",
        f"Every answer keeps: {'; '.join(kept)}." if kept else "Everything may change.",
        *(f"{name.replace('_', ' ')}: {value}." for name, value in asked.items() if value is not None),
    ]
    return " ".join(told)


def _summary(audit: "Audit") -> str:
    found = audit.summary()
    rows = [(text, _number(found[name], share=name.startswith("share"))) for name, text in _SUMMARY.items()]
    return table("All rows", (), rows)


def _group(audit: "Audit", name: str) -> str:
    members = audit.groups[name]
    picture = _figure(
        f"Cost by {name}", lambda ax: plot.distances(audit.explanations, by=members, ax=ax), f"rows grouped by {name}"
    )
    return f"<h2>By {html.escape(name)}</h2>{_group_table(audit, name)}{picture}"


def _group_table(audit: "Audit", name: str) -> str:
    header = (name, "rows", "without recourse", "share", "mean cost", "median", "ratio", "gap")
    rows = [
        (
            one["group"], str(one["rows"]), str(one["without_recourse"]),
            _number(one["share_without_recourse"], share=True), _with_interval(one, "mean_cost", "mean"),
            _number(one["median_cost"]), _with_interval(one, "ratio", "ratio"), _with_interval(one, "gap", "gap"),
        )
        for one in audit.by_group(name)
    ]  # fmt: skip
    return table(f"By {name}: costs of those with an answer; ratio and gap against the largest group", header, rows)


def _changes(audit: "Audit") -> str:
    header = ("feature", "rows", "share", "up", "down", "median move", "most often")
    rows = [
        (
            one["feature"], str(one["rows"]), _number(one["share"], share=True), str(one["up"]), str(one["down"]),
            _number(one["median_move"]), one["most_often"] or "-",
        )
        for one in audit.changes()[:20]
    ]  # fmt: skip
    return table("Features that change, most frequent first", header, rows)


def _flippable(audit: "Audit") -> str:
    header = ("row", "from", "to", "distance", "changes")
    rows = [
        (str(one["row"]), shown(one["from"]), shown(one["to"]), _number(one["distance"]), one["changes"])
        for one in audit.most_flippable()
    ]
    return table("The rows whose decision is nearest to flipping", header, rows)


def _with_interval(found: Mapping[str, Any], value: str, ends: str) -> str:
    if found[value] is None:
        return "-"
    low, high = (f"{found[f'{ends}_{end}']:.3g}" for end in ("low", "high"))
    return f"{_number(found[value])} [{low}, {high}]"


def _number(value: Any, *, share: bool = False) -> str:
    if value is None:
        return "-"
    if share:
        return f"{100 * value:.1f} %"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _figure(caption: str, draw: Callable[[Any], Any], text: str = "") -> str:
    """A picture for light and one for dark ground; the page shows the one that fits."""
    light, dark = (_picture(draw, style) for style in ("default", "dark_background"))
    source = f'<source srcset="{dark}" media="(prefers-color-scheme: dark)">'
    image = f'<img src="{light}" alt="{html.escape(text or caption)}">'
    return f"<figure><picture>{source}{image}</picture><figcaption>{html.escape(caption)}</figcaption></figure>"


def _picture(draw: Callable[[Any], Any], style: str) -> str:
    from matplotlib import style as styles
    from matplotlib.figure import Figure

    with styles.context(style):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        draw(figure.subplots())
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=110, transparent=True)
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
