"""The model's own process: it traces, it may die or hang, and another one takes its place."""

import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from headscope.errors import ModelError
from headscope.explorer.texts import Texts
from headscope.explorer.wire import BusyError, Limits, RefusedError, TextRequest
from tests.explorer import own_loop
from tests.explorer.wire import unframe
from tests.tools.warm import forking

DEADLY, ENDLESS, PANIC = "deadly", "endless", "panic"


class PanicError(BaseException):
    """What a tokenizer written in Rust raises: no Exception."""


class Dangerous:
    """A model that some texts kill."""

    def __init__(self) -> None:
        from tests.references.explorer_models import (
            tiny_model,  # imports torch, which some processes do without
        )

        self.model = tiny_model()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode(self, text: str, pair: str | None = None) -> Any:
        if text == DEADLY:
            os._exit(9)
        if text == ENDLESS:
            time.sleep(1000)
        if text == PANIC:
            raise PanicError("called `Option::unwrap()` on a `None` value")
        return self.model.encode(text, pair)


def missing() -> Any:
    raise ModelError("There is no model nonsense.")


def ended() -> Any:
    os._exit(3)


def dangerous() -> Any:
    return Dangerous()


def trace(texts: Texts, text: str) -> str:
    return unframe(own_loop.run(texts.trace(TextRequest(text))))[0]["kind"]


@pytest.fixture(scope="module", autouse=True)
def _processes_are_warm() -> Iterator[None]:
    """Each is new, and starts in no time; test_serve.py starts one as a user's machine does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.explorer.texts.multiprocessing.get_context", lambda kind: forking)
        yield


@pytest.fixture(scope="module")
def texts() -> Iterator[Texts]:
    texts = Texts("dangerous", dangerous, Limits(seconds=30), own_process=True)
    yield texts
    texts.close()


def test_texts_that_kill_hang_or_panic_are_answered_and_the_next_one_is_traced(
    texts: Texts,
) -> None:
    assert trace(texts, "A cat.") == "head"
    assert (texts.facts().state, texts.facts().layers) == ("ready", 4)
    with pytest.raises(RefusedError, match="failed on this text: called `Option"):
        trace(texts, PANIC)
    with pytest.raises(BusyError, match="process of the model ended"):
        trace(texts, DEADLY)
    assert trace(texts, "A cat.") == "head"


def test_a_trace_without_end_is_killed_and_the_next_one_is_served(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trace(texts, "A cat.") == "head"
    monkeypatch.setattr(texts._worker, "_limits", Limits(seconds=0.3))
    with pytest.raises(BusyError, match=r"took longer than 0\.3 seconds"):
        trace(texts, ENDLESS)
    assert trace(texts, "A cat.") == "head"


@pytest.mark.parametrize(
    ("load", "said"), [(missing, "no model nonsense"), (partial(ended), "ended")]
)
def test_a_model_that_cannot_be_loaded_is_said(load: Any, said: str) -> None:
    texts = Texts("broken", load, own_process=True)
    with pytest.raises(RefusedError, match=said):
        trace(texts, "A cat.")
    assert texts.facts().state == "failed" and said in (texts.facts().reason or "")
    texts.close()
