"""Files that README and docs write go to a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def _documents_write_elsewhere(request, tmp_path_factory, monkeypatch):
    if request.node.path.suffix in (".md", ".rst"):
        monkeypatch.chdir(tmp_path_factory.mktemp("documents"))
