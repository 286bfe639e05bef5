"""What no sentence of a corpus may have, against plain readings of the same rules."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.text.sentence import (
    ROOT,
    Mention,
    Problem,
    Sentence,
    SurfaceError,
    Word,
    find_cycle,
    locate,
    problem,
)
from tests.references.random_sentences import sentences

places = st.integers(-2, 4)
words = st.builds(Word, st.just("w"), places, places, head=st.none() | st.integers(-2, 3))
mentions = st.builds(
    Mention,
    st.just("e"),
    st.lists(st.tuples(places, places), max_size=2).map(tuple),
)


def climbs_forever(heads: list[int | None], word: int) -> bool:
    current: int | None = word
    for _ in range(len(heads) + 1):
        if current is None or current == ROOT:
            return False
        current = heads[current]
    return True


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.none() | st.integers(-1, n - 1), min_size=n, max_size=n)
    )
)
def test_a_cycle_is_found_exactly_when_climbing_never_ends(heads: list[int | None]) -> None:
    endless = {word for word in range(len(heads)) if climbs_forever(heads, word)}
    cyclic = find_cycle(heads)
    assert (cyclic is not None) == bool(endless)
    assert cyclic is None or cyclic in endless


@given(sentences())
def test_what_a_reader_gives_is_sound(sentence: Sentence) -> None:
    assert problem(sentence) is None


@given(
    st.lists(words, max_size=3).map(tuple),
    st.lists(mentions, max_size=2).map(tuple),
    st.sampled_from([-1, 0, 2**31 - 1, 2**31]),
)
def test_a_sentence_is_sound_exactly_when_all_of_it_lies_where_it_must(
    words: tuple[Word, ...], mentions: tuple[Mention, ...], paragraph: int
) -> None:
    heads = [word.head for word in words]
    has_places = all(word.start in range(4) and word.end in range(word.start, 4) for word in words)
    has_heads = all(head is None or head in range(ROOT, len(words)) for head in heads)
    has_trees = has_heads and not any(climbs_forever(heads, word) for word in range(len(words)))
    has_mentions = all(mention.spans for mention in mentions) and all(
        start in range(len(words)) and end in range(start + 1, len(words) + 1)
        for mention in mentions
        for start, end in mention.spans
    )
    is_sound = has_places and has_trees and has_mentions and paragraph in range(2**31)
    sentence = Sentence("abc", words, mentions, paragraph=paragraph)
    assert (problem(sentence) is None) == is_sound


GOOD = Sentence("a b", (Word("a", 0, 1, head=1), Word("b", 2, 3, head=ROOT)))


@pytest.mark.parametrize(
    ("index", "changes", "message"),
    [
        (1, {"end": 4}, "word 2 'b' does not lie in the text; correct it."),
        (
            1,
            {"head": 2},
            "the head 2 of word 2 'b' is not in the sentence; give the index of a word, 0 to 1, or "
            "-1 for the root.",
        ),
        (0, {"head": 0}, "the heads of word 1 'a' lead back to it; correct them."),
    ],
)
def test_a_problem_names_the_word_where_it_is(index: int, changes: dict, message: str) -> None:
    words = list(GOOD.words)
    words[index] = replace(words[index], **changes)
    assert problem(replace(GOOD, words=tuple(words))) == Problem(message, index)


def test_words_are_found_one_behind_the_other() -> None:
    assert locate(["ab", "c", "c"], " abc \u00a0 c") == [(1, 3), (3, 4), (7, 8)]
    with pytest.raises(SurfaceError) as caught:
        locate(["ab", "d"], "ab c d")
    assert (caught.value.index, caught.value.rest) == (1, "c d")
