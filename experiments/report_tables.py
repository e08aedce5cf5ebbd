"""The tables of the study: the paper's figure, ours and their ratio in every cell."""

import numpy as np
import paper
from cells import beside, number, table
from datasets import load
from plan import DEPTHS, NAMES, TREES, Plan
from problem import Setting
from study import Store
from summary import Line, Lines, mean, spread

# Name in the tables, and whose figures of the paper stand beside it.
SYSTEMS = {
    "cf-maps": ("CF-Maps (the paper's method, ours)", "cf-maps"),
    "cold": ("cfmaps cold, a fresh map for every query", "cf-maps"),
    "growing": ("cfmaps cold, one map that grows", "cf-maps"),
    "warm": ("cfmaps warm, one at a time", "cf-maps"),
    "warm-batch": ("cfmaps warm, one call", "cf-maps"),
    "ocean-cp": ("OCEAN, constraint program", "ocean"),
    "treecf": ("treecf, exact", None),
    "veritas": ("veritas, Linf", None),
    "lire": ("LIRE", "lire"),
    "ft": ("FT, forest check", "ft"),
    "ft-tree": ("FT, tree only", "ft"),
    "dice-random": ("DiCE random", "dice"),
    "dice-genetic": ("DiCE genetic", "dice"),
    "dice-kdtree": ("DiCE kdtree", "dice"),
}
MIXED_INTEGER = ("prepare", "t_1000", "ratio", "failed")
EXACT = ("cf-maps", "cold", "growing", "warm", "warm-batch", "ocean-cp", "treecf")


def data_sets() -> str:
    """Table 1."""
    rows = []
    for name in NAMES:
        data = load(name)
        n_rows, n_columns, classes = paper.DATA_SETS[name]
        shares = "-".join(f"{100 * share:.0f}" for share in sorted(np.bincount(data.labels) / len(data.labels))[::-1])
        rows.append([data.name, beside(len(data.rows), n_rows), beside(data.rows.shape[1], n_columns)])
        rows[-1].append(f"**{shares}** ({classes})")
    return table(["data", "rows", "columns", "classes, percent"], rows)


def table_2(name: str, lines: Lines) -> str:
    """Preparation, 1,000 queries, failures and distance of every system on one data set."""
    rows = []
    for system, (title, other) in SYSTEMS.items():
        told = paper.TABLE_2[name][other] if other else (None,) * 4
        found = lines.first(system, name)
        if not found:
            rows.append([title, lines.refusal(system, name) or "not measured", "", "", "", ""])
            continue
        keys = ("prepare", "t_1000", "failed", "ratio")
        asked = sum(each.n for each in found) / len(found)
        cells = [beside(mean(found, key), value) for key, value in zip(keys, told, strict=True)]
        rows.append([title, *cells, f"{asked:,.0f} x {len(found)}"])
    return table(["system", "T_P, s", "T_1000, s", "%F", "D", "queries x seeds"], rows)


def latency(lines: Lines) -> str:
    """Behind Figure 3: the paper gives no numbers per norm."""
    rows = []
    for name in NAMES:
        for system in ("cf-maps", "warm"):
            found = [lines.of(system, name, norm) for norm in ("l1", "l2", "linf")]
            cells = [f"{number(mean(run, 't_1000'))} / {number(mean(run, 'p95_ms'))}" for run in found]
            rows.append([name, SYSTEMS[system][0], *cells])
    return table(["data", "system", "L1, ms: mean / 95 %", "L2", "Linf"], rows)


def kd_trees(lines: Lines) -> str:
    rows = []
    for name in NAMES:
        found = lines.of("cf-maps", name, "l1")
        nodes, megabytes, visited = paper.KD_TREES[name]
        cells = [beside(mean(found, "nodes"), nodes), beside(mean(found, "megabytes"), megabytes)]
        cells += [beside(mean(found, "visited"), visited), number(mean(found, "boxes"))]
        cells += [number(spread(found, "megabytes")), number(mean(found, "extraction"))]
        rows.append([name, *cells])
    head = ["data", "nodes", "memory, MB", "visited by a query, L1", "boxes", "MB, deviation", "of T_P: partition, s"]
    return table(head, rows)


def quality(lines: Lines, what: str) -> str:
    """D and %F of the heuristics over the number of trees, or over their depth."""
    values, told = (TREES, paper.QUALITY_BY_TREES) if what == "trees" else (DEPTHS, paper.QUALITY_BY_DEPTH)
    columns = (("ft", "ft"), ("ft-tree", "ft"), ("lire", "lire"), ("dice-random", "dice"))
    rows = []
    for name in NAMES:
        for value in values:
            cells = []
            for system, other in columns:
                found, (ratio, failed) = lines.first(system, name, **{what: value}), told[name][value][other]
                cells += [beside(mean(found, "ratio"), ratio), beside(mean(found, "failed"), failed)]
            rows.append([name, str(value), *cells])
    head = ["data", what, *(f"{SYSTEMS[system][0]} {key}" for system, _ in columns for key in ("D", "%F"))]
    return table(head, rows)


