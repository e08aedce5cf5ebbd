"""What a model itself puts out for rows of codes: its labels, its numbers, or the probability of a class."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps import _tables, targets
from cfmaps.ensemble import Ensemble
from cfmaps.readers import is_pipeline
from cfmaps.readers.pipeline import RawRows
from cfmaps.targets import Interval

Outputs: TypeAlias = Callable[[npt.NDArray[np.float64]], npt.NDArray[Any]]


def native_predict(model: Any, ensemble: Ensemble, votes: str = "soft") -> Outputs:
    """The model's own predict: labels, or numbers where the model gives numbers.

    The ensemble speaks for a model file, for itself, and where a model has no predict that
    votes this way. A Booster's probabilities become labels as in its library's estimators.
    """
    if votes == "hard" or isinstance(model, Ensemble | str | os.PathLike):
        return _of_ensemble(ensemble)
    library = _library_of(model)
    if library == "catboost" and ensemble.rule != "value":
        return lambda rows: np.ravel(model.predict(rows, prediction_type="Class"))
    if library == "xgboost" and type(model).__name__ != "Booster":
        return lambda rows: np.asarray(model.predict(rows))
    if library:
        output = _BY_LIBRARY[library](model, ensemble)
        return lambda rows: _labels_of(output(rows), ensemble)
    in_its_words = rows_of(model, ensemble)
    return lambda rows: np.ravel(model.predict(in_its_words(rows)))


def native_outputs(model: Any, ensemble: Ensemble, target: Interval) -> Outputs:
    """The output that a target is about, by the live model; by the ensemble where there is none."""
    code = targets.code_of(ensemble, target.label)
    library = _library_of(model)
    if library:
        output = _BY_LIBRARY[library](model, ensemble)
        return output if code is None else lambda rows: _column(output(rows), code)
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
    if is_pipeline(model):
        return RawRows.of(model, ensemble.categories)
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


def _of_ensemble(ensemble: Ensemble) -> Outputs:
    if ensemble.rule == "value":
        return lambda rows: ensemble.scores(rows)[:, 0]
    return lambda rows: np.asarray(ensemble.classes[ensemble.labels(rows)])


def _library_of(model: Any) -> str:
    """The boosting library of a model, "" for another one; these take rows of codes as they are."""
    parents = {parent.__module__.split(".")[0] for parent in type(model).__mro__}
    return next((library for library in _BY_LIBRARY if library in parents), "")


def _of_xgboost(model: Any, ensemble: Ensemble) -> Outputs:
    if type(model).__name__ != "Booster":
        ask = model.predict if ensemble.rule == "value" else model.predict_proba
        return lambda rows: np.asarray(ask(rows))

    def predict(rows: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        from xgboost import DMatrix

        columns = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        return np.asarray(model.predict(DMatrix(rows, enable_categorical=True, **columns)))

    return predict


def _of_lightgbm(model: Any, ensemble: Ensemble) -> Outputs:
    # The estimators ask their booster too, after a complaint about rows without names.
    booster = getattr(model, "booster_", model)
    return lambda rows: np.asarray(booster.predict(rows))


def _of_catboost(model: Any, ensemble: Ensemble) -> Outputs:
    kind = "RawFormulaVal" if ensemble.rule == "value" else "Probability"
    return lambda rows: np.asarray(model.predict(rows, prediction_type=kind))


def _labels_of(output: npt.NDArray[Any], ensemble: Ensemble) -> npt.NDArray[Any]:
    """Probabilities as labels; numbers, and labels, as they are."""
    if ensemble.rule == "value":
        return output
    if output.ndim == 2:
        return np.asarray(ensemble.classes[output.argmax(axis=1)])
    return np.asarray(ensemble.classes[(output if ensemble.rule == "argmax" else output > 1 - output).astype(np.intp)])


def _column(output: npt.NDArray[Any], code: int) -> npt.NDArray[Any]:
    """The probability of one class; libraries give that of the second of two classes alone."""
    if output.ndim == 2:
        return np.asarray(output[:, code])
    return output if code == 1 else 1 - output


_BY_LIBRARY: dict[str, Callable[[Any, Ensemble], Outputs]] = {
    "xgboost": _of_xgboost,
    "lightgbm": _of_lightgbm,
    "catboost": _of_catboost,
}
