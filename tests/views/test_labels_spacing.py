"""Tokens joined as the text reads, whatever marks the tokenizer makes."""

import pytest

from headscope.views.labels import bare, spaces_before


def joined(tokens: list[str], text: str, *, word_pieces: bool = False) -> str:
    spaces = spaces_before(tokens, text, word_pieces=word_pieces)
    pairs = zip(tokens, spaces, strict=True)
    return "".join((" " if space else "") + bare(token) for token, space in pairs)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["The", " cat", " sat", "."], "The cat sat."),
        (["the", "cat", "un", "##seen", ",", "sat", "."], "the cat unseen, sat."),
        (["don", "'", "t", '"', "go", '"'], 'don\'t "go"'),
        ([" A", "B", "-", "C"], "AB-C"),
        (["こ", "れ", "は"], "これは"),
    ],
    ids=["leading spaces", "word pieces", "quotes", "a space the tokenizer added", "no spaces"],
)
def test_tokens_read_as_the_text_was_written(tokens: list[str], text: str) -> None:
    assert joined(tokens, text) == text


def test_case_that_the_tokenizer_dropped_does_not_matter() -> None:
    tokens = ["[CLS]", "mr", ".", "x", "[SEP]"]
    assert joined(tokens, "Mr. X", word_pieces=True) == "[CLS] mr. x [SEP]"


def test_what_is_not_in_the_text_goes_by_its_own_mark() -> None:
    assert joined(["a", "[UNK]", "##b", "!"], "a ⸘b!", word_pieces=True) == "a [UNK]b!"
    assert joined(["a", " �", "�", " b"], "a é b") == "a �� b"


def test_a_repeated_word_is_not_taken_for_a_later_one() -> None:
    assert joined(["to", "be", "or", "not", "to", "be"], "to be or not to be") == (
        "to be or not to be"
    )
    assert joined(["x", "[UNK]", "x", "y"], "x ⸘ x y", word_pieces=True) == "x [UNK] x y"
