"""Weights from elsewhere become a trace if they fit their tokens."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.trace import Trace

if TYPE_CHECKING:
    from headscope.model.trace import Weights

TOKENS = ["a", "b", "c"]
MATRIX = torch.rand(3, 3, generator=torch.Generator().manual_seed(0)).softmax(-1)


def layered(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1)).softmax(-1)


@pytest.mark.parametrize(
    ("weights", "layers", "heads"),
    [
        (MATRIX, 1, 1),
        (layered(2, 3, 3), 1, 2),
        (layered(4, 2, 3, 3), 4, 2),
        (layered(1, 2, 3, 3), 1, 2),
        (tuple(layered(4, 2, 3, 3)), 4, 2),
        (tuple(layered(4, 1, 2, 3, 3)), 4, 2),
        ([MATRIX, MATRIX], 2, 1),
        (layered(2, 3, 3).numpy(), 1, 2),
        ([layer.numpy() for layer in layered(4, 1, 2, 3, 3)], 4, 2),
    ],
    ids=str,
)
def test_two_to_four_axes_or_a_sequence_of_layers(
    weights: "Weights", layers: int, heads: int
) -> None:
    trace = Trace.from_weights(weights, TOKENS)
    assert trace.layers == tuple(range(layers))
    assert trace.heads == tuple(range(heads))
    assert all(trace.weights[layer].shape == (heads, 3, 3) for layer in trace.layers)


def test_the_values_are_kept_in_order() -> None:
    weights = layered(4, 2, 3, 3)
    trace = Trace.from_weights(tuple(weights[:, None]), TOKENS)
    assert all(torch.equal(trace.weights[layer], weights[layer]) for layer in range(4))
    assert trace.tokens == tuple(TOKENS)
    assert trace.query is None and trace.no_neurons is not None
    assert trace.default.norms is None


def test_target_tokens_look_at_tokens() -> None:
    trace = Trace.from_weights(layered(2, 2, 3), TOKENS, target_tokens=["x", "y"])
    assert list(trace.stacks) == ["cross"]
    assert trace.default.queries.labels == ("x", "y")
    assert trace.default.keys.labels == ("a", "b", "c")


def test_causal_weights_are_recognised() -> None:
    lower = torch.ones(3, 3).tril()
    assert Trace.from_weights(lower / lower.sum(-1, keepdim=True), TOKENS).is_causal
    assert not Trace.from_weights(MATRIX, TOKENS).is_causal


def test_marks_of_the_tokenizer_are_removed() -> None:
    assert Trace.from_weights(MATRIX, ["Ġa", "▁b", "c</w>"]).tokens == (" a", " b", "c")


def test_segments_and_special_tokens_are_kept() -> None:
    trace = Trace.from_weights(MATRIX, TOKENS, segments=[0, 0, 1], special=[True, False, False])
    assert trace.default.queries.segments == (0, 0, 1)
    assert trace.default.queries.special == (True, False, False)
    assert [trace.default.keys.text[s:e] for s, e in trace.default.keys.offsets] == TOKENS


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.rand(3), r"shape \(3,\)"),
        (torch.rand(1, 1, 1, 3, 3), "cannot be read"),
        (layered(2, 4, 4), r"Layer 0 has attention weights of shape \(2, 4, 4\)"),
        (tuple(layered(2, 2, 1, 3, 3)), r"Layer 0 .* batch axis of 1"),
        ((layered(2, 3, 3), layered(3, 3, 3)), r"Layer 1 .* need \(2, 3, 3\)"),
        ((), "at least one layer"),
        (torch.full((3, 3), torch.nan), "not finite"),
        (-MATRIX, "negative"),
        (MATRIX * 3, "sums to 3"),
        (np.full((3, 3), np.inf), "not finite"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(weights: "Weights", message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        Trace.from_weights(weights, TOKENS)


def test_segments_of_another_length_are_named() -> None:
    with pytest.raises(CaptureError, match="3 tokens but 1 segments"):
        Trace.from_weights(MATRIX, TOKENS, segments=[0])


LAYER = [[[[1.0, 0.0], [0.25, 0.75]]]]  # batch head query key
CACHES: dict[str, Any] = {
    "TransformerLens": {
        "blocks.3.attn.hook_pattern": torch.tensor(LAYER),
        "blocks.1.attn.hook_pattern": torch.tensor(LAYER)[0],
        "blocks.1.attn.hook_q": torch.zeros(1, 2, 1, 4),
    },
    "nnsight": {3: SimpleNamespace(value=np.array(LAYER)), 1: np.array(LAYER)},
}


@pytest.mark.parametrize("name", CACHES)
def test_weights_that_another_library_kept_are_a_trace(name: str) -> None:
    trace = Trace.from_cache(CACHES[name], ["a", "b"], model="theirs")
    assert trace.layers == (1, 3) and trace.tokens == ("a", "b") and trace.model == "theirs"
    assert [trace.weights[layer].tolist() for layer in (1, 3)] == [LAYER[0], LAYER[0]]
    assert trace.head_view(layer=-1, heads="L3H0").state.layer == 3


def test_a_cache_without_weights_is_refused() -> None:
    with pytest.raises(CaptureError, match="names that end in hook_pattern, or give a mapping"):
        Trace.from_cache({"blocks.0.attn.hook_q": torch.zeros(1)}, ["a"])
