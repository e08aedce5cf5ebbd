"""The command line: what it prints, writes and returns, at a terminal, in a pipe and on bad files."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps.cli import main
from cfmaps.cli.demo import make
from cfmaps.cli.rows import Rows

COMMAND = [sys.executable, "-m", "cfmaps"]
README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A credit map, rows to ask about, and the model in several kinds of files."""
    import joblib
    import skops.io

    folder = tmp_path_factory.mktemp("cli")
    make(folder)
    rng = np.random.default_rng(0)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rng.normal(size=(80, 2)), rng.integers(0, 2, 80))
    joblib.dump(model, folder / "model.joblib")
    skops.io.dump(model, folder / "model.skops")
    return folder


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows_of(path):
    with open(path, newline="") as file:
        return [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]


def piped(*arguments, **options):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **options)


# ---- what the commands say ----


def test_explain_gives_the_answers_of_the_library(folder, tmp_path):
    cfmap = cfmaps.load(folder / "credit.cfmap")
    expected = [
        one.to_dict() for one in cfmap.explain_many(rows_of(folder / "rows.csv"), target="accept", distance="l2")
    ]
    expected = [{"row": row} | record for row, record in enumerate(expected)]
    question = ["explain", folder / "credit.cfmap", folder / "rows.csv", "--target", "accept", "--distance", "l2"]
    assert json.loads(run(*question, "--json").stdout) == expected
    assert [json.loads(line) for line in run(*question, "--format", "jsonl").stdout.splitlines()] == expected
    for kind in (".csv", ".json", ".jsonl", ".parquet"):
        assert run(*question, "-o", tmp_path / f"answers{kind}").exit_code == 0
        assert cfmaps.load_explanations(tmp_path / f"answers{kind}") == expected


