"""Universal Binary JSON, as far as XGBoost writes it: https://ubjson.org, draft 12.

Arrays of numbers become numpy arrays, so a large model is read at the speed of its bytes.
"""

import struct
from typing import Any

import numpy as np

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
LENGTHS = (b"i", b"U", b"I", b"l", b"L")


def loads(data: bytes) -> Any:
    """The value that the bytes hold.

    >>> loads(b"{i\\x01a[$i#i\\x02\\x05\\x07}")
    {'a': array([5, 7], dtype=int8)}

    Raises
    ------
    ValueError
        When the bytes end early, go on after the value, or hold a marker that is not known.
    """
    reader = _Reader(bytes(data))
    try:
        value = reader.value(reader.take(1))
    except (struct.error, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not UBJSON: {error}") from None
    if reader.position != len(reader.data):
        raise ValueError(f"not UBJSON: {len(reader.data) - reader.position} bytes follow the value")
    return value


class _Reader:
    """A place in the bytes, and what can be read from there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, n: int) -> bytes:
        end = self.position + n
        if n < 0 or end > len(self.data):
            raise ValueError(
                f"not UBJSON: the data end at byte {len(self.data)}, expected {n} more from {self.position}"
            )
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def peek(self) -> bytes:
        return self.data[self.position : self.position + 1]

    def value(self, marker: bytes) -> Any:
        if marker == b"{":
            return self.mapping()
        if marker == b"[":
            return self.array()
        if marker == b"S":
            return self.text()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        return self.number(marker)

    def number(self, marker: bytes) -> Any:
        if marker not in _NUMBERS:
            raise ValueError(f"not UBJSON: marker {marker!r} at byte {self.position - 1}")
        dtype = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def length(self) -> int:
        return int(self.number(self.take(1)))

    def text(self) -> str:
        return self.take(self.length()).decode()

    def array(self) -> Any:
        kind = self.kind()
        if self.peek() != b"#":
            return self.until(b"]")
        self.take(1)
        n = self.length()
        if kind in _NUMBERS:
            dtype = np.dtype(_NUMBERS[kind])
            return np.frombuffer(self.take(n * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
        return [self.value(kind or self.take(1)) for _ in range(n)]

    def kind(self) -> bytes:
        if self.peek() != b"$":
            return b""
        return self.take(2)[1:]

    def until(self, end: bytes) -> list[Any]:
        values = []
        while (marker := self.take(1)) != end:
            values.append(self.value(marker))
        return values

    def mapping(self) -> dict[str, Any]:
        pairs = {}
        while self.peek() != b"}":
            name = self.text()
            pairs[name] = self.value(self.take(1))
        self.take(1)
        return pairs
