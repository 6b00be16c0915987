"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import write_reference

from paijupyter import __version__

project = "paijupyter"
author = "The paijupyter authors"
copyright = "2026, the paijupyter authors"
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "reference/made"]
html_theme = "furo"
html_title = "paijupyter"
html_static_path = ["_static"]

# The reference of options, routes and fields is made from the tables that the programs use.
write_reference(Path(__file__).parent / "reference" / "made")
