"""A pass that begins at a layer gives what a whole pass gives, or is not offered."""

import pytest
import torch
from torch import Tensor
from transformers import AlbertConfig, AlbertForMaskedLM

from headscope.metrics import importance
from headscope.metrics.importance import loss_changes
from headscope.metrics.metric import Grid
from headscope.model.capture.changes import find_layers, repeat
from headscope.model.model import Model
from tests.engine.tiny import MODELS, bidirectional_model
from tests.model.test_writes import llama

TEXTS = ("the old cat sees a dog .", "a quiet gardener .")
FAMILIES = {**MODELS, "llama": llama}


@pytest.mark.parametrize("kind", FAMILIES)
def test_beginning_at_a_layer_equals_a_whole_pass(kind: str) -> None:
    model = FAMILIES[kind]()
    above = find_layers(model)
    assert above is not None
    batch = model.batch([model.encode(text) for text in TEXTS])
    with torch.no_grad():
        earlier = above.record(batch)
        for first in model.stacks[0].attending:

            def change(layer: int, output: Tensor, first: int = first) -> Tensor:
                output = output.clone()
                output[len(output) // 2 :, :, layer % 2] *= 1.5 if layer == first else 1.0
                return output

            found = above.run(earlier, first, 2, change)
            wanted = model.forward_changed(repeat(batch, 2), change).logits
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
            assert not torch.allclose(found[:2], found[2:], atol=1e-3)
    again = model.forward(batch).logits
    assert torch.equal(again, earlier.logits), "the layers compute again afterwards"


def albert() -> Model:
    """One module serves as every layer: a pass cannot begin at one of them."""
    torch.manual_seed(0)
    tokenizer = bidirectional_model().tokenizer
    config = AlbertConfig(
        vocab_size=len(tokenizer), embedding_size=8, hidden_size=12, num_hidden_layers=2,
        num_attention_heads=3, intermediate_size=24, max_position_embeddings=64, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    return Model(AlbertForMaskedLM(config), tokenizer, name="tiny-albert")


def test_shared_layers_are_run_as_a_whole() -> None:
    assert find_layers(albert()) is None


@pytest.mark.parametrize("room", [1, 40, 4096])
def test_losses_are_the_same_whichever_way_and_however_many_heads_at_once(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    model = MODELS["causal"]()
    batch = model.batch([model.encode(text) for text in TEXTS])
    grid = Grid(model.stacks[0].attending, model.heads)
    means = {layer: torch.randn(grid.heads, 8) for layer in grid.layers}
    with torch.no_grad():
        wanted = loss_changes(model, batch, batch.mask, grid, means)
        monkeypatch.setattr(importance, "ROOM", (room, room))
        some = loss_changes(model, batch, batch.mask, grid, means)
        monkeypatch.setattr(importance, "_layers_above", lambda model: None)
        whole = loss_changes(model, batch, batch.mask, grid, means)
    for name, values in wanted.items():
        assert values.abs().min() > 1e-4
        torch.testing.assert_close(some[name], values, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(whole[name], values, rtol=1e-4, atol=1e-4)
