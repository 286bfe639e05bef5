"""A network of random weights has the shape and the tokenizer of another, but no weight."""

from typing import Any

import pytest
import torch
from transformers import T5Config, T5EncoderModel

from headscope.model import untrained as module
from headscope.model.untrained import is_embedding, untrained, why_no_untrained
from tests.references.tiny_models import MODELS


@pytest.mark.parametrize("kind", list(MODELS))
def test_embeddings_are_kept_and_everything_else_that_was_random_is_new(kind: str) -> None:
    model = MODELS[kind]()
    fresh = untrained(model, 3, with_embeddings=True)
    before, after = model.network.state_dict(), fresh.network.state_dict()
    assert before.keys() == after.keys()
    kept = [name for name in before if is_embedding(model.network, name)]
    matrices = [name for name in before if before[name].ndim == 2 and name not in kept]
    embedding: Any = model.network.get_input_embeddings()
    shared = embedding.weight.data_ptr()
    untied = [name for name in matrices if before[name].data_ptr() != shared]
    assert kept and untied
    assert all(torch.equal(before[name], after[name]) for name in kept)
    assert not any(torch.equal(before[name], after[name]) for name in untied)


def test_the_same_seed_gives_the_same_network_and_leaves_the_generator_alone() -> None:
    model = MODELS["bidirectional"]()
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    first, second = (untrained(model, 1).network.state_dict() for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_position_bias_inside_attention_is_no_embedding_of_the_input() -> None:
    config = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=10)
    network = T5EncoderModel(config)
    kept = [name for name in network.state_dict() if is_embedding(network, name)]
    assert any("shared" in name for name in kept)
    assert not any("relative_attention_bias" in name for name in kept)


def test_embeddings_are_new_too_unless_they_are_asked_for() -> None:
    model = MODELS["causal"]()
    before, after = (each.network.state_dict() for each in (model, untrained(model, 5)))
    kept = [name for name in before if is_embedding(model.network, name)]
    assert kept and not any(torch.equal(before[name], after[name]) for name in kept)


def test_a_network_that_is_too_large_quantized_or_spread_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = MODELS["causal"]()
    network: Any = model.network
    assert why_no_untrained(model) is None
    network.hf_device_map = {"a": 0, "b": "cpu"}
    assert "spread over devices" in str(why_no_untrained(model))
    network.hf_quantizer = object()
    assert "quantized" in str(why_no_untrained(model))
    del network.hf_quantizer, network.hf_device_map
    monkeypatch.setattr(module, "MOST_PARAMETERS", 10)
    assert "more than 10 parameters" in str(why_no_untrained(model))
