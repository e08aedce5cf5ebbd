"""Every answer on the paper's data sets: confirmed by the model's own predict, and BoxTree's answer on the whole map.

Ends with "0 differences", or fails.
"""

import argparse
import sys

import numpy as np
import ours
from datasets import forest, queries
from tables import print_table

import cfmaps

NAMES = ("BC", "CP", "FI", "PD", "SE")
NORMS = ("l1", "l2", "linf")
NEAR = 1e-12  # sums of the same terms in another order


def compare(name: str, n: int) -> list[list[str]]:
    """One line per norm: a growing map, the whole map, the box trees and predict on the same rows."""
    model, data, test = forest(name)
    rows = queries(data, test, n)
    codes = np.searchsorted(model.classes_, model.predict(rows))
    targets = model.classes_[(codes + 1) % len(model.classes_)]
    whole = cfmaps.CounterfactualMap(model, features=ours.columns(data))
    whole.build()
    trees = {label: whole.box_tree(label) for label in model.classes_}
    return [[data.name, norm, *line(model, data, whole, trees, rows, targets, norm)] for norm in NORMS]


def line(model, data, whole, trees, rows, targets, norm) -> list[str]:
    growing = cfmaps.CounterfactualMap(model, features=ours.columns(data))
    cold = growing.explain_many(rows, target=targets, distance=norm)
    warm = whole.explain_many(rows, target=targets, distance=norm)
    boxes = np.empty(len(rows))
    for label, tree in trees.items():
        asked = targets == label
        boxes[asked] = tree.nearest(rows[asked].astype(np.float32).astype(float), norm).distance
    refuted = int((model.predict(warm.counterfactuals) != targets).sum())
    differing = int((np.abs(boxes - warm.distances) > NEAR * boxes).sum())
    moved = int((cold.counterfactuals != warm.counterfactuals).any(axis=1).sum())
    unproven = int((warm.statuses != "optimal").sum() + (cold.statuses != "optimal").sum())
    return [str(count) for count in (len(rows), unproven, refuted, differing, moved)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    found = [row for name in NAMES for row in compare(name, parser.parse_args().queries)]
    head = ["data", "norm", "queries", "not proven", "refuted by predict", "not BoxTree's", "not the growing map's"]
    print_table(head, found)
    differences = sum(int(count) for row in found for count in row[3:])
    print(f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
