"""Rows from files, a few at a time, so that a file may be larger than memory."""

import csv
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

Line: TypeAlias = tuple[int, list[Any]]

AT_ONCE = 1000
KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")

_MISSING = {"", "na", "nan", "null", "none"}


@dataclass
class Rows:
    """The rows of a file, "-" standing for CSV from standard input.

    Parameters
    ----------
    path : str
    columns : sequence of str
        What is wanted, in this order.
    named : bool
        Whether the wanted columns have names of their own; otherwise those of the file stand
        for them, in the file's order.
    also : sequence of str
        Further columns to keep as text, see ``others``.
    categories : mapping of name to sequence
        The values of columns that hold no numbers.

    Attributes
    ----------
    ignored : list of str
        The columns of the file that were not wanted; known after the first chunk.
    others : dict
        The text of the columns in ``also``, of the last chunk.
    """

    path: str
    columns: Sequence[str]
    named: bool = True
    also: Sequence[str] = ()
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    others: dict[str, list[Any]] = field(default_factory=dict)

    def chunks(self, size: int = AT_ONCE) -> Iterator[npt.NDArray[Any]]:
        """Arrays of up to ``size`` rows in the wanted columns; a cell without a value is NaN or None."""
        readers = [self._category(name) if name in self.categories else self._number for name in self.columns]
        with _lines(self.path) as (header, lines):
            places, also = self._places(header), [_place(name, header, self.path) for name in self.also]
            while chunk := list(itertools.islice(lines, size)):
                self.others = {name: [row[k] for _, row in chunk] for name, k in zip(self.also, also, strict=True)}
                cells = list(zip(readers, places, strict=True))
                rows = [[read(header[k], line, row[k]) for read, k in cells] for line, row in chunk]
                yield np.array(rows, dtype=object if self.categories else np.float64)

    def all(self) -> tuple[npt.NDArray[Any], dict[str, list[Any]]]:
        """Every row, and the text of every further column."""
        chunks: list[npt.NDArray[Any]] = [np.empty((0, len(self.columns)))]
        others: dict[str, list[Any]] = {name: [] for name in self.also}
        for chunk in self.chunks():
            chunks.append(chunk)
            for name in others:
                others[name] += self.others[name]
        return np.concatenate(chunks), others

    def _places(self, header: Sequence[str]) -> list[int]:
        if not self.named:
            places = [place for place, name in enumerate(header) if name not in self.also]
            if len(places) != len(self.columns):
                raise ValueError(f"{self.path} must have {len(self.columns)} columns, got {len(places)}")
            return places
        places = [_place(name, header, self.path) for name in self.columns]
        self.ignored = [name for name in header if name not in {*self.columns, *self.also}]
        return places

    def _number(self, column: str, line: int, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            if _is_missing(value):
                return float("nan")
            raise ValueError(f"{self.path} line {line}, column {column!r}: expected a number, got {value!r}") from None

    def _category(self, name: str) -> Callable[[str, int, Any], Any]:
        known = {str(value): value for value in self.categories[name]}

        def read(column: str, line: int, value: Any) -> Any:
            if str(value) in known:
                return known[str(value)]
            if _is_missing(value):
                return None
            where = f"{self.path} line {line}, column {column!r}"
            raise ValueError(f"{where}: expected one of {', '.join(known)}, got {value!r}")

        return read


def _is_missing(value: Any) -> bool:
    return value is None or str(value).strip().lower() in _MISSING


def _place(name: str, header: Sequence[str], path: str) -> int:
    if name not in header:
        raise ValueError(f"{path} has no column {name!r}; it has {', '.join(map(repr, header[:20]))}")
    return header.index(name)


@contextmanager
def _lines(path: str) -> Iterator[tuple[list[str], Iterator[Line]]]:
    """The header and the numbered lines of a file."""
    kind = ".csv" if path == "-" else Path(path).suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"rows must be a file that ends in one of {', '.join(KINDS)}, or - for CSV, got {path!r}")
    if kind == ".parquet":
        yield _parquet_lines(path)
        return
    with _opened(path) as file:
        yield _json_lines(file, path) if kind in (".jsonl", ".ndjson") else _csv_lines(file, path)


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdin
        return
    with open(path, encoding="utf-8-sig", newline="") as file:
        yield file


def _csv_lines(file: IO[str], path: str) -> tuple[list[str], Iterator[Line]]:
    first = file.readline()
    if not first.strip():
        raise ValueError(f"{'standard input' if path == '-' else path} is empty; expected a line of column names")
    delimiter = max(",;\t", key=first.count)
    header = next(csv.reader([first], delimiter=delimiter))
    # Line by line, so that a stream is answered as it comes.
    reader = csv.reader(iter(file.readline, ""), delimiter=delimiter)

    def lines() -> Iterator[Line]:
        for row in reader:
            line = reader.line_num + 1
            if row and len(row) != len(header):
                raise ValueError(f"{path} line {line}: expected {len(header)} values, got {len(row)}")
            if row:
                yield line, row

    return header, lines()


def _json_lines(file: Iterable[str], path: str) -> tuple[list[str], Iterator[Line]]:
    objects = ((line, _json_object(text, path, line)) for line, text in enumerate(file, 1) if text.strip())
    first = next(objects, None)
    if first is None:
        raise ValueError(f"{path} is empty; expected an object per line")
    header = list(first[1])
    together = itertools.chain([first], objects)
    return header, ((line, [row.get(name) for name in header]) for line, row in together)


def _json_object(text: str, path: str, line: int) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} line {line} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f'{path} line {line}: expected an object {{"column": value, ...}}, got {text.strip()[:60]!r}')
    return row


def _parquet_lines(path: str) -> tuple[list[str], Iterator[Line]]:
    try:
        import polars
    except ImportError:
        return _arrow_lines(path)
    frame = polars.scan_parquet(path)
    header = frame.collect_schema().names()

    def lines() -> Iterator[Line]:
        for start in itertools.count(0, AT_ONCE):
            rows = frame.slice(start, AT_ONCE).collect().rows()
            if not rows:
                return
            yield from ((start + number + 1, list(row)) for number, row in enumerate(rows))

    return header, lines()


def _arrow_lines(path: str) -> tuple[list[str], Iterator[Line]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet files need polars or pyarrow: pip install polars") from None
    file = parquet.ParquetFile(path)
    batches = (batch.to_pydict() for batch in file.iter_batches(AT_ONCE))
    rows = (list(row) for batch in batches for row in zip(*batch.values(), strict=True))
    return list(file.schema_arrow.names), enumerate(rows, 1)
