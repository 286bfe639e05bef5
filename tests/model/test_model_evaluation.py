"""A network that is looked at stays as its owner left it."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

import headscope as hs
from headscope.errors import CaptureError
from headscope.model.model import Model
from tests.contracts.family import CLASSES, tokenizer
from tests.references.tiny_families import family, tiny

INTERFACE, HOOKS, OUTPUTS = ("BERT", "Llama", "T5", "BART"), ("GPT-J", "MPNet"), ("XLNet",)


def training(name: str) -> PreTrainedModel:
    """A network in the middle of training: dropout on, but for one part that is frozen."""
    config = family(name).network().config
    chosen = "eager" if name in HOOKS + OUTPUTS else "sdpa"
    network = CLASSES[family(name).kind].from_config(config, attn_implementation=chosen)
    network.load_state_dict(tiny(name).network.state_dict())
    network.train()
    network.get_input_embeddings().eval()
    return network


def settings(network: PreTrainedModel) -> tuple[list[bool], list[str | None]]:
    models = [m for m in network.modules() if isinstance(m, PreTrainedModel)]
    modes = [module.training for module in network.modules()]
    return modes, [model.config._attn_implementation for model in models]


def hooks(network: nn.Module) -> list[str]:
    """The hooks that are ours."""
    return [
        hook.__module__
        for module in network.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
        if hook.__module__.startswith("headscope")
    ]


USES: dict[str, Callable[[Model], object]] = {
    "load": lambda model: model,
    "trace": lambda model: model.trace("Birds sing"),
    "padding": lambda model: model.can_pad("left"),
    "modes": lambda model: model.modes,
    "views": lambda model: model.trace("Birds").head_view(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", [*INTERFACE, *HOOKS, *OUTPUTS])
def test_settings_are_as_before(name: str, use: str) -> None:
    network = training(name)
    before = settings(network)
    assert True in before[0] and False in before[0]
    USES[use](hs.load(network, tokenizer=tokenizer()))
    assert settings(network) == before
    assert hooks(network) == []


@pytest.mark.parametrize("name", [*INTERFACE, *HOOKS, *OUTPUTS])
def test_the_weights_are_those_of_evaluation(name: str) -> None:
    ours = hs.load(training(name), tokenizer=tokenizer()).trace("Birds sing").weights[1]
    torch.testing.assert_close(ours, tiny(name).trace("Birds sing").weights[1])


@pytest.mark.parametrize("name", ["Llama", "GPT-J"])
def test_a_failed_pass_restores_the_network(name: str) -> None:
    network = training(name)
    model = hs.load(network, tokenizer=tokenizer())
    before = settings(network)

    def fail(_: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        model.forward(model.batch([model.encode("Birds")]), fail)
    assert settings(network) == before and hooks(network) == []


def test_a_network_that_is_refused_is_restored() -> None:
    network = training("Llama")
    network.model.layers = network.model.layers[:0]  # pyright: ignore[reportAttributeAccessIssue]
    before = settings(network)
    with pytest.raises(CaptureError, match="reports no attention"):
        hs.load(network, tokenizer=tokenizer())
    assert settings(network) == before


def test_settings_stay_until_the_last_thread_is_done() -> None:
    network = training("Llama")
    before = settings(network)
    models = [hs.load(network, tokenizer=tokenizer()) for _ in range(3)]
    alone = tiny("Llama").trace("Birds sing").weights[1]
    start = Barrier(3)

    def many_times(model: Model) -> list[torch.Tensor]:
        start.wait()
        return [model.trace("Birds sing").weights[1] for _ in range(15)]

    with ThreadPoolExecutor(3) as pool:
        found = [weights for each in pool.map(many_times, models) for weights in each]
    for weights in found:
        torch.testing.assert_close(weights, alone)
    assert settings(network) == before


def test_training_goes_on_between_traces() -> None:
    network = training("BERT")
    model = hs.load(network, tokenizer=tokenizer())
    first = model.trace("Birds").weights[0]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)
    assert network.training
    assert not torch.allclose(model.trace("Birds").weights[0], first)


def test_the_implementation_does_not_change_which_model_it_is() -> None:
    model = hs.load(training("Llama"), tokenizer=tokenizer())
    assert model.fingerprint == tiny("Llama").fingerprint
    assert pickle.loads(pickle.dumps(model)).fingerprint == model.fingerprint
