"""Time cfmaps beside the other exact searches in one run, one thread each, on the same rows."""

import argparse
import os
from dataclasses import dataclass
from typing import Any

import compare
import instructions
import numpy as np
import ours
from bars import bars
from datasets import SOURCES, DataSet, forest, queries
from growth import print_growth
from tables import print_table
from threadpoolctl import threadpool_limits

import cfmaps

NORMS = ("l1", "l2", "linf")
# 100 million nodes are a gigabyte.
BUDGETS = {"max_nodes": 100_000_000, "time_limit": 20.0}


@dataclass(frozen=True, slots=True)
class Problem:
    """A forest, its data set, and the rows that everybody is asked about."""

    model: Any
    data: DataSet
    rows: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured on one data set."""

    name: str
    cold: dict[str, ours.Cold]
    warm: dict[str, ours.Warm]
    whole: ours.Whole
    clock: float
    peers: list[compare.Beside]


def problem(name: str, n: int) -> Problem:
    """Every row is asked for the label after the one the forest gives it."""
    model, data, test = forest(name)
    rows = queries(data, test, n)
    codes = np.searchsorted(model.classes_, model.predict(rows))
    return Problem(model, data, rows, model.classes_[(codes + 1) % len(model.classes_)])


def measure(name: str, options: argparse.Namespace) -> Result:
    """Time us, then the peers, and print the tables as they come."""
    asked = problem(name, options.queries)
    n_classes, n_columns = len(asked.model.classes_), asked.rows.shape[1]
    print(f"\n## {asked.data.name}: {len(asked.rows)} rows, {n_columns} columns, {n_classes} classes\n")
    features = ours.columns(asked.data)
    cold = {norm: ours.cold(asked.model, features, asked.rows, asked.targets, norm) for norm in NORMS}
    # A shared processor changes its pace: take it right beside the build.
    clock, whole = instructions.clock(), ours.build(asked.model, features, **BUDGETS)
    warm = {norm: ours.warm(whole.cfmap, asked.rows, asked.targets, norm) for norm in NORMS}
    print_times(cold, warm)
    print_map(whole)
    peers = measure_peers(asked, whole, options) if options.peers else []
    return Result(name, cold, warm, whole, clock, peers)


def print_times(cold: dict[str, ours.Cold], warm: dict[str, ours.Warm]) -> None:
    """One line per norm."""
    head = ["norm", "make a map", "first question", "both", "on the whole map", "many at once", "nodes visited"]
    print_table([*head, "predict confirms one", "of many"], [times(norm, cold[norm], warm[norm]) for norm in NORMS])
    print("(means, microseconds per row; the model's own predict is not part of the other columns)\n")


def times(norm: str, cold: ours.Cold, warm: ours.Warm) -> list[str]:
    spent = [cold.construct.mean(), cold.explain.mean(), cold.both.mean(), warm.explain.mean(), warm.many]
    confirm = [warm.confirm_one, warm.confirm_many]
    return [norm, *(f"{1e6 * s:,.1f}" for s in spent), f"{warm.n_visited:,.0f}", *(f"{1e6 * s:,.0f}" for s in confirm)]


def print_map(whole: ours.Whole) -> None:
    """What the map took, and how fast it grew."""
    grown = whole.growth
    state = "whole map" if grown.complete else f"PARTIAL map (out of {grown.reason}; the columns above speak of it)"
    print(f"{state} on one core: {whole.seconds:.4f} s, reading the model included; {grown.n_boxes:,} labelled boxes;")
    print(f"{grown.n_nodes:,} nodes of {whole.bytes_per_node:.1f} bytes; {speed(whole):,.0f} boxes per second\n")


def speed(whole: ours.Whole) -> float:
    """Boxes that were bounded and kept, which are the map's nodes, per second."""
    return whole.growth.n_nodes / whole.growth.seconds


