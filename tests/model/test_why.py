"""Why a head looks there: parts against plain loops, shares that add up, heads switched off."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import headscope as hs
from headscope.errors import ModelError, RunError
from headscope.head import Head
from headscope.model.attention import LayerAttention
from headscope.model.model import Model
from headscope.model.why import SIDES, Reasons, Source, compose
from headscope.model.writes import output_part
from tests.references.tiny_models import bidirectional_model, causal_model, llama

TEXT = "the old cat sees a quiet gardener ."
MODELS = {"layer norm": causal_model, "rms norm, rotary, shared keys": llama}
each_model = pytest.mark.parametrize("kind", MODELS)


def seen_layers(model: Model, change: Any = None) -> dict[int, LayerAttention]:
    """All layers of the text; `change` is a norm's module and what is taken from its output."""
    seen: dict[int, LayerAttention] = {}
    handles: list[Any] = []
    if change is not None:
        norm, taken = change
        handles.append(norm.register_forward_hook(lambda *call: call[-1] - taken))
    batch = model.batch([model.encode(TEXT)])
    model.forward(batch, lambda layer: seen.setdefault(layer.layer, layer))  # pyright: ignore
    for handle in handles:
        handle.remove()
    return seen


def first_norm(model: Model, layer: int) -> Any:
    """The norm before the attention of a layer."""
    network: Any = model.network
    if "GPT2" in type(network).__name__:
        return network.transformer.h[layer].ln_1
    return network.model.layers[layer].input_layernorm


