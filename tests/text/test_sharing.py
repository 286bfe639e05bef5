"""Tokens that several words share, against a reading of every character of every pair."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings

from headscope.errors import AlignmentError
from headscope.text.alignment import align
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from headscope.text.sharing import join, share
from tests.text.random_sentences import sentences
from tests.text.tiny_tokenizers import tiny_tokenizers

Span = tuple[int, int]
KINDS = sorted(tiny_tokenizers())


def plain_common(words: Sequence[Word], span: Span) -> dict[int, int]:
    """How many characters a token has of every word."""
    counts = {}
    for index, word in enumerate(words):
        count = sum(word.start <= place < word.end for place in range(*span))
        if count:
            counts[index] = count
    return counts


def plain_share(
    words: Sequence[Word], offsets: Sequence[Span], special: Sequence[bool]
) -> tuple[list[int], int]:
    """The word of every token, and how many tokens have characters of several words."""
    owners, several = [], 0
    for span, is_special in zip(offsets, special, strict=True):
        counts = {} if is_special else plain_common(words, span)
        best = -1
        for index in counts:  # a later word must have more
            if best < 0 or counts[index] > counts[best]:
                best = index
        owners.append(best)
        several += len(counts) > 1
    return owners, several


def plain_units(
    words: Sequence[Word], offsets: Sequence[Span], special: Sequence[bool]
) -> list[set[int]]:
    """Sets of words, joined until no two sets share a token and every set has one."""
    units = [{index} for index in range(len(words))]
    holders = [
        set(plain_common(words, span))
        for span, is_special in zip(offsets, special, strict=True)
        if not is_special
    ]
    holders = [set(range(min(each), max(each) + 1)) for each in holders if each]
    for holder in holders:
        touched = [unit for unit in units if unit & holder]
        units = [unit for unit in units if not unit & holder] + [set().union(*touched)]
    units.sort(key=min)
    while bare := [n for n, unit in enumerate(units) if not any(unit & h for h in holders)]:
        place = bare[0]
        other = place - 1 if place else 1
        units[min(place, other)] |= units.pop(max(place, other))
    return units


def depth(words: Sequence[Word], index: int) -> int:
    head = words[index].head
    return 0 if head is None or head == ROOT else 1 + depth(words, head)


def tokens_of(kind: str, text: str) -> tuple[list[Span], list[bool]]:
    encoding = tiny_tokenizers()[kind].encode(text)
    return encoding.offsets, [bool(flag) for flag in encoding.special_tokens_mask]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(sentences())
def test_a_token_belongs_to_the_word_with_most_of_its_characters(
    kind: str, sentence: Sentence
) -> None:
    offsets, special = tokens_of(kind, sentence.text)
    found = share(sentence.words, sentence.text, offsets, special)
    owners, several = plain_share(sentence.words, offsets, special)
    assert list(found.word_of_token) == owners
    assert len(found.several) == several


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(sentences())
@example(Sentence("\u200b a", (Word("\u200b", 0, 1, head=1), Word("a", 2, 3, head=ROOT))))
def test_words_that_share_a_token_are_one_with_the_analysis_of_the_word_nearest_the_root(
    kind: str, sentence: Sentence
) -> None:
    words = sentence.words
    offsets, special = tokens_of(kind, sentence.text)
    units = plain_units(words, offsets, special)
    found = join(sentence, offsets, special)
    of_word = {word: unit for unit, members in enumerate(units) for word in members}
    assert len(found.sentence.words) == len(units)
    for unit, (members, new) in enumerate(zip(units, found.sentence.words, strict=True)):
        shallow = min(depth(words, index) for index in members)
        top = min(index for index in members if depth(words, index) == shallow)
        assert found.tops[unit] == top
        assert (new.start, new.end) == (words[min(members)].start, words[max(members)].end)
        assert new.text == sentence.text[new.start : new.end]
        old = words[top]
        assert (new.upos, new.xpos, new.deprel) == (old.upos, old.xpos, old.deprel)
        assert new.head == (old.head if old.head in (None, ROOT) else of_word[old.head])
        depth(found.sentence.words, unit)  # never ends in a circle
    assert found.merged == sum(len(members) for members in units if len(members) > 1)
    assert found.several == plain_share(words, offsets, special)[1]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(sentences())
def test_joined_words_share_no_token_and_each_has_one(kind: str, sentence: Sentence) -> None:
    offsets, special = tokens_of(kind, sentence.text)
    found = join(sentence, offsets, special)
    assert all(found.alignment.tokens_of_word)
    for word, tokens in enumerate(found.alignment.tokens_of_word):
        assert all(found.alignment.word_of_token[token] == word for token in tokens)
    for span, is_special, word in zip(offsets, special, found.alignment.word_of_token, strict=True):
        counts = {} if is_special else plain_common(found.sentence.words, span)
        assert set(counts) == ({word} if word >= 0 else set())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(sentences())
def test_where_no_token_is_shared_nothing_changes(kind: str, sentence: Sentence) -> None:
    offsets, special = tokens_of(kind, sentence.text)
    try:
        strict = align(sentence.words, sentence.text, offsets, special)
    except AlignmentError:
        return
    assert share(sentence.words, sentence.text, offsets, special).several == ()
    found = join(sentence, offsets, special)
    assert (found.sentence, found.alignment) == (sentence, strict)
    assert (found.merged, found.several) == (0, 0)


def test_of_equal_parts_the_earlier_word_has_the_token() -> None:
    words = [Word("a", 0, 1), Word("b", 1, 2), Word("ccc", 2, 5)]
    found = share(words, "abccc", [(0, 2), (1, 5)], [False, False])
    assert found.word_of_token == (0, 2)
    assert found.several == (0, 1)


def test_mentions_follow_their_words() -> None:
    words = (
        Word("I", 0, 1, head=1, deprel="nsubj"),
        Word("do", 2, 4, head=ROOT, deprel="root"),
        Word("n't", 4, 7, head=1, deprel="advmod"),
        Word("go", 8, 10, head=1, deprel="xcomp"),
    )
    mentions = (Mention("e", ((0, 1),)), Mention("f", ((2, 4),)))
    sentence = Sentence("I don't go", words, mentions)
    found = join(sentence, [(0, 1), (1, 5), (5, 7), (7, 10)], [False] * 4)
    assert [word.text for word in found.sentence.words] == ["I", "don't", "go"]
    assert [word.head for word in found.sentence.words] == [1, ROOT, 1]
    assert [mention.spans for mention in found.sentence.mentions] == [((0, 1),), ((1, 3),)]
    assert (found.merged, found.several) == (2, 1)


def test_two_words_in_one_span_are_one() -> None:
    words = (Word("de", 0, 2, head=2), Word("le", 0, 2, head=2), Word("chat", 3, 7, head=ROOT))
    sentence = Sentence("du chat", words)
    offsets = [(0, 2), (2, 7)]
    assert share(words, sentence.text, offsets, [False] * 2).word_of_token == (0, 2)
    found = join(sentence, offsets, [False] * 2)
    assert [word.text for word in found.sentence.words] == ["du", "chat"]


@pytest.mark.parametrize(
    "words",
    [
        (Word("b", 0, 1),),
        (Word("a", 1, 2),),
        (Word("a", 0, 0),),
        (Word("a", 2, 3), Word("a", 0, 1)),
    ],
)
def test_a_word_that_is_not_in_the_text_is_refused(words: tuple[Word, ...]) -> None:
    for make in (
        lambda: share(words, "a a", [(0, 1)], [False]),
        lambda: join(Sentence("a a", words), [(0, 1)], [False]),
    ):
        with pytest.raises(AlignmentError) as caught:
            make()
        assert caught.value.reason == "differs"


def test_a_token_outside_the_text_is_refused() -> None:
    with pytest.raises(AlignmentError, match="spans characters 0–4 of a text of 1"):
        share([Word("a", 0, 1)], "a", [(0, 4)], [False])


def test_a_sentence_without_any_token_is_refused() -> None:
    with pytest.raises(AlignmentError) as caught:
        join(Sentence("a", (Word("a", 0, 1),)), [(0, 1)], [True])
    assert caught.value.reason == "uncovered"


def test_heads_that_go_round_do_not_hang() -> None:
    words = (Word("a", 0, 1, head=1), Word("b", 1, 2, head=0), Word("c", 2, 3, head=1))
    found = join(Sentence("abc", words), [(0, 2), (2, 3)], [False] * 2)
    assert [word.text for word in found.sentence.words] == ["ab", "c"]
