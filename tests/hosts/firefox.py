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

FIREFOX = shutil.which("firefox") or shutil.which("firefox-esr")


class Firefox:
    """One browser with one window; `run` is a function body that returns a value or a promise."""

    def __init__(self, folder: Path, port: int) -> None:
        profile = folder / "profile"
        profile.mkdir()
        (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n', "utf-8")
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

    def shot(self, target: Path) -> None:
        self.ask("WebDriver:SwitchToFrame", {"id": None})
        answer = self.ask("WebDriver:TakeScreenshot", {"full": False})
        target.write_bytes(base64.b64decode(answer["value"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def _read(self) -> Any:
        length = b""
        while (char := self.socket.recv(1)) != b":":
            length += char
        data = b""
        while len(data) < int(length):
            data += self.socket.recv(int(length) - len(data))
        return json.loads(data)


def _connected(port: int, seconds: float = 60) -> socket.socket:
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=120)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
