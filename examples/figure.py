"""The paper's Figure 1: which region of a class is nearest, from everywhere in the plane.

The first panel shows the decision regions of a forest on two features, the others its counterfactual maps: from
everywhere inside a cell the smallest change leads to the same box of the target class.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier

from cfmaps import CounterfactualMap

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

TARGET = 3
NORMS = {"l1": "L1", "l2": "L2", "linf": "Linf"}
CLASS_COLOURS = ["#fdf3d0", "#cfe3f5", "#f6d5cb", "#8c8c8c"]
HATCHES = ["", "....", "////", ""]
MARKERS = ["o", "s", "^", "D"]
# Light, so that the black lines between cells carry the picture when it is printed in grey.
CELL_COLOURS = np.frombuffer(bytes.fromhex("ffe99e c6def1 f7c6b8 cfe8bf dfcdee fafafa b0ded9"), np.uint8).reshape(-1, 3)


class Plane:
    """The map of a small forest on two features, and the part of the plane that is shown."""

    def __init__(self) -> None:
        self.points, self.labels = make_blobs(400, centers=4, cluster_std=3.5, random_state=22)
        model = RandomForestClassifier(2, max_depth=5, random_state=0).fit(self.points, self.labels)
        self.cfmap = CounterfactualMap(model)
        self.cfmap.build()
        self.tree = self.cfmap.box_tree(TARGET)
        self.low, self.high = self.points.min(axis=0) - 0.5, self.points.max(axis=0) + 0.5

    def grid(self, size: int) -> np.ndarray:
        """Points in rows and columns, shape (size * size, 2), bottom row first."""
        steps = (np.arange(size) + 0.5)[:, None] / size
        columns, rows = np.meshgrid(*(self.low + steps * (self.high - self.low)).T)
        return np.stack([columns.ravel(), rows.ravel()], axis=1)

    def rectangles(self, label: int) -> list[Rectangle]:
        """The boxes of one class, as far as the picture shows them."""
        boxes = self.cfmap.partition.boxes(label)
        lower, upper = np.clip(boxes.lower, self.low, self.high), np.clip(boxes.upper, self.low, self.high)
        return [Rectangle(start, *(end - start)) for start, end in zip(lower, upper, strict=True)]

    def askers(self) -> np.ndarray:
        """A few training rows whose change is long enough to be seen."""
        rows = self.points[self.labels != TARGET]
        distances = self.cfmap.explain_many(rows, target=TARGET).distances
        return rows[distances > 1.0][::11]


def draw(path: Path, *, pixels: int = 800) -> int:
    """Draw the four panels; returns how many points of the plane were checked, see `compare`."""
    plane = Plane()
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 9), layout="constrained")
    draw_regions(axes.flat[0], plane)
    cells = [plane.tree.nearest(plane.grid(pixels), norm).index.reshape(pixels, pixels) for norm in NORMS]
    colours = colouring(cells)
    for axis, norm, cell in zip(axes.flat[1:], NORMS, cells, strict=True):
        draw_map(axis, plane, cell, colours)
        draw_moves(axis, plane, norm)
        axis.set_title(f"smallest change towards the grey class, {NORMS[norm]}")
    for axis in axes.flat:
        axis.set(xlim=(plane.low[0], plane.high[0]), ylim=(plane.low[1], plane.high[1]), xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return compare(plane)


def draw_regions(axis: Any, plane: Plane) -> None:
    """The boxes of every class, and every fourth training row; the target class is grey, as in the other panels."""
    for label, (colour, hatch) in enumerate(zip(CLASS_COLOURS, HATCHES, strict=True)):
        look = {"facecolor": colour, "hatch": hatch, "edgecolor": "#00000030", "linewidth": 0.4}
        axis.add_collection(PatchCollection(plane.rectangles(label), **look))
    for label, marker in enumerate(MARKERS):
        rows = plane.points[plane.labels == label][::4]
        axis.scatter(*rows.T, marker=marker, s=16, color="white", edgecolor="black", linewidth=0.7)
    axis.set_title("what the forest says")


def draw_map(axis: Any, plane: Plane, cell: np.ndarray, colours: np.ndarray) -> None:
    """The generalized Voronoi cells of the target's boxes, and the boxes themselves in grey."""
    image = CELL_COLOURS[colours[cell]]
    image[borders(cell)] = 40
    extent = (plane.low[0], plane.high[0], plane.low[1], plane.high[1])
    axis.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="antialiased")
    look = {"facecolor": CLASS_COLOURS[TARGET], "edgecolor": "black", "linewidth": 0.9}
    axis.add_collection(PatchCollection(plane.rectangles(TARGET), **look))


def draw_moves(axis: Any, plane: Plane, norm: str) -> None:
    """Arrows from a few rows to their counterfactuals."""
    rows = plane.askers()
    answers = plane.cfmap.explain_many(rows, target=TARGET, distance=norm).counterfactuals
    look = {"arrowstyle": "->", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    for row, answer in zip(rows, answers, strict=True):
        axis.annotate("", xy=answer, xytext=row, arrowprops=look)
    axis.scatter(*rows.T, s=14, color="black", zorder=3)


def borders(cell: np.ndarray) -> np.ndarray:
    """Whether the pixel above or to the right belongs to another cell."""
    other = np.zeros(cell.shape, dtype=bool)
    other[:-1] |= cell[1:] != cell[:-1]
    other[:, :-1] |= cell[:, 1:] != cell[:, :-1]
    return other


def neighbours(cell: np.ndarray) -> np.ndarray:
    """Pairs of cells that touch somewhere, shape (2, n_pairs)."""
    across = np.stack([cell[:, 1:].ravel(), cell[:, :-1].ravel()])
    upward = np.stack([cell[1:].ravel(), cell[:-1].ravel()])
    return np.concatenate([across, upward], axis=1)


def colouring(cells: list[np.ndarray]) -> np.ndarray:
    """One colour per box, the same in every panel; cells that touch in any panel differ as long as colours last."""
    pairs = np.unique(np.concatenate([neighbours(cell) for cell in cells], axis=1), axis=1)
    colours = np.full(max(cell.max() for cell in cells) + 1, -1)
    for box in range(len(colours)):
        taken = colours[np.concatenate([pairs[1, pairs[0] == box], pairs[0, pairs[1] == box]])]
        free = np.setdiff1d(np.arange(len(CELL_COLOURS)), taken)
        colours[box] = free[box % len(free)] if len(free) else box % len(CELL_COLOURS)
    return colours


def compare(plane: Plane) -> int:
    """Ask the map and the paper's index for the same distances; raises unless all agree, else says how many."""
    # Both measure from the number that the model compares.
    rows = plane.grid(40).astype(np.float32).astype(np.float64)
    for norm in NORMS:
        ours = plane.cfmap.explain_many(rows, target=TARGET, distance=norm).distances
        np.testing.assert_allclose(ours, plane.tree.nearest(rows, norm).distance, rtol=1e-12)
    return len(NORMS) * len(rows)
