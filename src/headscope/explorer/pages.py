"""The explorer's pages: their names in addresses, and what a browser may do with them."""

PAGES = (
    "map", "overview", "finder", "head", "embed", "clusters", "findings", "tables", "text", "compare",
)  # fmt: skip
POLICY = (  # the page that prints a view brings its paper size
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
