"""Models and maps from files."""

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cfmaps
from cfmaps import features as kinds
from cfmaps.features import Feature, Features

PICKLES = (".pkl", ".pickle", ".joblib")
RISK = (
    "a pickle runs whatever code its author put into it, with your rights, while it is being read; "
    "pass --trust-pickle for a file that you made yourself"
)


def open_map(path: str, *, features: Features | None = None, trust_pickle: bool = False) -> cfmaps.CounterfactualMap:
    """The map in a file, or a fresh map of the model in a file."""
    if Path(path).suffix.lower() == ".cfmap":
        if features is not None:
            raise ValueError("--features belongs to a model: a map knows its columns")
        return cfmaps.load(path)
    return cfmaps.CounterfactualMap(_model(path, trust_pickle), features=features)


def read_features(path: str) -> Features:
    """Features from JSON: a list of objects with "kind", "name" and the arguments of that kind."""
    entries = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f'{path} must hold a list of objects like {{"kind": "Integer", "name": "age", "low": 18}}')
    return Features([_feature(entry, path) for entry in entries])


def _feature(entry: dict[str, Any], path: str) -> Feature:
    arguments = dict(entry)
    name = str(arguments.pop("kind", ""))
    known = {kind.__name__: kind for kind in Feature.__args__}
    if name not in known:
        raise ValueError(f"{path}: kind must be one of {', '.join(known)}, got {name!r}")
    try:
        made: Feature = getattr(kinds, name)(arguments.pop("name", None), **arguments)
    except TypeError as error:
        raise ValueError(f"{path}: {entry}: {error}") from None
    return made


def _model(path: str, trust_pickle: bool) -> Any:
    Path(path).stat()  # a missing file is called missing, whatever it is called
    ending = Path(path).suffix.lower()
    readers: dict[Sequence[str], Callable[[str], Any]] = {(".skops",): _skops, PICKLES: _pickled}
    if ending in PICKLES and not trust_pickle:
        raise ValueError(f"{path} is a pickle: {RISK}")
    for endings, reader in readers.items():
        if ending in endings:
            return reader(path)
    return path  # the readers know the files of XGBoost, LightGBM and CatBoost


def _skops(path: str) -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError("skops files need skops: pip install skops") from None
    # The trees of scikit-learn are compiled types, which skops does not list, but which hold nothing but arrays.
    kinds_of_file = skops.io.get_untrusted_types(file=path)
    unknown = [kind for kind in kinds_of_file if not kind.startswith("sklearn.")]
    if unknown:
        raise ValueError(f"{path} holds types that are no part of scikit-learn: {', '.join(unknown)}")
    return skops.io.load(path, trusted=kinds_of_file)


def _pickled(path: str) -> Any:
    if path.lower().endswith(".joblib"):
        import joblib

        return joblib.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)
