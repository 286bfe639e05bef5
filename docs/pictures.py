"""The pictures of the documentation: the three views of the bundled models, as Chromium shows them.

python -m docs.pictures
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import headscope as hs
from headscope.views import View

IMAGES = Path(__file__).parent / "images"
TEXT = "The old cat sat on the mat. The old cat was tired, so the old dog barked."


def views() -> dict[str, tuple[View, str]]:
    """Each picture: a view, and the scheme of colours."""
    trace = hs.load("mini-gpt2").trace(TEXT)
    pair = hs.load("mini-bert").trace(
        "The keys to the old cabinet were lost.", "She found them under the table."
    )
    return {
        "head-view": (trace.head_view(layer=6, heads=[0, 1, 5], hide="first", pinned=10), "light"),
        "head-view-dark": (pair.head_view(layer=2, heads=[0, 1, 2, 3], unit="word"), "dark"),
        "model-view": (
            trace.model_view(layer=5, head=5, enlarged=True, hide="first", mass=0.9),
            "light",
        ),
        "neuron-view": (trace.neuron_view(layer=6, head=1, pinned=10), "light"),
    }


def take(browser: Browser, view: View, scheme: str, target: Path) -> None:
    """Open the page as a reader would, and keep what it shows."""
    with tempfile.TemporaryDirectory() as folder:
        page = browser.new_page(
            viewport={"width": 1180, "height": 1000},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page.goto(f"file://{view.save(Path(folder) / 'view.html')}")
        page.evaluate("window.headscope.idle()")
        page.locator(".hs-root").screenshot(path=target)
        page.close()


def main() -> None:
    """Write every picture into docs/images."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, (view, scheme) in views().items():
            take(browser, view, scheme, IMAGES / f"{name}.png")
            print(IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
