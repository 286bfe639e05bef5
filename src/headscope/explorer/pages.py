"""The explorer's pages: their names in addresses, their script, and what a browser may do."""

from functools import cache

from headscope.views.bundle import script

PAGES = (
    "map", "overview", "finder", "head", "embed", "clusters", "findings", "text", "compare",
)  # fmt: skip
POLICY = (  # the page that prints a view brings its paper size
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)


@cache
def explorer_script() -> str:
    """All modules of the pages as one script, which also runs in a page opened from a disk."""
    return f'(() => {{\n"use strict";\n{script("explorer/main")}\n}})();\n'
