"""How answers look: as text, as HTML without scripts, and as frames."""

import html as _html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cfmaps.explanation import Explanation, Explanations

_MOST_ROWS = 20


def text(explanation: "Explanation") -> str:
    """A headline and a table of changes."""
    rows = [(change.feature, shown(change.before), shown(change.after)) for change in explanation.changes()]
    lines = [headline(explanation)]
    if rows:
        rows.insert(0, ("feature", "now", "instead"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines += [f"  {name:<{widths[0]}}  {now:>{widths[1]}}  {then:>{widths[2]}}" for name, now, then in rows]
    return "\n".join(lines)


def headline(explanation: "Explanation") -> str:
    """What was found, in one sentence."""
    source = shown(explanation.source)
    status, bound = explanation.status, f"{explanation.lower_bound:.6g}"
    if status == "infeasible":
        return f"{source}: no admissible row has the wanted label (proven)"
    if status == "unknown":
        return f"{source}: stopped before an answer was found; none is nearer than {bound}"
    found = f"{source} -> {shown(explanation.target)} at distance {explanation.distance:.6g}"
    if status == "feasible":
        return f"{found} (stopped early: none is nearer than {bound})"
    return f"{found} (optimal)" if explanation.changes() else f"{source}: already so, nothing to change"


def shown(value: Any) -> str:
    """A value as people read it: enough digits to tell it from its float32 neighbours."""
    if value is None:
        return "none"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def html(explanation: "Explanation") -> str:
    """The headline and the changes as an HTML table."""
    rows = [(change.feature, shown(change.before), shown(change.after)) for change in explanation.changes()]
    return table(headline(explanation), ("feature", "now", "instead") if rows else (), rows)


def html_of_many(explanations: "Explanations") -> str:
    """The first rows as an HTML table."""
    rows = [
        (str(index), one.status, shown(one.source), shown(one.target), f"{one.distance:.6g}", str(len(one.changes())))
        for index, one in zip(range(_MOST_ROWS), explanations, strict=False)
    ]
    more = f", the first {_MOST_ROWS}" if len(explanations) > _MOST_ROWS else ""
    header = ("row", "status", "source", "target", "distance", "changes")
    return table(f"{explanations!r}{more}", header, rows)


def html_of_map(cfmap: Any) -> str:
    """Model, columns and state of a map as HTML tables."""
    origin, version = cfmap.origin, cfmap.origin.get("library_version")
    about = [
        ("model", f"{origin['model']} of {origin['library']}{f' {version}' if version else ''}"),
        ("trees", f"{cfmap.ensemble.n_trees:,}"),
        ("classes", ", ".join(shown(label) for label in cfmap.classes.tolist()[:_MOST_ROWS])),
        ("map", "complete" if cfmap.is_complete else "growing with every question"),
        ("memory", f"{cfmap.partition.n_bytes:,} bytes"),
    ]
    rows = [(entry.name, type(entry).__name__, _limits(entry)) for entry in list(cfmap.features)[:_MOST_ROWS]]
    more = f", the first {_MOST_ROWS}" if len(cfmap.features) > _MOST_ROWS else ""
    columns = table(f"{len(cfmap.features)} features{more}", ("feature", "kind", "may be"), rows)
    return table("CounterfactualMap", (), about) + columns


def _limits(entry: Any) -> str:
    if hasattr(entry, "values"):
        return ", ".join(map(shown, entry.values))
    if len(entry.columns) > 1:
        return ", ".join(entry.columns)
    low, high = getattr(entry, "low", None), getattr(entry, "high", None)
    return " ".join(
        [*(["from", shown(low)] if low is not None else []), *(["to", shown(high)] if high is not None else [])]
    )


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table without styles; without a header where that is empty."""

    # Colours are left to the page, so that the table is readable on light and dark ground.
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{_html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    head = f"<thead>{line('th', header)}</thead>" if header else ""
    caption = f'<caption style="text-align:left;white-space:nowrap">{_html.escape(caption)}</caption>'
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def frame(columns: Mapping[str, Any], like: Any = None, *, same_rows: bool = False) -> Any:
    """A frame in the library of ``like``, or in pandas, or in polars.

    With ``same_rows`` it has the index of ``like``, if that has one.
    """
    import narwhals as nw

    backend: Any = installed() if like is None else nw.get_native_namespace(like)
    made = nw.from_dict({name: _plain(values) for name, values in columns.items()}, backend=backend).to_native()
    # Several answers to one row have no index of their own.
    if same_rows and hasattr(like, "index") and hasattr(like, "columns") and len(like) == len(made):
        made.index = like.index
    return made


def _plain(values: Any) -> Any:
    """A column of one type: numbers stay an array, and next to text everything becomes text."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.copy()
    values = list(values)
    if any(isinstance(value, str) for value in values):
        return [None if value is None else shown(value) for value in values]
    return [float(value) for value in values] if any(isinstance(value, float) for value in values) else values


def installed() -> str:
    """The library of frames that is there: "pandas" or "polars"."""
    for name in ("pandas", "polars"):
        try:
            __import__(name)
        except ImportError:
            continue
        return name
    raise ImportError("to_frame needs pandas or polars; neither is installed")
