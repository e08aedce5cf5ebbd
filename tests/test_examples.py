"""The examples run and leave what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    small = ["--trees", "15", "--rows", "2", "--pixels", "60", "--folder", str(folder)]
    done = subprocess.run([sys.executable, str(EXAMPLES / "demo.py"), *small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_demo_draws_a_picture_and_writes_a_page(demo):
    folder, _ = demo
    assert (folder / "counterfactual-map.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "explanations.html").read_text(encoding="utf-8").count("<table>") == 2


def test_the_demo_names_its_files_and_says_how_it_went(demo):
    folder, printed = demo
    assert str(folder / "counterfactual-map.png") in printed
    assert str(folder / "explanations.html") in printed
    assert printed.splitlines()[-1].startswith("demo: finished in ")


def test_the_demo_explains_as_many_rows_as_it_was_asked_to(demo):
    _, printed = demo
    assert [line.split(":")[0] for line in printed.splitlines() if line.startswith("row ")] == ["row 0", "row 1"]


def test_the_audits_write_a_page_each(tmp_path):
    small = ["--trees", "10", "--rows", "60", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, str(EXAMPLES / "audits.py"), *small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Every answer keeps: freeze" in (tmp_path / "compas.html").read_text(encoding="utf-8")
    assert "By Delinquency group" in (tmp_path / "fico.html").read_text(encoding="utf-8")