def test_explain_reads_every_kind_of_rows(folder, tmp_path):
    import polars

    frame = polars.read_csv(folder / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_ndjson(tmp_path / "rows.jsonl")
    frame.write_csv(tmp_path / "rows.tsv", separator="\t")
    frame.select(reversed(frame.columns)).with_columns(id=7).write_csv(tmp_path / "other.csv", separator=";")
    expected = run("explain", folder / "credit.cfmap", folder / "rows.csv").stdout
    for name in ("rows.parquet", "rows.jsonl", "rows.tsv", "other.csv"):
        found = run("explain", folder / "credit.cfmap", tmp_path / name)
        assert found.stdout == expected
        assert ("ignored columns" in found.stderr) == (name == "other.csv")


def test_weights_and_norms_are_those_of_the_library(folder):
    cfmap, rows = cfmaps.load(folder / "credit.cfmap"), rows_of(folder / "rows.csv")
    expected = cfmaps.load(folder / "credit.cfmap", data=rows).explain_many(rows, weights="range").distances.tolist()
    question = ["explain", folder / "credit.cfmap", folder / "rows.csv", "--json"]
    found = json.loads(run(*question, "--weights", "range", "--data", folder / "rows.csv").stdout)
    assert [record["distance"] for record in found] == expected
    weights = {"income": 2.0, "age": 0.5}
    expected = cfmap.explain_many(rows, weights=weights, distance=3).distances.tolist()
    found = json.loads(run(*question, "--weights", "income=2,age=0.5", "--distance", "3").stdout)
    assert [record["distance"] for record in found] == expected


def test_a_table_shows_what_changes(folder):
    found = run("explain", folder / "credit.cfmap", folder / "rows.csv", "--format", "table")
    assert re.search(r"reject +│ accept", found.stdout)
    assert "->" in found.stdout


def test_build_grows_a_model_and_then_its_map(folder, tmp_path):
    small = run("build", folder / "model.skops", "-o", tmp_path / "m.cfmap", "--max-nodes", 5, "--json")
    assert {"complete": False, "reason": "nodes", "path": str(tmp_path / "m.cfmap")}.items() <= json.loads(
        small.stdout
    ).items()
    whole = run("build", tmp_path / "m.cfmap", "--json")
    assert {"complete": True, "path": str(tmp_path / "m.cfmap")}.items() <= json.loads(whole.stdout).items()
    assert cfmaps.load(tmp_path / "m.cfmap").is_complete
    told = json.loads(run("info", tmp_path / "m.cfmap", "--verify", "--json").stdout)
    expected = {
        "complete": True,
        "library": "sklearn",
        "model": "RandomForestClassifier",
        "n_trees": 5,
        "verified": True,
    }
    assert expected.items() <= told.items()


def test_columns_may_be_described_in_a_file(folder, tmp_path):
    described = [{"kind": "Integer", "name": "age", "low": 0}, {"kind": "Numeric", "name": "income"}]
    (tmp_path / "columns.json").write_text(json.dumps(described))
    done = run("build", folder / "model.skops", "--features", tmp_path / "columns.json", "-o", tmp_path / "m.cfmap")
    assert done.exit_code == 0
    assert cfmaps.load(tmp_path / "m.cfmap").features.entries[0] == cfmaps.Integer("age", low=0)
    for wrong, message in [
        ([{"kind": "Colour", "name": "a"}], "kind must be one of Numeric"),
        ([{"kind": "Integer", "name": "a", "lo": 1}], "unexpected keyword argument 'lo'"),
        ({"age": 1}, "must hold a list of objects"),
    ]:
        (tmp_path / "columns.json").write_text(json.dumps(wrong))
        found = run("build", folder / "model.skops", "--features", tmp_path / "columns.json")
        assert (found.exit_code, message in found.stderr) == (1, True), found.stderr


def test_a_pickle_is_read_only_when_it_is_trusted(folder, tmp_path):
    refused = run("build", folder / "model.joblib", "-o", tmp_path / "m.cfmap")
    assert refused.exit_code == 1
    assert "runs whatever code its author put into it" in refused.stderr
    assert run("build", folder / "model.joblib", "-o", tmp_path / "m.cfmap", "--trust-pickle").exit_code == 0


def test_audit_prints_and_writes_a_page(folder, tmp_path):
    arguments = ["audit", folder / "credit.cfmap", folder / "rows.csv", "--target", "accept", "--group", "owner"]
    found = json.loads(run(*arguments, "-o", tmp_path / "report.html", "--title", "Mine", "--json").stdout)
    assert {"rows": 40, "without_recourse": 0}.items() <= found["summary"].items()
    assert [one["group"] for one in found["groups"]["owner"]] == ["0", "1"]
    assert "<h1>Mine</h1>" in (tmp_path / "report.html").read_text()
    assert "owner 0:" in run(*arguments).stdout


@pytest.mark.parametrize("kind", ["waterfall", "histogram", "features", "changes", "growth", "decision", "distance"])
def test_plot_writes_pictures(folder, tmp_path, kind):
    target = tmp_path / "picture.svg"
    arguments = ["--kind", kind, "--row", 2, "--columns", "income", "debt", "-o", target, "--json"]
    found = run("plot", folder / "credit.cfmap", folder / "rows.csv", *arguments)
    assert json.loads(found.stdout) == {"path": str(target), "kind": kind}
    assert "<svg" in target.read_text()


def test_every_command_has_an_example_and_completes(folder):
    for name, command in main.commands.items():
        assert f"Example: {'eval' if name == 'completion' else 'cfmaps ' + name}" in run(name, "--help").stdout
        assert command.help
    for shell in ("bash", "zsh", "fish"):
        assert "_CFMAPS_COMPLETE" in run("completion", shell).stdout
    environment = os.environ | {"_CFMAPS_COMPLETE": "bash_complete", "COMP_WORDS": "cfmaps exp", "COMP_CWORD": "1"}
    assert "explain" in piped(env=environment).stdout


def test_the_demo_suggests_commands_that_work(tmp_path):
    told = json.loads(run("demo", "--folder", tmp_path, "--json").stdout)
    assert len(told["commands"]) == 4
    for command in told["commands"]:
        assert run(*command.split()[1:]).exit_code == 0


# ---- what goes wrong ----

BAD_ROWS = {
    "missing column": ("income,debt,age\n1,2,3\n", "has no column 'owner'; it has 'income', 'debt', 'age'"),
    "text": ("income,debt,age,owner\n1,2,3,0\n1,x,3,0\n", "line 3, column 'debt': expected a number, got 'x'"),
    "short line": ("income,debt,age,owner\n1,2,3\n", "line 2: expected 4 values, got 3"),
    "empty": ("", "is empty; expected a line of column names"),
    "infinite value": ("income,debt,age,owner\n1,inf,3,0\n", "'debt'] is inf"),
    "not whole": ("income,debt,age,owner\n1,2,3.5,0\n", "feature 'age': expected an integer, got 3.5"),
}


@pytest.mark.parametrize("problem", BAD_ROWS)
def test_bad_rows_are_named(folder, tmp_path, problem):
    content, message = BAD_ROWS[problem]
    (tmp_path / "bad.csv").write_text(content)
    found = run("explain", folder / "credit.cfmap", tmp_path / "bad.csv")
    assert found.exit_code == 1
    assert found.stderr.startswith("cfmaps: ")
    assert message in found.stderr
    as_json = run("explain", folder / "credit.cfmap", tmp_path / "bad.csv", "--json")
    assert found.exit_code == 1
    assert message in as_json.stderr


def test_rows_without_rows_have_no_answers(folder, tmp_path):
    (tmp_path / "none.csv").write_text("income,debt,age,owner\n")
    assert json.loads(run("explain", folder / "credit.cfmap", tmp_path / "none.csv", "--json").stdout) == []
    assert run("audit", folder / "credit.cfmap", tmp_path / "none.csv").exit_code == 1


def test_wrong_calls_and_files_have_their_status(folder, tmp_path):
    (tmp_path / "cut.cfmap").write_bytes((folder / "credit.cfmap").read_bytes()[:9000])
    (tmp_path / "model.unheard").write_text("?")
    rows = folder / "rows.csv"
    for status, message, *arguments in [
        (2, "No such command", "explian"),
        (2, "Missing argument", "explain"),
        (2, "Invalid value for '--format'", "explain", folder / "credit.cfmap", rows, "--format", "xml"),
        (1, "No such file or directory", "explain", tmp_path / "none.cfmap", rows),
        (1, "No such file or directory", "build", tmp_path / "none.skops"),
        (1, "No such file or directory", "explain", folder / "credit.cfmap", tmp_path / "none.csv"),
        (1, "rows must be a file that ends in", "explain", folder / "credit.cfmap", folder / "credit.cfmap"),
        (1, "cut.cfmap is cut", "explain", tmp_path / "cut.cfmap", rows),
        (1, "", "build", tmp_path / "model.unheard"),
        (
            1,
            "--target must be one of accept, reject, got 'yes'",
            "explain",
            folder / "credit.cfmap",
            rows,
            "--target",
            "yes",
        ),
        (
            1,
            "--distance must be l1, l2, linf or a number",
            "explain",
            folder / "credit.cfmap",
            rows,
            "--distance",
            "far",
        ),
        (1, "--weights mad needs --data", "explain", folder / "credit.cfmap", rows, "--weights", "mad"),
        (1, "path must end in one of", "explain", folder / "credit.cfmap", rows, "-o", tmp_path / "answers.xlsx"),
        (1, "--row must be below 40", "plot", folder / "credit.cfmap", rows, "--row", "99", "-o", tmp_path / "p.png"),
        (1, "needs --columns", "plot", folder / "credit.cfmap", rows, "--kind", "decision", "-o", tmp_path / "p.png"),
    ]:
        found = run(*arguments)
        assert (found.exit_code, message in found.stderr) == (status, True), (arguments, found.stderr)


def test_answers_stopped_early_have_a_status_of_their_own(folder, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 25))
    model = RandomForestClassifier(60, max_depth=7, random_state=0).fit(X, X[:, :9].sum(axis=1) > 0)
    cfmaps.CounterfactualMap(model).save(tmp_path / "hard.cfmap")
    np.savetxt(tmp_path / "rows.csv", X[:3], delimiter=",", header=",".join(f"c{i}" for i in range(25)), comments="")
    found = run("explain", tmp_path / "hard.cfmap", tmp_path / "rows.csv", "--time-limit", "0.001", "--json")
    assert found.exit_code == 3
    assert {record["status"] for record in json.loads(found.stdout)} <= {"feasible", "unknown"}


