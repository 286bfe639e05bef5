"""A long input in the head view: writing the page, opening it, moving its window.

python -m benchmarks.long_views [TOKENS] [--layers 2] [--heads 4]
"""

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright
from transformers import GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.model.model import Model

HEAP = "performance.memory.usedJSHeapSize / 1e6"
DRAWN = "window.headscope.idle()"


def random_model(tokens: int, layers: int, heads: int) -> Model:
    """A network of GPT-2's family with room for so many tokens."""
    tokenizer: Any = hs.load("mini-gpt2").tokenizer
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_layer=layers, n_head=heads, n_embd=16 * heads,
        n_positions=tokens, bos_token_id=0, eos_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    return Model(GPT2LMHeadModel(config), tokenizer, name=f"random {layers}×{heads}")


def timed(page: Page, script: str) -> float:
    """Seconds until a change is drawn."""
    start = time.perf_counter()
    page.evaluate(script)
    page.evaluate(DRAWN)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokens", type=int, nargs="?", default=4096)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    given = parser.parse_args()
    model = random_model(given.tokens, given.layers, given.heads)
    start = time.perf_counter()
    text = " ".join(sentence.text for sentence in hs.demo_corpus())
    trace = model.trace(text, truncate=True)
    print(f"| trace of {len(trace.tokens)} tokens | {time.perf_counter() - start:.1f} s |")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "view.html"
        start = time.perf_counter()
        trace.head_view().save(path)
        print(f"| writing the page | {time.perf_counter() - start:.1f} s |")
        print(f"| its size | {path.stat().st_size / 1e6:.0f} MB |")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"| peak memory of Python | {peak:.0f} MB |")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-precise-memory-info"],
        )
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(f"file://{path}", timeout=120_000)
        page.evaluate("window.headscope.ready")
        print(f"| opening the page until it is drawn | {time.perf_counter() - start:.1f} s |")
        print(f"| JavaScript heap then | {page.evaluate(HEAP):.0f} MB |")
        print(f"| next window | {timed(page, 'window.headscope.set({window: [1, 1]})'):.2f} s |")
        print(f"| next layer | {timed(page, 'window.headscope.set({layer: 1})'):.2f} s |")
        print(f"| JavaScript heap then | {page.evaluate(HEAP):.0f} MB |")
        browser.close()


if __name__ == "__main__":
    main()
