"""The server as a process: it answers, it stops, and it says what it cannot do."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from headscope import cli
from headscope.errors import HeadscopeError
from headscope.explorer import address, bind, check_model
from headscope.explorer.safety import Access
from tests.explorer import own_loop
from tests.explorer.wire import unframe


def allow_ctrl_c() -> None:
    """Ctrl-C as on a terminal, also where the tests run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "headscope", "serve", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=allow_ctrl_c,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, next(word for word in line.split() if word.startswith("http"))


def test_runs_named_by_folder_or_result_are_served_until_ctrl_c(folder: Path) -> None:
    process, place = start(str(folder / "vig"), str(folder / "clark" / "result.nc"))
    with urlopen(f"{place}api/session") as answer:
        session = json.load(answer)
    assert place.startswith("http://127.0.0.1:")
    assert [run["slug"] for run in session["runs"]] == ["vig", "clark"]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in said


def test_the_process_of_the_model_ends_with_the_server() -> None:
    process, place = start("--model", "mini-gpt2")
    body = json.dumps({"text": "A cat sat."}).encode()
    asked = Request(f"{place}api/trace", body, {"content-type": "application/json"})
    with urlopen(asked, timeout=60) as answer:
        header, _ = unframe(answer.read())
    [child] = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert header["kind"] == "head"
    assert (process.returncode, "Traceback" in said) == (130, False)
    assert not Path(f"/proc/{child}").exists()


def children(pid: int) -> list[int]:
    """Processes that trace; Python's own helper, which tracks shared resources, is left out."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for task in tasks for child in task.read_text().split()]
    return [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def refused(*arguments: str) -> str:
    """What the command says on the terminal when it does not start."""
    command = [sys.executable, "-m", "headscope", "serve", "--no-browser", "--port", "0"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def test_a_place_without_a_model_is_said_in_the_terminal_at_once() -> None:
    said = refused("--model", "./mini-gtp2")
    assert said.startswith("headscope: ") and "./mini-gtp2" in said and "mini-gpt2" in said


@pytest.mark.parametrize("name", ["mini-gtp2", "./mini-gpt2", "no/such/model"])
def test_so_is_a_mistyped_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    command = ["headscope", "serve", "--no-browser", "--port", "0", "--model", name]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, said = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    [line] = said.splitlines()
    assert line.startswith("headscope: ") and name in line and "mini-gpt2" in line


def test_a_bundled_model_is_found_before_it_is_loaded() -> None:
    check_model("mini-gpt2")


def test_another_address_is_printed_with_its_token() -> None:
    process, place = start("--host", "0.0.0.0")
    bare, _, token = place.partition("?token=")
    reachable = bare.replace("0.0.0.0", "127.0.0.1")
    with pytest.raises(HTTPError, match="401"):
        urlopen(f"{reachable}api/session")
    process.terminate()
    process.communicate(timeout=20)
    assert len(token) >= 32


def test_a_taken_port_is_said_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HeadscopeError, match=rf"127\.0\.0\.1 port {port}.*another --port"):
            bind("127.0.0.1", port)


def test_an_unknown_address_is_said() -> None:
    with pytest.raises(HeadscopeError, match="cannot listen on nowhere"):
        bind("nowhere.invalid", 0)


def test_no_answer_waits_until_a_part_of_it_is_acknowledged() -> None:
    """The socket of a visitor sends what it is given; on loopback the wait was 40 ms a file."""
    accepted: list[socket.socket] = []

    class Noted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport.get_extra_info("socket"))

    async def visit() -> int:
        with bind("127.0.0.1", 0) as listener:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(Noted, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            while not accepted:
                await asyncio.sleep(0.01)
            said = accepted[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            server.close()
            return said

    assert own_loop.run(visit())


def test_ipv6_addresses_are_written_in_brackets() -> None:
    with bind("::1", 0) as listener:
        port = listener.getsockname()[1]
        assert address(listener, Access("::1")) == f"http://[::1]:{port}/"
