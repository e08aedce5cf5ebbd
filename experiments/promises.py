"""What the project promised about the study, and whether this run kept it."""

import paper
from cells import number
from plan import NAMES
from report_tables import EXACT, SYSTEMS
from summary import Line, Lines, mean

LARGE = ("BC", "PD", "SE")
HEURISTICS = ("ft", "ft-tree", "dice-random", "dice-genetic", "dice-kdtree")


def promises(lines: Lines) -> list[list[str]]:
    """One row per promise: what, how much was asked, what was measured, kept or not."""
    found = [row for name in LARGE for row in against_the_paper(lines, name)]
    found += [row for name in NAMES for row in against_heuristics(lines, name)]
    return found + [exactness(lines, system) for system in EXACT]


def against_the_paper(lines: Lines, name: str) -> list[list[str]]:
    """CF-Maps: preparation and queries 100 times faster, memory 20 times smaller than the paper's figures."""
    runs = lines.of("cf-maps", name, "l1")
    prepared, asked, _, _ = paper.TABLE_2[name]["cf-maps"]
    told = [("preparation", prepared, "prepare", 100.0), ("1,000 queries", asked, "t_1000", 100.0)]
    told.append(("memory", paper.KD_TREES[name][1], "megabytes", 20.0))
    rows = []
    for what, theirs, key, least in told:
        ratio = theirs / mean(runs, key) if runs else float("nan")
        measured = f"{number(ratio)} x" + (in_this_run(lines, name, mean(runs, key)) if key == "t_1000" else "")
        what = f"CF-Maps, {name}: {what} under the paper's"
        rows.append([what, f"{least:.0f} x", measured, kept(ratio >= least)])
    return rows


def in_this_run(lines: Lines, name: str, ours: float) -> str:
    """How many times longer the exact peers took in the same run."""
    peers = {"OCEAN": "ocean-cp", "treecf": "treecf"}
    found = {title: mean(lines.first(system, name), "t_1000") / ours for title, system in peers.items()}
    told = [f"{title} {number(ratio)} x" for title, ratio in found.items() if ratio == ratio]
    return f" (in this run under {', '.join(told)})" if told else ""


def against_heuristics(lines: Lines, name: str) -> list[list[str]]:
    """cfmaps without preparation below every heuristic but LIRE; on the whole map below LIRE, too, on CP and FI."""
    others = [(mean(lines.first(system, name), "t_1000"), SYSTEMS[system][0]) for system in HEURISTICS]
    best = min((pair for pair in others if pair[0] == pair[0]), default=None)
    rows = []
    for system in ("cold", "growing"):
        ours = mean(lines.first(system, name), "t_1000")
        if best:
            what = f"{SYSTEMS[system][0]}, {name}: T_1000 below the fastest heuristic but LIRE ({best[1]})"
            rows.append([what, f"< {number(best[0])} s", f"{number(ours)} s", kept(ours < best[0])])
    lire = mean(lines.first("lire", name), "t_1000")
    for system in ("warm", "warm-batch") if name in ("CP", "FI") else ():
        ours = mean(lines.first(system, name), "t_1000")
        what = f"{SYSTEMS[system][0]}, {name}: T_1000 below LIRE's"
        rows.append([what, f"< {number(lire)} s", f"{number(ours)} s", kept(ours < lire)])
    return rows


def exactness(lines: Lines, system: str) -> list[str]:
    """D = 1 and %F = 0 in every cell, within the rounding of a sum."""
    found: list[Line] = [each for each in lines.all if each.system == system and not each.refused]
    wrong = [each for each in found if each.failed > 0 or abs(each.ratio - 1) > 1e-4]
    answers = f"{len(found) - len(wrong)} of {len(found)} cells"
    return [f"{SYSTEMS[system][0]}: D = 1 and %F = 0", "every cell", answers, kept(not wrong)]


def kept(is_kept: bool) -> str:
    return "kept" if is_kept else "NOT KEPT"
