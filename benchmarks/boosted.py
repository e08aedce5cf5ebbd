"""Time cfmaps beside treecf's exact search on XGBoost and LightGBM models, one thread each, on the same rows.

Every query of ours is cold: a map of its own, and its time is that of the search (with the model read, in a column
of its own). treecf has read the model before its clock starts. Distances are L1 over the columns.
"""

import argparse
import os
import warnings
from typing import Any

import compare
import numpy as np
import ours
from datasets import DataSet, load, queries
from peers import Treecf
from sklearn.model_selection import train_test_split
from tables import print_table
from threadpoolctl import threadpool_limits

import cfmaps

# The first float32 that XGBoost takes for more than one half; LightGBM needs a little less.
ABOVE_HALF = 8.95e-8
HEAD = ["data", "columns", "model", "n", "treecf", "ours, cold", "with reading", "worst", "times", "equal", "missed"]
HEAD += ["its: invalid", "missing", "unproven", "ours: invalid", "unproven"]


class TreecfOnScores(Treecf):
    """treecf asked about the raw score of a boosted model, whose sign is the label."""

    def target(self, label: object) -> object:
        from treecf import Target

        return Target.raw(op="<=" if label == 0 else ">=", value=0.0 if label == 0 else ABOVE_HALF)


def models(depth: int) -> dict[str, Any]:
    """Boosted trees of 100 rounds."""
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    shared = {"n_estimators": 100, "max_depth": depth, "n_jobs": 1, "random_state": 0}
    return {"xgboost": XGBClassifier(**shared), "lightgbm": LGBMClassifier(**shared, num_leaves=2**depth, verbose=-1)}


def measure(data: DataSet, name: str, model: Any, options: argparse.Namespace) -> list[str]:
    """One line of the table."""
    train, test, labels, _ = train_test_split(data.rows, data.labels, test_size=0.2, random_state=0)
    model.fit(train, labels)
    rows = queries(data, test, options.queries)
    targets = 1 - model.predict(rows).astype(int)
    features = ours.columns(data)
    peer = TreecfOnScores(warm_start=options.warm_start, time_limit=options.budget / 4)
    run = compare.run(peer, model, data, rows, targets, features=features, budget=options.budget)
    rows, targets = rows[: run.n], targets[: run.n]
    cold = ours.cold(model, features, rows, targets, "l1", repeats=-(-compare.LEAST_TIMED // run.n))
    asked = zip(rows, targets, strict=True)
    answers = [cfmaps.CounterfactualMap(model, features=features).explain(x, target=label) for x, label in asked]
    found = np.array([answer.counterfactual for answer in answers])
    within = compare.allowance(run, rows)
    seconds = [f"{1e3 * run.mean:,.2f} ms", f"{1e3 * cold.explain.mean():,.3f} ms", f"{1e3 * cold.both.mean():,.2f} ms"]
    seconds += [f"{1e3 * cold.explain.max():,.2f} ms", f"{run.mean / cold.explain.mean():,.0f}"]
    nothing = run.distances == 0
    counts = [
        (run.valid & (abs(run.distances - cold.distances) <= within)).sum(),
        (run.valid & (run.distances > cold.distances + within)).sum(),
        (~run.valid & ~nothing).sum(),
        (~run.valid & nothing).sum(),
        run.n_unproven,
        (model.predict(found) != targets).sum(),
        sum(answer.status != "optimal" for answer in answers),
    ]
    return [data.name, str(rows.shape[1]), name, str(run.n), *seconds, *map(str, counts)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="PD-raw,BC,CP", help="data sets of two classes, separated by commas")
    parser.add_argument("--depths", default="4,6")
    parser.add_argument("--queries", type=int, default=20, help="rows per model")
    parser.add_argument(
        "--budget", type=float, default=40.0, help="seconds for treecf per model; a quarter of it per row"
    )
    parser.add_argument(
        "--cold", dest="warm_start", action="store_false", help="treecf without its genetic search first"
    )
    return parser.parse_args()


def main() -> None:
    options = parse()
    os.environ["RAYON_NUM_THREADS"] = "1"
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    lines = []
    with threadpool_limits(1):
        for data in map(load, options.only.split(",")):
            for depth in map(int, options.depths.split(",")):
                for name, model in models(depth).items():
                    lines.append(measure(data, f"{name}, depth {depth}", model, options))
                    print(" ".join(lines[-1]), flush=True)
    print_table(HEAD, lines)
    print(
        "(means; times: treecf's mean over our cold mean; equal: within the rounding of the grids; missed: valid, but"
    )
    print(" farther than ours; invalid: refuted by predict; missing: no answer; unproven: stopped by a limit)")


if __name__ == "__main__":
    main()
