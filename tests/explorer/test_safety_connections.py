"""Silent, slow and vanishing visitors: none of them takes anything away from the others."""

import logging
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from headscope.explorer import safety
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.safety import OncePerMinute, PatientProtocol
from headscope.explorer.texts import Texts
from headscope.explorer.wire import Limits
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model

BEGUN = (
    b"POST /api/trace HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b'content-length: 1000\r\n\r\n{"text": '
)


@contextmanager
def connected(place: str, sent: bytes = b"") -> Iterator[socket.socket]:
    host, port = place.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as made:
        made.sendall(sent)
        yield made


LARGE = 100_000_000


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def drips(connection: socket.socket) -> int:
    """How many of 40 bytes, sent in two seconds, are taken."""
    for taken in range(40):
        try:
            connection.sendall(b"a")
        except OSError:
            return taken
        time.sleep(0.05)
    return 40


def received(connection: socket.socket) -> int:
    """Bytes until the end."""
    count = 0
    try:
        while piece := connection.recv(1 << 20):
            count += len(piece)
    except ConnectionResetError:
        pass
    return count


@pytest.fixture
def app(library: Library) -> Any:
    return create_app(library, Texts(None, None))


def test_silent_sockets_make_room_for_the_owner(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "MOST", 20)
    with live(app) as place, ExitStack() as crowd:
        silent = [crowd.enter_context(connected(place)) for _ in range(60)]
        start = time.monotonic()
        assert httpx.get(f"{place}/overview", timeout=5).status_code == 200
        assert time.monotonic() - start < 2
        assert is_closed(silent[0])
        silent[-1].sendall(b"GET /overview HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_where_every_connection_is_busy_the_next_is_asked_to_come_back(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety, "MOST", 4)
    busy = create_app(library, Texts("tiny-gpt2", tiny_model))
    with live(busy) as place, ExitStack() as crowd:
        for _ in range(4):
            crowd.enter_context(connected(place, BEGUN))
        time.sleep(0.2)
        assert httpx.get(f"{place}/api/session").status_code == 503


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: 127.0"])
def test_headers_that_do_not_come_end_the_connection(
    app: Any, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(PatientProtocol, "patience", 0.3)
    with live(app) as place, connected(place, sent) as slow:
        start = time.monotonic()
        assert is_closed(slow)
        assert 0.2 < time.monotonic() - start < 2


def test_dripping_headers_do_not_stretch_the_time(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PatientProtocol, "patience", 0.3)
    with live(app) as place, connected(place, b"GET / HTTP/1.1\r\nx: ") as slow:
        assert drips(slow) < 40


def test_a_body_that_does_not_come_is_refused(library: Library) -> None:
    texts = Texts("tiny-gpt2", tiny_model, Limits(body_seconds=0.3))
    with live(create_app(library, texts)) as place, connected(place, BEGUN) as slow:
        assert slow.recv(12) == b"HTTP/1.1 408"


def test_leaving_in_the_middle_logs_nothing(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    with live(create_app(library, Texts("tiny-gpt2", tiny_model))) as place:
        for sent in (BEGUN, BEGUN[:40], b"nonsense\r\n\r\n", b"GET /api/session HTTP/1.1\r\n"):
            with connected(place, sent):
                time.sleep(0.05)
        assert httpx.get(f"{place}/api/session").status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_who_leaves_while_waiting_gives_up_his_place(library: Library) -> None:
    release = threading.Event()

    def slow() -> Any:
        release.wait(20)
        return tiny_model()

    body = b'{"text": "A cat."}'
    whole = BEGUN.partition(b"content-length")[0] + b"content-length: %d\r\n\r\n" % len(body) + body
    texts = Texts("tiny-gpt2", slow, Limits(waiting=1))
    with live(create_app(library, texts)) as place:
        with connected(place, whole):
            time.sleep(0.2)
            assert httpx.post(f"{place}/api/trace", json={"text": "a"}).status_code == 503
        time.sleep(0.2)
        threading.Timer(0.3, release.set).start()
        answer = httpx.post(f"{place}/api/trace", json={"text": "a"}, timeout=30)
        assert answer.status_code == 200


def test_a_reader_who_stops_reading_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "patience", 0.3)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(LARGE)})

    asked = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with live(large) as place, connected(place, asked) as stalled:  # type: ignore[arg-type]
        time.sleep(2)
        assert received(stalled) < LARGE


FEW = 90
BURST = (
    12  # sockets that come at once: about as many as wait to be accepted; more come a second late
)


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))


def test_with_few_descriptors_the_owner_gets_in_and_the_log_stays_empty(folder: Path) -> None:
    command = [sys.executable, "-m", "headscope", "serve", "--no-browser", "--port", "0"]
    server = subprocess.Popen(
        [*command, str(folder / "vig")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=few_descriptors,
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    place = next(word for word in line.split() if word.startswith("http")).rstrip("/")
    with ExitStack() as crowd:
        for number in range(300):
            crowd.enter_context(connected(place))
            if number % BURST == 0:
                time.sleep(0.05)
        assert httpx.get(f"{place}/api/runs/vig/measures/entropy", timeout=5).status_code == 200
    server.terminate()
    _, said = server.communicate(timeout=20)
    assert len(said) < 1000


def test_asyncio_says_once_that_descriptors_are_used_up() -> None:
    record = logging.makeLogRecord({"msg": "socket.accept() out of system resource"})
    other = logging.makeLogRecord({"msg": "something else"})
    once = OncePerMinute()
    assert [once.filter(record) for _ in range(3)] == [True, False, False]
    assert once.filter(other)