def measure_peers(asked: Problem, whole: ours.Whole, options: argparse.Namespace) -> list[compare.Beside]:
    """Run every peer that takes the problem, each followed by us on the rows it was asked."""
    found = []
    for peer, most in compare.peers():
        reason = peer.refuses(asked.model, asked.data) if peer.available() else "not installed, or no Python for it"
        if reason:
            print(f"skipped {peer.name}: {reason}")
            continue
        found.append(measure_peer(peer, 3 if options.quick else most, asked, whole, options.budget))
        print_peer(found[-1], asked.rows)
    return found


def measure_peer(peer: Any, most: int, asked: Problem, whole: ours.Whole, budget: float) -> compare.Beside:
    """A peer, and us on the same rows with the same cost of a category."""
    features = ours.columns(asked.data)
    # oceanpy counts a change of category once.
    if asked.data.groups and peer.name.startswith("oceanpy"):
        features = ours.columns(asked.data, gap=1.0)
        whole = ours.build(asked.model, features)
    rows, targets = asked.rows[:most], asked.targets[:most]
    run = compare.run(peer, asked.model, asked.data, rows, targets, features=features, budget=budget)
    return compare.beside(run, whole, asked.model, features, rows, targets)


def print_peer(pair: compare.Beside, rows: np.ndarray) -> None:
    """Times, ratios, and whose answers are nearer."""
    run, found = pair.run, pair.verdict(rows)
    print(f"{run.peer}, {run.norm}, n={run.n}: mean {1e3 * run.mean:,.2f} ms, ", end="")
    print(f"median {1e3 * np.median(run.seconds):,.2f} ms; {1e3 * run.prepare:,.0f} ms to prepare")
    reading = f"{pair.times_fresh:,.1f} if both read the model, {pair.times_both:,.1f} if only ours does"
    print(f"  its time over ours: cold {pair.times_search:,.1f} ({reading}), ", end="")
    print(f"warm {pair.times_warm:,.1f}, warm in one call {pair.times_many:,.1f}")
    print(f"  distances: {found.equal} equal, ours smaller in {found.ours_nearer}, its smaller in ", end="")
    print(f"{found.theirs_nearer}, its refuted by predict in {found.invalid}; {run.n_unproven} unproven", flush=True)


def print_limit(results: list[Result]) -> None:
    """Boxes per second of the large builds beside what the counted instructions allow."""
    large = [result for result in results if result.whole.growth.n_nodes >= 100_000]
    print("\n## Boxes per second of a build, one core\n")
    head = ["data", "boxes/s", "instructions/box", "clock", "limit", "share"]
    print_table(head, [limit_row(result) for result in large])
    per_cycle = instructions.PER_CYCLE
    print(f"(limit: {per_cycle:.0f} instructions per cycle; callgrind counts the AVX2 code, AVX-512 needs fewer)")


def limit_row(result: Result) -> list[str]:
    boxes = speed(result.whole)
    per_box = instructions.per_box(result.whole.cfmap.ensemble)
    if per_box is None:
        return [result.name, f"{boxes:,.0f}", "needs valgrind", "", "", ""]
    most = instructions.limit(per_box, result.clock)
    pace = f"{result.clock / 1e9:.2f} GHz"
    return [result.name, f"{boxes:,.0f}", f"{per_box:,.0f}", pace, f"{most:,.0f}", f"{boxes / most:.0%}"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ask each peer 3 rows only; its ratios are rough then")
    parser.add_argument("--only", default=",".join(SOURCES), help="data sets, separated by commas")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="only cfmaps")
    parser.add_argument("--no-growth", dest="growth", action="store_false", help="leave out the larger forests")
    parser.add_argument("--queries", type=int, default=25, help="rows per data set")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per peer and data set")
    return parser.parse_args()


def main() -> None:
    options = parse()
    os.environ["RAYON_NUM_THREADS"] = "1"
    print(f"cfmaps {cfmaps.__version__}; forests of 100 trees of depth 5; one thread; all figures are from this run")
    with threadpool_limits(1):
        results = [measure(name, options) for name in options.only.split(",")]
        if options.growth:
            print_growth(seconds=2.0 if options.quick else 10.0)
    print_limit(results)
    print("\n## Bars\n")
    print_table(["bar", "needed", "measured", ""], bars({result.name: result for result in results}))


if __name__ == "__main__":
    main()
