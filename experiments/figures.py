"""The figures of the study: latency by norm, cumulative time, and time over the number and the depth of trees."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from plan import DEPTHS, NAMES, TREES
from study import Store
from summary import Line, Lines, mean

matplotlib.use("Agg")
from matplotlib import pyplot

# Colours that stay apart for colour-blind eyes; line and marker tell systems apart in grey.
LOOKS: dict[str, tuple[str, str, str, str]] = {
    "cf-maps": ("CF-Maps", "#0072B2", "o", "-"),
    "growing": ("cfmaps, nothing prepared", "#009E73", "s", "-"),
    "warm": ("cfmaps, whole map", "#56B4E9", "D", "-"),
    "ocean-cp": ("OCEAN (CP)", "#D55E00", "^", "--"),
    "treecf": ("treecf", "#E69F00", "v", "--"),
    "lire": ("LIRE", "#CC79A7", "P", ":"),
    "ft": ("FT", "#666666", "X", ":"),
    "dice-random": ("DiCE random", "#000000", "*", ":"),
}
NORMS = {"l1": ("L1", "#0072B2", ""), "l2": ("L2", "#E69F00", "///"), "linf": ("Linf", "#009E73", "...")}


def look(system: str) -> dict[str, Any]:
    name, colour, marker, line = LOOKS[system]
    return {"label": name, "color": colour, "marker": marker, "linestyle": line, "linewidth": 1.5, "markersize": 5}


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def draw_latency(path: Path, lines: Lines) -> None:
    """Figure 3: the mean query of CF-Maps in three norms, and of cfmaps on the whole map."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, system, title in zip(
        axes, ("cf-maps", "warm"), ("CF-Maps: KD-tree", "cfmaps: the whole map"), strict=True
    ):
        for place, (norm, (label, colour, hatch)) in enumerate(NORMS.items()):
            runs = [lines.of(system, name, norm) for name in NAMES]
            heights = [mean(run, "t_1000") / 1000 for run in runs]
            ends = [[each.t_1000 / 1000 for each in run] or [np.nan] for run in runs]
            errors = [[h - min(e), max(e) - h] for h, e in zip(heights, ends, strict=True)]
            style = {"color": colour, "hatch": hatch, "edgecolor": "white", "capsize": 2}
            axis.bar(
                np.arange(len(NAMES)) + 0.27 * (place - 1),
                np.array(heights) * 1000,
                0.25,
                yerr=np.maximum(np.array(errors).T, 0) * 1000,
                label=label,
                **style,
            )
        axis.set(yscale="log", title=title, xticks=range(len(NAMES)), xticklabels=NAMES)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("milliseconds per query")
    axes[1].legend(title="norm")
    save(figure, path)


def draw_cumulative(path: Path, lines: Lines, store: Store) -> None:
    """Time spent after so many counterfactuals, preparation included."""
    figure, axes = pyplot.subplots(1, len(NAMES), figsize=(15, 3.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, NAMES, strict=True):
        for system in LOOKS:
            draw_cumulative_line(axis, lines.first(system, name), store, system)
        axis.set(title=name, xscale="log", yscale="log", xlabel="counterfactuals")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds, preparation included")
    share_legend(figure, axes)
    save(figure, path)


def draw_cumulative_line(axis: Any, runs: list[Line], store: Store, system: str) -> None:
    if not runs:
        return
    counts = np.unique(np.geomspace(1, 1000, 40).astype(int))
    curves = np.array([cumulative(each, store, counts) for each in runs])
    style = look(system) | {"markevery": (3, 12), "markersize": 4}
    axis.plot(counts, curves.mean(axis=0), **style)
    axis.fill_between(counts, curves.min(axis=0), curves.max(axis=0), color=style["color"], alpha=0.15, linewidth=0)


def cumulative(run: Line, store: Store, counts: np.ndarray) -> np.ndarray:
    """Seconds after so many answers; beyond the last one measured, at the mean pace."""
    cell = store.read(run.setting, run.system)
    seconds = np.cumsum(cell["norms"][run.norm]["seconds"])
    measured = seconds[np.minimum(counts, len(seconds)) - 1]
    return cell["prepare"] + measured + np.maximum(counts - len(seconds), 0) * run.t_1000 / 1000


def draw_over(path: Path, lines: Lines, what: str) -> None:
    """Preparation and 1,000 counterfactuals over the number of trees, or over their depth."""
    values = TREES if what == "trees" else DEPTHS
    figure, axes = pyplot.subplots(1, len(NAMES), figsize=(15, 3.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, NAMES, strict=True):
        for system in LOOKS:
            draw_totals(axis, system, values, lambda value, s=system, n=name: lines.first(s, n, **{what: value}))
        axis.set(title=name, yscale="log", xlabel="trees of depth 5" if what == "trees" else "depth of 100 trees")
        if what == "trees":
            axis.set(xscale="log", xticks=values, xticklabels=values)
            axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds for 1,000, preparation included")
    share_legend(figure, axes)
    save(figure, path)


def draw_totals(axis: Any, system: str, values: tuple[int, ...], runs_at: Callable[[int], list[Line]]) -> None:
    found = [(value, [each.total for each in runs_at(value)]) for value in values]
    found = [(value, totals) for value, totals in found if totals]
    if not found:
        return
    at = [value for value, _ in found]
    axis.plot(at, [np.mean(totals) for _, totals in found], **look(system))
    low, high = [min(totals) for _, totals in found], [max(totals) for _, totals in found]
    axis.fill_between(at, low, high, color=LOOKS[system][1], alpha=0.15, linewidth=0)


def share_legend(figure: Any, axes: Any) -> None:
    """One legend under all panels."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
