"""Text becomes tokens with spans; what cannot be encoded is refused in one sentence."""

import pytest
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope.errors import ModelError
from headscope.model.inputs.encode import encode
from headscope.model.inputs.labels import display, unmark
from headscope.model.inputs.tokens import Characters
from tests.contracts.family import tokenizer
from tests.references.tiny_families import tiny
from tests.references.tokenizers_by_kind import byte_level, metaspace, word_piece


def test_offsets_are_the_characters_of_each_token() -> None:
    tokens = encode(word_piece(), "The cats sat.")
    pieces = [tokens.text[start:end] for start, end in tokens.offsets]
    assert pieces == ["", "The", "cat", "s", "sat", ".", ""]
    assert tokens.special == (True, False, False, False, False, False, True)
    assert tokens.places[:3] == (None, Characters(0, 3), Characters(4, 7))


def test_a_pair_has_two_segments() -> None:
    tokens = encode(word_piece(), "the cat", "sat")
    assert tokens.labels == ("[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]")
    assert tokens.segments == (0, 0, 0, 0, 1, 1)
    assert tokens.texts == ("the cat", "sat")
    assert tokens.places[3:] == (None, Characters(0, 3, 1), None)
    assert tokens.text == "the cat\nsat" and tokens.offsets[4] == (8, 11)


def test_special_tokens_can_be_left_out() -> None:
    tokens = encode(word_piece(), "the cat", special=False)
    assert tokens.labels == ("the", "cat")
    assert not any(tokens.special)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_text_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="text is empty"):
        tiny("BERT").encode(text)


def test_an_empty_pair_is_refused() -> None:
    with pytest.raises(ModelError, match="pair is empty"):
        tiny("BERT").encode("one", "")


def test_a_model_that_cannot_part_a_pair_refuses_it() -> None:
    model = hs.load("mini-gpt2")
    with pytest.raises(ModelError, match=r"mini-gpt2 takes no pairs .* leave the pair out"):
        model.trace("The cat sat.", "It slept.")
    assert model.encode("The cat sat. It slept.").labels[3:5] == (".", " It")
    assert hs.load("mini-bert").encode("The cat sat.", "It slept.").labels.count("[SEP]") == 2


def test_a_text_longer_than_the_positions_is_refused_with_the_limit() -> None:
    model = tiny("GPT-2")
    with pytest.raises(ModelError, match=r"has 102 tokens, .* at most 64"):
        model.encode("x" * 100)
    assert len(model.encode("x" * 62)) == 64


def test_truncation_only_when_asked_keeps_the_special_tokens() -> None:
    tokens = tiny("BERT").encode("x" * 100, truncate=True)
    assert len(tokens) == 64
    assert tokens.labels[-1] == "[SEP]"


def test_relative_positions_have_no_limit() -> None:
    model = tiny("T5")
    assert model.max_length is None
    assert len(model.encode("x" * 500)) == 502


def test_roberta_loses_positions_to_its_padding_id() -> None:
    assert tiny("RoBERTa").max_length == 64 - 2


def test_a_tokenizer_of_another_model_is_refused() -> None:
    model = tiny("BERT")
    foreign = byte_level(padding=400)
    with pytest.raises(ModelError, match="belongs to the model"):
        type(model)(model.network, foreign, name="mixed").encode("the")


def test_a_tokenizer_without_padding_token_still_batches() -> None:
    built = tokenizer().backend_tokenizer
    bare = PreTrainedTokenizerFast(tokenizer_object=built)
    model = type(tiny("GPT-2"))(tiny("GPT-2").network, bare, name="bare")
    assert bare.pad_token is None
    batch = model.batch([model.encode("a"), model.encode("abc")])
    assert batch.lengths == (3, 5)


def test_a_space_shows_where_a_word_begins() -> None:
    for kind in (byte_level(), metaspace()):
        ids = kind("the cat", add_special_tokens=False)["input_ids"]
        assert "".join(display(kind, ids)).strip() == "the cat"  # pyright: ignore[reportArgumentType]


def test_pieces_of_words_are_marked() -> None:
    assert encode(word_piece(), "cats").labels == ("[CLS]", "cat", "##s", "[SEP]")


def test_invisible_tokens_become_visible() -> None:
    assert encode(byte_level(), "a\n b", special=False).labels == ("a", "⏎", " b")


def test_marks_of_raw_tokens_are_removed() -> None:
    assert [unmark(token) for token in ("Ġcat", "▁cat", "cat</w>")] == [" cat", " cat", "cat"]
