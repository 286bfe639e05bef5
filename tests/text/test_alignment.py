"""The words of every token, against a plain reading of every character of every pair."""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headscope.text.alignment import NO_WORD, Alignment, Reason, align, joined_runs, merge_runs
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from tests.references.random_sentences import sentences
from tests.text.tiny_tokenizers import tiny_tokenizers

Span = tuple[int, int]
Case = tuple[Sentence, list[Span], list[bool]]  # a text, its tokens, and which of them are special
KINDS = sorted(tiny_tokenizers())
PIECES = ["the", "cat", "do", "n't", "don't", "e-mail", "Zurbarán", "’s", "猫が", "座っ"]
visible = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]),
    min_size=1,
    max_size=5,
)
letters = st.text(alphabet="ab é\u0301", min_size=1, max_size=8)
any_spans = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 9), st.booleans()), max_size=7)


def words_at(text: str, *spans: Span) -> tuple[Word, ...]:
    return tuple(Word(text[max(start, 0) : end], start, end) for start, end in spans)


def segment(text: str, *forms: str) -> Sentence:
    """The forms found in the text one after the other."""
    words, place = [], 0
    for form in forms:
        start = text.index(form, place)
        place = start + len(form)
        words.append(Word(form, start, place))
    return Sentence(text, tuple(words))


def align_one(
    sentence: Sentence,
    offsets: Sequence[Span],
    special: Sequence[bool] = (),
    *,
    strict: bool = True,
) -> Alignment:
    return align([sentence], [offsets], [special or [False] * len(offsets)], strict=strict)


def reason(sentence: Sentence, offsets: Sequence[Span], *, strict: bool = True) -> Reason:
    alignment = align_one(sentence, offsets, strict=strict)
    assert (alignment.owner == NO_WORD).all()
    return alignment.refused[0]


def tokens_of(kind: str, text: str) -> tuple[list[Span], list[bool]]:
    encoding = tiny_tokenizers()[kind].encode(text)
    return encoding.offsets, [bool(flag) for flag in encoding.special_tokens_mask]


def plain_common(words: Sequence[Word], span: Span) -> dict[int, int]:
    """How many characters a token has of every word."""
    counts = {}
    for index, word in enumerate(words):
        count = sum(word.start <= place < word.end for place in range(*span))
        if count:
            counts[index] = count
    return counts


def plain_counts(case: Case) -> list[dict[int, int]]:
    """How many characters every token has of every word."""
    sentence, offsets, special = case
    return [
        {} if is_special else plain_common(sentence.words, span)
        for span, is_special in zip(offsets, special, strict=True)
    ]


def plain_reason(case: Case, *, strict: bool) -> str | None:
    """Why a sentence is refused, if it is, by looking at every character."""
    sentence, offsets, special = case
    text, words = sentence.text, sentence.words
    fault = plain_fault(text, words, strict=strict)
    if fault is not None:
        return fault
    for (start, end), is_special in zip(offsets, special, strict=True):
        if not is_special and not 0 <= start <= end <= len(text):
            return "differs"
        if strict and not is_special and len(plain_common(words, (start, end))) > 1:
            return "straddles"
    return "uncovered" if strict and plain_uncovered(case) else None


def plain_fault(text: str, words: Sequence[Word], *, strict: bool) -> str | None:
    """What is wrong with where the words are."""
    for index, word in enumerate(words):
        if not 0 <= word.start < word.end <= len(text):
            return "differs"
        if strict and index and word.start < words[index - 1].end:
            return "shared"
        if index and word.start < words[index - 1].start:
            return "differs"
    for index, word in enumerate(words):
        neighbours = [*words[max(index - 1, 0) : index], *words[index + 1 : index + 2]]
        places = set(range(word.start, word.end))
        is_fused = any(places & set(range(other.start, other.end)) for other in neighbours)
        if text[word.start : word.end] != word.text and not is_fused:
            return "differs"
    return None


def plain_uncovered(case: Case) -> bool:
    """Whether a word has a letter in no token, or no token at all."""
    sentence, offsets, special = case
    covered = set()
    for span, is_special in zip(offsets, special, strict=True):
        covered |= set() if is_special else set(range(*span))
    for word in sentence.words:
        missing = set(range(word.start, word.end)) - covered
        categories = {unicodedata.category(sentence.text[place])[0] for place in missing}
        if categories - set("MCZ") or len(missing) == word.end - word.start:
            return True
    return False


