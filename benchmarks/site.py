"""How large a site is, and how soon a browser paints it.

python -m benchmarks.site SITE

SITE is what `headscope site` wrote. It is served by Python's own web server, as anybody would, and
opened in a fresh Chromium with an empty cache, several times for every page; the median counts.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from playwright.sync_api import Browser, sync_playwright

PAGES = ("index.html", "finder.html", "head.html", "compare.html")
TIMES = 5
# Both in milliseconds after the address was entered: the first text, and the page in full.
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
SHOWN = "main:not([aria-busy]) > *"
NOW = "performance.now()"


class Quiet(SimpleHTTPRequestHandler):
    """Without a line for every request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main(folder: Path) -> None:
    """Print size, number of files and the times."""
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    heads = [size for path, size in sizes.items() if path.parent.name in ("heads", "records")]
    print(f"size {sum(sizes.values()) / 1e6:.2f} MB in {len(sizes)} files")
    print(
        f"one head: {median(heads) / 1e3:.1f} kB in the middle, {max(heads) / 1e3:.1f} kB at most"
    )
    with _served(folder) as place, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for page in PAGES:
            found = [_open(browser, f"{place}/{page}") for _ in range(TIMES)]
            painted, shown = (median(times) for times in zip(*found, strict=True))
            print(f"{page:14} first paint {painted:5.0f} ms, all of it {shown:5.0f} ms")
        browser.close()


def _open(browser: Browser, address: str) -> tuple[float, float]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(SHOWN)
    times = float(page.evaluate(PAINTED)), float(page.evaluate(NOW))
    context.close()
    return times


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
