"""Real hosts: servers that are started here, and a real Chromium that looks at them.

Run by `make test-hosts`, in an environment of its own; the suite does not collect this folder.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

PATIENCE = 60_000  # milliseconds
ARTEFACTS = Path(__file__).parents[1] / "artefacts"
Serve = Callable[..., str]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1400, "height": 1000}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    yield context
    for number, page in enumerate(context.pages):
        page.screenshot(path=ARTEFACTS / f"left-open-{number}.png")  # only a failed test leaves one
    context.close()


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start a server by a command with {port} in it; its address, once it answers."""
    started: list[subprocess.Popen[bytes]] = []
    log = tmp_path_factory.mktemp("log") / "server.log"

    def start(*command: str, folder: Path, path: str = "") -> str:
        port = free_port()
        with log.open("ab") as written:
            server = subprocess.Popen(
                [sys.executable, *(part.format(port=port) for part in command)],
                cwd=folder,
                stdout=written,
                stderr=written,
                env={**os.environ, "JUPYTER_CONFIG_DIR": str(folder), "HOME": str(folder)},
            )
        started.append(server)
        address = f"http://127.0.0.1:{port}/{path}"
        _wait(address, server, log)
        return address

    yield start
    for server in started:
        server.terminate()
        server.wait(20)


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait(address: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            urllib.request.urlopen(address, timeout=5).read(1)
            return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(log.read_text(errors="replace")[-3000:])
