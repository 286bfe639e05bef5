"""Look at the finished site as a reader would: `python -m docs.site.look dist/site dist/look`.

Opens a page of each kind in light, in dark and at the width of a phone, keeps a picture of it, and
prints what axe finds and what does not fit. Exit code 1 if there is anything.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

PAGES = ("index", "embedding", "api/index", "api/models", "metrics", "gallery/retrieval")
SCREENS = {"light": (1280, 900), "dark": (1280, 900), "phone": (390, 844)}


def look(browser: Browser, site: Path, pictures: Path) -> Iterator[str]:
    """A sentence for every fault."""
    for name, (width, height) in SCREENS.items():
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if name == "dark" else "light",
        )
        page = context.new_page()
        for path in PAGES:
            page.goto(f"file://{site.resolve()}/{path}.html")
            page.wait_for_timeout(1500)  # for the views in frames
            page.screenshot(path=pictures / f"{path.replace('/', '-')}-{name}.png")
            yield from (f"{path}, {name}: {fault}" for fault in _faults(page))
        context.close()


def _faults(page: Page) -> Iterator[str]:
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        yield f"{wide} px too wide"
    for found in Axe().run(page).response["violations"]:
        yield f"{found['id']} ({len(found['nodes'])}): {found['nodes'][0]['html'][:150]}"


def main() -> int:
    """Print the faults."""
    site, pictures = map(Path, sys.argv[1:])
    pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        faults = list(look(browser, site, pictures))
        browser.close()
    count = len(PAGES) * len(SCREENS)
    print(*faults, f"{count} pictures in {pictures}, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
