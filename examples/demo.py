"""Train a forest on bundled data, explain a few rows, build its map and draw the map of a forest in the plane."""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from figure import draw
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from cfmaps import CounterfactualMap, Features, Numeric

COLUMNS = ["worst radius", "worst texture", "worst smoothness", "worst concavity"]
NORMS = ["l1", "l2", "linf"]


def train(n_trees: int) -> tuple[RandomForestClassifier, np.ndarray, np.ndarray]:
    """A forest that tells benign from malignant, the rows it was trained on, and rows it has not seen."""
    data = load_breast_cancer()
    columns = [list(data.feature_names).index(name) for name in COLUMNS]
    labels = data.target_names[data.target]
    rows, test, train_labels, test_labels = train_test_split(data.data[:, columns], labels, random_state=0)
    model = RandomForestClassifier(n_trees, max_depth=5, random_state=0).fit(rows, train_labels)
    score = model.score(test, test_labels)
    print(f"a forest of {n_trees} trees on {len(COLUMNS)} columns, {score:.1%} right on unseen rows")
    return model, rows, test


def features() -> Features:
    """Measurements: free numbers, but none below 0."""
    return Features(Numeric(name, low=0) for name in COLUMNS)


def show_answers(cfmap: CounterfactualMap, rows: np.ndarray) -> str:
    """Print the smallest change of each row; returns the same as a page."""
    answers = [cfmap.explain(row, weights="std") for row in rows]
    for number, answer in enumerate(answers):
        print(f"\nrow {number}: {answer}")
    return "<!doctype html><meta charset=utf-8>" + "".join(answer._repr_html_() for answer in answers)


def milliseconds(call: Callable[[], Any], repeat: int = 1) -> float:
    """Mean time of a call."""
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat * 1e3


def mean_of(call: Callable[[np.ndarray], Any], rows: np.ndarray) -> float:
    """Mean time of one call per row, in milliseconds."""
    return float(np.mean([milliseconds(lambda row=row: call(row)) for row in rows]))


def cold(model: Any, rows: np.ndarray, norm: str) -> float:
    """Mean time of the first question to a fresh map."""
    maps = iter([CounterfactualMap(model, features=features()) for _ in rows])
    return mean_of(lambda row: next(maps).explain(row, distance=norm), rows)


def show_timings(model: Any, cfmap: CounterfactualMap, rows: np.ndarray) -> None:
    """Print what a query costs on a fresh map and on the whole one; ``cfmap`` is complete."""
    print("mean time per row in ms, of the search alone")
    print(f"{'distance':10}{'first question':>16}{'on the whole map':>18}{'of many at once':>17}")
    for norm in NORMS:
        cfmap.explain(rows[0], distance=norm)
        one = mean_of(lambda row, norm=norm: cfmap.explain(row, distance=norm), rows)
        many = milliseconds(lambda norm=norm: cfmap.explain_many(rows, distance=norm, n_threads=1)) / len(rows)
        print(f"{norm:10}{cold(model, rows[:25], norm):16.3f}{one:18.4f}{many:17.4f}")


def show_build(model: Any) -> CounterfactualMap:
    """Build the whole map and print its size."""
    reading = milliseconds(lambda: CounterfactualMap(model, features=features()), 5)
    cfmap = CounterfactualMap(model, features=features())
    grown = cfmap.build()
    print(f"reading the model {reading:.1f} ms; building its whole map {grown.seconds * 1e3:.0f} ms on all cores")
    per_node = cfmap.partition.n_bytes / grown.n_nodes
    points = cfmap.partition.lattice.n_points
    print(f"{points:.2g} cells became {grown.n_boxes:,} boxes, {grown.n_nodes:,} nodes of {per_node:.1f} bytes\n")
    return cfmap


def show_confirmed(cfmap: CounterfactualMap, rows: np.ndarray) -> None:
    """Answer all rows in every norm and let the model's own predict confirm the answers, or raise."""
    for norm in NORMS:
        answers = cfmap.explain_many(rows, distance=norm)
        seconds = milliseconds(lambda answers=answers: answers.counterfactuals) / 1e3
        if not (answers.statuses == "optimal").all():
            raise SystemExit(f"demo: an answer in {norm} is not optimal: {answers}")
        print(f"{norm}: {answers}; predict confirmed them all in {seconds:.3f} s")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the whole story; files go to ``--folder``."""
    options = parse(arguments)
    start = time.perf_counter()
    model, known, test = train(options.trees)
    print("\n-- the smallest changes of a few rows, measured in standard deviations")
    page = show_answers(CounterfactualMap(model, features=features(), data=known), test[: options.rows])
    print("\n-- the map")
    whole = show_build(model)
    show_timings(model, whole, test)
    print("\n-- every answer, asked back")
    show_confirmed(whole, test)
    print("\n-- pictures")
    save(options.folder, page, options.pixels)
    print(f"\ndemo: finished in {time.perf_counter() - start:.1f} s; all answers optimal and confirmed by the model")


def save(folder: Path, page: str, pixels: int) -> None:
    """Write the page and the picture, and name them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "explanations.html").write_text(page, encoding="utf-8")
    n_checked = draw(folder / "counterfactual-map.png", pixels=pixels)
    print(f"{folder / 'explanations.html'}: the rows above as a page")
    print(f"{folder / 'counterfactual-map.png'}: a forest in the plane and its counterfactual maps")
    print(f"the map and a KD-tree over its boxes gave the same distance at {n_checked:,} points of the plane")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the files go")
    parser.add_argument("--rows", type=int, default=4, help="how many rows are explained")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--pixels", type=int, default=800, help="width of a panel's raster")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
