from hypothesis import given
from hypothesis import strategies as st

from headscope.text.segments import cut, join
from headscope.text.sentence import ROOT, Mention, Sentence, Word

FIRST = Sentence(
    "Ada came.",
    (Word("Ada", 0, 3, head=1), Word("came", 4, 8, head=ROOT), Word(".", 8, 9, head=1)),
    (Mention("ada", ((0, 1),)),),
    "d",
)
SECOND = Sentence(
    "She sat",
    (Word("She", 0, 3, head=1), Word("sat", 4, 7, head=ROOT)),
    (Mention("ada", ((0, 1),)),),
)


def test_joined_sentences_keep_what_their_words_and_mentions_say() -> None:
    joined = join([FIRST, SECOND])
    assert joined.text == "Ada came. She sat"
    assert [joined.text[word.start : word.end] for word in joined.words] == [
        "Ada",
        "came",
        ".",
        "She",
        "sat",
    ]
    assert [word.head for word in joined.words] == [1, ROOT, 1, 4, ROOT]
    assert [mention.spans for mention in joined.mentions] == [((0, 1),), ((3, 4),)]
    assert joined.document == "d"


@given(st.lists(st.integers(1, 12), max_size=12), st.integers(4, 20))
def test_windows_hold_as_many_consecutive_sentences_as_fit(lengths: list[int], size: int) -> None:
    windows, too_long = cut(lengths, size)
    assert too_long == [i for i, length in enumerate(lengths) if length > size]
    assert sorted([*too_long, *(i for window in windows for i in window)]) == list(
        range(len(lengths))
    )
    for window in windows:
        assert window == list(range(window[0], window[-1] + 1))
        used, after = sum(lengths[i] for i in window), window[-1] + 1
        assert used <= size
        assert after == len(lengths) or used + lengths[after] > size
