"""Silent, slow and vanishing visitors: none of them takes anything away from the others."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from headscope import explorer
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
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


@pytest.fixture
def app(library: Library) -> Any:
    return create_app(library, Texts(None, None))


def test_silent_sockets_do_not_keep_the_owner_waiting(app: Any) -> None:
    with live(app) as place, ExitStack() as crowd:
        silent = [crowd.enter_context(connected(place)) for _ in range(60)]
        start = time.monotonic()
        assert httpx.get(f"{place}/overview", timeout=5).status_code == 200
        assert time.monotonic() - start < 2
        silent[-1].sendall(b"GET /overview HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_beyond_the_most_connections_visitors_are_asked_to_come_back_until_some_leave(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "CONNECTIONS", 5)
    with live(app) as place:
        with ExitStack() as crowd:
            for _ in range(5):
                crowd.enter_context(connected(place))
            assert httpx.get(f"{place}/api/session").status_code == 503
        deadline = time.monotonic() + 10
        while httpx.get(f"{place}/api/session").status_code == 503:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert httpx.get(f"{place}/api/session").status_code == 200


def test_headers_that_have_no_end_are_refused(app: Any) -> None:
    with live(app) as place, connected(place, b"GET / HTTP/1.1\r\nx: ") as endless:
        endless.sendall(b"a" * 40_000)
        assert endless.recv(12) == b"HTTP/1.1 400"


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
