"""Arrays in one file, in the layout of safetensors: written whole or not at all, checked before it is believed.

Eight bytes say how long the header is, the header is JSON, then come the arrays, one after the other, each aligned to
its number type. The header holds the SHA-256 of every array, the last array is the SHA-256 of all before the first.
"""

import contextlib
import hashlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cfmaps.errors import CorruptMap

Array: TypeAlias = npt.NDArray[Any]

_DTYPES = {
    "F64": "<f8", "I64": "<i8", "U64": "<u8", "F32": "<f4", "I32": "<i4", "U32": "<u4",
    "F16": "<f2", "I16": "<i2", "U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_PAGE = 4096
_MOST_HEADER_BYTES = 100_000_000
_SEAL = "sha256"
_SEAL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Container:
    """What a file holds: texts by name, and arrays that lie in the mapped file."""

    texts: dict[str, str]
    arrays: dict[str, Array]
    digests: dict[str, str]

    def verified(self, name: str) -> Array:
        """An array in memory of its own, after its digest was checked."""
        array = np.array(self.array(name))
        if hashlib.sha256(bytes_of(array)).hexdigest() != self.digests.get(name):
            raise CorruptMap(f"array {name!r} of the file is not what was saved")
        return array

    def array(self, name: str) -> Array:
        """An array as it lies in the file, unchecked."""
        if name not in self.arrays:
            raise CorruptMap(f"the file has no array {name!r}")
        return self.arrays[name]


def write(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Write a file that has either all of this or, when anything goes wrong, what it had before.

    The first array begins at a page of the file.
    """
    path = Path(path)
    plain = {name: _storable(array, name) for name, array in arrays.items()}
    header = _header(texts, plain)
    seal = hashlib.sha256(header).digest()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for part in (header, *map(bytes_of, _in_order(plain).values()), seal):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def read(path: str | os.PathLike[str]) -> Container:
    """Map a file into memory; its header is checked, its arrays are when they are asked for."""
    size = os.stat(path).st_size
    if size < 8 + _SEAL_BYTES:
        raise CorruptMap(f"{path} is too short: {size} bytes")
    data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    n_header = int.from_bytes(data[:8].tobytes(), "little")
    start = 8 + n_header
    if n_header > min(size - 8 - _SEAL_BYTES, _MOST_HEADER_BYTES):
        raise CorruptMap(f"{path} is cut, or no file of cfmaps: its header should have {n_header} bytes")
    if hashlib.sha256(bytes_of(data[:start])).digest() != data[-_SEAL_BYTES:].tobytes():
        raise CorruptMap(f"{path} is cut or changed, or no file of cfmaps: its header is not what was saved")
    try:
        header = json.loads(data[8:start].tobytes())
        texts = header.pop("__metadata__")
        digests = json.loads(texts.pop("digests"))
        arrays = _arrays(header, data[start:])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptMap(f"{path} has a header that makes no sense: {error}") from None
    return Container(texts, arrays, digests)


def _storable(array: Array, name: str) -> Array:
    array = np.ascontiguousarray(array)
    little = array.dtype.newbyteorder("<")
    if little not in _NAMES:
        raise TypeError(f"array {name!r} must hold plain numbers to be saved, got dtype {array.dtype}")
    return array.astype(little, copy=False)


def bytes_of(array: Array) -> Any:
    """The bytes of an array, uncopied."""
    return array.reshape(-1).view(np.uint8).data


def _in_order(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Wide numbers first, so that all are aligned without gaps."""
    return dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))


def _header(texts: Mapping[str, str], arrays: Mapping[str, Array]) -> bytes:
    """The header and its length, filled up with blanks to a whole number of pages."""
    digests = {name: hashlib.sha256(bytes_of(array)).hexdigest() for name, array in arrays.items()}
    header: dict[str, Any] = {"__metadata__": {**texts, "digests": json.dumps(digests)}}
    end = 0
    for name, array in _in_order(arrays).items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    header[_SEAL] = {"dtype": "U8", "shape": [_SEAL_BYTES], "data_offsets": [end, end + _SEAL_BYTES]}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _PAGE)
    return len(text).to_bytes(8, "little") + text


def _arrays(header: Mapping[str, Any], data: npt.NDArray[np.uint8]) -> dict[str, Array]:
    """Views of the arrays, which must fill the file without gap or overlap."""
    arrays, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), [int(length) for length in entry["shape"]]
        start, stop = entry["data_offsets"]
        if start != end or min(shape, default=0) < 0 or stop - start != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"array {name!r} does not lie where it should")
        if stop > len(data):
            raise ValueError(f"array {name!r} is cut: the file is {stop - len(data)} bytes too short")
        arrays[name], end = data[start:stop].view(dtype).reshape(shape), stop
    if end != len(data) or next(reversed(arrays), None) != _SEAL:
        raise ValueError("the file goes on after its last array")
    return arrays


def _sync_folder(folder: Path) -> None:
    """Makes the new name last, where folders can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
