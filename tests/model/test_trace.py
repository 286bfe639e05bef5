"""A trace keeps what was asked for, with the tokens and words it belongs to."""

import pytest
import torch
from transformers import BertForMaskedLM

from headscope.errors import CaptureError, ModelError
from tests.references.tiny_families import tiny


def test_a_trace_has_every_layer_and_head_by_default() -> None:
    trace = tiny("GPT-2").trace("Birds sing.")
    assert trace.layers == (0, 1)
    assert trace.heads == (0, 1, 2, 3)
    assert trace.weights[1].shape == (4, 13, 13)
    assert trace.is_causal and not trace.weights[0].triu(1).any()
    assert trace.prompt_length is None and trace.no_neurons is None


def test_words_are_those_between_spaces() -> None:
    side = tiny("BERT").trace("Birds sing.").default.queries
    assert side.words == ("Birds", "sing.")
    assert side.word_of_token == (-1, *[0] * 5, -1, *[1] * 5, -1)


def test_chosen_layers_and_heads_are_all_that_is_kept() -> None:
    model = tiny("Llama")
    whole = model.trace("Birds sing.").default
    part = model.trace("Birds sing.", layers=[1], heads=[3, 0]).default
    assert part.layers == (1,) and part.heads == (3, 0)
    assert list(part.weights) == [1]
    assert torch.equal(part.weights[1], whole.weights[1][[3, 0]])
    assert part.query is not None and whole.query is not None
    assert torch.equal(part.query[1], whole.query[1][[3, 0]])
    assert part.key is not None and whole.key is not None
    assert part.key_head_of == (1, 0)
    assert torch.equal(part.key[1], whole.key[1])


def test_only_the_key_heads_in_use_are_kept() -> None:
    part = tiny("Llama").trace("Birds sing.", heads=[2]).default
    assert part.key is not None and part.key[0].shape[0] == 1
    assert part.key_head_of == (0,)


def test_unknown_layers_and_heads_are_named() -> None:
    with pytest.raises(ModelError, match="no layer 7; it has layers 0 to 1"):
        tiny("BERT").trace("Birds", layers=[7])
    with pytest.raises(ModelError, match="no head -1; it has heads 0 to 3"):
        tiny("BERT").trace("Birds", heads=[-1])
    with pytest.raises(ModelError, match="no layer 0; it has layers 1, 3"):
        tiny("Jamba").trace("Birds", layers=[0])


def test_a_pair_has_segments_and_offsets_into_one_text() -> None:
    side = tiny("BERT").trace("Birds sing", "and fly").default.queries
    assert side.text == "Birds sing\nand fly"
    assert side.segments == (0,) * 12 + (1,) * 8
    assert side.words == ("Birds", "sing", "and", "fly")
    spelled = [side.text[start:end] for start, end in side.offsets]
    assert "".join(spelled).replace(" ", "") == "Birdssingandfly"


def test_segments_reach_the_network() -> None:
    model = tiny("BERT")
    assert isinstance(model.network, BertForMaskedLM)
    encoded = model.encode("Birds", "fly")
    with torch.no_grad():
        own = model.network(
            input_ids=torch.tensor([encoded.ids]),
            token_type_ids=torch.tensor([encoded.segments]),
            output_attentions=True,
        ).attentions
    assert own is not None
    torch.testing.assert_close(model.trace("Birds", "fly").weights[1], own[1][0])


def test_an_encoder_decoder_traces_three_stacks() -> None:
    trace = tiny("BART").trace("Birds", target="Vögel")
    assert list(trace.stacks) == ["encoder", "decoder", "cross"]
    cross = trace.stack("cross")
    assert cross.queries.labels[0] == "[SEP]"  # its decoder starts with the end token
    assert cross.queries.special[:2] == (True, True)
    assert cross.keys.labels == trace.tokens
    assert cross.weights[0].shape == (4, len(cross.queries), len(cross.keys))
    assert trace.stack("decoder").queries == cross.queries


def test_without_a_target_the_encoder_is_traced_alone() -> None:
    model = tiny("T5")
    alone = model.trace("Birds")
    assert list(alone.stacks) == ["encoder"]
    whole = model.trace("Birds", target="Vögel")
    torch.testing.assert_close(alone.weights[2], whole.weights[2])


def test_a_target_needs_a_decoder() -> None:
    with pytest.raises(ModelError, match="has no decoder"):
        tiny("BERT").trace("Birds", target="Vögel")


def test_an_unknown_stack_is_named() -> None:
    with pytest.raises(CaptureError, match="no stack 'cross'; it has self"):
        tiny("BERT").trace("Birds").stack("cross")


def test_families_outside_the_interface_say_why_there_are_no_neurons() -> None:
    trace = tiny("GPT-J").trace("Birds")
    assert trace.query is None and trace.key is None
    assert trace.no_neurons == "this family computes attention outside the attention interface"
    assert trace.default.norms is None and trace.default.no_norms is not None


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT"])
def test_norms_are_the_length_of_what_a_head_moves(name: str) -> None:
    model = tiny(name)
    stack = model.trace("Birds sing.", heads=[1, 2]).default
    slot = model.plan.slots[1]
    assert stack.value is not None and stack.norms is not None
    assert slot is not None and slot.projection is not None
    weight = slot.projection.weight.detach()
    matrix = weight if name == "GPT-2" else weight.T
    for place, head in enumerate(stack.heads):
        value = stack.value[1][stack.key_head_of[place]]
        moved = value @ matrix[head * 8 : (head + 1) * 8]
        for query in range(3):
            for key in range(3):
                length = float((stack.weights[1][place, query, key] * moved[key]).norm())
                assert float(stack.norms[1][place, query, key]) == pytest.approx(length, abs=1e-5)


def test_a_configuration_without_padding_id_is_traced_and_batched() -> None:
    model = tiny("CodeGen")
    assert not hasattr(model.network.config, "pad_token_id")
    assert model.trace("Birds").weights[1].shape == (4, 7, 7)
    assert model.batch([model.encode("a"), model.encode("abc")]).lengths == (3, 5)


def test_masked_places_of_the_bias_are_minus_infinity() -> None:
    stack = tiny("GPT-2").trace("Birds").default
    assert stack.bias is not None
    bias = stack.bias[0]
    ahead = torch.ones(bias.shape[-2:], dtype=torch.bool).triu(1)
    assert bool(torch.isneginf(bias[..., ahead]).all())
    assert bool((bias[..., ~ahead] == 0).all())
