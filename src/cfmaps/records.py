"""Explanations in files: JSON, JSON lines, CSV and Parquet, and back."""

import contextlib
import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from cfmaps import _tables

Record: TypeAlias = dict[str, Any]

KINDS = (".json", ".jsonl", ".csv", ".parquet")

_NESTED = ("query", "counterfactual")
_LABELS = ("source", "target")


def save_explanations(path: str | os.PathLike[str], explanations: Iterable[Any]) -> None:
    """Write explanations as the ending of the path says: .json, .jsonl, .csv or .parquet.

    All but Parquet are written one by one, so that an iterator of any length will do.

    Tables have a column ``query.NAME`` and ``counterfactual.NAME`` for each column of the
    model; lists are JSON text in them. Numbers keep every digit.

    Parameters
    ----------
    path : path
    explanations : Explanations, or iterable of Explanation or of what their ``to_dict`` gives

    Examples
    --------
    >>> import tempfile
    >>> record = {"status": "optimal", "target": "yes", "distance": 0.25, "query": {"x": 1.0}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_explanations(folder + "/answers.csv", [record])
    ...     load_explanations(folder + "/answers.csv") == [record]
    True
    """
    kind = _kind(path)
    records = (as_record(one) for one in explanations)
    if kind == ".parquet":
        _table(list(records)).write_parquet(path)
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        write(file, records, kind)


def load_explanations(path: str | os.PathLike[str]) -> list[Record]:
    """What `save_explanations` wrote, as what `Explanation.to_dict` gave."""
    kind = _kind(path)
    if kind == ".parquet":
        return [_nested(row) for row in _read_parquet(path)]
    with open(path, encoding="utf-8", newline="") as file:
        if kind == ".json":
            return list(json.load(file))
        if kind == ".jsonl":
            return [json.loads(line) for line in file if line.strip()]
        return [_nested({name: _from_cell(name, cell) for name, cell in row.items()}) for row in csv.DictReader(file)]


def as_record(explanation: Any) -> Record:
    """An explanation as plain values; None stands for a missing number."""
    record = dict(explanation) if isinstance(explanation, Mapping) else explanation.to_dict()
    query = record.get("query")
    if query is not None and any(value != value for value in query.values()):
        record["query"] = {name: None if value != value else value for name, value in query.items()}
    return record


def write(file: TextIO, records: Iterable[Record], kind: str) -> None:
    """Write records to an open file one by one, so that a stream of them takes no memory."""
    if kind == ".jsonl":
        for record in records:
            file.write(json.dumps(record, allow_nan=False) + "\n")
    elif kind == ".json":
        separator = "["
        for record in records:
            file.write(separator + json.dumps(record, allow_nan=False))
            separator = ",\n "
        file.write("[]\n" if separator == "[" else "]\n")
    else:
        _write_csv(file, records)


def _write_csv(file: TextIO, records: Iterable[Record]) -> None:
    writer = None
    for record in _padded(records):
        row = {name: _cell(name, value) for name, value in _flat(record).items()}
        if writer is None:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
        writer.writerow(row)


def _kind(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in KINDS:
        raise ValueError(f"path must end in one of {', '.join(KINDS)}, got {os.fspath(path)!r}")
    return ending


def _padded(records: Iterable[Record]) -> Iterator[Record]:
    """Rows without an answer get the columns of one."""
    for record in records:
        nothing = dict.fromkeys(record.get("query") or {})
        empty = "counterfactual" in record and record["counterfactual"] is None
        yield record | {"counterfactual": nothing} if empty else record


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in record.items():
        if name in _NESTED and isinstance(value, Mapping):
            row |= {f"{name}.{column}": item for column, item in value.items()}
        else:
            row[name] = json.dumps(value) if isinstance(value, list | dict) else value
    return row


def _nested(row: Mapping[str, Any]) -> Record:
    record: Record = {}
    for name, value in row.items():
        outer, _, inner = name.partition(".")
        if inner and outer in _NESTED:
            record.setdefault(outer, {})[inner] = value
        elif isinstance(value, str) and name not in _LABELS and value[:1] in ("[", "{"):
            record[name] = json.loads(value)
        else:
            record[name] = value
    if "counterfactual" in record and all(value is None for value in record["counterfactual"].values()):
        record["counterfactual"] = None
    return record


def _cell(name: str, value: Any) -> Any:
    """Text that reads like a number or a word of JSON is quoted, so that it comes back as text."""
    if value is None:
        return ""
    if isinstance(value, str) and name in _LABELS:
        return value if value and _from_cell(name, value) == value else json.dumps(value)
    if isinstance(value, bool):
        return json.dumps(value)
    return repr(value) if isinstance(value, float) else value


def _from_cell(name: str, cell: str) -> Any:
    if cell == "":
        return None
    if name == "status" or cell[0] in "[{":
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _table(records: Sequence[Record]) -> Any:
    rows = [_flat(record) for record in _padded(records)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name in _LABELS:
        if name in columns:
            columns[name] = [None if value is None else str(_cell(name, value)) for value in columns[name]]
    import narwhals as nw

    return nw.from_dict(columns, backend=_backend())


def _read_parquet(path: str | os.PathLike[str]) -> list[Record]:
    import narwhals as nw

    frame = nw.read_parquet(os.fspath(path), backend=_backend())
    return [{name: _from_column(name, value) for name, value in row.items()} for row in frame.iter_rows(named=True)]


def _backend() -> Any:
    """polars reads Parquet by itself, pandas with pyarrow."""
    with contextlib.suppress(ImportError):
        import polars

        return polars
    return _tables.installed()


def _from_column(name: str, value: Any) -> Any:
    if value is None or value != value:
        return None
    return _from_cell(name, value) if name in _LABELS else value
