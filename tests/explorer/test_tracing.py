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
