"""The command line: ``cfmaps --help``.

Exit status: 0 done, 1 a file or value that makes no sense, 2 a wrong call, 3 done, but some answers were stopped
early, 130 Ctrl-C.
"""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import cfmaps
from cfmaps import records, store
from cfmaps._tables import shown
from cfmaps.cli.demo import make
from cfmaps.cli.models import open_map, read_features
from cfmaps.cli.pictures import PLOTS, draw
from cfmaps.cli.rows import Rows

STOPPED_EARLY = 3
FORMATS = ("table", "json", "jsonl", "csv")


class _Commands(click.Group):
    """Turns what the library raises into a line on standard error and status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has seen enough
            sys.stdout = io.StringIO()
            ctx.exit(0)
        except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
            if isinstance(error, click.exceptions.Exit | click.exceptions.Abort):
                raise
            _complain(error)
            ctx.exit(1)


def _complain(error: Exception) -> None:
    text = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    as_json = "--json" in sys.argv
    click.echo(json.dumps({"error": text, "kind": type(error).__name__}) if as_json else f"cfmaps: {text}", err=True)


@click.group(cls=_Commands, epilog="Example: cfmaps build model.skops && cfmaps explain model.cfmap rows.csv")
@click.version_option(cfmaps.__version__)
def main() -> None:
    """The smallest change that makes a tree model say otherwise, with proof."""


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_model = _options(
    click.argument("model", type=click.Path()),
    click.option("--features", "features_file", type=click.Path(), help="What the columns are: a JSON file."),
    click.option("--trust-pickle", is_flag=True, help="Read a pickle or joblib file, which may run any code."),
)
_question = _options(
    click.option("--target", help="The label wanted; any other than the row's own by default."),
    click.option("--distance", default="l1", show_default=True, help="l1, l2, linf or a number from 1."),
    click.option("--weights", help="range, mad or std of the rows in --data, or NAME=WEIGHT,NAME=WEIGHT."),
    click.option("--data", type=click.Path(), help="Rows that --weights are measured on."),
    click.option("--constraint", "constraints", multiple=True, help='What must hold: "age >= current"; repeatable.'),
    click.option("--time-limit", type=float, help="Seconds per row."),
)


@main.command(epilog="Example: cfmaps build model.skops --features columns.json -o model.cfmap")
@_model
@click.option("-o", "--output", type=click.Path(), help="The map; the model's name with .cfmap by default.")
@click.option("--max-nodes", type=int, help="Stop at this many nodes.")
@click.option("--max-memory", type=int, help="Stop at this many bytes.")
@click.option("--time-limit", type=float, help="Stop after this many seconds.")
@click.option("--threads", type=int, help="All cores by default.")
@_as_json
def build(
    model: str, features_file: str | None, trust_pickle: bool, output: str | None, as_json: bool, **limits: Any
) -> None:
    """Grow the map of a MODEL, or a map further, and save it.

    MODEL is a file of skops, XGBoost, LightGBM, CatBoost or cfmaps.
    """
    cfmap = open_map(model, features=_features(features_file), trust_pickle=trust_pickle)
    limits["n_threads"] = limits.pop("threads")
    with _progress("growing") as progress:
        task = progress.add_task("", total=100)

        def report(share: float, n_nodes: int) -> None:
            progress.update(task, completed=100 * share, description=f"{n_nodes:,} nodes")

        growth = cfmap.build(progress=report, **limits)
    path = output or str(Path(model).with_suffix(".cfmap"))
    cfmap.save(path)
    found = {
        "path": path, "complete": growth.complete, "reason": growth.reason, "n_nodes": growth.n_nodes,
        "n_boxes": growth.n_boxes, "seconds": growth.seconds, "n_bytes": Path(path).stat().st_size,
    }  # fmt: skip
    how = "complete" if growth.complete else f"partial: stopped by {growth.reason}; it answers all the same"
    _say(found, as_json, f"{path}: {growth.n_nodes:,} nodes, {growth.n_boxes:,} boxes, {how}")


@main.command(epilog="Example: cfmaps explain model.cfmap rows.csv --target good --constraint 'age >= current'")
@_model
@click.argument("rows", type=click.Path())
@_question
@click.option("-o", "--output", type=click.Path(), help=f"A file that ends in {', '.join(records.KINDS)}.")
@click.option("--alternatives", type=click.IntRange(min=1), help="The best K answers of each row, ranked from 0.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="table on a terminal, csv otherwise.")
@_as_json
def explain(
    model: str,
    rows: str,
    output: str | None,
    alternatives: int | None,
    form: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """The smallest change of every row in ROWS (CSV, Parquet, JSON lines, or - for CSV from standard input).

    Rows are read, answered and written a few at a time.
    """
    cfmap = _opened(model, asked)
    question = _asked(cfmap, **asked)
    source = _rows_of(cfmap, rows)
    form = "json" if as_json else form or ("table" if sys.stdout.isatty() else "csv")
    counts = dict.fromkeys(("optimal", "feasible", "infeasible", "unknown"), 0)

    def answers() -> Iterator[dict[str, Any]]:
        first = 0
        with _progress("explaining") as progress:
            task = progress.add_task("rows", total=None)
            for chunk in source.chunks():
                for record in _answered(cfmap, chunk, first, alternatives, question):
                    counts[record["status"]] += 1
                    yield record
                first += len(chunk)
                progress.advance(task, len(chunk))
        _mention_ignored(source)

    _write(answers(), output, form)
    if counts["feasible"] + counts["unknown"]:
        raise click.exceptions.Exit(STOPPED_EARLY)


@main.command(epilog="Example: cfmaps audit model.cfmap people.csv --target good --group sex -o report.html")
@_model
@click.argument("rows", type=click.Path())
@_question
@click.option("--group", "groups", multiple=True, help="A column of ROWS to compare groups by; may be repeated.")
@click.option("--title", default="Recourse audit", show_default=True)
@click.option("-o", "--output", type=click.Path(), help="An HTML page.")
@_as_json
def audit(
    model: str, rows: str, groups: tuple[str, ...], title: str, output: str | None, as_json: bool, **asked: Any
) -> None:
    """Recourse of a whole population: what it costs, who has none, whether groups differ."""
    from cfmaps.audit import audit as find

    cfmap = _opened(model, asked)
    question = _asked(cfmap, **asked)
    source = _rows_of(cfmap, rows, also=[name for name in groups if not _is_column(cfmap, name)])
    X, others = source.all()
    if not len(X):
        raise ValueError(f"{rows} has no rows to audit")
    members = {name: others[name] if name in others else X[:, cfmap.features.columns.index(name)] for name in groups}
    with _progress("asking") as progress:
        progress.add_task(f"{len(X)} rows", total=None)
        found = find(cfmap, X, groups=members, **question)
    _mention_ignored(source)
    if output is not None:
        found.report(output, title=title)
    _say(found.to_dict(), as_json, _audit_text(found, output))
    if found.summary()["stopped_early"]:
        raise click.exceptions.Exit(STOPPED_EARLY)


@main.command(epilog="Example: cfmaps plot model.cfmap rows.csv --row 3 -o change.png")
@_model
@click.argument("rows", type=click.Path())
@_question
@click.option("--kind", type=click.Choice(PLOTS), default="waterfall", show_default=True)
@click.option("--row", type=click.IntRange(min=0), default=0, show_default=True, help="The case, counted from 0.")
@click.option("--columns", nargs=2, help="Two columns, for a slice through the case.")
@click.option("-o", "--output", type=click.Path(), required=True, help="A .png, .svg or .pdf file.")
@_as_json
def plot(
    model: str,
    rows: str,
    kind: str,
    row: int,
    columns: tuple[str, str] | None,
    output: str,
    as_json: bool,
    **asked: Any,
) -> None:
    """Draw an answer (waterfall), a slice of the map through a case, or the answers to all ROWS."""
    cfmap = _opened(model, asked)
    question = _asked(cfmap, **asked)
    X, _ = _rows_of(cfmap, rows).all()
    if row >= len(X):
        raise ValueError(f"--row must be below {len(X)}, the rows of {rows}, got {row}")
    draw(cfmap, X, kind, row, columns or None, question).figure.savefig(output, dpi=150)
    _say({"path": output, "kind": kind}, as_json, f"{output}: {kind}")


@main.command(epilog="Example: cfmaps demo --folder demo")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("demo"), show_default=True)
@_as_json
def demo(folder: Path, as_json: bool) -> None:
    """Train a small forest, and leave its model, map, rows and answers in a folder to try the commands on."""
    files = make(folder)
    commands = [
        f"cfmaps explain {files['map']} {files['rows']} --target accept",
        f"cfmaps audit {files['map']} {files['rows']} --target accept --group owner -o {folder / 'report.html'}",
        f"cfmaps plot {files['map']} {files['rows']} --target accept --row 0 -o {folder / 'change.png'}",
        f"cfmaps info {files['map']}",
    ]
    _say({"files": files, "commands": commands}, as_json, "\n".join([*files.values(), "", "Now try:", *commands]))


@main.command(epilog="Example: cfmaps info model.cfmap --json")
@click.argument("file", type=click.Path())
@click.option("--verify", is_flag=True, help="Read the whole file and check every digest.")
@_as_json
def info(file: str, verify: bool, as_json: bool) -> None:
    """What a map holds and where it comes from."""
    if verify:
        store.verify(file)
    saved = store.load(file)
    found = {
        "path": file, "n_bytes": Path(file).stat().st_size, "verified": verify,
        "complete": saved.complete, "n_nodes": saved.n_nodes, "n_trees": saved.ensemble.n_trees,
        "classes": saved.ensemble.classes.tolist(),
        "features": [{"kind": type(entry).__name__, "name": entry.name} for entry in saved.features],
    } | saved.about  # fmt: skip
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in found.items() if name != "features"]
    lines += [f"feature {entry}" for entry in saved.features]
    _say(found, as_json, "\n".join(lines))


@main.command(epilog='Example: eval "$(cfmaps completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a SHELL complete commands and options."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "cfmaps", "_CFMAPS_COMPLETE").source())


def _opened(model: str, asked: dict[str, Any]) -> cfmaps.CounterfactualMap:
    """The map that the options ask for; takes them away."""
    features = _features(asked.pop("features_file"))
    return open_map(model, features=features, trust_pickle=asked.pop("trust_pickle"))


def _rows_of(cfmap: cfmaps.CounterfactualMap, path: str, also: Sequence[str] = ()) -> Rows:
    """The rows of a file in the columns of the map, categories in the values they have there."""
    features = cfmap.features
    entries: list[Any] = list(features)
    categories = {entry.name: entry.categories for entry in entries if not getattr(entry, "are_codes", True)}
    return Rows(path, features.columns, named=cfmap.has_names, also=also, categories=categories)


def _is_column(cfmap: cfmaps.CounterfactualMap, name: str) -> bool:
    return cfmap.has_names and name in cfmap.features.columns


def _audit_text(found: Any, output: str | None) -> str:
    lines = [f"{name.replace('_', ' ')}: {shown(value)}" for name, value in found.summary().items()]
    for name in found.groups:
        for one in found.by_group(name):
            without = f"{100 * one['share_without_recourse']:.1f} % without recourse"
            lines.append(f"{name} {one['group']}: {one['rows']} rows, {without}, mean cost {shown(one['mean_cost'])}")
    return "\n".join([*lines, *([output] if output else [])])


def _features(path: str | None) -> cfmaps.Features | None:
    return None if path is None else read_features(path)


def _asked(
    cfmap: cfmaps.CounterfactualMap,
    *,
    target: str | None,
    distance: str,
    weights: str | None,
    data: str | None,
    constraints: tuple[str, ...],
    time_limit: float | None,
) -> dict[str, Any]:
    """The arguments of `CounterfactualMap.explain_many`."""
    norm: Any = distance if distance in ("l1", "l2", "linf") else _number(distance, "--distance")
    scale: Any = weights if weights in (None, "range", "mad", "std") else _weights(weights)
    if isinstance(scale, str):
        if data is None:
            raise ValueError(f"--weights {scale} needs --data, rows to measure it on")
        rows, _ = _rows_of(cfmap, data).all()
        measure = cfmaps.Distance.resolve(norm, scale, cfmap.features.columns, data=rows)
        norm, scale = measure, None
    return {"target": _label(cfmap, target), "distance": norm, "weights": scale, "time_limit": time_limit} | (
        {"constraints": list(constraints)} if constraints else {}
    )


def _label(cfmap: cfmaps.CounterfactualMap, text: str | None) -> Any:
    """The label that is written like this."""
    if text is None:
        return None
    labels = {str(label): label for label in cfmap.classes.tolist()}
    if text not in labels:
        raise ValueError(f"--target must be one of {', '.join(labels)}, got {text!r}")
    return labels[text]


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be l1, l2, linf or a number, got {text!r}") from None


def _weights(text: str) -> dict[str, float]:
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): _number(value, "--weights NAME=") for name, _, value in pairs}


def _answered(
    cfmap: cfmaps.CounterfactualMap, rows: Any, first: int, alternatives: int | None, question: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The answers to some rows, the first of which has this number."""
    if alternatives is None:
        for row, one in enumerate(cfmap.explain_many(rows, **question), first):
            yield {"row": row} | records.as_record(one)
        return
    for row, values in enumerate(rows, first):
        for rank, one in enumerate(cfmap.alternatives(values, k=alternatives, **question)):
            yield {"row": row, "rank": rank} | records.as_record(one)


