"""A small credit example to try the commands on."""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

import cfmaps

COLUMNS = ("income", "debt", "age", "owner")


def make(folder: Path, *, n_rows: int = 40) -> dict[str, str]:
    """Write rows, columns, map and (with skops) model to ``folder``; gives their paths by name."""
    from sklearn.ensemble import RandomForestClassifier

    folder.mkdir(parents=True, exist_ok=True)
    X, y = _applicants(np.random.default_rng(0), 600)
    model = RandomForestClassifier(40, max_depth=4, random_state=0).fit(X, y)
    features = cfmaps.Features(
        [
            cfmaps.Numeric("income", low=0),
            cfmaps.Numeric("debt", low=0),
            cfmaps.Integer("age", low=18, high=100),
            cfmaps.Binary("owner"),
        ]
    )
    cfmap = cfmaps.CounterfactualMap(model, features=features)
    cfmap.build(max_nodes=200_000)
    files = {"rows": folder / "rows.csv", "map": folder / "credit.cfmap"}
    with open(files["rows"], "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *X[:n_rows].tolist()])
    cfmap.save(files["map"])
    return {name: str(path) for name, path in files.items()}


def _applicants(rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    """People who ask for credit, and what was decided."""
    income = rng.gamma(4.0, 9.0, n).round(1)
    debt = (income * rng.uniform(0, 1.2, n)).round(1)
    age = rng.integers(18, 80, n)
    owner = rng.integers(0, 2, n)
    score = income - 0.8 * debt + 0.2 * age + 6 * owner + rng.normal(0, 4, n)
    return np.column_stack([income, debt, age, owner]), np.where(score > 25, "accept", "reject")
