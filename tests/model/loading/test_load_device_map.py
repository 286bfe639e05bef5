"""Weights spread over memory and disk give the same attention, bit for bit; options are checked."""

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from headscope.errors import ModelError
from headscope.model.loading import network, quantization
from headscope.model.loading.load import load
from headscope.model.loading.network import at_hand, entries_of
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.references.tiny_families import family, save, tiny

TEXT = "Birds sing."
T5_PARTS = ("embed_tokens", "final_layer_norm")  # embeddings are shared, so they stay together
HALF_ON_DISK = {
    "model.embed_tokens": "disk",
    "model.rotary_emb": "cpu",
    "model.layers.0": "cpu",
    "model.layers.1": "disk",
    "model.norm": "cpu",
    "lm_head": "disk",
}

T5_IN_MEMORY = [
    "shared",
    "lm_head",
    *(f"{stack}.{part}" for stack in ("encoder", "decoder") for part in T5_PARTS),
]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("Llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def spread(llama: Path) -> Model:
    return load(llama, device_map=HALF_ON_DISK)


def test_a_network_on_cpu_and_disk_gives_the_same_numbers_bit_for_bit(spread: Model) -> None:
    assert any(tensor.is_meta for tensor in spread.network.parameters())
    there, here = spread.trace(TEXT, generate=3), tiny("Llama").trace(TEXT, generate=3)
    assert there.tokens == here.tokens and there.layers == here.layers
    for layer in here.layers:
        for part in ("weights", "query", "key", "value", "bias", "value_norms"):
            mine, own = (getattr(each.default, part)[layer] for each in (there, here))
            assert torch.equal(mine, own), (part, layer)


def test_off_loaded_weights_can_be_read_one_at_a_time(spread: Model) -> None:
    own = tiny("Llama").network.state_dict()
    found = {name: entry.clone() for name, entry in entries_of(spread.network)}
    assert found.keys() == own.keys()
    assert all(torch.equal(found[name], own[name]) for name in own)
    projection = spread.network.get_submodule("model.layers.1.self_attn.o_proj")
    with at_hand(projection):
        assert isinstance(projection.weight, Tensor) and not projection.weight.is_meta
    assert projection.weight.is_meta


def test_the_fingerprint_does_not_depend_on_where_the_weights_are(spread: Model) -> None:
    assert spread.fingerprint == tiny("Llama").fingerprint
    assert spread.sketch == tiny("Llama").sketch


def test_another_process_spreads_the_model_in_the_same_way(spread: Model) -> None:
    again = pickle.loads(pickle.dumps(spread))
    assert again.remarks == spread.remarks
    assert spread.remarks[0].startswith("Weights are spread by accelerate: ")
    assert "on disk" in spread.remarks[0]


@pytest.mark.parametrize(
    ("name", "on_disk", "in_memory"),
    [
        ("BERT", ["bert.encoder"], ["bert.embeddings", "cls"]),
        ("T5", ["encoder.block", "decoder.block"], T5_IN_MEMORY),
        ("GPT-J", ["transformer.h", "lm_head"], ["transformer.wte", "transformer.ln_f"]),
    ],
)
def test_other_ways_to_capture_work_on_a_spread_network(
    name: str, on_disk: list[str], in_memory: list[str], tmp_path: Path
) -> None:
    places = {**dict.fromkeys(on_disk, "disk"), **dict.fromkeys(in_memory, "cpu")}
    model = load(save(name, tmp_path), device_map=places)
    assert any(tensor.is_meta for tensor in model.network.parameters())
    there, here = model.trace(TEXT), tiny(name).trace(TEXT)
    for layer in here.layers:
        assert torch.equal(there.weights[layer], here.weights[layer])


class Elsewhere(nn.Module):
    """Runs a layer on another device than the rest of the network."""

    def __init__(self, layer: nn.Module, device: str) -> None:
        super().__init__()
        self.layer, self.device = layer.to(device), device

    def forward(self, states: Tensor, **given: object) -> Tensor:
        moved = {name: _to(value, self.device) for name, value in given.items()}
        return self.layer(states.to(self.device), **moved).to(states.device)


def _to(value: object, device: str) -> object:
    if isinstance(value, tuple):
        return tuple(_to(each, device) for each in value)
    return value.to(device) if isinstance(value, Tensor) else value


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a second device")
@pytest.mark.parametrize("block", [None, 2])
def test_a_layer_on_a_second_device_is_seen_where_the_inputs_are(block: int | None) -> None:
    network = family("Llama").network()
    layers = network.get_submodule("model.layers")
    assert isinstance(layers, nn.ModuleList)
    layers[1] = Elsewhere(layers[1], "cuda")
    model, own = Model(network, tokenizer()), tiny("Llama")
    batch, expected = model.batch([model.encode(TEXT)]), own.trace(TEXT)
    seen: list[Tensor] = []
    model.forward(batch, lambda layer: seen.append(layer.weights), block=block)
    assert all(weights.device.type == "cpu" for weights in seen)
    half = len(seen) // 2
    for layer in (0, 1):
        whole = torch.cat(seen[layer * half : (layer + 1) * half], 2)[0]
        torch.testing.assert_close(whole, expected.weights[layer], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("everywhere", "There is no device map 'everywhere'; give one of auto, balanced"),
        ("[1]", r"does not say which part goes where"),
        ({"lm_head": "toaster"}, "The device 'toaster' cannot be used here"),
        ({"lm_head": None}, "names parts and devices, not 'lm_head': None"),
    ],
)
def test_a_wrong_device_map_is_one_sentence(given: object, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load("mini-gpt2", device_map=given)  # pyright: ignore[reportArgumentType]


def test_a_map_that_parts_shared_weights_is_one_sentence(tmp_path: Path) -> None:
    places = {"encoder": "disk", "decoder": "disk", "shared": "cpu", "lm_head": "cpu"}
    with pytest.raises(ModelError, match=r"cannot be spread as the device map says \(.*auto\.$"):
        load(save("T5", tmp_path), device_map=places)


def test_a_device_and_a_map_exclude_each_other() -> None:
    with pytest.raises(ModelError, match="device=cpu and a device_map are both given"):
        load("mini-gpt2", device="cpu", device_map="auto")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (network, quantization):
        monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"by accelerate, .* `pip install 'headscope\[large\]'`"):
        load("mini-gpt2", device_map="auto")
    with pytest.raises(ModelError, match=r"int8 need torchao or bitsandbytes: .*\[torchao\]"):
        load("mini-gpt2", quantization="int8")
    with pytest.raises(ModelError, match=r"in int4 need torchao: `pip install"):
        load("mini-gpt2", quantization="torchao-int4")
    with pytest.raises(ModelError, match="no quantization 'int3'; choose one of int8, int4"):
        load("mini-gpt2", quantization="int3")


def test_eight_bits_need_accelerate_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "find_spec", lambda name: None if name == "accelerate" else 1)
    with pytest.raises(ModelError, match=r"need accelerate: `pip install 'headscope\[torchao\]'`"):
        load("mini-gpt2", quantization="int8")
