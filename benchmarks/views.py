"""Head and model view beside BertViz 1.4.1 on the same weights, in the same Chromium.

python -m benchmarks.views

BertViz and the scripts it fetches from a CDN (require.js, jQuery, d3) are installed into a
temporary folder; the browser answers its requests from there.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from playwright.sync_api import BrowserContext, Page, Route, sync_playwright

from headscope.model.trace import Trace
from headscope.views import head_view, model_view

LAYERS = HEADS = 12
BERTVIZ = "bertviz==1.4.1"
PACKAGES = {
    "require.min.js": ("requirejs@2.3.6", "requirejs/require.js"),
    "jquery.min.js": ("jquery@2.2.4", "jquery/dist/jquery.min.js"),
    "d3.min.js": ("d3@5.7.0", "d3/dist/d3.min.js"),
}
# Written by BertViz's own functions, in a process of its own.
WRITE_BERTVIZ = """
import sys, torch
from bertviz import head_view, model_view
weights, tokens = torch.load(sys.argv[1])
for kind, view in (("head", head_view), ("model", model_view)):
    page = view(attention=[layer[None] for layer in weights], tokens=tokens, html_action="return")
    open(f"{sys.argv[2]}/bertviz-{kind}.html", "w").write(page.data)
"""
HOVER = """async () => {
  const tokens = [...document.querySelectorAll("[data-side='q'] .hs-token")].slice(0, 40);
  const frames = [];
  for (const token of tokens) {
    const start = performance.now();
    token.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    frames.push(performance.now() - start);
  }
  return frames;
}"""
PAINTED = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


@dataclass(frozen=True)
class Opened:
    """One page: how large it is, and how long until everything is drawn."""

    bytes: int
    seconds: float


def random_trace(tokens: int) -> Trace:
    scores = torch.randn(LAYERS, HEADS, tokens, tokens, generator=torch.Generator().manual_seed(0))
    return Trace.from_weights((2 * scores).softmax(-1), [f"token{i}" for i in range(tokens)])


def install(folder: Path) -> None:
    """BertViz from PyPI, and from npm what it asks the CDN for."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*pip, str(folder / "python"), BERTVIZ], check=True)
    names = [package for package, _ in PACKAGES.values()]
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *names]
    subprocess.run(npm, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def write_pages(folder: Path, trace: Trace) -> None:
    """The same weights through BertViz's functions and through ours."""
    weights = torch.stack([trace.weights[layer] for layer in trace.layers])
    torch.save((weights, list(trace.tokens)), folder / "input.pt")
    code = [sys.executable, "-c", WRITE_BERTVIZ, str(folder / "input.pt"), str(folder)]
    subprocess.run(code, check=True, env={"PYTHONPATH": str(folder / "python"), "PATH": ""})
    head_view(trace, mass=1.0).save(folder / "headscope-head.html")
    model_view(trace, mass=1.0).save(folder / "headscope-model.html")


def answer(folder: Path, route: Route) -> None:
    """What the CDN would have said."""
    name = route.request.url.rsplit("/", 1)[-1]
    if name not in PACKAGES:
        route.abort()
        return
    route.fulfill(path=folder / "node_modules" / PACKAGES[name][1], content_type="text/javascript")


@contextmanager
def chromium(folder: Path) -> Iterator[BrowserContext]:
    """A browser without network."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(300_000)
        context.route("https://**/*", lambda route: answer(folder, route))
        yield context
        browser.close()


def open_page(context: BrowserContext, path: Path, wait: Callable[[Page], object]) -> Opened:
    """Open a page from a file and wait until it has drawn everything."""
    page = context.new_page()
    start = time.perf_counter()
    page.goto(f"file://{path}")
    wait(page)
    page.evaluate(PAINTED)
    seconds = time.perf_counter() - start
    page.close()
    return Opened(path.stat().st_size, seconds)


def all_lines(count: int) -> Callable[[Page], object]:
    """Until BertViz has put this many lines into the document."""
    script = f"document.getElementsByTagName('line').length >= {count}"
    return lambda page: page.wait_for_function(script, polling=50)


def all_drawn(page: Page) -> None:
    """Until ours has nothing left to draw."""
    page.wait_for_function("window.headscope", polling=10)
    page.evaluate("window.headscope.idle()")


def beside_bertviz(folder: Path, tokens: int) -> None:
    """Bytes and time until everything is drawn, ours and BertViz's."""
    write_pages(folder, random_trace(tokens))
    lines = {"head": HEADS * tokens**2, "model": LAYERS * HEADS * tokens**2}
    print(f"{LAYERS} × {HEADS} heads × {tokens} tokens, every line asked for\n")
    print("| view | | BertViz 1.4.1 | Headscope | ratio | aim |\n|---|---|---:|---:|---:|---:|")
    for kind, aim in (("head", "1/3"), ("model", "1/20")):
        with chromium(folder) as context:
            ours = open_page(context, folder / f"headscope-{kind}.html", all_drawn)
            theirs = open_page(context, folder / f"bertviz-{kind}.html", all_lines(lines[kind]))
        size = f"{theirs.bytes / 1e6:.1f} MB | {ours.bytes / 1e6:.1f} MB"
        print(f"| {kind} | file | {size} | 1/{theirs.bytes / ours.bytes:.0f} | 1/15 |")
        spent = f"{theirs.seconds:.1f} s | {ours.seconds:.2f} s"
        print(f"| {kind} | ready | {spent} | 1/{theirs.seconds / ours.seconds:.0f} | {aim} |")


def long_input(folder: Path, tokens: int) -> None:
    """Ours alone, where BertViz's page would take hundreds of megabytes."""
    trace = random_trace(tokens)
    head, model = folder / "long-head.html", folder / "long-model.html"
    head_view(trace).save(head)
    model_view(trace).save(model)
    with chromium(folder) as context:
        opened = open_page(context, head, all_drawn)
        grid = open_page(context, model, lambda page: page.evaluate("window.headscope.ready"))
        page = context.new_page()
        page.goto(f"file://{head}")
        all_drawn(page)
        frames = sorted(page.evaluate(HOVER))
    print(f"\n{LAYERS} × {HEADS} heads × {tokens} tokens\n")
    print("| | Headscope | aim |\n|---|---:|---:|")
    print(f"| file | {opened.bytes / 1e6:.0f} MB | |")
    print(f"| head view ready | {opened.seconds:.1f} s | 5 s |")
    print(f"| model view, what is on screen | {grid.seconds:.1f} s | 5 s |")
    print(f"| hover, median frame | {statistics.median(frames):.0f} ms | 50 ms |")
    print(f"| hover, 95th percentile | {frames[int(0.95 * len(frames))]:.0f} ms | |")


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        install(folder)
        beside_bertviz(folder, 128)
        long_input(folder, 512)


if __name__ == "__main__":
    main()
