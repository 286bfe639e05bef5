"""A long input in the head view: writing the page, opening it, moving its window.

python -m benchmarks.long_views [TOKENS]
"""

import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright
from transformers import GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.model.model import Model

LAYERS, HEADS = 2, 4
HEAP = "performance.memory.usedJSHeapSize / 1e6"
DRAWN = "window.headscope.idle()"


def random_model(tokens: int) -> Model:
    """GPT-2's shape in small, with room for so many tokens."""
    tokenizer: Any = hs.load("mini-gpt2").tokenizer
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_layer=LAYERS, n_head=HEADS, n_embd=64, n_positions=tokens,
        bos_token_id=0, eos_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    return Model(GPT2LMHeadModel(config), tokenizer, name=f"random {LAYERS}×{HEADS}")


def timed(page: Page, script: str) -> float:
    """Seconds until a change is drawn."""
    start = time.perf_counter()
    page.evaluate(script)
    page.evaluate(DRAWN)
    return time.perf_counter() - start


def main(tokens: int) -> None:
    model = random_model(tokens)
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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
