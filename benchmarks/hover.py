"""Pointing at a token among 512 tokens × 144 heads: time until it is painted, in both browsers.

python -m benchmarks.hover

Chromium is driven by Playwright, Firefox by its own Marionette protocol; a browser that is not
installed is left out.
"""

import json
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.views import HEADS, HOVER, LAYERS, all_drawn, chromium, random_trace
from headscope.views import head_view

TOKENS = 512
PORT = 2828  # where Firefox listens
PATIENCE = 180  # seconds


class Marionette:
    """Firefox's remote control: JSON lists, each with its length before it."""

    def __init__(self, port: int) -> None:
        self._socket = _connect(port)
        self._number = 0
        self._receive()

    def __call__(self, command: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer."""
        self._number += 1
        text = json.dumps([0, self._number, f"WebDriver:{command}", parameters])
        self._socket.sendall(f"{len(text.encode())}:{text}".encode())
        _, _, error, value = self._receive()
        if error is not None:
            raise RuntimeError(f"Firefox refuses {command}: {error['message']}")
        return value

    def _receive(self) -> Any:
        digits = b""
        while not digits.endswith(b":"):
            digits += self._socket.recv(1)
        content, size = b"", int(digits[:-1])
        while len(content) < size:
            content += self._socket.recv(size - len(content))
        return json.loads(content)


def _connect(port: int) -> socket.socket:
    """Firefox takes a while to listen."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def in_chromium(page: Path) -> list[float]:
    """Milliseconds of every hover."""
    with chromium(page.parent) as context:
        opened = context.new_page()
        opened.goto(f"file://{page}")
        all_drawn(opened)
        return opened.evaluate(HOVER)


def in_firefox(page: Path) -> list[float]:
    """Milliseconds of every hover."""
    profile = page.parent / "profile"
    profile.mkdir()
    options = ["--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    command = [str(shutil.which("firefox-esr") or shutil.which("firefox")), *options]
    firefox = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ask = Marionette(PORT)
        ask("NewSession")
        ask("SetTimeouts", script=PATIENCE * 1000, pageLoad=PATIENCE * 1000)
        ask("SetWindowRect", width=1280, height=900)
        ask("Navigate", url=f"file://{page}")
        script = f"""const done = arguments[arguments.length - 1];
        window.headscope.idle().then(() => ({HOVER})()).then(done)"""
        return ask("ExecuteAsyncScript", script=script, args=[], sandbox=None)["value"]
    finally:
        firefox.terminate()
        firefox.wait(PATIENCE)


BROWSERS: dict[str, tuple[str, Callable[[Path], list[float]]]] = {
    "Chromium": ("chromium", in_chromium),
    "Firefox": ("firefox-esr", in_firefox),
}


def main() -> None:
    """A row for each browser that is there."""
    print(f"{LAYERS} × {HEADS} heads × {TOKENS} tokens, all heads of a layer shown\n")
    print("| browser | median | 95th percentile | aim (median) |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        page = head_view(random_trace(TOKENS), layer=0).save(Path(folder) / "head.html")
        for name, (program, measure) in BROWSERS.items():
            if shutil.which(program) is None:
                print(f"| {name} | not installed | | 50 ms |")
                continue
            frames = sorted(measure(page))
            late = frames[int(0.95 * len(frames))]
            print(f"| {name} | {statistics.median(frames):.0f} ms | {late:.0f} ms | 50 ms |")


if __name__ == "__main__":
    main()
