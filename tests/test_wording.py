"""Messages count and cut as a person would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.wording import counted, shorten


@pytest.mark.parametrize(
    ("count", "nouns", "said"),
    [
        (1, "sentences", "1 sentence"),
        (0, "sentences", "0 sentences"),
        (1024, "sentences", "1,024 sentences"),
        (1, "processes", "1 process"),
        (1, "matches", "1 match"),
        (1, "entries", "1 entry"),
        (1, "pieces", "1 piece"),
    ],
)
def test_one_is_singular_and_thousands_have_commas(count: int, nouns: str, said: str) -> None:
    assert counted(count, nouns) == said


def test_a_cut_falls_between_words_and_is_marked() -> None:
    assert shorten("the cat sat on the mat", 100) == "the cat sat on the mat"
    assert shorten("the cat sat on the mat", 13) == "the cat sat …"
    assert shorten("the cat sat, on the mat", 14) == "the cat sat …"
    assert shorten("two\nlines", 100) == "two lines"
    assert shorten("incomprehensibilities", 10) == "incompre …"


@given(st.text(), st.integers(3, 60))
def test_a_cut_text_is_one_line_within_its_width(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= width and "\n" not in short
