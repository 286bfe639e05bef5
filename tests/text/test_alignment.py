import pickle
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headscope.errors import AlignmentError
from headscope.text.alignment import Alignment, align
from headscope.text.sentence import Word
from tests.text.tiny_tokenizers import tiny_tokenizers

Span = tuple[int, int]
KINDS = sorted(tiny_tokenizers())
PIECES = ["the", "cat", "do", "n't", "don't", "e-mail", "Zurbarán", "’s", "猫が", "座っ"]
visible = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]),
    min_size=1,
    max_size=5,
)


def words_at(text: str, *spans: Span) -> list[Word]:
    return [Word(text[start:end], start, end) for start, end in spans]


def segment(text: str, *forms: str) -> list[Word]:
    """The forms found in the text one after the other."""
    words, place = [], 0
    for form in forms:
        start = text.index(form, place)
        place = start + len(form)
        words.append(Word(form, start, place))
    return words


def plain_outcome(words: Sequence[Word], offsets: Sequence[Span], special: Sequence[bool]) -> str:
    """What must come of it, by looking at every character: a reason, or "aligned"."""
    held: list[set[int]] = []
    for (start, end), is_special in zip(offsets, special, strict=True):
        places = set() if is_special else set(range(start, end))
        held.append({i for i, w in enumerate(words) if places & set(range(w.start, w.end))})
    if any(len(found) > 1 for found in held):
        return "straddles"
    for index, word in enumerate(words):
        tokens = [offsets[t] for t, found in enumerate(held) if index in found]
        covered = {place for start, end in tokens for place in range(start, end)}
        missing = {p for p in range(word.start, word.end) if p not in covered}
        letters = {
            p for p in missing if unicodedata.category(word.text[p - word.start])[0] not in "MCZ"
        }
        if letters or not tokens:
            return "uncovered"
    return "aligned"


def check_coverage(
    found: Alignment, words: Sequence[Word], offsets: Sequence[Span], special: Sequence[bool]
) -> None:
    """Every character of every word is covered by its tokens and by no other word's."""
    assert len(found.word_of_token) == len(offsets)
    assert len(found.tokens_of_word) == len(words)
    for token, word in enumerate(found.word_of_token):
        assert not (special[token] and word != -1)
        assert all(
            (token in tokens) == (i == word) for i, tokens in enumerate(found.tokens_of_word)
        )
    for index, word in enumerate(words):
        for place in range(word.start, word.end):
            holders = {
                found.word_of_token[token]
                for token, (start, end) in enumerate(offsets)
                if start <= place < end and not special[token]
            }
            droppable = unicodedata.category(word.text[place - word.start])[0] in "MCZ"
            assert holders == {index} or (droppable and not holders)


@st.composite
def segmented(draw: st.DrawFn) -> tuple[str, list[Word]]:
    """Random Unicode text cut at random: at spaces, and anywhere inside words."""
    pieces = draw(st.lists(st.sampled_from(PIECES) | visible, min_size=1, max_size=8))
    text, spans = "", []
    for piece in pieces:
        text += draw(st.sampled_from(["", " ", " ", "  ", "\u00a0", "\n"])) if text else ""
        cut = draw(st.integers(0, len(piece)))
        for part in filter(None, (piece[:cut], piece[cut:])):
            spans.append((len(text), len(text) + len(part)))
            text += part
    return text, words_at(text, *spans)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=120)
