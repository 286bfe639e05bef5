"""Answers are computed once, for everybody, and never fill the memory."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headscope.explorer import api
from headscope.explorer.answers.card import card
from headscope.explorer.answers.runs import Kept, Library, OpenRun
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.explorer.wire import Card
from tests.explorer import own_loop
from tests.references.runs import write_run


def test_visitors_at_the_same_time_wait_for_one_computation() -> None:
    made: list[int] = []
    release = threading.Event()

    def make() -> bytes:
        made.append(1)
        release.wait(5)
        return b"answer"

    async def crowd(kept: Kept) -> list[bytes]:
        visits = [asyncio.ensure_future(kept.get("key", make)) for _ in range(20)]
        await asyncio.sleep(0.05)
        visits[0].cancel()  # one leaves, the others stay
        release.set()
        return [*await asyncio.gather(*visits[1:]), await kept.get("key", make)]

    assert own_loop.run(crowd(Kept(1000))) == [b"answer"] * 20
    assert made == [1]


def test_the_least_used_answers_go_first() -> None:
    made: list[str] = []

    async def ask(kept: Kept, key: str) -> None:
        await kept.get(key, lambda: made.append(key) or bytes(400))

    async def visit(kept: Kept) -> None:
        for key in ("a", "b", "a", "c", "a", "b"):  # two fit; c takes the place of b
            await ask(kept, key)

    own_loop.run(visit(Kept(1000)))
    assert made == ["a", "b", "c", "b"]


def test_a_failure_is_not_kept() -> None:
    async def visit(kept: Kept) -> bytes:
        with pytest.raises(ZeroDivisionError):
            await kept.get("key", lambda: bytes(1 // 0))
        return await kept.get("key", lambda: b"better")

    assert own_loop.run(visit(Kept(1000))) == b"better"


def test_a_card_is_computed_once_until_its_run_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(run: OpenRun, name: str) -> Card:
        asked.append(name)
        return card(run, name)

    questions = [replace(one, ask=counted) if one.ask is card else one for one in api.QUESTIONS]
    monkeypatch.setattr(api, "QUESTIONS", questions)
    path = write_run(tmp_path / "run", "vig2019")
    visitor = TestClient(
        create_app(Library([path]), Texts(None, None)), base_url="http://localhost"
    )
    first = [visitor.get("/api/runs/run/heads/L0H1").json() for _ in range(3)]
    assert asked == ["L0H1"]
    assert first[0] == first[1] == first[2]
    time.sleep(0.02)
    (path / "result.nc").touch()
    visitor.get("/api/runs/run/heads/L0H1")
    assert asked == ["L0H1", "L0H1"]
