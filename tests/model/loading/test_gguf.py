"""A .gguf file loads as the network it was written from."""

from pathlib import Path

import gguf
import pytest
import torch
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.model.loading.load import load
from tests.contracts.family import tokenizer
from tests.references.tiny_families import family, tiny

# What llama.cpp calls the parts of a Llama.
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write(network: PreTrainedModel, file: Path) -> None:
    """The network as llama.cpp would convert it."""
    config = network.config
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    add_tokenizer(writer, config.vocab_size)
    for name, tensor in network.state_dict().items():
        writer.add_tensor(named(name), arranged(name, tensor, config).contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: object, size: int) -> None:
    vocabulary = tokenizer().get_vocab()
    tokens = [f"<unused{n}>" for n in range(size)]
    tokens[-2:] = "th", "he"
    for token, place in vocabulary.items():
        tokens[place] = token
    writer.add_tokenizer_model("gpt2")  # pyright: ignore[reportAttributeAccessIssue]
    writer.add_tokenizer_pre("gpt-2")  # pyright: ignore[reportAttributeAccessIssue]
    writer.add_token_list(tokens)  # pyright: ignore[reportAttributeAccessIssue]
    writer.add_token_merges(["t h", "h e"])  # pyright: ignore[reportAttributeAccessIssue]
    writer.add_bos_token_id(2)  # pyright: ignore[reportAttributeAccessIssue]
    writer.add_eos_token_id(3)  # pyright: ignore[reportAttributeAccessIssue]


def named(name: str) -> str:
    inner = name.removesuffix(".weight")
    if inner.startswith("model.layers."):
        _, _, number, part = inner.split(".", 3)
        return f"blk.{number}.{NAMES[part]}.weight"
    return f"{NAMES[inner]}.weight"


def arranged(name: str, tensor: torch.Tensor, config: object) -> torch.Tensor:
    """llama.cpp keeps the two halves of a rotation side by side."""
    heads = {
        "q_proj": config.num_attention_heads,  # pyright: ignore[reportAttributeAccessIssue]
        "k_proj": config.num_key_value_heads,  # pyright: ignore[reportAttributeAccessIssue]
    }.get(name.split(".")[-2])
    if heads is None:
        return tensor
    return tensor.reshape(heads, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)


def test_a_gguf_file_gives_the_attention_of_the_network_in_it(tmp_path: Path) -> None:
    write(family("Llama").network(), tmp_path / "tiny.gguf")
    model, own = load(tmp_path / "tiny.gguf"), tiny("Llama")
    assert model.encode("a bird").ids[-6:] == own.encode("a bird", special=False).ids
    there = model.trace("Birds sing")
    here = type(own)(own.network, model.tokenizer).trace("Birds sing")
    assert there.tokens == here.tokens
    for layer in here.layers:
        torch.testing.assert_close(there.weights[layer], here.weights[layer], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (b"llama.block_count", 2**31 - 1, "num_hidden_layers"),
        (b"llama.attention.head_count", 0, "cannot be loaded"),
        (b"llama.embedding_length", 7, "cannot be loaded"),
    ],
)
def test_a_header_that_lies_is_one_sentence(
    key: bytes, value: int, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "lies.gguf"
    write(family("Llama").network(), file)
    content = bytearray(file.read_bytes())
    begin = content.index(key) + len(key) + 4  # behind the name and the type of the value
    content[begin : begin + 4] = value.to_bytes(4, "little")
    file.write_bytes(content)
    with pytest.raises(ModelError, match=sentence):
        load(file)


@pytest.mark.parametrize(
    ("tensor", "size", "sentence"),
    [
        ("token_embd", 0, "is 300 × 0, but the configuration wants 300 × 32"),
        ("output_norm", 1, "is 1, but the configuration wants 32"),
        ("blk.0.attn_q", 0, "is 32 × 0, but the configuration wants 32 × 32"),
        ("output", 2**40, "cannot be loaded"),
        ("output", 2**64 - 1, "cannot be loaded"),
    ],
)
def test_a_tensor_of_another_shape_is_one_sentence(
    tensor: str, size: int, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "lies.gguf"
    write(family("Llama").network(), file)
    content, name = bytearray(file.read_bytes()), f"{tensor}.weight".encode()
    begin = content.rindex(name) + len(name) + 4  # behind the number of its dimensions
    content[begin : begin + 8] = size.to_bytes(8, "little")
    file.write_bytes(content)
    with pytest.raises(ModelError, match=sentence):
        load(file)


def test_a_gguf_file_is_parsed_once_and_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    network = family("Llama").network()
    write(network, tmp_path / "tiny.gguf")
    parsed: list[object] = []
    parse = gguf.GGUFReader.__init__

    def count(self: gguf.GGUFReader, *given: object) -> None:
        parsed.append(given)
        parse(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(gguf.GGUFReader, "__init__", count)
    kind = gguf.GGUFReader
    load(tmp_path / "tiny.gguf")
    assert len(parsed) == 1
    told = capfd.readouterr().err.splitlines()
    assert told[0] == "Reading tiny.gguf, 0 MB" and len(told) == 2
    assert told[1].startswith(f"tiny.gguf: {len(network.state_dict())} tensors, ")
    load(tmp_path / "tiny.gguf")
    assert len(parsed) == 2, "a file may have changed"
    assert gguf.GGUFReader is kind


def test_a_file_that_is_no_gguf_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but no more")
    with pytest.raises(ModelError, match=r"of .*broken\.gguf cannot be loaded"):
        load(tmp_path / "broken.gguf")
