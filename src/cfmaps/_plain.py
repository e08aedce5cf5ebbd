"""Values as JSON and arrays, and back: what a file may hold, and nothing that could run."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cfmaps.errors import CorruptMap


def encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """``value`` as JSON; arrays of numbers go to ``arrays`` under ``name`` and what follows from it.

    >>> arrays = {}
    >>> encode((1, float("inf"), np.array([1.5])), "x", arrays), arrays
    ({'tuple': [1, {'float': 'inf'}, {'array': 'x.2'}]}, {'x.2': array([1.5])})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"number": np.dtype(value).name}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, arrays)
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, Mapping):
        pairs = enumerate(value.items())
        return {"dict": [[encode(k, f"{name}.{i}k", arrays), encode(v, f"{name}.{i}", arrays)] for i, (k, v) in pairs]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field: encode(getattr(value, field), f"{name}.{field}", arrays) for field in _arguments(type(value))}
        return {"kind": type(value).__name__, "fields": fields}
    raise TypeError(f"{name} cannot be saved: expected numbers, text or a description of a model, got {value!r}")


def decode(code: Any, array_of: Callable[[str], Any], kinds: Mapping[str, type]) -> Any:
    """The value that `encode` made ``code`` of; only the dataclasses in ``kinds`` are made."""
    if not isinstance(code, dict):
        return code
    if "kind" in code:
        if code["kind"] not in kinds:
            raise CorruptMap(f"the file describes a {code['kind']!r}, which this version of cfmaps does not know")
        fields = {name: decode(field, array_of, kinds) for name, field in code["fields"].items()}
        return kinds[code["kind"]](**fields)
    (kind, content), *_ = code.items()
    if kind == "array":
        return array_of(content)
    if kind == "labels":
        return np.array([decode(item, array_of, kinds) for item in content], dtype=code["dtype"])
    if kind in ("tuple", "list"):
        items = [decode(item, array_of, kinds) for item in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {decode(k, array_of, kinds): decode(v, array_of, kinds) for k, v in content}
    if kind == "number":
        return getattr(np, content) if content in ("float32", "float64") else None
    return float(content)


def _encode_array(array: np.ndarray[Any, Any], name: str, arrays: dict[str, Any]) -> Any:
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        arrays[name] = array
        return {"array": name}
    if array.ndim != 1 or array.dtype.kind not in "UO":
        raise TypeError(f"{name} cannot be saved: expected numbers or text, got dtype {array.dtype}")
    kind = "U" if array.dtype.kind == "U" else "O"
    return {"labels": [encode(item, name, arrays) for item in array.tolist()], "dtype": kind}


def _arguments(kind: type) -> list[str]:
    """What makes a dataclass again: it keeps the arguments of its constructor under their names."""
    return [name for name in inspect.signature(kind).parameters if name != "_"]
