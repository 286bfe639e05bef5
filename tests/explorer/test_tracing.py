"""Tracing typed texts: the views of one text come from one trace."""

import pytest

from headscope.explorer.tracing import answer
from headscope.explorer.wire import Limits, TextRequest
from headscope.model.model import Model
from tests.explorer.wire import unframe
from tests.references.explorer_models import tiny_model


def test_the_three_views_of_a_text_come_from_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts, trace = tiny_model(), [], Model.trace
    monkeypatch.setattr(
        Model, "trace", lambda self, text, *args, **options: (
            texts.append(text), trace(self, text, *args, **options))[1],
    )  # fmt: skip
    asked = [("A cat.", "head"), ("A cat.", "model"), ("A cat.", "neuron"), ("A dog.", "neuron")]
    kinds = []
    for text, kind in asked:
        header, _ = unframe(answer(model, TextRequest(text, kind=kind), Limits()).unpack())
        kinds.append(header["kind"])
    assert kinds == [kind for _, kind in asked]
    assert texts == ["A cat.", "A dog."]


def test_why_is_answered_from_the_trace_of_the_views() -> None:
    model = tiny_model()
    request = TextRequest("A cat.", why=[1, 2, 2, 0])
    header, blocks = unframe(answer(model, request, Limits()).unpack())
    assert header == {"why": model.trace("A cat.").why(1, 2, 2, 0).sentence}
    assert len(blocks) == 0
    refused = answer(model, TextRequest("A cat.", why=[9, 0, 1, 0]), Limits())
    assert "no attention layer 9" in refused.error


def test_the_difference_without_a_head_is_that_of_the_trace() -> None:
    model = tiny_model()
    request = TextRequest("A cat.", without=("L0H1",), difference=True)
    header, _ = unframe(answer(model, request, Limits()).unpack())
    said, expected = header["difference"], model.trace("A cat.", without=["L0H1"]).difference()
    assert said["sentence"] == expected.sentence
    assert said["head"] == str(expected.most)
    change = expected.change[expected.most.layer][expected.most.head]
    assert said["change"] == change.double().numpy().round(4).tolist()
    assert [token["plain"] for token in said["next_tokens"]] == [
        token.plain for token in expected.next_tokens
    ]
    other = TextRequest("A cat.", without=("L0H1",), difference=True, layer=1, head=0)
    header, _ = unframe(answer(model, other, Limits()).unpack())
    assert header["difference"]["head"] == "L1H0"
    refused = answer(model, TextRequest("A cat.", without=("L9H1",)), Limits())
    assert "has no head L9H1" in refused.error