# ---- pipes ----


def test_a_pipe_gets_csv_and_nothing_else(folder):
    found = piped("explain", folder / "credit.cfmap", folder / "rows.csv")
    assert (found.returncode, found.stderr) == (0, "")
    assert len(list(csv.DictReader(found.stdout.splitlines()))) == 40
    assert "\x1b" not in found.stdout


def test_rows_from_standard_input_are_answered_as_they_come(folder):
    with subprocess.Popen(
        [*COMMAND, "explain", folder / "credit.cfmap", "-", "--format", "jsonl"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write("income,debt,age,owner\n" + "30,10,40,0\n" * 3000)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["row"] == 0
        process.stdin.write("60,1,40,1\n")
        process.stdin.close()
        rest = process.stdout.read().splitlines()
    assert (process.returncode, len(rest), json.loads(rest[-1])["row"]) == (0, 3000, 3000)


def test_a_reader_that_has_seen_enough_ends_it_quietly(folder, tmp_path):
    (tmp_path / "rows.csv").write_text("income,debt,age,owner\n" + "30,10,40,0\n" * 20_000)
    command = " ".join([*COMMAND, "explain", str(folder / "credit.cfmap"), str(tmp_path / "rows.csv")])
    found = subprocess.run(f"{command} | head -n 1", shell=True, capture_output=True, text=True)
    assert found.stdout.startswith("row,status")
    assert "Traceback" not in found.stderr


def test_rows_are_read_a_few_at_a_time(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 2500)
    assert [len(chunk) for chunk in Rows(str(tmp_path / "rows.csv"), ["a", "b"]).chunks(1000)] == [1000, 1000, 500]


def test_ctrl_c_ends_a_build_and_keeps_the_old_file(folder, tmp_path):
    import skops.io

    X = np.random.default_rng(0).normal(size=(500, 20))
    model = RandomForestClassifier(100, max_depth=8, random_state=0).fit(X, X.sum(axis=1) > 0)
    skops.io.dump(model, tmp_path / "large.skops")
    (tmp_path / "large.cfmap").write_text("old")
    with subprocess.Popen([*COMMAND, "build", tmp_path / "large.skops"], stderr=subprocess.PIPE, text=True) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
    assert process.returncode in (1, 130)
    assert "Traceback" not in told
    assert (tmp_path / "large.cfmap").read_text() == "old"


# ---- the first hour ----


def test_the_commands_of_the_readme_work_after_its_code(tmp_path, monkeypatch):
    text = README.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    lines = [line[4:] for line in code.splitlines() if line.startswith((">>> ", "... "))]
    exec("\n".join(lines), {})
    commands = re.findall(r"^(cfmaps .*)$", text, re.M)
    assert {command.split()[1] for command in commands} >= {"build", "explain", "plot", "audit"}
    for command in commands:
        found = run(*command.split("#")[0].split()[1:])
        assert found.exit_code == 0, (command, found.stderr)


def test_model_files_are_read_as_they_are(tmp_path):
    import lightgbm
    import xgboost

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    boosted = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)
    boosted.save_model(tmp_path / "boosted.json")
    leaves = lightgbm.LGBMClassifier(n_estimators=5, verbosity=-1).fit(X, y)
    leaves.booster_.save_model(tmp_path / "leaves.txt")
    np.savetxt(tmp_path / "rows.csv", X[:20], delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    for name, model in (("boosted.json", boosted), ("leaves.txt", leaves)):
        assert run("build", tmp_path / name, "-o", tmp_path / "m.cfmap").exit_code == 0
        assert cfmaps.load(tmp_path / "m.cfmap", model=model).origin["model"] == name
        columns = tmp_path / "rows.csv"
        if name == "leaves.txt":
            columns.write_text(columns.read_text().replace("a,b,c", "Column_0,Column_1,Column_2"))
        found = json.loads(run("explain", tmp_path / "m.cfmap", columns, "--json").stdout)
        points = np.array([list(record["counterfactual"].values()) for record in found])
        assert (model.predict(points) != model.predict(X[:20])).all()


def test_constraints_hold_and_bad_ones_are_named(folder):
    rows = folder / "rows.csv"
    kept = ["--constraint", "debt <= current", "--constraint", "freeze owner, age"]
    found = json.loads(run("explain", folder / "credit.cfmap", rows, "--target", "accept", *kept, "--json").stdout)
    changes = [change for record in found for change in record["changes"]]
    assert {change["feature"] for change in changes} == {"income", "debt"}
    assert all(change["after"] < change["before"] for change in changes if change["feature"] == "debt")
    wrong = run("explain", folder / "credit.cfmap", rows, "--constraint", "debt <= <=")
    assert (wrong.exit_code, "debt <= <=" in wrong.stderr) == (1, True)
    page = json.loads(run("audit", folder / "credit.cfmap", rows, "--target", "accept", *kept, "--json").stdout)
    assert {one["feature"] for one in page["changes"]} == {"income", "debt"}


def test_alternatives_are_ranked(folder):
    arguments = ["explain", folder / "credit.cfmap", folder / "rows.csv", "--target", "accept", "--json"]
    best = json.loads(run(*arguments).stdout)
    ranked = json.loads(run(*arguments, "--alternatives", 3).stdout)
    for one in best:
        own = [record for record in ranked if record["row"] == one["row"]]
        assert [record["rank"] for record in own] == list(range(len(own)))
        assert own[0]["distance"] == one["distance"]
        assert [record["distance"] for record in own] == sorted(record["distance"] for record in own)
    assert len(ranked) > 2 * len([record for record in best if record["distance"]])
