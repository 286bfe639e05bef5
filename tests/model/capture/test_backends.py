"""The traps of capturing attention, each seen once in practice, each closed by a test."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import deepcopy
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.modeling_utils import AttentionInterface

from headscope.errors import CaptureError
from headscope.model.attention import LayerAttention
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.references.tiny_families import family, tiny


def weights(model: Model, text: str) -> list[Tensor]:
    found: list[Tensor] = []
    model.forward(model.batch([model.encode(text)]), lambda seen: found.append(seen.weights))
    return found


def test_the_interface_is_wrapped_once_per_process() -> None:
    before: Any = AttentionInterface.get_interface
    weights(tiny("Llama"), "Birds")
    assert AttentionInterface.get_interface is before
    assert not hasattr(before.__wrapped__, "__wrapped__")


@pytest.mark.parametrize("name", ["Llama", "GPT-J"])
def test_threads_see_only_their_own_layers(name: str) -> None:
    models = [tiny(name), tiny("GPT-2"), tiny(name)]
    texts = ["Birds", "Birds sing", "Birds sing all day"]
    alone = [weights(model, text) for model, text in zip(models, texts, strict=True)]
    start = Barrier(3)

    def many_times(which: int) -> list[list[Tensor]]:
        start.wait()
        return [weights(models[which], texts[which]) for _ in range(20)]

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(many_times, range(3)))
    for expected, runs in zip(alone, together, strict=True):
        for run in runs:
            torch.testing.assert_close(run, expected, rtol=0, atol=0)


def test_an_observer_may_run_another_model() -> None:
    outer, inner = tiny("Llama"), tiny("GPT-2")
    seen: list[int] = []

    def observe(layer: LayerAttention) -> None:
        assert len(weights(inner, "Birds")) == 2
        seen.append(layer.layer)

    outer.forward(outer.batch([outer.encode("Birds")]), observe)
    assert seen == [0, 1]


def test_an_error_in_the_observer_leaves_nothing_behind() -> None:
    model = tiny("Llama")

    def fail(_: LayerAttention) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model.forward(model.batch([model.encode("Birds")]), fail)
    with torch.no_grad():
        assert model.network(torch.tensor([[5, 6]])).logits.shape[1] == 2
    assert len(weights(model, "Birds")) == 2


@pytest.mark.parametrize("name", ["Llama", "GPT-J"])
def test_the_network_computes_the_same_with_and_without_an_observer(name: str) -> None:
    model = tiny(name)
    batch = model.batch([model.encode("Birds sing")])
    observed = model.forward(batch, lambda _: None)
    assert torch.equal(observed.logits, model.forward(batch).logits)


def test_a_network_that_ran_with_sdpa_is_captured() -> None:
    config = deepcopy(tiny("Llama").network.config)
    network = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    network.load_state_dict(tiny("Llama").network.state_dict())
    model = Model(network, tokenizer())
    torch.testing.assert_close(weights(model, "Birds"), weights(tiny("Llama"), "Birds"))


def test_a_network_that_is_switched_back_to_sdpa_is_captured_all_the_same() -> None:
    model = family("Llama").model()
    model.network.set_attn_implementation("sdpa")
    torch.testing.assert_close(weights(model, "Birds"), weights(tiny("Llama"), "Birds"))


def test_a_network_in_training_mode_is_put_to_evaluation() -> None:
    network = family("BERT").network()
    network.train()
    torch.testing.assert_close(
        weights(Model(network, tokenizer()), "Birds"), weights(tiny("BERT"), "Birds")
    )


def test_dropout_that_comes_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = family("BERT").model()
    model.network.train()
    monkeypatch.setattr("headscope.model.model.evaluating", lambda _: nullcontext())
    with pytest.raises(CaptureError, match="sums to"):
        model.trace("Birds sing")


def test_gradient_checkpointing_does_not_double_the_calls() -> None:
    network: PreTrainedModel = family("BERT").network()
    network.gradient_checkpointing_enable()
    assert len(weights(Model(network, tokenizer()), "Birds")) == 2


@pytest.mark.parametrize("name", ["GPT-2", "GPT-J", "XLNet"])
def test_no_cache_is_kept(name: str) -> None:
    model = tiny(name)
    output: Any = model.forward(model.batch([model.encode("Birds")]), lambda _: None)
    assert getattr(output, "past_key_values", None) is None
    assert getattr(output, "mems", None) is None


def test_rows_of_a_family_with_sinks_sum_to_less_than_one() -> None:
    model = tiny("gpt-oss")
    assert model.stacks[0].sink
    for layer in weights(model, "Birds sing"):
        assert float(layer.sum(-1).max()) < 1


def test_gradients_reach_the_weights_that_are_shown() -> None:
    model = tiny("BERT")
    shown: list[Tensor] = []

    def keep(seen: LayerAttention) -> None:
        seen.weights.retain_grad()
        shown.append(seen.weights)

    batch = model.batch([model.encode("Birds sing")])
    model.forward(batch, keep, gradients=True).logits.square().sum().backward()
    assert all(layer.grad is not None and bool(layer.grad.any()) for layer in shown)
    model.network.zero_grad()


def test_without_gradients_nothing_is_recorded_for_them() -> None:
    assert not any(layer.requires_grad for layer in weights(tiny("BERT"), "Birds"))


def test_lost_masks_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama

    model = tiny("Llama")
    with monkeypatch.context() as patch:
        patch.setattr(modeling_llama, "create_causal_mask", lambda **_: None)
        with pytest.raises(CaptureError, match="mask was lost"):
            model.trace("Birds sing")
    assert model.trace("Birds sing").is_causal


def test_a_network_without_attention_is_refused_by_the_probe() -> None:
    network = family("Llama").network()
    network.model.layers = network.model.layers[:0]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(CaptureError, match="reports no attention weights"):
        Model(network, tokenizer(), name="hollow")


def test_shape_validation_alone_lets_values_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("Llama")
    batch = model.batch([model.encode("Birds")])
    monkeypatch.setattr(
        "headscope.model.capture.dense.measure", lambda *_: pytest.fail("values checked")
    )
    model.forward(batch, lambda _: None, validate="shape")
