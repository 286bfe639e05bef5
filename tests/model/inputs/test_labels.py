"""Pieces of characters say which character they belong to, and which part of it they are."""

from itertools import pairwise
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope.model.generate import label_ids
from headscope.model.inputs.encode import encode
from headscope.model.inputs.labels import display, display_text
from tests.references.tiny_families import tiny
from tests.references.tokenizers_by_kind import (
    byte_fallback,
    byte_level,
    byte_level_after_splitting,
    word_piece,
)

KINDS = {
    "byte-level": byte_level(),
    "byte-level after splitting": byte_level_after_splitting(),
    "byte fallback": byte_fallback(),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def tokens(tokenizer: PreTrainedTokenizerFast, text: str) -> tuple[str, ...]:
    return encode(tokenizer, text, special=False).labels


def test_the_bytes_of_a_chinese_character_are_told_apart() -> None:
    assert tokens(byte_level(), "你好") == (
        *("你 1/3", "你 2/3", "你 3/3"),
        *("好 1/3", "好 2/3", "好 3/3"),
    )


def test_merged_bytes_are_one_part() -> None:
    found = tokens(byte_level_after_splitting(), "你 你")
    assert found == ("你 1/2", "你 2/2", " 你 1/2", "你 2/2")


def test_bytes_that_sentencepiece_falls_back_to_are_told_apart() -> None:
    assert tokens(byte_fallback(), "a 你") == (" a", "␣", "你 1/3", "你 2/3", "你 3/3")


def test_the_bundled_model_shows_what_it_reads() -> None:
    assert hs.load("mini-gpt2").encode("I 你 👍 –").labels == (
        *("I", "␣", "你 1/3", "你 2/3", "你 3/3"),
        *("␣", "👍 1/4", "👍 2/4", "👍 3/4", "👍 4/4"),
        *(" – 1/2", "– 2/2"),
    )


def test_characters_without_ink_are_shown_by_their_code_point() -> None:
    """A joiner, a variation selector and an ideographic space leave no trace of their own."""
    assert tokens(byte_level(), "x\u200d")[1:] == ("U+200D 1/3", "U+200D 2/3", "U+200D 3/3")
    assert tokens(byte_level(), "x\ufe0f")[1] == "U+FE0F 1/3"
    assert tokens(byte_level(), "x\u3000")[3] == "U+3000 3/3"


def test_bytes_that_are_no_character_are_unreadable() -> None:
    kind = byte_level()
    ids = kind("你", add_special_tokens=False)["input_ids"][:2]  # pyright: ignore[reportIndexIssue]
    assert label_ids(kind, ids) == ("\ufffd 1/2", "\ufffd 2/2")


def test_ids_alone_have_the_labels_of_their_text() -> None:
    for text in ("I 你 👍 –", "café 👍👍."):
        encoded = hs.load("mini-gpt2").encode(text)
        assert label_ids(hs.load("mini-gpt2").tokenizer, encoded.ids) == encoded.labels


def test_a_token_with_parts_of_two_characters_shows_both() -> None:
    kind = byte_level()
    kind.add_tokens(["\u0142å"])  # the end of 你 and the start of 好
    first, second = ([kind.get_vocab()[letter] for letter in two] for two in ("ä½", "¥½"))
    ids = [*first, len(kind) - 1, *second]
    places = [(0, 1, 0), (0, 1, 0), (0, 2, 0), (1, 2, 0), (1, 2, 0)]
    assert display_text(kind, ids, ["你好"], places) == (
        *("你 1/3", "你 2/3", "你 3/3·好 1/3", "好 2/3", "好 3/3"),
    )


def test_a_replacement_character_in_the_text_is_itself() -> None:
    assert tokens(word_piece(), "the") == ("the",)
    assert tokens(byte_level(), "\ufffd") == (
        "\ufffd 1/3",
        "\ufffd 2/3",
        "\ufffd 3/3",
    )


def test_a_single_token_has_no_neighbours_to_ask() -> None:
    kind = byte_level()
    assert display(kind, [kind.get_vocab()["ä"]]) == ("\ufffd",)


@each_kind
@given(text=st.text(st.characters(categories=("L", "S", "P", "Mn", "Cf")), min_size=1, max_size=8))
def test_labels_are_never_empty_and_parts_of_a_character_never_alike(
    kind: PreTrainedTokenizerFast, text: str
) -> None:
    encoded = encode(kind, f"a{text}", special=False)
    assert all(token.strip() for token in encoded.labels)
    for (one, here), (two, there) in pairwise(zip(encoded.labels, encoded.offsets, strict=True)):
        if here == there:
            assert one != two


@given(text=st.text(st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), min_size=1))
def test_every_byte_of_a_character_is_counted_where_nothing_is_merged(text: str) -> None:
    expected: list[str] = []
    for character in text:
        size = len(character.encode())
        name = f"U+{ord(character):04X}" if category(character)[0] in "MCZ" else character
        expected += [f"{name} {part}/{size}" for part in range(1, size + 1)]
    assert tokens(KINDS["byte-level"], text) == tuple(expected)


def test_a_trace_shows_the_parts() -> None:
    assert tiny("GPT-2").trace("é").tokens == ("[CLS]", "é 1/2", "é 2/2", "[SEP]")