def check(alignment: Alignment, cases: Sequence[Case], *, strict: bool) -> None:
    """Every token has the words, and every sentence the reason, of the plain reading."""
    reasons = {row: plain_reason(case, strict=strict) for row, case in enumerate(cases)}
    refused = [(row, why) for row, why in reasons.items() if why is not None]
    assert list(alignment.refused.items()) == refused
    first, last, owner = [], [], []
    for row, case in enumerate(cases):
        for counts in plain_counts(case):
            words = [NO_WORD] if reasons[row] or not counts else list(counts)
            first.append(words[0])
            last.append(words[-1])
            owner.append(max(words, key=lambda word: counts.get(word, 0)))
    assert alignment.first.tolist() == first
    assert alignment.last.tolist() == last
    assert alignment.owner.tolist() == owner
    assert alignment.several == sum(a < b for a, b in zip(first, last, strict=True))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Words and tokens of a text: mostly sound, sometimes overlapping, now and then anything."""
    text = draw(letters)
    kind = draw(st.sampled_from(["sound", "sound", "fused", "anything"]))
    if kind == "anything":
        rows = draw(any_spans)
        words = words_at(text, *(span[:2] for span in draw(any_spans)))
        return Sentence(text, words), [row[:2] for row in rows], [row[2] for row in rows]
    spans = [span for span in cuts(draw, len(text)) if draw(st.booleans())]
    if kind == "fused":
        places = st.integers(0, len(text) - 1)
        lengths = st.integers(1, 4)
        drawn = draw(st.lists(st.tuples(places, lengths), max_size=4))
        spans = sorted((start, min(start + length, len(text))) for start, length in drawn)
    words = words_at(text, *spans)
    if words and draw(st.integers(0, 9)) == 0:
        words = (*words[:-1], Word("b", words[-1].start, words[-1].end))
    tokens = [span for span in cuts(draw, len(text)) if draw(st.integers(0, 5))]
    return Sentence(text, words), [(0, 0), *tokens], [True, *[False] * len(tokens)]


def cuts(draw: st.DrawFn, length: int) -> list[Span]:
    inner = draw(st.sets(st.integers(1, length - 1))) if length > 1 else set()
    return list(pairwise([0, *sorted(inner), length]))


@pytest.mark.parametrize("strict", [True, False])
@given(st.lists(cases(), max_size=6))
@settings(max_examples=400, deadline=None)
@example(
    [(Sentence("abcd", words_at("abcd", (0, 4), (1, 2), (2, 3))), [(0, 4), (3, 4)], [False] * 2)]
)
@example([(Sentence("a"), [(0, 4)], [False]), (segment("a", "a"), [(0, 1)], [False])])
def test_many_texts_are_aligned_as_a_plain_reading_aligns_each(
    strict: bool, given_cases: list[Case]
) -> None:
    texts = [sentence for sentence, _, _ in given_cases]
    offsets = [spans for _, spans, _ in given_cases]
    special = [flags for _, _, flags in given_cases]
    check(align(texts, offsets, special, strict=strict), given_cases, strict=strict)


@st.composite
def segmented(draw: st.DrawFn) -> Sentence:
    """Random Unicode text cut at random: at spaces, and anywhere inside words."""
    pieces = draw(st.lists(st.sampled_from(PIECES) | visible, min_size=1, max_size=8))
    text, spans = "", []
    for piece in pieces:
        text += draw(st.sampled_from(["", " ", " ", "  ", "\u00a0", "\n"])) if text else ""
        cut = draw(st.integers(0, len(piece)))
        for part in filter(None, (piece[:cut], piece[cut:])):
            spans.append((len(text), len(text) + len(part)))
            text += part
    return Sentence(text, words_at(text, *spans))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=120, deadline=None)
@given(segmented(), st.sampled_from([0, 0, 1, 2]), st.booleans())
@example(Sentence("don't", words_at("don't", (0, 2), (2, 5))), 0, True)
@example(Sentence("cafe\u0301s ok", words_at("cafe\u0301s ok", (0, 6), (7, 9))), 0, True)
@example(Sentence("a \u200b", words_at("a \u200b", (0, 1), (2, 3))), 0, True)
def test_tokens_of_every_kind_of_tokenizer_have_the_words_of_the_plain_reading(
    kind: str, sentence: Sentence, truncated: int, strict: bool
) -> None:
    offsets, special = tokens_of(kind, sentence.text)
    count = max(len(offsets) - truncated, 0)
    case = sentence, offsets[:count], special[:count]
    check(align([sentence], [case[1]], [case[2]], strict=strict), [case], strict=strict)


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
    sentence = segment(text, *forms)
    alignment = align_one(sentence, *tokens_of(kind, text))
    assert alignment.refused == {}
    assert set(alignment.owner.tolist()) - {NO_WORD} == set(range(len(forms)))


def test_a_token_over_two_words_straddles() -> None:
    assert reason(segment("I don't", "I", "do", "n't"), [(0, 1), (1, 5), (5, 7)]) == "straddles"


def test_a_word_without_a_token_is_uncovered() -> None:
    sentence = segment("a b", "a", "b")
    assert reason(sentence, [(0, 1)]) == "uncovered"
    assert reason(sentence, [(0, 1), (3, 3)]) == "uncovered"


def test_half_a_word_is_not_enough() -> None:
    assert reason(segment("half", "half"), [(0, 2)]) == "uncovered"


def test_an_accent_or_a_zero_width_character_may_be_dropped() -> None:
    sentence = segment("cafe\u0301 \u200bb", "cafe\u0301", "\u200bb")
    assert align_one(sentence, [(0, 4), (7, 8)]).owner.tolist() == [0, 1]


def test_words_that_share_what_is_written_are_not_told_apart_if_strict() -> None:
    sentence = Sentence("du chat", (Word("de", 0, 2), Word("le", 0, 2), Word("chat", 3, 7)))
    offsets = [(0, 2), (2, 7)]
    assert reason(sentence, offsets) == "shared"
    alignment = align_one(sentence, offsets, strict=False)
    assert alignment.owner.tolist() == [0, 2]
    assert (alignment.first.tolist(), alignment.last.tolist()) == ([0, 2], [1, 2])


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "word", [Word("b", 0, 1), Word("a", 1, 2), Word("a", 0, 0), Word("a", -1, 1)]
)
def test_a_word_that_is_not_at_its_span_differs(word: Word, strict: bool) -> None:
    assert reason(Sentence("a", (word,)), [(0, 1)], strict=strict) == "differs"


def test_a_word_before_the_one_that_it_follows_differs() -> None:
    words = (Word("a", 2, 3), Word("a", 0, 1))
    assert reason(Sentence("a a", words), [(0, 1)], strict=False) == "differs"


@pytest.mark.parametrize("strict", [True, False])
def test_offsets_of_another_text_differ(strict: bool) -> None:
    assert reason(segment("a", "a"), [(0, 1), (1, 4)], strict=strict) == "differs"


def test_a_refused_sentence_leaves_the_others_as_they_are() -> None:
    sentences = [segment("a b", "a", "b"), Sentence("a", (Word("b", 0, 1),)), segment("a", "a")]
    alignment = align(sentences, [[(0, 1), (1, 3)], [(0, 1)], [(0, 1)]], [[0, 0], [0], [0]])
    assert alignment.refused == {1: "differs"}
    assert alignment.owner.tolist() == [0, 1, NO_WORD, 0]


def test_special_tokens_and_space_belong_to_no_word() -> None:
    offsets = [(0, 4), (0, 1), (1, 2), (2, 4), (0, 0)]
    special = [True, False, False, False, True]
    alignment = align_one(segment("a  b", "a", "b"), offsets, special)
    assert alignment.owner.tolist() == [NO_WORD, 0, NO_WORD, 1, NO_WORD]


def test_a_token_without_characters_belongs_to_no_word() -> None:
    offsets = [(0, 1), (1, 1), (1, 2)]
    assert align_one(segment("ab", "ab"), offsets).owner.tolist() == [0, NO_WORD, 0]


def test_characters_split_over_tokens_give_all_of_them_to_the_word() -> None:
    offsets = [(0, 1), (0, 1), (0, 1), (1, 2)]
    assert align_one(segment("🙂!", "🙂", "!"), offsets).owner.tolist() == [0, 0, 0, 1]


def test_of_equal_parts_the_earlier_word_has_the_token() -> None:
    sentence = Sentence("abccc", words_at("abccc", (0, 1), (1, 2), (2, 5)))
    alignment = align_one(sentence, [(0, 2), (1, 5)], strict=False)
    assert alignment.owner.tolist() == [0, 2]
    assert alignment.several == 2


def joined(sentence: Sentence, offsets: Sequence[Span], special: Sequence[bool] = ()) -> list[str]:
    """The words of a sentence in which words that share a token are one."""
    alignment = align_one(sentence, offsets, special, strict=False)
    assert alignment.refused == {}
    runs = joined_runs(len(sentence.words), alignment.first, alignment.last)
    merged = merge_runs(sentence.text, sentence.words, sentence.mentions, runs)
    return [word.text for word in merged.words]


def plain_units(case: Case) -> list[set[int]]:
    """Sets of words, joined until no two sets share a token and every set has one."""
    units = [{index} for index in range(len(case[0].words))]
    holders = [set(range(min(c), max(c) + 1)) for c in plain_counts(case) if c]
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


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(sentences())
@example(Sentence("\u200b a", (Word("\u200b", 0, 1, head=1), Word("a", 2, 3, head=ROOT))))
def test_words_that_share_a_token_are_one_with_the_analysis_of_the_word_nearest_the_root(
    kind: str, sentence: Sentence
) -> None:
    words = sentence.words
    offsets, special = tokens_of(kind, sentence.text)
    units = plain_units((sentence, offsets, special))
    alignment = align_one(sentence, offsets, special, strict=False)
    runs = joined_runs(len(words), alignment.first, alignment.last)
    assert [set(run) for run in runs] == units
    merged = merge_runs(sentence.text, words, sentence.mentions, runs)
    of_word = {word: unit for unit, members in enumerate(units) for word in members}
    for unit, (members, new) in enumerate(zip(units, merged.words, strict=True)):
        shallow = min(depth(words, index) for index in members)
        top = min(index for index in members if depth(words, index) == shallow)
        assert merged.tops[unit] == top
        assert (new.start, new.end) == (words[min(members)].start, words[max(members)].end)
        assert new.text == sentence.text[new.start : new.end]
        old = words[top]
        assert (new.upos, new.xpos, new.deprel) == (old.upos, old.xpos, old.deprel)
        assert new.head == (old.head if old.head in (None, ROOT) else of_word[old.head])
        depth(merged.words, unit)  # never ends in a circle


@given(cases())
@settings(max_examples=300, deadline=None)
def test_runs_of_words_are_those_of_the_plain_reading(case: Case) -> None:
    alignment = align([case[0]], [case[1]], [case[2]])
    if (alignment.first != NO_WORD).any():
        runs = joined_runs(len(case[0].words), alignment.first, alignment.last)
        assert [set(run) for run in runs] == plain_units(case)


def test_mentions_follow_their_words() -> None:
    words = (
        Word("I", 0, 1, head=1, deprel="nsubj"),
        Word("do", 2, 4, head=ROOT, deprel="root"),
        Word("n't", 4, 7, head=1, deprel="advmod"),
        Word("go", 8, 10, head=1, deprel="xcomp"),
    )
    mentions = (Mention("e", ((0, 1),)), Mention("f", ((2, 4),)))
    merged = merge_runs("I don't go", words, mentions, [[0], [1, 2], [3]])
    assert [word.text for word in merged.words] == ["I", "don't", "go"]
    assert [word.head for word in merged.words] == [1, ROOT, 1]
    assert [mention.spans for mention in merged.mentions] == [((0, 1),), ((1, 3),)]


def test_where_nothing_is_joined_words_and_mentions_stay() -> None:
    sentence = segment("a b", "a", "b")
    merged = merge_runs(sentence.text, sentence.words, sentence.mentions, [[0], [1]])
    assert (merged.words, merged.mentions, merged.tops) == (sentence.words, (), (0, 1))


def test_words_without_a_token_join_their_neighbours() -> None:
    sentence = segment("a b c d", "a", "b", "c", "d")
    assert joined(sentence, [(0, 1), (6, 7)]) == ["a b c", "d"]
    assert joined(sentence, [(4, 5), (5, 7)]) == ["a b c", "d"]


def test_two_words_in_one_span_are_one() -> None:
    words = (Word("de", 0, 2, head=2), Word("le", 0, 2, head=2), Word("chat", 3, 7, head=ROOT))
    assert joined(Sentence("du chat", words), [(0, 2), (2, 7)]) == ["du", "chat"]


def test_heads_that_go_round_do_not_hang() -> None:
    words = (Word("a", 0, 1, head=1), Word("b", 1, 2, head=0), Word("c", 2, 3, head=1))
    assert joined(Sentence("abc", words), [(0, 2), (2, 3)]) == ["ab", "c"]


def test_a_sentence_without_words_has_no_runs() -> None:
    assert joined_runs(0, np.array([NO_WORD]), np.array([NO_WORD])) == []
