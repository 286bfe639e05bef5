"""What heads write: parts of the logits that add up, for norms of every kind and for transforms."""

import pytest
import torch
from torch import Tensor
from transformers import GPT2Model

from headscope.errors import ModelError
from headscope.model.model import Model
from headscope.model.norms import Norm
from headscope.model.writes import (
    Transform,
    edge_writes,
    output_part,
    require_readout,
    why_no_writes,
)
from tests.references.tiny_models import bidirectional_model, causal_model, llama

TEXT = "the old cat sees a quiet gardener ."


MODELS = {"layer norm": causal_model, "rms norm": llama}


def read(model: Model) -> tuple[Tensor, Tensor]:
    """The residual stream before the last norm, and the logits, of one text."""
    readout = require_readout(model)
    with readout.watching() as seen:
        logits = model.forward(model.batch([model.encode(TEXT)])).logits
    return seen[-1][0], logits[0].detach()


@pytest.mark.parametrize("kind", MODELS)
def test_the_parts_of_a_residual_stream_add_up_to_the_logits(kind: str) -> None:
    model = MODELS[kind]()
    readout = require_readout(model)
    last = readout.last
    assert isinstance(last, Norm) and last.is_centred == (kind == "layer norm")
    residual, logits = read(model)
    parts = torch.randn(3, *residual.shape)
    parts[2] = residual - parts[:2].sum(0)
    shift = last.bias @ readout.unembedding.weight.detach().T  # pyright: ignore
    found = sum(readout.logits(residual, part) for part in parts) + shift
    torch.testing.assert_close(found, logits, rtol=1e-4, atol=1e-4)


def projection_inputs(model: Model, layer: int) -> Tensor:
    """What the output projection of a layer receives, head behind head."""
    slot = next(s for s in model.plan.slots if s is not None and s.layer == layer)
    seen: list[Tensor] = []
    assert slot.projection is not None
    handle = slot.projection.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        model.forward(model.batch([model.encode(TEXT)]))
    handle.remove()
    return seen[0][0]


@pytest.mark.parametrize("kind", [*MODELS, "transform"])
def test_the_edges_of_a_query_add_up_to_what_its_head_writes(kind: str) -> None:
    model = bidirectional_model() if kind == "transform" else MODELS[kind]()
    readout, size = require_readout(model), len(model.tokenizer)
    layer, head, query = 1, 1, 5
    found = projection_inputs(model, layer)[query].unflatten(0, (model.heads, -1))[head]
    residual, _ = read(model)
    written = found @ output_part(model, layer, head)
    wanted = readout.logits(residual[query][None], written[None])[0][:size]
    tokens = len(model.encode(TEXT))
    edges = [edge_writes(model, TEXT, layer, head, query, key, count=size) for key in range(tokens)]
    ids = {token: index for index, token in enumerate(display_all(model))}
    total = torch.zeros(size)
    for edge in edges:
        for token, logit in edge.raises:
            total[ids[token]] += logit
    torch.testing.assert_close(total, wanted, rtol=1e-4, atol=1e-5)
    if model.is_causal:
        assert sum(edge.weight for edge in edges) == pytest.approx(1, abs=1e-5)
        assert all(edge.weight == 0 for edge in edges[query + 1 :])


def display_all(model: Model) -> list[str]:
    from headscope.model.inputs.labels import display

    shown = display(model.tokenizer, range(len(model.tokenizer)))
    assert len(set(shown)) == len(shown)
    return list(shown)


def test_a_transform_is_read_by_its_derivative() -> None:
    model = bidirectional_model()
    readout = require_readout(model)
    assert isinstance(readout.last, Transform)
    residual, logits = read(model)
    written, step = torch.randn_like(residual), 1e-3
    with torch.no_grad():
        moved = [
            model.network.cls(residual + sign * step * written)  # pyright: ignore
            for sign in (1, -1)
        ]
    slope = (moved[0] - moved[1]) / (2 * step)
    torch.testing.assert_close(readout.logits(residual, written), slope, rtol=1e-2, atol=1e-2)
    with torch.no_grad():
        torch.testing.assert_close(model.network.cls(residual), logits)  # pyright: ignore


def test_an_edge_says_which_token_follows_and_what_it_adds_to_it() -> None:
    model = causal_model()
    encoded = model.encode(TEXT)
    edge = edge_writes(model, TEXT, 0, 1, 3, 1, count=len(model.tokenizer))
    assert edge.next_token == encoded.labels[4]
    assert edge.next_logit == pytest.approx(dict(edge.raises)[encoded.labels[4]])
    assert edge.lowers[0] == edge.raises[-1]
    last = edge_writes(model, TEXT, 0, 1, len(encoded) - 1, 1)
    assert last.next_token is None and last.next_logit is None and len(last.raises) == 10


def test_what_cannot_be_read_is_said() -> None:
    headless = Model(GPT2Model(causal_model().network.config), causal_model().tokenizer, name="x")
    assert "no unembedding" in (why_no_writes(headless) or "")
    with pytest.raises(ModelError, match="x does not say what its heads write"):
        edge_writes(headless, TEXT, 0, 0, 1, 1)
    for given, said in (((9, 0, 1, 1), "layer 9"), ((0, 9, 1, 1), "not 9"), ((0, 0, 99, 1), "99")):
        with pytest.raises(ModelError, match=said):
            edge_writes(causal_model(), TEXT, *given)
