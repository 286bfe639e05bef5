"""How Sphinx builds the site: `make docs`.

Pages stay plain Markdown (see `stage.py`); docs/releasing.md says why the builder is Sphinx.
"""

import re
from typing import Any

import headscope
from docs.site.stage import repository

project = "Headscope"
version = release = headscope.__version__
copyright = "the Headscope maintainers; MIT licence, demo corpus CC0"
html_title = f"Headscope {release}"
html_short_title = "Headscope"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["extra"]
nitpicky = False
show_warning_types = True

# Anchors as the repository's own page shows them, checked by MyST.
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "static/favicon.svg"
html_extra_path = ["../../dist/pages/extra"]
html_copy_source = False
html_show_sphinx = False
html_baseurl = "https://headscope.github.io/headscope/stable/"
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "top_of_page_buttons": [],  # many pages are made from another file
    "footer_icons": [
        {"name": "Repository", "url": repository(), "html": "Repository", "class": ""},
    ],
    "light_css_variables": {
        "color-brand-primary": "#1a5a96",
        "color-brand-content": "#1a5a96",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fc1f2",
        "color-brand-content": "#8fc1f2",
    },
}


def setup(app: Any) -> None:
    """Our docstrings are plain text with `code` in single quotes; tell that to Sphinx."""
    app.connect("autodoc-process-docstring", _plain)


def _plain(app: Any, what: str, name: str, object_: Any, options: Any, lines: list[str]) -> None:
    """Escape what reStructuredText would read as markup, outside of code."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]+`)", line)
        lines[number] = "".join(
            f"`{part}`" if part.startswith("`") else re.sub(r"([|*_\\])", r"\\\1", part)
            for part in parts
        )
