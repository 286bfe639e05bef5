"""BertViz and Headscope beside each other at first sight: the same weights, nothing clicked.

python -m docs.beside_bertviz

The scripts that BertViz fetches from a CDN are installed into a temporary folder; the browser
answers its requests from there. BertViz's neuron view takes its own copies of three models and is
left out.
"""

import subprocess
import tempfile
from pathlib import Path

import torch
from bertviz import head_view, model_view
from PIL import Image
from playwright.sync_api import Page

import headscope as hs
from benchmarks.views import PACKAGES, all_drawn, chromium
from headscope.model.trace import Trace

IMAGES = Path(__file__).parent / "images"
TEXT = "The old cat sat on the mat. The old cat was tired, so the old dog barked."
SIZE = (960, 720)  # of each half, in pixels
COLOURS = 96  # of a picture: enough for lines and letters, and small


def main() -> None:
    """Write a picture for each view that both have."""
    trace = hs.load("mini-gpt2").trace(TEXT)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        names = [package for package, _ in PACKAGES.values()]
        subprocess.run([*npm, *names], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for kind in ("head", "model"):
            write(folder, kind, trace)
            picture = beside(folder, kind)
            target = IMAGES / f"beside-bertviz-{kind}.png"
            picture.quantize(COLOURS).save(target, optimize=True)
            print(f"{target} {target.stat().st_size / 1000:.0f} kB")


def write(folder: Path, kind: str, trace: Trace) -> None:
    """Both pages, as each opens by itself."""
    attention = [trace.weights[layer][None] for layer in range(len(trace.weights))]
    view = {"head": head_view, "model": model_view}[kind]
    tokens = [token.strip() for token in trace.tokens]
    theirs = view(list(map(torch.Tensor.float, attention)), tokens, html_action="return")
    (folder / "bertviz.html").write_text(f"<!doctype html><body>{theirs.data}", encoding="utf-8")
    ours = trace.head_view() if kind == "head" else trace.model_view()
    ours.save(folder / "headscope.html")


def beside(folder: Path, kind: str) -> Image.Image:
    """BertViz on the left, Headscope on the right."""
    with chromium(folder) as context:
        theirs = opened(context.new_page(), folder / "bertviz.html")
        theirs.wait_for_selector("svg line", state="attached")
        theirs.wait_for_timeout(1500)  # it draws little by little and does not say when it is done
        ours = opened(context.new_page(), folder / "headscope.html")
        all_drawn(ours)
        halves = []
        for page, name in ((theirs, "bertviz"), (ours, "headscope")):
            page.screenshot(path=folder / f"{name}.png")
            halves.append(Image.open(folder / f"{name}.png").convert("RGB"))
    whole = Image.new("RGB", (2 * SIZE[0] + 12, SIZE[1]), "#8b949e")
    for place, half in enumerate(halves):
        whole.paste(half, (place * (SIZE[0] + 12), 0))
    return whole


def opened(page: Page, path: Path) -> Page:
    """A page in a window of half the picture's width."""
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
    page.goto(f"file://{path}")
    return page


if __name__ == "__main__":
    main()