def scaling(lines: Lines, what: str) -> str:
    """Seconds for 1,000 queries, preparation included, behind the figures over trees and depth."""
    values = TREES if what == "trees" else DEPTHS
    systems = ("cf-maps", "growing", "warm", "ocean-cp", "treecf", "lire", "ft", "dice-random")
    rows = []
    for name in NAMES:
        for value in values:
            found = [lines.first(system, name, **{what: value}) for system in systems]
            rows.append([name, str(value), *(number(mean(run, lambda each: each.total)) for run in found)])
    return table(["data", what, *(SYSTEMS[system][0] for system in systems)], rows)


def partitions(plan: Plan, store: Store) -> str:
    """Leaves of the fast extraction beside those of the smallest tree."""
    rows = []
    for setting, system, _ in plan.cells:
        cell = store.read(setting, system) if system == "partition" else None
        if cell is None:
            continue
        size = f"{setting.trees} of depth {setting.depth}"
        least = (
            [number(cell["minimal"]), number(cell["minimal_seconds"])] if "minimal" in cell else [cell["refused"], ""]
        )
        rows.append([setting.data, size, number(cell["fast"]), number(1000 * cell["fast_seconds"]), *least])
    return table(["data", "trees", "leaves, fast", "ms", "leaves, smallest", "s"], rows)


def mixed_integer(lines: Lines) -> str:
    """OCEAN's mixed-integer program where its licence lets it, or what it says."""
    rows = []
    for each in lines.all:
        if each.system == "ocean-mip":
            at = each.setting
            told = [number(getattr(each, key)) for key in MIXED_INTEGER]
            if each.refused:
                told = [each.refused.partition("; visit")[0], "", "", ""]
            rows.append([at.data, f"{at.trees} of depth {at.depth}", *told])
    return table(["data", "trees", "T_P, s", "T_1000, s", "D", "%F"], rows)


def examples(store: Store, votes: str) -> str:
    """The four questions: every optimum, and everybody's answer."""
    cell = store.read(Setting("BC", votes=votes), "examples")
    if cell is None:
        return "Not measured.\n"
    head = ["row", *cell["columns"], "cost", "in the paper"]
    parts = []
    for place, (asked, (_, told)) in enumerate(zip(cell["examples"], paper.EXAMPLES, strict=True), 1):
        query = asked["query"]
        rows = [["query", *(number(value) for value in query), "0", ""]]
        best = np.abs(np.array(asked["optima"]) - query).sum(axis=1)
        names = [
            f"optimum {i}" + (" (cfmaps)" if row == asked["cfmaps"] else "") for i, row in enumerate(asked["optima"], 1)
        ]
        rows += [
            changed(n, query, row, d, told["CF-Maps"]) for n, row, d in zip(names, asked["optima"], best, strict=True)
        ]
        for name, found in asked["answers"].items():
            in_paper = told[{"oceanpy CP": "OCEAN", "LIRE": "LIRE"}.get(name, name.split()[0])]
            if found is None:
                rows.append([name, *["-"] * len(query), "none", str(in_paper)])
            else:
                label = name + ("" if found["valid"] else " [invalid]")
                rows.append(changed(label, query, found["row"], found["distance"], in_paper))
        n = len(asked["optima"])
        title = f"Query {place}: {asked['label']} to {asked['target']}, {n} optim{'um' if n == 1 else 'a'}"
        parts.append(f"**{title}**\n\n{table(head, rows)}")
    return "\n".join(parts)


def changed(name: str, query: list[float], row: list[float], cost: float, in_paper: float | str) -> list[str]:
    """A row of the table, its changed values in bold."""
    cells = [number(a) if a == b else f"**{number(a)}**" for a, b in zip(row, query, strict=True)]
    return [name, *cells, number(cost), str(in_paper)]


def all_measurements(lines: list[Line]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the CSV file."""
    values = [name for name in Line.__dataclass_fields__ if name != "setting"]
    head = ["data", "trees", "depth", "seed", "votes", *values]
    rows = []
    for each in lines:
        at = each.setting
        found = [getattr(each, name) for name in values]
        shown = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in found]
        rows.append([at.data, str(at.trees), str(at.depth), str(at.seed), at.votes, *shown])
    return head, rows
