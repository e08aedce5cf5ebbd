"""The site says what there is. Its snippets run as doctests, its gallery here."""

import pkgutil
import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import pytest
from matplotlib import pyplot

DOCS = Path(__file__).parents[1] / "docs"


def test_the_reference_names_what_there_is():
    listed = (DOCS / "api.txt").read_text(encoding="utf-8").splitlines()
    entries = [line.strip() for line in listed if line.startswith("   ") and ":" not in line and "@" not in line]
    missing = [name for name in entries if not resolves(name)]
    assert (len(entries) > 20, missing) == (True, [])


def resolves(name):
    try:
        return bool(pkgutil.resolve_name(f"cfmaps.{name}"))
    except (ImportError, AttributeError):
        return False


@pytest.mark.parametrize("script", sorted((DOCS / "gallery").glob("plot_*.py")), ids=lambda script: script.stem)
def test_the_gallery_runs(script):
    runpy.run_path(str(script))
    assert pyplot.get_fignums()
    pyplot.close("all")
