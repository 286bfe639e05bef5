"""The cache of TransformerLens as a trace: the same weights as our own."""

import pytest
import torch
from transformer_lens.model_bridge import (  # pyright: ignore[reportMissingImports]
    TransformerBridge,
)

import headscope as hs

TEXT = "The old cat sat on the mat. The old cat was tired."


def test_weights_of_a_cache_are_those_of_a_trace() -> None:
    expected = hs.load("mini-gpt2").trace(TEXT)
    model = hs.load("mini-gpt2")
    bridge = TransformerBridge.boot_transformers(
        "gpt2", hf_model=model.network, tokenizer=model.tokenizer, device="cpu"
    )
    _, cache = bridge.run_with_cache(torch.tensor([expected.default.keys.ids]))
    trace = hs.Trace.from_cache(cache, expected.tokens)
    assert trace.layers == expected.layers
    for layer in expected.layers:
        assert trace.weights[layer] == pytest.approx(expected.weights[layer], abs=1e-6)
