"""How Sphinx makes the site: ``make docs``."""

from importlib.metadata import version as installed
from pathlib import Path

import cfmaps

project = "cfmaps"
author = copyright = "The cfmaps developers"
version = release = installed("cfmaps")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/README.rst", "auto_gallery/*.ipynb"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "cfmaps"
html_theme_options = {"show_prev_next": False, "navigation_depth": 2, "secondary_sidebar_items": ["page-toc"]}
html_static_path: list[str] = []
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_attributes_as_param_list = False

myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

# The reference lists every public name: those that its template does not place stand under "More".
_template = Path(__file__).with_name("api.txt").read_text(encoding="utf-8")
_others = [name for name in cfmaps.__all__ if name not in _template.split()]
Path(__file__).with_name("api.rst").write_text(_template.replace("@others@", "\n   ".join(_others)), encoding="utf-8")

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
}
