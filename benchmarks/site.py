"""How large a site is, and how soon a browser paints it.

python -m benchmarks.site SITE
python -m benchmarks.site --map LAYERS HEADS    the map of a made-up run of so many heads

SITE is what `headscope site` wrote; its first page is the map of heads. It is served by Python's
own web server, as anybody would, and opened in a fresh Chromium with an empty cache, several times
for every page; the median counts.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from headscope.explorer.site import site
from tests.references.runs import write_run

PAGES = ("index.html", "finder.html", "head.html", "compare.html")
TIMES = 5
# Both in milliseconds after the address was entered: the first text, and the frame in which the
# page is there in full.
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
SHOWN = "window.whenShown"
WATCH = """new MutationObserver((_, watcher) => {
  if (!document.querySelector("main:not([aria-busy]) > *")) return;
  watcher.disconnect();
  requestAnimationFrame(() => setTimeout(() => (window.whenShown = performance.now())));
}).observe(document, { attributes: true, childList: true, subtree: true });"""


class Quiet(SimpleHTTPRequestHandler):
    """Without a line for every request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main(folder: Path, pages: Sequence[str]) -> None:
    """Print size, number of files and the times."""
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    heads = [
        size
        for path, size in sizes.items()
        if path.parent.name in ("heads", "records", "portraits")
    ]
    print(f"size {sum(sizes.values()) / 1e6:.2f} MB in {len(sizes)} files")
    print(
        f"one head: {median(heads) / 1e3:.1f} kB in the middle, {max(heads) / 1e3:.1f} kB at most"
    )
    with _served(folder) as place, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for page in pages:
            found = [_open(browser, f"{place}/{page}") for _ in range(TIMES)]
            painted, shown = (median(times) for times in zip(*found, strict=True))
            print(f"{page:14} first paint {painted:5.0f} ms, all of it {shown:5.0f} ms")
        browser.close()


def _open(browser: Browser, address: str) -> tuple[float, float]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_function(SHOWN)
    times = float(page.evaluate(PAINTED)), float(page.evaluate(SHOWN))
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


def made_up(folder: Path, layers: int, heads: int) -> Path:
    """A site with one run of so many heads."""
    run = write_run(folder / "run", "vig2019", layers=range(layers), heads=heads, described=True)
    return site([run], folder / "site")


if __name__ == "__main__":
    if sys.argv[1] == "--map":
        with TemporaryDirectory() as folder:
            main(made_up(Path(folder), int(sys.argv[2]), int(sys.argv[3])), ("index.html",))
    else:
        main(Path(sys.argv[1]), PAGES)
