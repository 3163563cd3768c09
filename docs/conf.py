"""The docs site: `make docs` builds it, and what can be printed by the program is printed while it is built."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from make_pages import write_pages  # noqa: E402 - found by the line above

import cachescope  # noqa: E402

write_pages(HERE / "made")

project = "cachescope"
author = "The cachescope authors"
copyright = "2026, the cachescope authors"  # noqa: A001 - the name that Sphinx reads
version = release = cachescope.__version__

extensions = [
    "myst_nb",
    "printed",
    "described",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

# Notebooks are committed with their outputs; `make notebooks` executes them, and strict nbval holds them.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

highlight_language = "none"  # a block that is Python says so

autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # numpydoc says the types in words
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "literal"

html_theme = "furo"
html_title = "cachescope"
html_static_path = ["static", "made/static"]
html_css_files = ["site.css"]
html_theme_options = {
    "top_of_page_buttons": [],  # most pages are printed while the docs are built: there is no source to edit
    "footer_icons": [
        {"name": "GitHub", "url": "https://github.com/cachescope/cachescope", "html": "GitHub", "class": ""}
    ],
}
copybutton_prompt_text = "$ "
