"""The box nearest to a point, for labelled boxes from anywhere.

One tree per class over the boxes of a map turns "which region of this class is
nearest?" into a few hundred comparisons.
"""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _core
from cfmaps._check import matrix
from cfmaps.distance import Distance, FloatArray, Norm
from cfmaps.partition import Partition

# The difference of two numbers within it is finite.
_LARGEST = float(np.finfo(np.float64).max) / 2


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest box of every row, as arrays with one entry per row.

    Attributes
    ----------
    index : int64 array of shape (n_rows,)
        Row of the box in ``lower`` and ``upper``; the lowest among equally near
        boxes; -1 when the tree has no box.
    distance : float64 array of shape (n_rows,)
        Distance to the box, 0 inside it; inf when there is none.
    point : float64 array of shape (n_rows, n_features)
        The point of the box nearest to the row; NaN when there is no box.
    visited : int64 array of shape (n_rows,)
        Nodes opened by the search that proved the answer.
    bound : float64 array of shape (n_rows,)
        Every node that was not opened is at least this far: never less than
        ``distance``, and inf when all nodes were opened.
    """

    index: npt.NDArray[np.int64]
    distance: FloatArray
    point: FloatArray
    visited: npt.NDArray[np.int64]
    bound: FloatArray


class BoxTree:
    """Volumetric KD-tree over closed boxes, for exact nearest-box queries.

    The boxes are copied. They may overlap, repeat, be single points, and reach
    to infinity.

    Parameters
    ----------
    lower, upper : array of shape (n_boxes, n_features)
        Ends of the boxes, ``lower <= upper``; -inf and inf mean no limit.
    leaf_size : int
        Most boxes in one leaf of the tree.

    Raises
    ------
    ValueError, TypeError
        The ends are not numbers, NaN, crossed, of different shapes, or beyond
        half of the largest float64.

    Examples
    --------
    >>> tree = BoxTree([[0, 0], [5, 1]], [[1, 1], [6, np.inf]])
    >>> found = tree.nearest([[3, 4], [1, 0]], "l1")
    >>> found.index
    array([1, 0])
    >>> found.distance
    array([2., 0.])
    >>> found.point
    array([[5., 4.],
           [1., 0.]])
    """

    __slots__ = ("_tree",)

    def __init__(self, lower: Any, upper: Any, *, leaf_size: int = 8) -> None:
        lower, upper = _ends(lower, "lower"), _ends(upper, "upper")
        _check_boxes(lower, upper)
        self._tree = _core.BoxTree(lower, upper, _at_least_one(leaf_size))

    @classmethod
    def of_class(cls, partition: Partition, label: int, *, leaf_size: int = 64) -> "BoxTree":
        """The boxes of one class (an index) of a partition, one category of a group at a time."""
        tree = cls.__new__(cls)
        tree._tree = partition.box_tree(label, _at_least_one(leaf_size))
        return tree

    def nearest(self, X: Any, distance: Norm | Distance = "l1", *, weights: Any = None) -> Nearest:
        """Find the box nearest to every row of ``X``.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Finite numbers.
        distance : {"l1", "l2", "linf"}, number >= 1, or Distance
            The norm, or its p. A Distance brings its own weights.
        weights : array of shape (n_features,), optional
            Positive factors of the differences, inside the norm.

        Raises
        ------
        ValueError, TypeError
            A wrong ``X``, ``distance`` or ``weights``, or a distance beyond the
            largest float64.

        Examples
        --------
        >>> tree = BoxTree([[3, 4]], [[8, 8]])
        >>> tree.nearest([[0, 0]], "l2").distance
        array([5.])
        >>> tree.nearest([[0, 0]], "linf", weights=[2, 1]).distance
        array([6.])
        """
        rows = matrix(X, "X", self._tree.n_features)
        _check_magnitude(rows, "X")
        measure = Distance.resolve(distance, weights, rows.shape[1])
        factors = np.ones(rows.shape[1]) if measure.weights is None else measure.weights
        found = _named(*self._tree.nearest(rows, factors, measure.p))
        too_far = np.flatnonzero((found.index >= 0) & np.isinf(found.distance))
        if len(too_far):
            raise ValueError(f"X[{too_far[0]}] is farther from every box than the largest float64; use smaller numbers")
        return found

    @property
    def n_boxes(self) -> int:
        """How many boxes the tree holds."""
        return self._tree.n_boxes

    @property
    def n_nodes(self) -> int:
        """How many nodes the tree has, leaves included."""
        return self._tree.n_nodes

    @property
    def n_bytes(self) -> int:
        """Memory the tree takes, boxes included."""
        return self._tree.n_bytes

    def __repr__(self) -> str:
        return f"BoxTree(n_boxes={self.n_boxes}, n_features={self._tree.n_features})"


def _named(index: Any, distance: FloatArray, point: FloatArray, visited: Any, bound: FloatArray) -> Nearest:
    # The core's 64-bit integers are a C type that numpy would not show as its own int64.
    return Nearest(np.asarray(index, np.int64), distance, point, np.asarray(visited, np.int64), bound)


def _at_least_one(leaf_size: int) -> int:
    if operator.index(leaf_size) < 1:
        raise ValueError(f"leaf_size must be at least 1, got {leaf_size}")
    return leaf_size


def _ends(ends: Any, name: str) -> FloatArray:
    try:
        array = np.ascontiguousarray(ends, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold rows of numbers: {error}") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be of shape (n_boxes, n_features >= 1), got {array.shape}")
    _check_magnitude(array[np.isfinite(array)], name)
    return array


def _check_boxes(lower: FloatArray, upper: FloatArray) -> None:
    if lower.shape != upper.shape:
        raise ValueError(f"lower and upper must have the same shape, got {lower.shape} and {upper.shape}")
    wrong = np.argwhere(~((lower <= upper) & (lower < np.inf) & (upper > -np.inf)))
    if len(wrong):
        box, feature = wrong[0]
        ends = f"[{lower[box, feature]}, {upper[box, feature]}]"
        raise ValueError(
            f"box {box} must hold numbers, lower <= upper and neither NaN, got {ends} for feature {feature}"
        )


def _check_magnitude(array: FloatArray, name: str) -> None:
    if array.size and np.abs(array).max() > _LARGEST:
        raise ValueError(f"{name} must hold numbers of magnitude up to {_LARGEST}, got {np.abs(array).max()}")
