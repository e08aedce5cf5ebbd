"""Axes and their cuts: what features and thresholds leave for a model to tell apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cfmaps._set_axes import ALWAYS_LEFT, ALWAYS_RIGHT, EITHER, LEAF, MISSING
from cfmaps.ensemble import Ensemble, closed_sides
from cfmaps.features import Features
from cfmaps.kinds import Binary, Categorical, Feature, Integer, Numeric, OneHot, Ordinal

FloatArray = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """What the features say about each axis, before any cut.

    ``low`` and ``high`` are the outermost admissible numbers, infinite when free;
    a categorical axis has its cells, an ordered one a single cell so far.
    """

    number: type[np.floating[Any]]
    one_hot: BoolArray
    by_sets: BoolArray
    missing: npt.NDArray[np.int8]
    integral: BoolArray
    numeric: BoolArray
    ordinals: tuple[tuple[int, FloatArray], ...]
    n_cells: npt.NDArray[np.int64]
    low: FloatArray
    high: FloatArray
    real_low: FloatArray
    real_high: FloatArray
    axis_of_column: npt.NDArray[np.intp]
    category_of_column: npt.NDArray[np.intp]

    @classmethod
    def of(cls, features: Features, number: type[np.floating[Any]], missing: npt.NDArray[np.int8]) -> "Axes":
        axes_missing = missing[[positions[0] for positions in features.positions]]
        kinds = np.array([_KINDS.index(type(entry)) for entry in features])
        wanted_low, wanted_high = np.array([_limits(entry) for entry in features]).T
        ordinal = kinds == _KINDS.index(Ordinal)
        # An ordinal keeps its listed values; other limits round inward to the grid.
        low = np.where(ordinal, wanted_low, -closed_sides(-wanted_low, number)[0])
        high = np.where(ordinal, wanted_high, closed_sides(wanted_high, number)[0])
        _expect_a_number(features, low, high, float(np.finfo(number).max))
        numeric = kinds == _KINDS.index(Numeric)
        axis_of_column, category_of_column = np.empty((2, features.n_columns), dtype=np.intp)
        for axis, positions in enumerate(features.positions):
            axis_of_column[positions] = axis
            category_of_column[positions] = np.arange(len(positions))
        return cls(
            number=number,
            one_hot=kinds == _KINDS.index(OneHot),
            by_sets=(kinds == _KINDS.index(Categorical)) & (axes_missing != MISSING) | (axes_missing == EITHER),
            missing=axes_missing,
            integral=(kinds == _KINDS.index(Integer)) | (kinds == _KINDS.index(Binary)),
            numeric=numeric,
            ordinals=tuple(
                (axis, np.array(entry.values)) for axis, entry in enumerate(features) if isinstance(entry, Ordinal)
            ),
            n_cells=np.array([entry.n_categories if isinstance(entry, OneHot) else 1 for entry in features]),
            low=low + 0.0,
            high=high,
            real_low=np.where(numeric, wanted_low, low),
            real_high=np.where(numeric, wanted_high, high),
            axis_of_column=axis_of_column,
            category_of_column=category_of_column,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The distinct cuts of all axes sorted by (axis, left), and the cut of every node.

    ``left`` and ``right`` are the admissible numbers on both sides. On a categorical
    axis ``left`` is the category that goes right, alone.
    """

    axis: npt.NDArray[np.intp]
    left: FloatArray
    right: FloatArray
    real_left: FloatArray
    real_right: FloatArray
    node_test: Int32Array

    @classmethod
    def of(cls, ensemble: Ensemble, axes: Axes) -> "Cuts":
        inner = ensemble.feature >= 0
        if ensemble.category_set is not None:
            inner = inner & (ensemble.category_set < 0)
        nodes = np.flatnonzero(inner)
        threshold = ensemble.threshold[nodes]
        axis = axes.axis_of_column[ensemble.feature[nodes]]
        left, right = _admissible_sides(axes, axis, axes.category_of_column[ensemble.feature[nodes]], threshold)
        largest = float(np.finfo(axes.number).max)
        always_left = left >= np.where(axes.one_hot, np.inf, np.minimum(axes.high, largest))[axis]
        always_right = left < np.maximum(axes.low, -largest)[axis]
        node_test = np.full(ensemble.n_nodes, LEAF, dtype=np.int32)
        node_test[nodes[always_left]] = ALWAYS_LEFT
        node_test[nodes[always_right]] = ALWAYS_RIGHT
        both = np.flatnonzero(~(always_left | always_right))
        order = both[np.lexsort((left[both], axis[both]))]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (np.diff(axis[order]) != 0) | (np.diff(left[order]) != 0)
        first = np.flatnonzero(is_new)
        node_test[nodes[order]] = np.cumsum(is_new) - 1
        unique = order[first]
        numeric = axes.numeric[axis[unique]]
        thresholds = threshold[order]
        return cls(
            axis=axis[unique],
            left=left[unique],
            right=right[unique],
            real_left=np.where(numeric, np.minimum.reduceat(thresholds, first), left[unique]),
            real_right=np.where(numeric, np.maximum.reduceat(thresholds, first), right[unique]),
            node_test=node_test,
        )


_KINDS: list[type] = [Numeric, Integer, Ordinal, Binary, OneHot, Categorical]


def _limits(entry: Feature) -> tuple[float, float]:
    """The outermost values a feature may hold, infinite when free."""
    if isinstance(entry, Ordinal):
        return entry.values[0], entry.values[-1]
    if isinstance(entry, OneHot):
        return 0.0, 0.0
    if isinstance(entry, Binary):
        return 0.0, 1.0
    if isinstance(entry, Categorical):
        return -np.inf, np.inf
    low = -np.inf if entry.low is None else float(entry.low)
    high = np.inf if entry.high is None else float(entry.high)
    return (float(np.ceil(low)), float(np.floor(high))) if isinstance(entry, Integer) else (low, high)


def _admissible_sides(
    axes: Axes, axis: npt.NDArray[np.intp], category: npt.NDArray[np.intp], threshold: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Per node, the last admissible number sent left and the first sent right."""
    left, right = closed_sides(threshold, axes.number)
    integral, categorical = axes.integral[axis], axes.one_hot[axis]
    # From 2**24 on every float32 is whole, and below it every whole number is a float32.
    left[integral] = np.floor(left[integral])
    right[integral] = np.ceil(right[integral]) + 0.0
    for ordinal, values in axes.ordinals:
        here = np.flatnonzero(axis == ordinal)
        place = np.searchsorted(values.astype(axes.number), threshold[here], side="right")
        fenced = np.concatenate([[-np.inf], values, [np.inf]])
        left[here], right[here] = fenced[place], fenced[place + 1]
    if categorical.any():
        by_threshold = np.where(threshold < 0, -np.inf, np.where(threshold >= 1, np.inf, category))
        left = np.where(categorical, by_threshold, left)
    return left, right


def _expect_a_number(features: Features, low: FloatArray, high: FloatArray, largest: float) -> None:
    empty = np.maximum(low, -largest) > np.minimum(high, largest)
    empty |= [isinstance(entry, Ordinal) and max(map(abs, entry.values)) > largest for entry in features]
    if empty.any():
        entry = features.entries[int(np.argmax(empty))]
        raise ValueError(f"feature {entry.name!r}: its limits admit no number the model can compare, got {entry}")