def _write(numbered: Iterator[dict[str, Any]], output: str | None, form: str) -> None:
    if output is not None and output != "-":
        records.save_explanations(output, numbered)
    elif form == "table":
        _show(numbered)
    else:
        records.write(sys.stdout, numbered, f".{form}")


def _show(found: Iterator[dict[str, Any]]) -> None:
    """Answers as a table on the terminal, a page at a time."""
    console = Console()
    while page := [record for _, record in zip(range(50), found, strict=False)]:
        table = Table("row", "from", "to", "distance", "status", "what changes", header_style="bold")
        for record in page:
            changes = [f"{c['feature']} {shown(c['before'])} -> {shown(c['after'])}" for c in record["changes"]]
            cells = [record["row"], record["source"], record["target"], record["distance"], record["status"]]
            cells = ["-" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells]
            table.add_row(*cells, "\n".join(changes))
        console.print(table)


def _say(found: dict[str, Any], as_json: bool, text: str) -> None:
    click.echo(json.dumps(found) if as_json else text)


def _mention_ignored(source: Rows) -> None:
    if source.ignored:
        click.echo(f"cfmaps: ignored columns of {source.path}: {', '.join(source.ignored)}", err=True)


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Progress]:
    """A bar on standard error, if somebody looks at it."""
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress
