"""The explorer's pictures in the documentation.

headscope study vig2019 --model mini-gpt2 --corpus demo --out runs/first
python docs/explorer_pictures.py runs/first
"""

import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
COMMAND = [sys.executable, "-m", "headscope", "serve", "--no-browser", "--port", "0"]


def take(page: Page, place: str, run: str) -> None:
    """The map of heads, and the card of one of them."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{place}/?run={run}")
    page.wait_for_selector("#card .arcs")
    page.screenshot(path=IMAGES / "map-of-heads.png")
    page.goto(f"{place}/head?run={run}&head=L5H5")
    page.wait_for_selector(".evidence .arcs")
    page.locator(".evidence").screenshot(path=IMAGES / "explorer-head.png")


def main() -> None:
    """Serve the run, look at it, stop."""
    run = Path(sys.argv[1])
    server = subprocess.Popen(
        [*COMMAND, "--model", "mini-gpt2", str(run)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    place = next(w for w in server.stdout.readline().split() if w.startswith("http")).rstrip("/")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        take(browser.new_page(), place, run.name)
        browser.close()
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()
