"""Quantised networks are traced; only what needs the matrix of a projection is left out."""

import json
import pickle
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoConfig

from headscope.errors import ModelError
from headscope.model.loading.load import load
from headscope.model.loading.quantization import Quantization, check_quantised
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.model.loading.quantised import Bits, quantise
from tests.references.tiny_families import family, save

REASON = "the matrix of its output projection (QuantisedLinear) is quantised and cannot be read"


def quantised(name: str, bits: Bits) -> Model:
    return Model(quantise(family(name).network(), bits), tokenizer(), name=f"{name}-{bits}")


def dynamic(name: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that torchao will take over
        network = torch.ao.quantization.quantize_dynamic(
            family(name).network(), {nn.Linear}, dtype=torch.qint8
        )
    return Model(network, tokenizer(), name=name)  # pyright: ignore[reportArgumentType]


def own(model: Model) -> torch.Tensor:
    model.network.set_attn_implementation("eager")
    ids = torch.tensor([model.encode("Birds sing").ids])
    with torch.no_grad():
        return model.network.eval()(input_ids=ids, output_attentions=True).attentions[1][0]


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", ["Llama", "BERT", "OPT"])
def test_a_quantised_network_is_traced_without_norms(name: str, bits: Bits) -> None:
    model = quantised(name, bits)
    trace = model.trace("Birds sing")
    torch.testing.assert_close(trace.weights[1], own(model))
    assert trace.default.no_norms == REASON and trace.default.norms is None
    assert trace.query is not None and trace.no_neurons is None  # the neuron view is left


@pytest.mark.parametrize("name", ["Llama", "BERT"])
def test_dynamic_int8_layers_of_torch_are_traced(name: str) -> None:
    model = dynamic(name)
    trace = model.trace("Birds sing")
    torch.testing.assert_close(trace.weights[1], own(model))
    assert trace.default.no_norms is not None and "(Linear) is quantised" in trace.default.no_norms


def test_a_projection_of_another_precision_than_its_input_is_left_out() -> None:
    network = family("Llama").network()
    for name, module in network.named_modules():
        if name.endswith("o_proj"):
            assert isinstance(module, torch.nn.Linear)
            module.to(torch.bfloat16)
            module.register_forward_pre_hook(lambda _, args: (args[0].bfloat16(),))
            module.register_forward_hook(lambda _, __, output: output.float())
    trace = Model(network, tokenizer()).trace("Birds sing")
    assert trace.default.norms is None


def test_quantised_networks_have_fingerprints_of_their_own() -> None:
    eight, four, dyn = quantised("Llama", 8), quantised("Llama", 4), dynamic("Llama")
    found = {model.fingerprint for model in (eight, four, dyn, family("Llama").model())}
    assert len(found) == 4
    assert quantised("Llama", 8).fingerprint == eight.fingerprint
    assert dynamic("Llama").fingerprint == dyn.fingerprint


@pytest.mark.parametrize("bits", [8, 4])
def test_a_quantised_network_cannot_be_made_again_elsewhere_and_says_so(bits: Bits) -> None:
    with pytest.raises(ModelError, match="save it and load it from its directory"):
        pickle.loads(pickle.dumps(quantised("Llama", bits)))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("Llama", tmp_path_factory.mktemp("llama"))


@pytest.mark.parametrize("method", ["gptq", "awq", "compressed-tensors", "bitsandbytes"])
def test_a_checkpoint_in_few_bits_names_the_package_it_needs(method: str, tmp_path: Path) -> None:
    directory = save("Llama", tmp_path)
    config = json.loads((directory / "config.json").read_text())
    config["quantization_config"] = {"quant_method": method, "bits": 4, "load_in_4bit": True}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=f"^{directory} needs a package that .*pip install"):
        load(directory)
    with pytest.raises(ModelError, match=f"quantised by {method} already; leave quantization out"):
        check_quantised("m", AutoConfig.from_pretrained(directory))


def test_weights_in_eight_bits_are_near_the_whole_ones(llama: Path) -> None:
    pytest.importorskip("torchao")
    model = load(llama, quantization="int8")
    assert "14 of 15 linear layers are in int8 by torchao" in model.remarks[0]
    trace, whole = model.trace("Birds sing"), load(llama).trace("Birds sing")
    for layer in whole.layers:
        gap = (trace.weights[layer] - whole.weights[layer]).abs().max()
        assert 0 < gap < 0.05


def test_a_network_without_linear_layers_is_not_said_to_be_quantised() -> None:
    with pytest.raises(ModelError, match="torchao finds nothing to store in int8"):
        Quantization("torchao", "int8").describe(family("GPT-2").network().base_model)  # pyright: ignore[reportArgumentType]
