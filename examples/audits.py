"""Audit the recourse of 1,000 rows each of COMPAS (by sex and age group) and FICO (by delinquency), as two pages.

Trains a forest on each, writes its map and rows, and runs the command `cfmaps audit` on them. The data are those of
the benchmarks; without their files, stand-ins of the same shape are drawn, and the title says so.
"""

import argparse
import csv
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps.cli import main as command

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from datasets import DataSet, load


@dataclass(frozen=True)
class Subject:
    """A data set, its labels with the wanted one first, who is compared, and what nobody can change."""

    key: str
    labels: tuple[str, str]
    groups: tuple[str, ...]
    frozen: tuple[str, ...]


AUDITS = {
    "compas": Subject("CP", ("will not reoffend", "will reoffend"), ("sex", "age"), ("sex:Female", "age")),
    "fico": Subject("FI", ("good", "bad"), ("Delinquency",), ()),
}


def features(data: DataSet) -> cfmaps.Features:
    """Flags, and one-hot groups that count as one change."""
    grouped = {place for places in data.groups.values() for place in places}
    entries: list[cfmaps.Binary | cfmaps.OneHot] = [
        cfmaps.OneHot(name, columns=[data.columns[place] for place in places], gap=1.0)
        for name, places in data.groups.items()
    ]
    entries += [cfmaps.Binary(name) for place, name in enumerate(data.columns) if place not in grouped]
    return cfmaps.Features(entries, columns=data.columns)


def group(data: DataSet, rows: np.ndarray, name: str) -> list[str]:
    """In words, the category or the flag of each row."""
    if name in data.groups:
        names = np.array(
            [data.columns[place].removeprefix(f"{name}:").removeprefix(name) for place in data.groups[name]]
        )
        return [str(text) for text in names[rows[:, data.groups[name]].argmax(axis=1)]]
    column = next(place for place, text in enumerate(data.columns) if text.startswith(f"{name}:"))
    value = data.columns[column].removeprefix(f"{name}:")
    return [value if row[column] else f"not {value}" for row in rows]


def write(folder: Path, data: DataSet, rows: np.ndarray, groups: tuple[str, ...]) -> Path:
    """Rows as a table, and a further column in words for each grouping."""
    words = [group(data, rows, name) for name in groups]
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*data.columns, *(f"{name} group" for name in groups)])
        writer.writerows([*row, *texts] for row, *texts in zip(rows.tolist(), *words, strict=True))
    return folder / "rows.csv"


def run(name: str, target: Path, n_rows: int, n_trees: int) -> None:
    """Train, save and audit; the page goes to ``target``."""
    subject = AUDITS[name]
    data = load(subject.key)
    labels = np.array(subject.labels)[data.labels]
    model = RandomForestClassifier(n_trees, max_depth=5, random_state=0).fit(data.rows, labels)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cfmaps.CounterfactualMap(model, features=features(data)).save(folder / "model.cfmap")
        rows = write(folder, data, data.rows[:n_rows], subject.groups)
        arguments = ["audit", folder / "model.cfmap", rows, "--target", subject.labels[0], "-o", target]
        arguments += ["--title", f"Recourse of {n_rows:,} rows of {name.upper()}{data.name.removeprefix(subject.key)}"]
        for group_name in subject.groups:
            arguments += ["--group", f"{group_name} group"]
        for feature in subject.frozen:
            arguments += ["--constraint", f"freeze `{feature}`"]
        if status := command([str(argument) for argument in arguments], standalone_mode=False):
            raise SystemExit(status)


def main() -> None:
    """Make both pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "reports", help="where the pages go")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in AUDITS:
        start = time.perf_counter()
        run(name, options.folder / f"{name}.html", options.rows, options.trees)
        print(f"{name}: {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
