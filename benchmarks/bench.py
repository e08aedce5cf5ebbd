"""Time cfmaps beside the other exact searches in one run, one thread each, on the same rows.

usage: bench.py [--quick] [--only BC,PD] [--no-peers] [--queries 25]
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
from dataclasses import dataclass, field
from typing import Any

import compare
import instructions
import numpy as np
import ours
from bars import bars
from datasets import SOURCES, DataSet, forest, queries

import cfmaps

NORMS = ("l1", "l2", "linf")
# A map larger than this is left partial: 100 million nodes are a gigabyte.
BUDGETS = {"max_nodes": 100_000_000, "time_limit": 20.0}


@dataclass
class Result:
    """Everything measured on one data set."""

    name: str
    cold: dict[str, ours.Cold] = field(default_factory=dict)
    warm: dict[str, ours.Warm] = field(default_factory=dict)
    whole: ours.Whole | None = None
    peers: list[compare.Run] = field(default_factory=list)


def measure(name: str, options: argparse.Namespace) -> Result:
    """Time us, then the peers, and print the tables as they come."""
    model, data, test = forest(name)
    rows = queries(data, test, options.queries)
    targets = other_labels(model, rows)
    features = ours.columns(data)
    print(
        f"\n## {data.name}: {len(rows)} rows, {rows.shape[1]} columns, {len(model.classes_)} classes, 100 trees of depth 5\n"
    )
    result = Result(data.name)
    measure_ours(result, model, features, rows, targets)
    if options.peers:
        measure_peers(result, model, data, rows, targets, options)
    return result


def other_labels(model: Any, rows: np.ndarray) -> np.ndarray:
    """For every row the label after the one the model gives it."""
    codes = np.searchsorted(model.classes_, model.predict(rows))
    labels: np.ndarray = model.classes_[(codes + 1) % len(model.classes_)]
    return labels


def measure_ours(
    result: Result, model: Any, features: cfmaps.Features | None, rows: np.ndarray, targets: np.ndarray
) -> None:
    """Fresh maps in every norm, then one map built on one core and asked in every norm."""
    for norm in NORMS:
        result.cold[norm] = ours.cold(model, features, rows, targets, norm)
    result.whole = ours.build(model, features, **BUDGETS)
    for norm in NORMS:
        result.warm[norm] = ours.warm(result.whole.cfmap, rows, targets, norm)
    print_times(result)
    print_map(result.whole)


def print_times(result: Result) -> None:
    """One line per norm, in microseconds per row."""
    state = "whole map" if result.whole and result.whole.growth.complete else "partial map"
    head = ["norm", "make a map", "first question", "both", f"on the {state}", "many at once", "nodes visited"]
    print_table([*head, "predict confirms one", "of many"], [times(norm, result) for norm in NORMS])
    print("\n(means, microseconds per row; the model's own predict is not part of the other columns)\n")


def times(norm: str, result: Result) -> list[str]:
    cold, warm = result.cold[norm], result.warm[norm]
    spent = [cold.construct.mean(), cold.explain.mean(), cold.both.mean(), warm.explain.mean(), warm.many]
    confirm = [warm.confirm_one, warm.confirm_many]
    return [norm, *(f"{1e6 * s:,.1f}" for s in spent), f"{warm.n_visited:,.0f}", *(f"{1e6 * s:,.0f}" for s in confirm)]


def print_map(whole: ours.Whole) -> None:
    """What the map took and how fast it grew."""
    grown = whole.growth
    state = "whole map" if grown.complete else f"partial map (stopped by {grown.reason})"
    print(
        f"{state} on one core: {whole.seconds:.3f} s with reading the model, {grown.n_boxes:,} labelled boxes, ", end=""
    )
    print(f"{grown.n_nodes:,} nodes of {whole.bytes_per_node:.1f} bytes, {grown.n_nodes / grown.seconds:,.0f} boxes/s")


def measure_peers(
    result: Result, model: Any, data: DataSet, rows: np.ndarray, targets: np.ndarray, options: argparse.Namespace
) -> None:
    """Run every peer that takes the problem, then compare times and distances."""
    print()
    for peer, most in compare.peers():
        reason = "is not installed here" if not peer.available() else peer.refuses(model, data)
        if reason:
            print(f"skipped {peer.name}: {reason}")
            continue
        # oceanpy counts a change of category once.
        features = ours.columns(data, gap=1.0 if peer.name.startswith("oceanpy") else None)
        most = min(most, len(rows), 3 if options.quick else most)
        run = compare.run(peer, model, data, rows[:most], targets, features=features, budget=options.budget)
        result.peers.append(run)
        print_peer(result, run, model, rows, targets, features)


def print_peer(
    result: Result,
    run: compare.Run,
    model: Any,
    rows: np.ndarray,
    targets: np.ndarray,
    features: cfmaps.Features | None,
) -> None:
    """Ratios on the rows that the peer was asked, and whose answers are nearer."""
    n = run.n
    exact = ours.cold(model, features, rows[:n], targets[:n], run.norm, repeats=1).distances
    found = compare.verdict(run, exact, rows)
    cold, warm = result.cold[run.norm], result.warm[run.norm]
    print(
        f"{run.peer} ({run.norm}, n={n}): mean {1e3 * run.mean:.2f} ms, median {1e3 * np.median(run.seconds):.2f} ms",
        end="",
    )
    print(f", preparing {1e3 * run.prepare:.0f} ms, {run.n_unproven} unproven")
    print(f"  times slower than our first question {run.mean / cold.explain[:n].mean():,.1f}", end="")
    print(f", with making the map {run.mean / cold.both[:n].mean():,.1f}", end="")
    print(f", on the whole map {run.mean / warm.explain[:n].mean():,.1f}, many at once {run.mean / warm.many:,.1f}")
    print(f"  distances: {found.equal} equal, ours nearer in {found.ours_nearer}, theirs nearer in ", end="")
    print(f"{found.theirs_nearer}, theirs not confirmed by predict in {found.invalid}", flush=True)


def print_limit(results: list[Result]) -> None:
    """Boxes per second of the build beside what the counted instructions allow."""
    print("\n## Boxes per second, one core\n")
    clock = instructions.clock()
    rows = []
    for result in results:
        if result.whole is None or result.whole.growth.n_nodes < 100_000:
            continue
        per_box = instructions.per_box(result.whole.cfmap.ensemble)
        rows.append(limit_row(result, per_box, clock))
    print_table(["data", "boxes/s", "instructions per box", "limit", "share"], rows)
    print(
        f"\n(limit: {clock / 1e9:.2f} GHz and {instructions.PER_CYCLE:.0f} instructions per cycle, counted on AVX2 code)"
    )


def limit_row(result: Result, per_box: float | None, clock: float) -> list[str]:
    assert result.whole is not None
    speed = result.whole.growth.n_nodes / result.whole.growth.seconds
    if per_box is None:
        return [result.name, f"{speed:,.0f}", "needs valgrind", "", ""]
    most = instructions.limit(per_box, clock)
    return [result.name, f"{speed:,.0f}", f"{per_box:,.0f}", f"{most:,.0f}", f"{speed / most:.0%}"]


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """A Markdown table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rows for the peers")
    parser.add_argument("--only", default=",".join(SOURCES), help="data sets, separated by commas")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--queries", type=int, default=25)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per peer and data set")
    options = parser.parse_args()
    print("cfmaps", cfmaps.__version__, "- one thread; every time in one table is from this run")
    results = [measure(name, options) for name in options.only.split(",")]
    print_limit(results)
    print("\n## Bars\n")
    print_table(["bar", "needed", "measured", ""], bars({result.name: result for result in results}))


if __name__ == "__main__":
    main()
