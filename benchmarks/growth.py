"""How the first question and the whole map grow with the number of trees and their depth, on one data set."""

import argparse
from typing import Any

import numpy as np
import ours
from datasets import SOURCES, DataSet, forest, queries
from tables import print_table
from threadpoolctl import threadpool_limits

from cfmaps import CounterfactualMap

TREES = (10, 20, 50, 100, 200, 500)
DEPTHS = (3, 4, 5, 6, 7, 8)
HEAD = ["trees", "depth", "leaves", "cells", "make a map", "first question", "optimal", "whole map", "nodes", "boxes/s"]


def line(name: str, trees: int, depth: int, *, n_queries: int, seconds: float) -> list[str]:
    """One forest: cold questions, each within a limit, and a build within a limit."""
    model, data, test = forest(name, trees=trees, depth=depth)
    rows = queries(data, test, n_queries)
    construct, explain, optimal = np.array([cold(model, data, row, seconds) for row in rows]).T
    whole = ours.build(model, ours.columns(data), max_nodes=100_000_000, time_limit=seconds)
    grown, n_leaves = whole.growth, sum(tree.get_n_leaves() for tree in model.estimators_)
    return [
        *(str(trees), str(depth), f"{n_leaves:,}", f"{whole.cfmap.partition.lattice.n_points:.1e}"),
        *(f"{1e3 * construct.mean():.1f} ms", f"{1e3 * explain.mean():.2f} ms", f"{optimal.sum():.0f} of {len(rows)}"),
        f"{grown.seconds:.3f} s" if grown.complete else f"stopped by {grown.reason}",
        *(f"{grown.n_nodes:,}", f"{grown.n_nodes / grown.seconds:,.0f}"),
    ]


def cold(model: Any, data: DataSet, row: np.ndarray, seconds: float) -> tuple[float, float, float]:
    """Seconds to make a map, seconds of its first question in L1, and 1 if the answer is proven optimal."""
    construct, cfmap = ours.seconds(lambda: CounterfactualMap(model, features=ours.columns(data)))
    explain, answer = ours.seconds(lambda: cfmap.explain(row, time_limit=seconds))
    return construct, explain, float(answer.status == "optimal")


def print_growth(name: str = "PD", *, n_queries: int = 10, seconds: float = 10.0) -> None:
    """More trees of one depth, then deeper trees of one number."""
    print(f"\n## Growth on {name}: first questions in L1, and the whole map on one core within {seconds:.0f} s\n")
    sizes = [(trees, 5) for trees in TREES] + [(100, depth) for depth in DEPTHS if depth != 5]
    print_table(HEAD, [line(name, *size, n_queries=n_queries, seconds=seconds) for size in sizes])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="PD", choices=SOURCES)
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="limit of every question and every build")
    options = parser.parse_args()
    with threadpool_limits(1):
        print_growth(options.data, n_queries=options.queries, seconds=options.seconds)
