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


def rows_of(model: Any, ensemble: Ensemble) -> Callable[[npt.NDArray[np.float64]], Any]:
    """Rows of codes as the model was trained on: with its names, and with categories where it asks for them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return lambda rows: rows
    if getattr(model, "_preprocessor", None) is None or not ensemble.categories:
        return lambda rows: _tables.frame(dict(zip(names, rows.T, strict=True)))
    return lambda rows: _with_categories(rows, names, ensemble)


def _with_categories(rows: npt.NDArray[np.float64], names: Any, ensemble: Ensemble) -> Any:
    import pandas as pd

    columns: dict[str, Any] = dict(zip(names, rows.T.copy(), strict=True))
    for column, values in (ensemble.categories or {}).items():
        codes = np.where(np.isnan(rows[:, column]), -1, rows[:, column]).astype(np.int64)
        columns[names[column]] = pd.Categorical.from_codes(codes, categories=list(values))
    return pd.DataFrame(columns)