@given(segmented(), st.sampled_from([0, 0, 1, 2]))
@example(("don't", words_at("don't", (0, 2), (2, 5))), 0)
@example(("cafe\u0301s ok", words_at("cafe\u0301s ok", (0, 6), (7, 9))), 0)
@example(("a \u200b", words_at("a \u200b", (0, 1), (2, 3))), 0)
def test_every_character_of_a_word_is_in_its_tokens_or_the_reason_is_named(
    kind: str, case: tuple[str, list[Word]], truncated: int
) -> None:
    text, words = case
    encoding = tiny_tokenizers()[kind].encode(text)
    kept = max(len(encoding) - truncated, 0)
    offsets = encoding.offsets[:kept]
    special = [bool(flag) for flag in encoding.special_tokens_mask[:kept]]
    expected = plain_outcome(words, offsets, special)
    if expected == "aligned":
        check_coverage(align(words, text, offsets, special), words, offsets, special)
    else:
        assert reason(words, text, offsets, special) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("The cat sat on the mat.", ["The", "cat", "sat", "on", "the", "mat", "."]),
        ("a well-known E-Mail", ["a", "well-known", "E-Mail"]),
        ("Zurbarán naïve ÉTÉ über", ["Zurbarán", "naïve", "ÉTÉ", "über"]),
        ("猫が座った 北京大学", ["猫が座った", "北京大学"]),
        ("ab🙂cd 👩‍👩‍👧 नमस्ते", ["ab🙂cd", "👩‍👩‍👧", "नमस्ते"]),
        ("10 000 km", ["10 000", "km"]),
    ],
)
def test_ordinary_words_align_in_every_kind_of_tokenizer(
    kind: str, text: str, forms: list[str]
) -> None:
    encoding = tiny_tokenizers()[kind].encode(text)
    special = [bool(flag) for flag in encoding.special_tokens_mask]
    words = segment(text, *forms)
    found = align(words, text, encoding.offsets, special)
    check_coverage(found, words, encoding.offsets, special)
    assert all(found.tokens_of_word)


def reason(
    words: Sequence[Word], text: str, offsets: Sequence[Span], special: Sequence[bool] = ()
) -> str:
    with pytest.raises(AlignmentError) as caught:
        align(words, text, offsets, special or [False] * len(offsets))
    assert str(caught.value).endswith(".")
    return caught.value.reason


def test_a_token_over_two_words_straddles() -> None:
    words = segment("I don't", "I", "do", "n't")
    assert reason(words, "I don't", [(0, 1), (1, 5), (5, 7)]) == "straddles"


def test_a_word_without_a_token_is_uncovered() -> None:
    words = segment("a b", "a", "b")
    assert reason(words, "a b", [(0, 1)]) == "uncovered"
    assert reason(words, "a b", [(0, 1), (3, 3)]) == "uncovered"


def test_half_a_word_is_not_enough() -> None:
    assert reason(segment("half", "half"), "half", [(0, 2)]) == "uncovered"


def test_an_accent_or_a_zero_width_character_may_be_dropped() -> None:
    text = "cafe\u0301 \u200bb"
    found = align(segment(text, "cafe\u0301", "\u200bb"), text, [(0, 4), (7, 8)], [False] * 2)
    assert found.tokens_of_word == ((0,), (1,))


def test_words_that_share_what_is_written_are_not_told_apart() -> None:
    words = [Word("de", 0, 2), Word("le", 0, 2)]
    assert reason(words, "du", [(0, 2)]) == "shared"


@pytest.mark.parametrize(
    "word", [Word("b", 0, 1), Word("a", 1, 2), Word("a", 0, 0), Word("a", -1, 1)]
)
def test_a_word_that_is_not_at_its_span_differs(word: Word) -> None:
    assert reason([word], "a", [(0, 1)]) == "differs"


def test_offsets_of_another_text_differ() -> None:
    assert reason(segment("a", "a"), "a", [(0, 1), (1, 4)]) == "differs"


def test_special_tokens_and_space_belong_to_no_word() -> None:
    words = segment("a  b", "a", "b")
    offsets = [(0, 4), (0, 1), (1, 2), (2, 4), (0, 0)]
    found = align(words, "a  b", offsets, [True, False, False, False, True])
    assert found.word_of_token == (-1, 0, -1, 1, -1)
    assert found.tokens_of_word == ((1,), (3,))


def test_characters_split_over_tokens_give_all_of_them_to_the_word() -> None:
    words = segment("🙂!", "🙂", "!")
    found = align(words, "🙂!", [(0, 1), (0, 1), (0, 1), (1, 2)], [False] * 4)
    assert found.tokens_of_word == ((0, 1, 2), (3,))


def test_the_reason_survives_the_way_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(AlignmentError("What happened.", reason="shared")))
    assert (str(error), error.reason) == ("What happened.", "shared")
