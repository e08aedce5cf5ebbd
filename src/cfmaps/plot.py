"""Pictures of maps and answers, with matplotlib.

Every function draws on ``ax`` (a new figure's, by default), returns it, and is readable in black and white: fills are
greys and hatches, and lines take the colours of the current style, so that they show on light and dark ground.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps._tables import shown
from cfmaps.explanation import Change, Explanation, Explanations

GREYS = ("#d9d9d9", "#8c8c8c", "#f5f5f5", "#595959", "#bfbfbf", "#a6a6a6")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")

_SHOWN_FEATURES = 20


def plane(
    cfmap: Any,
    x: Any,
    columns: tuple[str, str],
    *,
    show: str = "decision",
    target: Any = None,
    distance: Any = "l1",
    limits: Mapping[str, tuple[float, float]] | None = None,
    pixels: int = 120,
    constraints: Any = (),
    ax: Any = None,
) -> Any:
    """A slice of the map through one row: two columns vary, the others stay.

    Parameters
    ----------
    cfmap : CounterfactualMap
    x : row
        The case, drawn as a dot.
    columns : pair of str
        The columns of the two axes.
    show : {"decision", "counterfactual", "distance"}
        What the model says; which region holds the smallest change, one shade per region
        of all columns; or how far it is.
    target, distance, constraints
        As for `CounterfactualMap.explain`.
    limits : mapping, optional
        The range of a column; around its cuts and ``x`` by default.
    pixels : int
        Points per side.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import cfmaps
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cfmap = cfmaps.CounterfactualMap(DecisionTreeClassifier(max_depth=4).fit(X, y))
    >>> plane(cfmap, X[0], ("x2", "x3"), pixels=30).get_xlabel()
    'x2'
    """
    if show not in ("decision", "counterfactual", "distance"):
        raise ValueError(f"show must be 'decision', 'counterfactual' or 'distance', got {show!r}")
    ax = _axes(ax)
    places = [_place(name, cfmap.features.columns) for name in columns]
    case = np.asarray(x, dtype=np.float64).reshape(-1)
    ends = [
        (limits or {}).get(name) or _range_of(cfmap, place, case) for name, place in zip(columns, places, strict=True)
    ]
    rows = np.tile(case, (pixels * pixels, 1))
    steps = [low + (np.arange(pixels) + 0.5) / pixels * (high - low) for low, high in ends]
    rows[:, places[0]], rows[:, places[1]] = np.tile(steps[0], pixels), np.repeat(steps[1], pixels)
    extent = (*ends[0], *ends[1])
    if show == "decision":
        _draw_classes(ax, cfmap.ensemble.labels(rows).reshape(pixels, pixels), cfmap.classes, extent)
    else:
        many = cfmap.explain_many(rows, target=target, distance=distance, constraints=constraints)
        draw = _draw_regions if show == "counterfactual" else _draw_distances
        draw(ax, cfmap, many, extent, pixels)
    ax.plot(*case[places], "o", color="white", markeredgecolor="black", markersize=8, zorder=5)
    ax.set(xlabel=columns[0], ylabel=columns[1], xlim=ends[0], ylim=ends[1])
    return ax


def waterfall(explanation: Explanation, *, ax: Any = None) -> Any:
    """The changes of an answer, one after the other, and what each adds to the distance.

    The largest comes first; their sum is the distance in every norm.
    """
    ax = _axes(ax)
    changes, costs = _priced(explanation)
    order = np.argsort(-costs, kind="stable")
    costs, changes = costs[order], [changes[i] for i in order]
    ends = np.cumsum(costs)
    _bars(ax, [_words(change) for change in changes], costs, ends - costs)
    for place, (end, cost) in enumerate(zip(ends, costs, strict=True)):
        ax.annotate(f" +{cost:.3g}", (end, place), va="center", color=_ink())
    ax.set(xlabel="distance", title=_headline(explanation))
    ax.set_xlim(0, 1.15 * ends[-1] if len(ends) else 1)
    return ax


def alternatives(explanations: Iterable[Explanation], *, columns: int = 3, axes: Any = None) -> Any:
    """Small multiples: several answers to one question, waterfalls on the same scale; returns an array of axes."""
    answers = list(explanations)
    if not answers:
        raise ValueError("explanations must hold at least one answer, got none")
    if axes is None:
        axes = _grid(len(answers), columns)
    flat = np.asarray(axes, dtype=object).reshape(-1)
    most = max([1e-300, *(answer.distance for answer in answers if np.isfinite(answer.distance))])
    for ax, answer in zip(flat, answers, strict=False):
        waterfall(answer, ax=ax)
        ax.set_xlim(0, 1.3 * most)
        ax.set_title(f"{shown(answer.target)} at {answer.distance:.4g}")
    for ax in flat[len(answers) :]:
        ax.set_visible(False)
    return axes


def distances(many: Explanations, *, by: Any = None, bins: int = 20, ax: Any = None) -> Any:
    """How far rows are from their answers, as a histogram; ``by`` tells groups apart, a value per row."""
    ax = _axes(ax)
    found = np.isfinite(many.distances)
    groups = np.array(["all rows"] * len(many)) if by is None else np.asarray(by).astype(str)
    names = sorted(set(groups))
    parts = [many.distances[found & (groups == name)] for name in names]
    fills = ax.hist(parts, bins=bins, stacked=True, label=names, edgecolor="black", linewidth=0.6)[2]
    for place, patches in enumerate(fills if len(names) > 1 else [fills]):
        for patch in patches:
            patch.set(facecolor=GREYS[place % len(GREYS)], hatch=HATCHES[place % len(HATCHES)])
    if len(names) > 1:
        ax.legend()
    without = int((~found).sum())
    ax.set(xlabel="distance", ylabel="rows", title=f"{without} rows without an answer" if without else "")
    return ax


def changed_features(many: Explanations, *, ax: Any = None) -> Any:
    """Which features change how often: bars of rows in which a feature rises, falls, or goes to another category."""
    ax = _axes(ax)
    ways: dict[str, Counter[str]] = {"up": Counter(), "down": Counter(), "other": Counter()}
    for one in many:
        for change in one.changes():
            ways[_way(change)][change.feature] += 1
    total = sum(ways.values(), Counter())
    names = [name for name, _ in total.most_common(_SHOWN_FEATURES)]
    start = np.zeros(len(names))
    for place, (way, counts) in enumerate(ways.items()):
        widths = np.array([counts[name] for name in names], dtype=float)
        if widths.any():
            look = {"facecolor": GREYS[place], "hatch": HATCHES[place], "edgecolor": "black", "linewidth": 0.6}
            ax.barh(names, widths, left=start, label=way, **look)
        start += widths
    if names:
        ax.invert_yaxis()
        ax.legend(title="goes")
    ax.set(xlabel=f"rows, of {len(many)}")
    return ax


def costs_by_changes(many: Explanations, *, ax: Any = None) -> Any:
    """Distance against the number of features that change: a box for every number, and the rows as dots."""
    ax = _axes(ax)
    numbers = np.array([len(one.changes()) for one in many])
    found = np.isfinite(many.distances) & (numbers > 0)
    counts = sorted(set(numbers[found].tolist()))
    spread = np.random.default_rng(0).uniform(-0.18, 0.18, size=len(many))
    ax.plot((numbers + spread)[found], many.distances[found], ".", color="#8c8c8c", markersize=4, zorder=1)
    if counts:
        look = {name: {"color": _ink()} for name in ("boxprops", "whiskerprops", "capprops", "medianprops")}
        parts = [many.distances[found & (numbers == n)] for n in counts]
        ax.boxplot(parts, positions=counts, widths=0.5, showfliers=False, zorder=2, **look)
        labels = [f"{n}\n({len(part)} rows)" for n, part in zip(counts, parts, strict=True)]
        ax.set_xticks(counts, labels)
    ax.set(xlabel="features that change", ylabel="distance")
    return ax


def growth(cfmap: Any, X: Any, *, ax: Any = None, **question: Any) -> Any:
    """Asks ``cfmap`` about each row in turn: its size, and the boxes each search had to bound by itself.

    The map grows meanwhile; ``question`` is what `CounterfactualMap.explain` takes.
    """
    ax = _axes(ax)
    sizes, work = [], []
    for row in X:
        found = cfmap.explain_many([row], **question)
        work.append(int(found.n_evaluated[0]))
        sizes.append(cfmap.partition.n_nodes)
    steps = np.arange(1, len(sizes) + 1)
    ax.plot(steps, sizes, "-", color=_ink(), label="nodes of the map")
    ax.plot(steps, np.maximum(work, 0.5), ".", color="#8c8c8c", markersize=5, label="boxes a search bounds by itself")
    ax.set_yscale("log")
    ax.set(xlabel="questions asked", ylabel="nodes, boxes")
    ax.legend()
    return ax


def _draw_classes(ax: Any, labels: npt.NDArray[Any], classes: Sequence[Any], extent: tuple[float, ...]) -> None:
    from matplotlib.patches import Patch

    present = np.unique(labels)
    image = np.searchsorted(present, labels)
    _show(ax, _shades(image), extent)
    handles = []
    for place, code in enumerate(present):
        fill, hatch = GREYS[place % len(GREYS)], HATCHES[place % len(HATCHES)]
        _hatch(ax, image == place, extent, hatch)
        handles.append(Patch(facecolor=fill, hatch=hatch, edgecolor="black", label=shown(classes[code])))
    ax.legend(handles=handles, title="predicts", loc="best")


def _draw_regions(ax: Any, cfmap: Any, many: Explanations, extent: tuple[float, ...], pixels: int) -> None:
    """One shade per region that holds an answer, black lines where they meet."""
    image = _region_of(cfmap, many).reshape(pixels, pixels)
    n_regions = len(np.unique(image[image > 0]))
    shades = _shades(image)
    shades[image == 0] = 255
    border = np.zeros(image.shape, dtype=bool)
    border[:-1] |= image[1:] != image[:-1]
    border[:, :-1] |= image[:, 1:] != image[:, :-1]
    shades[border] = 0
    _show(ax, shades, extent)
    ax.set_title(f"{n_regions} regions hold the smallest changes")


def _region_of(cfmap: Any, many: Explanations) -> npt.NDArray[np.intp]:
    """A number per row: that of the region its answer is in, from 1 on; 0 without one, or where nothing changes."""
    found = np.isfinite(many.distances) & (many.sources != many.targets)
    cells, which = np.unique(cfmap.partition.lattice.cells(many.points[found]), axis=0, return_inverse=True)
    ends = [np.concatenate(cfmap.partition.region(cell)) for cell in cells]
    numbers = np.zeros(len(many), dtype=np.intp)
    if ends:
        numbers[found] = 1 + np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1)[which.reshape(-1)]
    return numbers


def _draw_distances(ax: Any, cfmap: Any, many: Explanations, extent: tuple[float, ...], pixels: int) -> None:
    values = np.where(np.isfinite(many.distances), many.distances, np.nan).reshape(pixels, pixels)
    image = ax.imshow(values, origin="lower", extent=extent, aspect="auto", cmap="Greys", vmin=0)
    if np.nanmax(values, initial=0) > 0:
        lines = ax.contour(values, origin="lower", extent=extent, levels=6, colors="black", linewidths=0.6)
        ax.clabel(lines, fontsize=7)
    ax.figure.colorbar(image, ax=ax, label="distance")


def _shades(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    table = np.array([[int(grey[i : i + 2], 16) for i in (1, 3, 5)] for grey in GREYS], dtype=np.uint8)
    return np.asarray(table[image % len(GREYS)])


def _show(ax: Any, image: npt.NDArray[np.uint8], extent: tuple[float, ...]) -> None:
    ax.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def _hatch(ax: Any, inside: npt.NDArray[np.bool_], extent: tuple[float, ...], hatch: str) -> None:
    if hatch and inside.any():
        look = {"colors": "none", "levels": [0.5, 1.5], "hatches": [hatch], "origin": "lower", "extent": extent}
        ax.contourf(inside.astype(float), **look)


def _priced(explanation: Explanation) -> tuple[list[Change], npt.NDArray[np.float64]]:
    """Each change, and by how much it raises the distance when they are made in turn."""
    steps = explanation.contributions()
    return [change for change, _ in steps], np.array([cost for _, cost in steps])


def _bars(ax: Any, names: Sequence[str], widths: Any, start: Any) -> None:
    places = np.arange(len(names))
    ax.barh(places, widths, left=start, facecolor=GREYS[0], edgecolor="black", linewidth=0.8)
    ax.set_yticks(places, names)
    ax.invert_yaxis()


def _words(change: Change) -> str:
    return f"{change.feature}\n{_short(change.before)} \N{RIGHTWARDS ARROW} {_short(change.after)}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value)


def _headline(explanation: Explanation) -> str:
    if explanation.target is None:
        return f"{shown(explanation.source)}: {explanation.status}"
    return f"{shown(explanation.source)} \N{RIGHTWARDS ARROW} {shown(explanation.target)}, {explanation.status}"


def _way(change: Change) -> str:
    numbers = isinstance(change.before, int | float) and isinstance(change.after, int | float)
    if not numbers:
        return "other"
    return "up" if change.after > change.before else "down"


def _place(name: str, columns: Sequence[str]) -> int:
    if name not in columns:
        raise ValueError(f"columns must be two of {list(columns)}, got {name!r}")
    return columns.index(name)


def _range_of(cfmap: Any, place: int, case: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The cuts of a column and the case, with a margin."""
    ensemble = cfmap.ensemble
    cuts = ensemble.threshold[ensemble.feature == place]
    values = np.append(cuts[np.isfinite(cuts)], case[place])
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 1.0
    column = cfmap.features.columns[place]
    limits = next(entry for entry in cfmap.features if column in entry.columns)
    least, most = getattr(limits, "low", None), getattr(limits, "high", None)
    start = low - margin if least is None else max(low - margin, min(float(least), case[place]))
    end = high + margin if most is None else min(high + margin, max(float(most), case[place]))
    return (start, end) if start < end else (low - margin, high + margin)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _grid(n: int, columns: int) -> Any:
    from matplotlib import pyplot

    columns = min(columns, n)
    rows = -(-n // columns)
    size = (4.2 * columns, 2.6 * rows)
    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")[1]


def _ink() -> Any:
    """The colour of text in the current style."""
    from matplotlib import rcParams

    return rcParams["text.color"]
