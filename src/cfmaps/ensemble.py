"""A tree ensemble as flat arrays: what every reader produces and every engine consumes."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check

_DTYPES = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "roots": np.int32,
    "value": np.float64,
    "init": np.float64,
}
_RULES = ("argmax",)
# No number whose square is below fails to fit float32; NaN and what may not fit are looked at one by one.
_FITS = 1e76


def closed_sides(
    threshold: npt.ArrayLike, dtype: type[np.floating[Any]]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Last number sent left, and first number sent right, by ``x <= threshold``.

    Between the two there is no number the model can tell apart, so cells built
    from them are closed, cover everything and never share a point.

    >>> left, right = closed_sides([0.5], np.float32)
    >>> left.item(), right.item()
    (0.5, 0.5000000596046448)
    """
    exact = np.asarray(threshold, dtype=np.float64)
    with np.errstate(all="ignore"):
        nearest = exact.astype(dtype)
        left = np.where(nearest > exact, np.nextafter(nearest, dtype(-np.inf)), nearest)
        right = np.nextafter(left, dtype(np.inf))
    # Adding 0.0 makes -0.0 the 0.0 it equals.
    return left.astype(np.float64) + 0.0, right.astype(np.float64) + 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """All trees in flat arrays, how their scores are summed, and how a class follows.

    A row goes left at a node when ``number(x[feature]) <= threshold``. The score
    of a row is ``(init + leaf values in tree order) / divisor`` in float64, and
    ``rule`` makes a class of it. A library that adds in another type, decides
    otherwise or routes missing values and category sets needs further fields
    with defaults, and nothing that reads these changes meaning.

    Parameters
    ----------
    feature : int32 array of shape (n_nodes,)
        The column a node tests, -1 at a leaf.
    threshold : float64 array of shape (n_nodes,)
        May be infinite (scikit-learn splits on missingness alone).
    left, right : int32 arrays of shape (n_nodes,)
        Children, -1 at a leaf. A parent comes before its children.
    roots : int32 array of shape (n_trees,)
        In the order in which the library adds the trees.
    value : float64 array of shape (n_nodes, n_scores)
        What a node adds when it is a leaf.
    init : float64 array of shape (n_scores,)
    classes : array of shape (n_scores,)
        The labels, of any type.
    n_features : int
    divisor : float
    rule : {"argmax"}
        The first largest score wins.
    number : numpy floating type
        What the model casts its input to before it compares.
    feature_names : tuple of str, optional

    Examples
    --------
    >>> stump = Ensemble(feature=[0, -1, -1], threshold=[0.5, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                  roots=[0], value=[[0, 0], [1, 0], [0, 1]], init=[0, 0], classes=["no", "yes"], n_features=1)
    >>> stump.classes[stump.labels([[0.5], [0.6]])]
    array(['no', 'yes'], dtype='<U3')
    """

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]
    init: npt.NDArray[np.float64]
    classes: npt.NDArray[Any]
    n_features: int
    _: KW_ONLY
    divisor: float = 1.0
    rule: str = "argmax"
    number: type[np.floating[Any]] = np.float32
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        object.__setattr__(self, "classes", np.asarray(self.classes))
        self._check_shapes()
        self._check_numbers()
        self._check_trees()

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_scores(self) -> int:
        return len(self.init)

    def round(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.floating[Any]]:
        """``X`` as the numbers the model compares, refusing what its number type cannot hold."""
        if np.vdot(X, X) < _FITS:
            return X.astype(self.number)
        with np.errstate(over="ignore"):
            rounded = X.astype(self.number)
        finite = np.isfinite(rounded)
        if not finite.all():
            place = tuple(np.argwhere(~finite)[0].tolist())
            raise ValueError(f"X{list(place)} is {X[place]}; expected numbers within {self.number.__name__}'s range")
        return rounded

    def leaves(self, X: Any) -> npt.NDArray[np.int64]:
        """The leaf each row reaches in each tree, shape (n_rows, n_trees)."""
        rounded = self.round(_check.matrix(X, "X", self.n_features, columns=self.feature_names))
        rows = np.arange(len(rounded))[:, np.newaxis]
        node = np.tile(self.roots.astype(np.int64), (len(rounded), 1))
        inner = self.feature[node] >= 0
        while inner.any():
            goes_left = rounded[rows, self.feature[node]] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
            inner = self.feature[node] >= 0
        return node

    def scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of each row bit for bit as the model's own, shape (n_rows, n_scores)."""
        leaves = self.leaves(X)
        total = np.tile(self.init, (len(leaves), 1))
        # One addition per tree, in the library's order: numpy's own sums may associate differently.
        for leaf in leaves.T:
            total += self.value[leaf]
        return total / self.divisor

    def labels(self, X: Any) -> npt.NDArray[np.int64]:
        """Index into ``classes`` of each row's class, shape (n_rows,)."""
        return np.asarray(np.argmax(self.scores(X), axis=1))

    def _check_shapes(self) -> None:
        for name in ("feature", "roots", "init", "classes"):
            array = getattr(self, name)
            if array.ndim != 1 or not len(array):
                raise ValueError(f"{name} must be 1-D and not empty, got shape {array.shape}")
        n, k = self.n_nodes, self.n_scores
        shapes = {"threshold": (n,), "left": (n,), "right": (n,), "value": (n, k), "classes": (k,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {getattr(self, name).shape}")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(f"feature_names must be {self.n_features} names, got {len(self.feature_names)}")

    def _check_numbers(self) -> None:
        if self.rule not in _RULES:
            raise ValueError(f"rule must be one of {_RULES}, got {self.rule!r}")
        if not (np.isfinite(self.divisor) and self.divisor > 0):
            raise ValueError(f"divisor must be positive and finite, got {self.divisor}")
        if np.isnan(self.threshold).any():
            raise ValueError(f"threshold must not be NaN, got NaN at node {np.isnan(self.threshold).argmax()}")
        for name in ("value", "init"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity")

    def _check_trees(self) -> None:
        if self.feature.min() < -1 or self.feature.max() >= self.n_features:
            raise ValueError(f"feature must lie in -1..{self.n_features - 1}, got {_range(self.feature)}")
        inner = np.flatnonzero(self.feature >= 0)
        leaf = self.feature < 0
        if (self.left[leaf] != -1).any() or (self.right[leaf] != -1).any():
            raise ValueError("left and right must be -1 at a leaf")
        children = np.concatenate([self.left[inner], self.right[inner]])
        for name, nodes in (("children", children), ("roots", self.roots)):
            if len(nodes) and (nodes.min() < 0 or nodes.max() >= self.n_nodes):
                raise ValueError(f"{name} must lie in 0..{self.n_nodes - 1}, got {_range(nodes)}")
        # Parents before children excludes cycles; then one visit each means trees that cover all nodes.
        if (children <= np.concatenate([inner, inner])).any():
            raise ValueError("left and right must come after their parent")
        visits = np.bincount(np.concatenate([children, self.roots]), minlength=self.n_nodes)
        if (visits != 1).any():
            node = (visits != 1).argmax()
            raise ValueError(f"every node must be reached exactly once, got {visits[node]} times for node {node}")


def _range(array: npt.NDArray[Any]) -> str:
    return f"{array.min()}..{array.max()}"
