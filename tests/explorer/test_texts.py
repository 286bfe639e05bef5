"""Typed texts: traced one at a time, refused with a reason, and never the end of the app."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from headscope.errors import ModelError
from headscope.explorer.texts import Texts
from headscope.explorer.tracing import answer, count_weights, parse_chat, token_counts
from headscope.explorer.wire import BusyError, Limits, RefusedError, TextRequest
from headscope.views import window
from headscope.views.payload import Quantised
from tests.explorer import own_loop
from tests.explorer.wire import unframe
from tests.references.chats import chat_model
from tests.references.decoding import dequantise, dequantise_tile
from tests.references.explorer_models import tiny_model, tiny_translator

TEXT = "The cat sat on the mat."


def loaded(load: Callable[[], Any] = tiny_model, **limits: Any) -> Texts:
    return Texts("tiny-gpt2", load, Limits(**limits))


def trace(texts: Texts, **wanted: Any) -> Any:
    return own_loop.run(texts.trace(TextRequest(TEXT, **wanted)))


def kind_of(content: bytes) -> str:
    return unframe(content)[0]["kind"]


def test_the_weights_that_arrive_are_those_of_the_model(visitor: TestClient) -> None:
    answer = visitor.post("/api/trace", json={"text": TEXT, "layer": 2, "head": 3})
    header, blocks = unframe(answer.content)
    expected = tiny_model().trace(TEXT).weights[2].numpy()
    entry = header["stacks"][0]["sets"]["raw"]["layers"]["2"]
    sent = dequantise(Quantised(blocks[entry["block"]], tuple(entry["scales"])), expected.shape)
    np.testing.assert_allclose(sent, expected, atol=1e-5)
    assert (header["state"]["layer"], header["state"]["heads"]) == (2, [3])


@pytest.mark.parametrize("kind", ["head", "model", "neuron"])
def test_every_view_is_packed(visitor: TestClient, kind: str) -> None:
    answer = visitor.post("/api/trace", json={"text": TEXT, "kind": kind})
    assert answer.status_code == 200
    assert unframe(answer.content)[0]["kind"] == kind


def test_generated_tokens_follow_the_prompt(visitor: TestClient) -> None:
    answer = visitor.post("/api/trace", json={"text": TEXT, "generate": 3})
    header, _ = unframe(answer.content)
    assert len(header["stacks"][0]["queries"]["labels"]) == header["prompt"] + 3


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"text": "  "}, 422, "empty"),
        ({"text": "a" * 20_001}, 413, "20,001 characters"),
        ({"text": "word " * 100}, 422, "64"),
        ({"text": "a", "generate": 65}, 422, "0 to 64"),
        ({"text": "a", "generate": -1}, 422, "0 to 64"),
        ({"text": "a", "kind": "brain"}, 422, "head, model, neuron"),
        ({"text": "a", "layer": 99}, 422, "Layer 99"),
        ({"text": "a", "target": "b"}, 422, "no decoder"),
        ({"text": 1}, 400, "Expected `str`, got `int` - at `$.text`"),
        ({"text": "a", "layer": True}, 400, "Expected `int | null`, got `bool` - at `$.layer`"),
        ({"pair": "a"}, 400, "missing required field `text`"),
        (
            {"text": "a", "path": "/etc"},
            400,
            "unknown field `path`; the body is an object with the fields text, pair,",
        ),
        ({"text": "\ud800 is no letter"}, 400, "surrogate"),
        (["text"], 400, "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(
    visitor: TestClient, body: Any, status: int, said: str
) -> None:
    kind = {"content-type": "application/json"}
    answer = visitor.post("/api/trace", content=json.dumps(body), headers=kind)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_malformed_bodies_are_refused(visitor: TestClient) -> None:
    kind = {"content-type": "application/json"}
    for body in (b"{", b"", b"\xff\xfe", b"[" * 30_000):
        assert visitor.post("/api/trace", content=body, headers=kind).status_code == 400
    assert visitor.post("/api/trace", content=b"text=a").status_code == 415


def test_an_oversized_body_is_refused_whatever_its_header_says(visitor: TestClient) -> None:
    kind = {"content-type": "application/json"}
    chunks = (b" " * 1024 for _ in range(1000))  # sent in chunks, without a length
    answer = visitor.post("/api/trace", content=chunks, headers=kind)
    assert (answer.status_code, answer.json()["error"]) == (
        413,
        "The request is larger than 786,432 bytes.",
    )


def test_a_text_with_too_many_weights_is_refused_before_the_network_runs() -> None:
    with pytest.raises(RefusedError, match=r"the explorer takes 80\. Shorten it") as refused:
        trace(loaded(weights=80))
    assert refused.value.status == 413


@pytest.mark.parametrize("wanted", [{}, {"pair": None, "generate": 3}])
def test_the_weights_counted_for_a_decoder_alone_are_those_of_the_trace(wanted: Any) -> None:
    _check_count(tiny_model(), **wanted)


@pytest.mark.parametrize(
    "wanted", [{}, {"target": "The dog."}, {"generate": 4}, {"target": "A dog", "generate": 4}]
)
def test_source_target_and_cross_are_all_counted(wanted: Any) -> None:
    _check_count(tiny_translator(), **wanted)


def _check_count(model: Any, **wanted: Any) -> None:
    """Against a plain count of the numbers that the trace holds."""
    request = TextRequest(TEXT, **wanted)
    made = model.trace(TEXT, target=request.target, generate=request.generate)
    plain = sum(
        weights.numel() for stack in made.stacks.values() for weights in stack.weights.values()
    )
    counted = count_weights(model, *token_counts(model, request), whole=True)
    assert counted >= plain  # generation may end early
    if not request.generate or not model.is_encoder_decoder:
        assert counted == plain


def test_a_long_target_is_refused_before_the_network_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_translator()
    monkeypatch.setattr(type(model), "trace", lambda *_, **__: pytest.fail("the network ran"))
    with pytest.raises(RefusedError, match=r"tokens and \d+ of the target") as refused:
        trace(loaded(lambda: model, weights=10_000), target="word " * 200)
    assert refused.value.status == 413


def test_a_full_queue_and_a_slow_model_say_come_back_and_the_next_text_is_served() -> None:
    release = threading.Event()

    def slow() -> Any:
        release.wait(10)
        return tiny_model()

    async def crowd(texts: Texts) -> list[Any]:
        asked = [texts.trace(TextRequest(TEXT)) for _ in range(5)]
        return await asyncio.gather(*asked, return_exceptions=True)

    texts = loaded(slow, waiting=2, seconds=0.2)
    answers = own_loop.run(crowd(texts))
    assert [type(answer) for answer in answers] == [BusyError] * 5
    said = sorted(str(answer) for answer in answers)
    assert said[:3] == ["2 texts are waiting for the model; try again soon."] * 3
    assert "took longer than 0.2 seconds" in said[3]
    release.set()
    patient = loaded(waiting=2)
    assert kind_of(trace(patient)) == "head"


def test_places_in_the_queue_come_back_after_failures() -> None:
    texts = loaded(waiting=1)
    for _ in range(3):
        with pytest.raises(RefusedError):
            trace(texts, layer=99)
    assert kind_of(trace(texts)) == "head"


def test_whatever_a_network_raises_becomes_a_sentence() -> None:
    class Broken:
        stacks = ()
        name = "broken"
        layers = heads = 1
        is_causal = is_encoder_decoder = False
        max_length = None
        tokenizer = SimpleNamespace(chat_template=None)

        def encode(self, text: str, pair: str | None) -> Any:
            raise ZeroDivisionError("first line\nsecond line")

    with pytest.raises(RefusedError, match=r"^The model failed on this text: first line$"):
        trace(loaded(Broken))


def test_a_model_that_cannot_be_loaded_leaves_the_rest(library: Any) -> None:
    from headscope.explorer.api import create_app

    def fail() -> Any:
        raise ModelError("There is no model nonsense.")

    visitor = TestClient(create_app(library, loaded(fail)), base_url="http://127.0.0.1")
    answer = visitor.post("/api/trace", json={"text": TEXT})
    assert answer.status_code == 409
    assert "There is no model nonsense." in answer.json()["error"]
    model = visitor.get("/api/session").json()["model"]
    assert (model["state"], model["reason"]) == ("failed", "There is no model nonsense.")
    assert visitor.get("/api/runs/vig/measures/entropy").status_code == 200


def test_the_session_tells_the_state_of_the_model() -> None:
    release = threading.Event()

    def slow() -> Any:
        release.wait(10)
        return tiny_model()

    texts = loaded(slow)
    assert texts.facts().state == "loading"
    release.set()
    while texts.facts().state == "loading":
        time.sleep(0.01)
    facts = texts.facts()
    assert (facts.state, facts.layers, facts.heads, facts.causal) == ("ready", 4, 4, True)
    assert (facts.max_length, facts.encoder_decoder) == (64, False)
    assert Texts(None, None).facts().state == "none"


LONG = " ".join(f"The cat number {i} sat on mat {i}." for i in range(4))


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "TILE", 8)


@pytest.mark.usefixtures("small_tiles")
def test_a_long_text_comes_without_blocks_and_each_is_the_models_when_asked_for(
    visitor: TestClient,
) -> None:
    header, blocks = unframe(visitor.post("/api/trace", json={"text": LONG}).content)
    assert (blocks, header["tile"]) == ([], 8)
    number = header["stacks"][0]["sets"]["raw"]["layers"]["3"]["tiles"][1][0]
    answer = visitor.post("/api/trace", json={"text": LONG, "blocks": [number]})
    _, [block] = unframe(answer.content)
    expected = tiny_model().trace(LONG).weights[3][:, 8:16, :8].numpy()
    np.testing.assert_allclose(dequantise_tile(block, expected.shape), expected, atol=1e-5)


@pytest.mark.usefixtures("small_tiles")
def test_only_one_layer_of_a_long_text_counts_against_the_limit() -> None:
    tokens = len(tiny_model().encode(LONG).ids)
    own_loop.run(loaded(weights=4 * tokens**2).trace(TextRequest(LONG)))
    with pytest.raises(RefusedError, match="Shorten it"):
        own_loop.run(loaded(weights=4 * tokens**2 - 1).trace(TextRequest(LONG)))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    ("blocks", "status", "said"),
    [
        ([10_000], 422, "no block 10000"),
        ([-1], 422, "no block -1"),
        ([0] * 33, 422, "the most is 32"),
        (["0"], 400, "Expected `int`, got `str` - at `$.blocks[0]`"),
        ([True], 400, "Expected `int`, got `bool` - at `$.blocks[0]`"),
    ],
)
def test_blocks_that_do_not_exist_are_refused(
    visitor: TestClient, blocks: Any, status: int, said: str
) -> None:
    answer = visitor.post("/api/trace", json={"text": LONG, "blocks": blocks})
    assert answer.status_code == status and said in answer.json()["error"]


def test_a_visitor_who_leaves_gives_up_his_place() -> None:
    release = threading.Event()

    def slow() -> Any:
        release.wait(10)
        return tiny_model()

    async def leave_and_ask(texts: Texts) -> list[Any]:
        leaving = [asyncio.ensure_future(texts.trace(TextRequest(TEXT))) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="2 texts are waiting"):
            await texts.trace(TextRequest(TEXT))
        for visit in leaving:
            visit.cancel()
        await asyncio.sleep(0.05)
        staying = [asyncio.ensure_future(texts.trace(TextRequest(TEXT))) for _ in range(2)]
        await asyncio.sleep(0.05)
        release.set()
        return await asyncio.gather(*staying)

    answers = own_loop.run(leave_and_ask(loaded(slow, waiting=2)))
    assert [kind_of(answer) for answer in answers] == ["head", "head"]


def test_texts_are_traced_in_the_order_in_which_they_came() -> None:
    release, seen = threading.Event(), []

    class Noting:
        def __init__(self) -> None:
            release.wait(10)
            self.model = tiny_model()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

        def encode(self, text: str, pair: str | None = None) -> Any:
            seen.append(text)
            return self.model.encode(text, pair)

    async def crowd(texts: Texts) -> None:
        visits = [asyncio.ensure_future(texts.trace(TextRequest(text))) for text in "cab"]
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(*visits)

    own_loop.run(crowd(loaded(Noting)))
    assert list(dict.fromkeys(seen)) == ["c", "a", "b"]


def test_a_chat_is_written_as_a_play() -> None:
    written = "Hello there\nsystem: Be brief.\nUser:What: is this?\nTwo lines.\nassistant:  Yes.\n"
    assert parse_chat(written) == [
        {"role": "user", "content": "Hello there"},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What: is this?\nTwo lines."},
        {"role": "assistant", "content": "Yes."},
    ]
    assert parse_chat("user: Hi") == [{"role": "user", "content": "Hi"}]


def test_a_chat_is_traced_with_its_turns_and_refused_without_a_template() -> None:
    request = TextRequest("user: Two and two?\nassistant: Four.", chat=True, generate=2)
    model = chat_model("SmolLM3")
    header, _ = unframe(answer(model, request, Limits()).unpack())
    names = [span.split(" ", 1)[1] for span in header["state"]["spans"]]
    assert names == ["user", "assistant"]
    assert token_counts(model, request)[0] == len(header["stacks"][0]["queries"]["labels"])
    refused = answer(tiny_model(), request, Limits())
    assert refused.status == 422 and "has no chat template" in refused.error
