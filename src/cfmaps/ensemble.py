"""A tree ensemble as flat arrays: what every reader produces and every engine consumes."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps import _check, _core

_DTYPES = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "roots": np.int32,
    "value": np.float64,
    "init": np.float64,
}
_OPTIONAL = {"missing_left": np.bool_, "category_set": np.int32, "category_sets": np.bool_, "cuts": np.float64}
_RULES = ("argmax", "bands", "softmax32", "softmax64", "value")
_NUMBERS = (np.float32, np.float64)
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

    A row goes left at a node when ``number(x[feature]) <= threshold``; where a node has a
    category set, when the set holds the row's code; where the value is missing, as
    ``missing_left`` says. The raw score is ``(init + leaf values in tree order) / divisor
    * scale + bias``, computed in ``sum_number``, and ``rule`` makes a class of it.

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
        What a node adds when it is a leaf. A tree that adds to one class only has zeros in
        the other columns.
    init : float64 array of shape (n_scores,)
    classes : array of shape (n_classes,), or None
        The labels, of any type; None when ``rule`` is "value".
    n_features : int
    divisor, scale : float
        Positive.
    bias : float, or array of shape (n_scores,)
    rule : {"argmax", "bands", "softmax32", "softmax64", "value"}
        "argmax": the first largest score. "bands": of one score, the number of ``cuts`` that
        it is at or above. "softmax32", "softmax64": the first largest of the softmax as
        computed in that type, in which different scores may tie. "value": the score is the
        output, there are no classes.
    cuts : float64 array, optional
        Ascending; numbers that ``sum_number`` holds. ``score > 0`` is the cut
        ``nextafter(0, 1)`` of that type.
    number : {numpy.float32, numpy.float64}
        What the model casts its input to before it compares.
    sum_number : {numpy.float32, numpy.float64}
        What the model adds in.
    missing_left : bool array of shape (n_nodes,), optional
        Where NaN goes; without it the model takes no missing values.
    category_set : int32 array of shape (n_nodes,), optional
        A row of ``category_sets``, or -1 for a numeric test. All tests of a column are of one kind.
    category_sets : bool array of shape (n_sets, n_codes), optional
        The codes that go left. Other codes go where missing values go.
    categories : mapping of column index to sequence, optional
        The values an answer may give a column, in the order of their codes; None for a code
        that no answer may have. Without it every code of ``category_sets`` is admissible.
    zero_band : float
        Inputs this close to 0 are read as 0. Thresholds inside the band are moved to its ends,
        which comes to the same.
    link : str
        The function of `cfmaps.targets` that makes the library's output of a raw score: for
        targets on the output. Empty when it is not known; of a "value" then the score itself.
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
    scale: float = 1.0
    bias: Any = 0.0
    rule: str = "argmax"
    cuts: npt.NDArray[np.float64] | None = None
    number: type[np.floating[Any]] = np.float32
    sum_number: type[np.floating[Any]] = np.float64
    missing_left: npt.NDArray[np.bool_] | None = None
    category_set: npt.NDArray[np.int32] | None = None
    category_sets: npt.NDArray[np.bool_] | None = None
    categories: Mapping[int, Any] | None = None
    zero_band: float = 0.0
    link: str = ""
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        for name, kind in _OPTIONAL.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=kind))
        for name in ("divisor", "scale"):
            object.__setattr__(self, name, float(self.sum_number(getattr(self, name))))
        object.__setattr__(self, "classes", np.asarray([] if self.classes is None else self.classes))
        self._check_shapes()
        self._check_numbers()
        self._check_trees()
        self._check_optional()
        if self.zero_band:
            object.__setattr__(self, "threshold", _outside_the_band(self.threshold, self.zero_band, self.number))

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_scores(self) -> int:
        return len(self.init)

    @property
    def n_classes(self) -> int:
        """How many labels a map of the model tells apart: 1 when the output is a number."""
        return 1 if self.rule == "value" else len(self.classes)

    @property
    def takes_missing(self) -> bool:
        """Whether NaN may stand in a row."""
        return self.missing_left is not None

    def round(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.floating[Any]]:
        """``X`` as the numbers the model compares, refusing what its number type cannot hold."""
        if np.vdot(X, X) < _FITS:
            return X.astype(self.number)
        with np.errstate(over="ignore"):
            rounded = X.astype(self.number)
        finite = np.isfinite(rounded)
        if not finite.all():
            bad = ~(finite | np.isnan(rounded)) if self.takes_missing else ~finite
            if bad.any():
                place = tuple(np.argwhere(bad)[0].tolist())
                raise ValueError(
                    f"X{list(place)} is {X[place]}; expected numbers within {self.number.__name__}'s range"
                )
        return rounded

    def leaves(self, X: Any) -> npt.NDArray[np.int64]:
        """The leaf each row reaches in each tree, shape (n_rows, n_trees)."""
        columns = self.feature_names
        rounded = self.round(_check.matrix(X, "X", self.n_features, columns=columns, missing=self.takes_missing))
        rows = np.arange(len(rounded))[:, np.newaxis]
        node = np.tile(self.roots.astype(np.int64), (len(rounded), 1))
        inner = self.feature[node] >= 0
        while inner.any():
            goes_left = self._goes_left(node, rounded[rows, self.feature[node]])
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
            inner = self.feature[node] >= 0
        return node

    def _goes_left(self, node: npt.NDArray[np.int64], x: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
        left = x <= self.threshold[node]
        follows_missing = np.isnan(x)
        if self.category_set is not None and self.category_sets is not None:
            chosen, n_codes = self.category_set[node], self.category_sets.shape[1]
            known = (x >= 0) & (x < n_codes)
            code = np.where(known, x, 0).astype(np.intp)
            left = np.where(chosen >= 0, self.category_sets[chosen, code], left)
            follows_missing |= (chosen >= 0) & ~known
        return left if self.missing_left is None else np.where(follows_missing, self.missing_left[node], left)

    def scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Raw scores of each row bit for bit as the model's own, shape (n_rows, n_scores)."""
        leaves = self.leaves(X)
        total = np.tile(self.init.astype(self.sum_number), (len(leaves), 1))
        value = self.value.astype(self.sum_number, copy=False)
        # One addition per tree, in the library's order: numpy's own sums may associate differently.
        for leaf in leaves.T:
            total += value[leaf]
        bias = np.asarray(self.bias, dtype=self.sum_number)
        raw = total / self.sum_number(self.divisor) * self.sum_number(self.scale) + bias
        return np.asarray(raw, dtype=np.float64)

    def labels(self, X: Any) -> npt.NDArray[np.int64]:
        """Index into ``classes`` of each row's class, shape (n_rows,)."""
        if self.rule == "value":
            raise ValueError("the model predicts a number: it has scores, but no labels")
        scores = self.scores(X)
        if self.rule == "bands":
            cuts = np.empty(0) if self.cuts is None else self.cuts
            return np.asarray(np.searchsorted(cuts, scores[:, 0], side="right"))
        if self.rule == "argmax":
            return np.asarray(np.argmax(scores, axis=1))
        return np.asarray(_core.softmax_labels(scores, self.rule == "softmax32"), dtype=np.int64)

    def _check_shapes(self) -> None:
        for name in ("feature", "roots", "init"):
            array = getattr(self, name)
            if array.ndim != 1 or not len(array):
                raise ValueError(f"{name} must be 1-D and not empty, got shape {array.shape}")
        n, k = self.n_nodes, self.n_scores
        n_labels = {"value": 0, "bands": 1 + (0 if self.cuts is None else len(self.cuts))}.get(self.rule, k)
        shapes = {"threshold": (n,), "left": (n,), "right": (n,), "value": (n, k), "classes": (n_labels,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {getattr(self, name).shape}")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(f"feature_names must be {self.n_features} names, got {len(self.feature_names)}")

    def _check_numbers(self) -> None:
        if self.rule not in _RULES:
            raise ValueError(f"rule must be one of {_RULES}, got {self.rule!r}")
        for name in ("divisor", "scale"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if self.number not in _NUMBERS or self.sum_number not in _NUMBERS:
            raise ValueError(
                f"number and sum_number must be numpy.float32 or numpy.float64, got {self.number} and {self.sum_number}"
            )
        if self.rule == "bands" and self.n_scores != 1:
            raise ValueError(f"rule 'bands' needs one score, got {self.n_scores}")
        if np.isnan(self.threshold).any():
            raise ValueError(f"threshold must not be NaN, got NaN at node {np.isnan(self.threshold).argmax()}")
        for name in ("value", "init", "bias"):
            numbers = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.isfinite(numbers).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity")
            self._expect_addends(name, numbers)

    def _expect_addends(self, name: str, numbers: npt.NDArray[np.float64]) -> None:
        if self.sum_number is np.float32 and (numbers.astype(np.float32) != numbers).any():
            raise ValueError(f"{name} must hold float32 numbers, as these are what the model adds")

    def _check_optional(self) -> None:
        n = self.n_nodes
        for name in ("missing_left", "category_set"):
            array = getattr(self, name)
            if array is not None and array.shape != (n,):
                raise ValueError(f"{name} must have shape {(n,)}, got {array.shape}")
        if np.shape(self.bias) not in ((), (self.n_scores,)):
            raise ValueError(f"bias must be a number or {self.n_scores} numbers, got shape {np.shape(self.bias)}")
        if self.rule == "bands" and self.cuts is not None:
            if (np.diff(self.cuts) < 0).any() or np.isnan(self.cuts).any():
                raise ValueError(f"cuts must ascend, got {self.cuts.tolist()}")
            self._expect_addends("cuts", self.cuts)
        if (self.category_set is None) != (self.category_sets is None):
            raise ValueError("category_set and category_sets must be given together")
        if self.category_set is not None and self.category_sets is not None:
            self._check_category_sets(self.category_set, self.category_sets)

    def _check_category_sets(self, chosen: npt.NDArray[np.int32], sets: npt.NDArray[np.bool_]) -> None:
        if sets.ndim != 2 or chosen.min() < -1 or chosen.max() >= len(sets):
            raise ValueError(
                f"category_set must lie in -1..{len(sets) - 1} with 2-D category_sets, got {_range(chosen)}"
            )
        inner = self.feature >= 0
        both = np.intersect1d(self.feature[inner & (chosen >= 0)], self.feature[inner & (chosen < 0)])
        if len(both):
            raise ValueError(f"column {both[0]} has numeric and category tests; expected one kind")

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


def _outside_the_band(
    threshold: npt.NDArray[np.float64], band: float, number: type[np.floating[Any]]
) -> npt.NDArray[np.float64]:
    """Thresholds that compare an input as they would its 0 when it lies within ``band`` of 0.

    >>> _outside_the_band(np.array([0.0, 1e-36, 2.0]), 1e-35, np.float64)
    array([1.e-35, 1.e-35, 2.e+00])
    """
    below = float(closed_sides(-band, number)[0])
    below = float(np.nextafter(number(below), number(-np.inf))) if below == -band else below
    moved = np.where((threshold >= 0) & (threshold < band), band, threshold)
    return np.where((threshold < 0) & (threshold >= -band), below, moved)


def _range(array: npt.NDArray[Any]) -> str:
    return f"{array.min()}..{array.max()}"
