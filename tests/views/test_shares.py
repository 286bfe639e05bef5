"""Attention between spans: against a plain loop, and as a figure."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from headscope.errors import HeadscopeError, ModelError, ViewError
from headscope.model.inputs.spans import Span
from headscope.model.trace import Trace
from headscope.views.shares import between


def random_weights(seed: int, shape: tuple[int, ...], *, causal: bool = True) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=shape)
    if causal:
        scores[..., ~np.tri(shape[-1], dtype=bool)] = -np.inf
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def trace() -> Trace:
    weights = random_weights(3, (2, 3, 12, 12))
    return Trace.from_weights(torch.tensor(weights), [f"t{n}" for n in range(12)], model="random")


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_what_a_loop_over_tokens_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    heads, queries, keys = 3, 9, 11
    weights = random.random((heads, queries, keys))
    seen = random.random((queries, keys)) < 0.7
    seen[:, 1] = True
    weights *= seen
    looking, looked_at = random.random((2, queries)) < 0.5, random.random((3, keys)) < 0.4
    looking[:, 0] = True
    kept = random.random(keys) < 0.8
    kept[1] = True
    share, expected = between(weights, seen, looking, looked_at, kept)
    for head in range(heads):
        for source in range(2):
            total, given, even = 0.0, np.zeros(3), np.zeros(3)
            for i in np.flatnonzero(looking[source]):
                visible = [j for j in range(keys) if seen[i, j] and kept[j]]
                spent = sum(weights[head, i, j] for j in range(keys) if kept[j])
                total += spent
                for span in range(3):
                    own = [j for j in range(keys) if looked_at[span, j] and kept[j]]
                    given[span] += sum(weights[head, i, j] for j in own)
                    even[span] += spent * len([j for j in own if j in visible]) / len(visible)
            assert share[head, source] == pytest.approx(given / total)
            assert expected[head, source] == pytest.approx(even / total)


def test_even_attention_gets_exactly_what_is_expected() -> None:
    even = np.tri(10) / np.tri(10).sum(-1, keepdims=True)
    trace = Trace.from_weights(torch.tensor(even), [f"t{n}" for n in range(10)])
    spans = [Span("a", (0, 1, 2)), Span("b", (3, 4)), Span("c", (5, 6, 7, 8, 9))]
    for hide in ((), ("first",)):
        data = trace.shares(spans, hide=hide).data
        assert np.allclose(data["share"], data["expected"])
    whole = trace.shares(spans).share.sum("to")
    assert np.allclose(whole, 1)  # the spans cover everything


def test_shares_are_labelled_by_layer_head_and_span(trace: Trace) -> None:
    spans = [Span("question", (1, 2, 3)), Span("answer", (9, 10, 11))]
    found = trace.shares(spans)
    assert found.share.dims == ("layer", "head", "from", "to")
    one = found.share.sel({"layer": 1, "head": 2, "from": "answer", "to": "question"})
    weights = trace.weights[1][2].numpy()
    assert float(one) == pytest.approx(weights[9:, 1:4].sum() / weights[9:].sum(), abs=1e-6)
    scores = found.scores("answer")
    assert [*scores] == ["answer → question"]
    assert scores["answer → question"].shape == (2, 3)
    view = trace.model_view(scores=scores, order="answer → question")
    assert "answer → question" in view.payload.header["stacks"][0]["scores"]


def test_prompt_and_continuation_are_spans_of_themselves(trace: Trace) -> None:
    from dataclasses import replace

    written = replace(trace, prompt_length=8)
    assert written.generated == Span("generated", (8, 9, 10, 11))
    found = written.shares().share.sel({"from": "generated"})
    assert np.allclose(found.sum("to"), 1)


def test_cross_attention_is_shared_out_over_the_source() -> None:
    weights = random_weights(0, (2, 4, 6), causal=False)
    trace = Trace.from_weights(torch.tensor(weights), [*"abcdef"], target_tokens=[*"wxyz"])
    spans = [Span("left", (0, 1, 2)), Span("right", (3, 4, 5))]
    assert np.allclose(trace.shares(spans).expected, 0.5)
    sources = [Span("last", (3,))]
    found = trace.shares(spans, sources=sources).share.values[0, :, 0, 0]
    assert found == pytest.approx(weights[:, 3, :3].sum(-1), abs=1e-6)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([Span("far", (3, 12))], "The span 'far' lies outside the text: it has token 12"),
        ([Span("none", ())], "The span 'none' has no tokens"),
        ([Span("a", (1,)), Span("a", (2,))], "Two spans have the name 'a'"),
        (None, "There are no spans: the text is no chat"),
    ],
)
def test_spans_that_cannot_be_are_refused(trace: Trace, spans: list[Span], said: str) -> None:
    with pytest.raises(HeadscopeError, match=said):
        trace.shares(spans)


def test_other_mistakes_name_what_there_is(trace: Trace, tmp_path: Path) -> None:
    spans = [Span("a", (1,)), Span("b", (2,))]
    with pytest.raises(ViewError, match="choose first or special"):
        trace.shares(spans, hide="last")
    with pytest.raises(ViewError, match="choose raw or norm"):
        trace.shares(spans, weights="rollout")
    with pytest.raises(ViewError, match="No span 'c' looks here; there are a, b"):
        trace.shares(spans).save(tmp_path / "x.svg", source="c")
    with pytest.raises(ViewError, match="shares are a figure"):
        trace.shares(spans).save(tmp_path / "x.html")
    with pytest.raises(ModelError, match="by=, or pattern=, or characters="):
        trace.spans()


def test_the_figure_names_spans_shares_and_lengths(trace: Trace, tmp_path: Path) -> None:
    spans = [Span(f"doc {n}", (n, n + 1)) for n in range(1, 7)] + [Span("answer", (10, 11))]
    found = trace.shares(spans, hide="first")
    text = found.save(tmp_path / "x.svg").read_text(encoding="utf-8")
    for span in spans[:-1]:
        mean = float(found.share.sel({"from": "answer", "to": span.name}).mean())
        even = float(found.expected.sel({"from": "answer", "to": span.name}).mean())
        assert f">{span.name}<" in text
        assert f"{mean:.1%}, by length {even:.1%}" in text
    assert "What “answer” looks at · random · first left out" in text


def test_shares_are_saved_as_numbers(trace: Trace, tmp_path: Path) -> None:
    made = trace.shares([Span("a", (0, 1)), Span("b", (2, 3))])
    table = pd.read_csv(made.save(tmp_path / "shares.csv"))
    assert list(table.columns) == ["layer", "head", "from", "to", "share", "expected"]
    assert table["share"].to_numpy() == pytest.approx(made.share.values.ravel(), nan_ok=True)
    rows = json.loads(made.save(tmp_path / "shares.json").read_text(encoding="utf-8"))
    assert len(rows) == len(table) and rows[0]["from"] == "a"