def through_norm(model: Model, layer: int, written: Tensor) -> Tensor:
    """What a written vector is behind the norm of a layer, whose size is what it is."""
    norm, residuals = first_norm(model, layer), []
    handle = norm.register_forward_pre_hook(lambda _, given: residuals.append(given[0][0]))
    seen_layers(model)
    handle.remove()
    residual: Tensor = residuals[0]
    if norm.__class__.__name__ == "LayerNorm":
        size = (residual.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        return norm.weight * (written - written.mean(-1, keepdim=True)) / size
    size = (residual.square().mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
    return norm.weight * written / size


def written_by_head(model: Model, layer: int, head: int) -> Tensor:
    """Σ over tokens of weight × value × W_O, for every query."""
    seen = seen_layers(model)[layer]
    assert seen.value is not None
    groups = model.heads // seen.value.shape[1]
    return seen.weights[0, head] @ seen.value[0, head // groups] @ output_part(model, layer, head)


def written_by_module(model: Model, layer: int | None) -> Tensor:
    """What the MLP of a layer writes, or the embedding where no layer is given."""
    network: Any = model.network
    if "GPT2" in type(network).__name__:
        inner = network.transformer
        module = inner.wte if layer is None else inner.h[layer].mlp
    else:
        inner = network.model
        module = inner.embed_tokens if layer is None else inner.layers[layer].mlp
    outputs: list[Tensor] = []
    handle = module.register_forward_hook(lambda *call: outputs.append(call[-1][0]))
    seen_layers(model)
    handle.remove()
    return outputs[0]


@each_model
@settings(max_examples=24, deadline=None)
@given(data=st.data())
def test_a_part_of_the_key_is_what_the_score_loses_if_it_is_not_written_there(
    kind: str, data: st.DataObject
) -> None:
    """A plain loop: the network runs with one output taken away from the key side alone."""
    model = MODELS[kind]()
    last = model.layers - 1
    head, other = (data.draw(st.integers(0, model.heads - 1)) for _ in range(2))
    earlier = data.draw(st.integers(0, last - 1))
    part = data.draw(st.sampled_from([f"L{earlier}H{other}", f"MLP {earlier}", "embedding"]))
    query = data.draw(st.integers(0, len(model.encode(TEXT)) - 1))
    key = data.draw(st.integers(0, query))
    with torch.no_grad():
        if part.startswith("L"):
            written = written_by_head(model, earlier, other)
        else:
            written = written_by_module(model, earlier if part != "embedding" else None)
        taken = through_norm(model, last, written)
        plain, without = (
            seen_layers(model, change)[last] for change in (None, (first_norm(model, last), taken))
        )
    assert plain.query is not None and plain.key is not None and plain.scaling is not None
    assert without.key is not None
    group = head // (model.heads // plain.key.shape[1])
    keys = plain.key[0, group, key], without.key[0, group, key]
    scores = [plain.scaling * float(plain.query[0, head, query] @ part) for part in keys]
    why = model.trace(TEXT).why(last, head, query, key)
    assert why.score == pytest.approx(scores[0], rel=1e-4, abs=1e-4)
    assert why.key_parts[part] == pytest.approx(scores[0] - scores[1], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("make", [*MODELS.values(), bidirectional_model])
def test_shares_of_a_choice_add_to_one_text_by_text(make: Any) -> None:
    model = make()
    texts = [model.encode(text) for text in (TEXT, "a dog .", "the teacher paints .")]
    together = compose(model, model.batch(texts))
    assert together.covariance.shape[1:4] == (model.layers, model.heads, len(SIDES))
    expected = together.variance[..., None].expand(*together.covariance.shape[:-1])
    torch.testing.assert_close(together.covariance.sum(-1), expected, rtol=1e-3, atol=1e-3)
    for row, tokens in enumerate(texts):
        alone = compose(model, model.batch([tokens]))
        torch.testing.assert_close(
            together.covariance[row], alone.covariance[0], rtol=1e-3, atol=1e-3
        )


def test_the_covariance_is_that_of_a_loop_over_rows_and_keys() -> None:
    model = causal_model()
    trace, layer, head = model.trace(TEXT), 2, 1
    assert trace.query is not None and trace.key is not None
    batch = model.batch([model.encode(TEXT)])
    composition, reasons = compose(model, batch), Reasons(model, batch)
    source = composition.sources.index(Source("head", 1, 0))
    tokens = len(trace.tokens)
    total = 0.0
    for query in range(tokens):
        scores, parts = [], []
        for key in range(query + 1):
            alone = torch.zeros(1, tokens, tokens)
            alone[0, query, key] = 1
            of_key = reasons.parts(Head(layer, head), "key", alone)[1][:, 0]
            scores.append(float(of_key.sum()))
            parts.append(float(of_key[source]))
        total += float(np.cov(scores, parts, bias=True)[0, 1])
    assert float(composition.covariance[0, layer, head, 1, source]) == pytest.approx(
        total, rel=1e-3
    )


def test_an_induction_head_names_its_previous_token_head() -> None:
    text = "The old gardener saw Marian Oldcastle. The old gardener saw Marian Oldcastle."
    trace = hs.load("mini-gpt2").trace(text)
    why = trace.why(5, 5, 20, 10)
    assert trace.tokens[20] == trace.tokens[9] == "le" and trace.tokens[10] == "."
    assert why.weight == pytest.approx(float(trace.weights[5][5, 20, 10]), abs=1e-5)
    name, share = next(iter(why.lift_shares.items()))
    assert name == "L4H2" and share == pytest.approx(0.74, abs=0.01)
    assert why.moved["L4H2"][0][0] == 9
    assert why.sentence.startswith(
        "L5H5 looks from 'le' (20) at '.' (10) because of what L4H2 moved there from 'le' (74%), "
    )


def test_a_trace_that_was_stored_or_sent_leaves_its_model_behind(tmp_path: Any) -> None:
    trace = causal_model().trace(TEXT, without=["L0H1"])
    trace.save(tmp_path / "x.hst")
    stored = hs.open_trace(tmp_path / "x.hst")
    assert stored.without == trace.without == (Head(0, 1),)
    sent = pickle.loads(pickle.dumps(causal_model().trace(TEXT)))
    for left in (stored, sent):
        with pytest.raises(ModelError, match="is without its model, tiny-causal; trace the text"):
            left.why(0, 0, 1, 0)


@pytest.mark.parametrize("replacement", ["zero", "mean"])
def test_a_head_is_switched_off_for_all_that_follows(replacement: Any) -> None:
    model = causal_model()
    plain = model.trace(TEXT)
    off = model.trace(TEXT, without=["L1H0"], replacement=replacement)
    for layer in (0, 1):
        torch.testing.assert_close(off.weights[layer], plain.weights[layer])
    found = written_by_head(model, 1, 0)
    kept = found.mean(0, keepdim=True) if replacement == "mean" else torch.zeros_like(found)
    projection = next(slot.projection for slot in model.plan.slots if slot and slot.layer == 1)
    assert projection is not None
    change = (found - kept).detach()
    handle = projection.register_forward_hook(lambda *call: call[-1] - change)
    torch.testing.assert_close(off.weights[2], seen_layers(model)[2].weights[0].detach())
    handle.remove()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": "L1H0"}, "give a list of them"),
        ({"without": ["L9H0"]}, "has no head L9H0; it has layers 0 to 2 and heads 0 to 1"),
        ({"without": ["L0H0"], "replacement": "noise"}, "'noise' is unknown; choose zero or mean"),
        ({"without": ["cat"]}, "'cat' names no head"),
    ],
)
def test_what_cannot_be_switched_off_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ModelError, RunError), match=message):
        causal_model().trace(TEXT, **options)


@pytest.mark.parametrize(
    ("place", "message"),
    [((9, 0, 1, 1), "no attention layer 9; it has 0, 1, 2"), ((0, 9, 1, 1), "heads 0 to 1, not 9"),
     ((0, 0, 99, 1), "tokens 0 to 8, not 99")],
)  # fmt: skip
def test_a_place_that_is_not_there_is_said(place: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        causal_model().trace(TEXT).why(*place)
