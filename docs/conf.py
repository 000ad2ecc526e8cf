"""Sphinx: the pages of this folder, and the API from the docstrings of the installed package (make docs)."""

import tropical_gemm
from tropical_gemm.compat import legacy

project = "tropical-gemm"
author = "the tropical-gemm authors"
version = release = tropical_gemm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["requirements.txt"]
myst_heading_anchors = 3

# Docstrings tell what an argument may be; in the signatures types would hide the names.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"tropical-gemm {release}"
html_copy_source = False
html_show_sphinx = False


def prepare(app, docname, source):
    """Links as they are among files; the earlier package's functions, from their table."""
    source[0] = source[0].replace("](../CONTRIBUTING.md", "](contributing.md")
    if docname == "api":
        names = "\n".join(f".. autofunction:: {name}" for name in legacy.__all__)
        source[0] = source[0].replace("LEGACY", f".. currentmodule:: tropical_gemm\n{names}")


def setup(app):
    app.connect("source-read", prepare)
