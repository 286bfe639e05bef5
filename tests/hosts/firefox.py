"""A real Firefox, driven through Marionette, the protocol it has built in."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # seconds
# Without a screen Firefox takes it that nothing can hover; 6 is a fine pointer that can.
SETTINGS = {"ui.primaryPointerCapabilities": 6, "ui.allPointerCapabilities": 6}
FIREFOX = shutil.which("firefox") or shutil.which("firefox-esr")


class Firefox:
    """One browser with one window; `run` is a function body that returns a value or a promise."""

    def __init__(self, folder: Path, port: int) -> None:
        profile = folder / "profile"
        profile.mkdir()
        settings = {**SETTINGS, "marionette.port": port}
        lines = [f'user_pref("{name}", {value});\n' for name, value in settings.items()]
        (profile / "user.js").write_text("".join(lines), "utf-8")
        command = [FIREFOX or "firefox", "--headless", "--marionette", "--profile", str(profile)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        self.socket = _connected(port)
        self.number = 0
        self._read()  # the greeting
        self.ask("WebDriver:NewSession", {"capabilities": {}})
        self.ask("WebDriver:SetWindowRect", {"width": 1300, "height": 1100})

    def ask(self, command: str, given: dict[str, Any] | None = None) -> Any:
        self.number += 1
        message = json.dumps([0, self.number, command, given or {}])
        self.socket.sendall(f"{len(message.encode())}:{message}".encode())
        _, _, error, answer = self._read()
        assert error is None, error
        return answer

    def open(self, address: str) -> None:
        self.ask("WebDriver:Navigate", {"url": address})

    def enter(self, selector: str) -> None:
        """Go into a frame."""
        found = self.ask("WebDriver:FindElement", {"using": "css selector", "value": selector})
        (element,) = found["value"].values()
        self.ask("WebDriver:SwitchToFrame", {"element": element})

    def run(self, body: str, *given: Any) -> Any:
        script = (
            "const done = arguments[arguments.length - 1]; "
            f"(async (...given) => {{ {body} }})(...arguments)"
            ".then(done, (error) => done(String(error)))"
        )
        asked = {"script": script, "args": list(given), "newSandbox": False, "sandbox": None}
        return self.ask("WebDriver:ExecuteAsyncScript", asked)["value"]

    def wait(self, selector: str) -> None:
        """Until the page has such an element, also when it is another page by then."""
        wanted = {"using": "css selector", "value": selector}
        end = time.monotonic() + PATIENCE
        while not self.ask("WebDriver:FindElements", wanted):
            assert time.monotonic() < end, f"{selector} does not come."
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(given[0]).textContent", selector)

    def count(self, selector: str) -> int:
        return self.run("return document.querySelectorAll(given[0]).length", selector)

    def click(self, selector: str, number: int = 0) -> None:
        script = (
            "document.querySelectorAll(given[0])[given[1]]"
            ".dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))"
        )
        self.run(script, selector, number)

    def press(self, *keys: str) -> None:
        """Real keys, for the element that has the focus."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keys", "actions": strokes})

    def hover(self, selector: str, number: int = 0) -> None:
        """A real pointer, which moves to the middle of an element."""
        place = self.run(
            "const element = document.querySelectorAll(given[0])[given[1]]; "
            "element.scrollIntoView({ block: 'center' }); "
            "const box = element.getBoundingClientRect(); "
            "return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]",
            selector,
            number,
        )
        move = {"type": "pointerMove", "x": place[0], "y": place[1], "origin": "viewport"}
        self._act({"type": "pointer", "id": "mouse", "actions": [{**move, "duration": 0}]})

    def shot(self, target: Path) -> None:
        self.ask("WebDriver:SwitchToFrame", {"id": None})
        answer = self.ask("WebDriver:TakeScreenshot", {"full": False})
        target.write_bytes(base64.b64decode(answer["value"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def _act(self, source: dict[str, Any]) -> None:
        self.ask("WebDriver:PerformActions", {"actions": [source]})

    def _read(self) -> Any:
        length = b""
        while (char := self.socket.recv(1)) != b":":
            length += char
        data = b""
        while len(data) < int(length):
            data += self.socket.recv(int(length) - len(data))
        return json.loads(data)


def _connected(port: int, seconds: float = PATIENCE) -> socket.socket:
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=120)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
