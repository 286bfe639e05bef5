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
    """The overview, and a head card with one of its sentences open."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{place}/overview?run={run}")
    page.wait_for_selector(".heatmap .cell")
    page.screenshot(path=IMAGES / "explorer-overview.png", full_page=True)
    best = page.eval_on_selector_all(
        ".heatmap .cell",
        "cells => cells.sort((a, b) => b.dataset.value - a.dataset.value)[0].dataset.head",
    )
    page.set_viewport_size({"width": 1280, "height": 2400})  # all of the card in one window
    page.goto(f"{place}/head?run={run}&head={best}&exemplar=0")
    page.wait_for_selector(".view .hs-token", timeout=60_000)
    page.wait_for_timeout(500)
    page.locator("section", has=page.locator(".view")).screenshot(path=IMAGES / "explorer-head.png")


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
