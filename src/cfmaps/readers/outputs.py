"""What a model puts out for rows: its numbers, or the probability of a class."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _tables, targets
from cfmaps.ensemble import Ensemble
from cfmaps.targets import Interval

Outputs: TypeAlias = Callable[[npt.NDArray[np.float64]], npt.NDArray[Any]]


def native_outputs(model: Any, ensemble: Ensemble, target: Interval) -> Outputs:
    """The output that a target is about, by the live model; by the ensemble where there is none.

    Categorical columns hold codes.
    """
    code = targets.code_of(ensemble, target.label)
    if model is None or not hasattr(model, "predict" if code is None else "predict_proba"):
        return lambda rows: targets.outputs(ensemble, target, rows)
    in_its_words = rows_of(model, ensemble)
    if code is None:
        return lambda rows: np.asarray(model.predict(in_its_words(rows)))
    return lambda rows: np.asarray(model.predict_proba(in_its_words(rows)))[:, code]


def native_scores(model: Any, ensemble: Ensemble) -> Outputs | None:
    """The live model's own scores for rows, before a link; None where it does not show them."""
    in_its_words = rows_of(model, ensemble)
    if hasattr(model, "decision_function"):
        return lambda rows: np.asarray(model.decision_function(in_its_words(rows)))
    if ensemble.rule == "argmax" and ensemble.link == "identity" and hasattr(model, "predict_proba"):
        return lambda rows: np.asarray(model.predict_proba(in_its_words(rows)))
    return None


def rows_of(model: Any, ensemble: Ensemble) -> Callable[[npt.NDArray[np.float64]], Any]:
    """Rows of codes as the model was trained on: with its names, and with values where it takes no codes."""
    names = getattr(model, "feature_names_in_", None)
    if getattr(model, "_preprocessor", None) is not None and ensemble.categories:
        return lambda rows: _with_values(rows, names, ensemble)
    if names is None:
        return lambda rows: rows
    return lambda rows: _tables.frame(dict(zip(names, rows.T, strict=True)))


def _with_values(rows: npt.NDArray[np.float64], names: Any, ensemble: Ensemble) -> Any:
    """Rows that hold the values of categories in place of their codes."""
    columns: list[Any] = list(rows.T)
    for column, values in (ensemble.categories or {}).items():
        by_code = np.array([*values, np.nan], dtype=None if _are_numbers(values) else object)
        known = np.isin(rows[:, column], np.arange(len(values)))
        columns[column] = by_code[np.where(known, rows[:, column], len(values)).astype(np.intp)]
    if names is not None:
        return _tables.frame(dict(zip(names, columns, strict=True)))
    is_text = any(column.dtype == object for column in columns)
    return np.stack([column.astype(object) if is_text else column for column in columns], axis=1)


def _are_numbers(values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
