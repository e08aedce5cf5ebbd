"""Model files of XGBoost, LightGBM and CatBoost, recognised by what they hold, not by their names."""

import json
import os
from pathlib import Path
from typing import Any

from cfmaps.ensemble import Ensemble
from cfmaps.errors import UnsupportedModel
from cfmaps.readers import catboost, lightgbm, ubjson, xgboost

_EXPECTED = "expected XGBoost JSON or UBJSON, LightGBM text, or CatBoost JSON"
# First bytes of what other writers leave, and what to do about it.
_OTHERS = {
    b"CBM1": "CatBoost's binary format cannot be read without the library: save_model(path, format='json')",
    b"binf": "XGBoost's old binary format is not supported: save_model with a name that ends in .json or .ubj",
    b"\x80": "a pickle is not read, since it may run anything: load it and pass the model itself",
    b"PK\x03\x04": "a zip file is no model file",
}


def read(path: str | os.PathLike[str]) -> Ensemble:
    """The ensemble of a model file; its library is not needed.

    Labels are those the file holds, else the indices of the classes. An XGBoost file
    written by an estimator stops at the best iteration, one written by a Booster uses
    all trees, as loading them would.

    Raises
    ------
    FileNotFoundError
    UnsupportedModel
        When the file is none of these formats, is damaged, or holds a model that is refused.
    """
    data = Path(path).read_bytes()
    try:
        return _read(data)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{os.fspath(path)}: {error}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedModel(f"{os.fspath(path)}: the file is damaged or of another version: {error!r}") from error


def _read(data: bytes) -> Ensemble:
    for start, advice in _OTHERS.items():
        if data.startswith(start):
            raise UnsupportedModel(advice)
    if data.startswith(b"tree\n") or data.startswith(b"tree\r\n"):
        return lightgbm.read_text(data.decode())
    if not data.lstrip().startswith(b"{"):
        raise UnsupportedModel(f"not a model file: {_EXPECTED}")
    document = _document(data)
    if "learner" in document:
        return xgboost.read_document(document)
    if "features_info" in document:
        return catboost.read_document(document)
    if "tree_info" in document:
        raise UnsupportedModel("LightGBM's JSON dump rounds its numbers: save_model writes the text that is read here")
    raise UnsupportedModel(f"the document holds {sorted(document)[:5]}: {_EXPECTED}")


def _document(data: bytes) -> dict[str, Any]:
    """JSON, or UBJSON: there a length follows the brace."""
    try:
        document = ubjson.loads(data) if data[1:2] in ubjson.LENGTHS else json.loads(data)
    except ValueError as error:
        raise UnsupportedModel(f"not a model file, {error}: {_EXPECTED}") from None
    if not isinstance(document, dict):
        raise UnsupportedModel(f"not a model file: {_EXPECTED}")
    return document
