"""Aligning many texts at once gives what aligning them one by one gives."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import AlignmentError
from headscope.text.alignment import FlatTokens, FlatWords, align, align_flat
from headscope.text.sentence import Sentence, Word

LETTERS = st.text(alphabet="ab é\u0301", min_size=1, max_size=8)
SPANS = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 9), st.booleans()), max_size=7)


@st.composite
def texts(draw: st.DrawFn) -> tuple[Sentence, list[tuple[int, int]], list[bool]]:
    """Mostly sound words and tokens, now and then anything."""
    text = draw(LETTERS)
    if draw(st.booleans()):
        rows = draw(SPANS)
        words = [Word(text[max(a, 0) : b], a, b) for a, b, _ in draw(SPANS)]
        return Sentence(text, tuple(words)), [row[:2] for row in rows], [row[2] for row in rows]
    words = [Word(text[a:b], a, b) for a, b in _cuts(draw, len(text)) if draw(st.booleans())]
    tokens = [(0, 0), *_cuts(draw, len(text))]
    return Sentence(text, tuple(words)), tokens, [True, *[False] * (len(tokens) - 1)]


def _cuts(draw: st.DrawFn, length: int) -> list[tuple[int, int]]:
    inner = draw(st.sets(st.integers(1, length - 1))) if length > 1 else set()
    places = [0, *sorted(inner), length]
    return list(pairwise(places))


@given(st.lists(texts(), min_size=1, max_size=6))
@settings(deadline=None, max_examples=300)
def test_aligning_many_texts_equals_aligning_each(
    given_texts: list[tuple[Sentence, list[tuple[int, int]], list[bool]]],
) -> None:
    sentences = [sentence for sentence, _, _ in given_texts]
    spans = [span for _, offsets, _ in given_texts for span in offsets]
    tokens = FlatTokens(
        np.array([len(offsets) for _, offsets, _ in given_texts]),
        np.array([start for start, _ in spans], dtype=np.int64),
        np.array([end for _, end in spans], dtype=np.int64),
        np.array([flag for _, _, special in given_texts for flag in special], dtype=bool),
    )
    sizes = np.array([len(sentence.text) for sentence in sentences])
    found, doubtful = align_flat(sizes, FlatWords.of(sentences), tokens)
    first_token = first_word = 0
    for number, (sentence, offsets, special) in enumerate(given_texts):
        here = found[first_token : first_token + len(offsets)]
        try:
            wanted = align(sentence.words, sentence.text, offsets, special).word_of_token
        except AlignmentError:
            assert doubtful[number]
        else:
            if not doubtful[number]:
                assert np.where(here >= 0, here - first_word, -1).tolist() == list(wanted)
        if doubtful[number]:
            assert (here == -1).all()
        first_token += len(offsets)
        first_word += len(sentence.words)
