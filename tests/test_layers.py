import ast
from pathlib import Path

import pytest

import cfmaps

PACKAGE = Path(cfmaps.__file__).parent
LAYERS = [
    {"_core", "_check", "_kinds", "errors"},
    {
        "ensemble",
        "kinds",
        "features",
        "_set_axes",
        "_axes",
        "lattice",
        "distance",
        "targets",
        "conditions",
        "constraints",
        "clauses",
        "prices",
        "plausibility",
        "mining",
        "feasible",
    },
    {
        "readers",
        "partition",
        "rules",
        "limits",
        "recourse",
        "alternatives",
        "levers",
        "box_tree",
        "explanation",
        "certificate",
        "_shapes",
        "_codes",
        "views",
        "joined",
        "verify",
        "_tables",
        "_words",
        "_container",
        "_plain",
        "store",
        "records",
    },
    {"maps", "advice"},
    {"plot"},
    {"audit", "_report"},
    {"cli", "adapters"},
]
RANKS = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_down_only_and_nobody_imports_a_face(file):
    own = file.relative_to(PACKAGE).with_suffix("").parts[0]
    froms = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}".split(".") for node in froms for alias in node.names]
    imported = {name[1] for name in names if name[0] == "cfmaps"} - {own}
    assert all(RANKS[module] <= RANKS.get(own, len(LAYERS)) for module in imported)
