"""Words of raw text: runs of visible characters, cut by tokens where a script has no spaces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headscope.model.inputs.words import words_of_tokens

TEXT = st.text(st.sampled_from("ab é東京 ไ\n\u0301.🎉"), max_size=24)


def spans_of(text: str, cuts: set[int]) -> list[tuple[int, int]]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return list(pairwise(places))


@given(TEXT, st.sets(st.integers(1, 23)))
def test_every_visible_token_has_one_word_and_every_word_a_token(text: str, cuts: set[int]) -> None:
    spans = spans_of(text, cuts)
    words, of_token = words_of_tokens(text, spans, [False] * len(spans))
    for (start, end), word in zip(spans, of_token, strict=True):
        assert (word == -1) == (not text[start:end].strip())
        if word >= 0:
            assert text[start:end].strip() in words[word]
    assert set(of_token) - {-1} == set(range(len(words)))
    assert "".join("".join(words).split()) == "".join(text.split())


@given(st.text(st.sampled_from("abc é."), max_size=30), st.sets(st.integers(1, 29)))
def test_with_tokens_inside_words_the_words_are_those_between_spaces(
    text: str, cuts: set[int]
) -> None:
    borders = {i for i in range(1, len(text)) if text[i].isspace() or text[i - 1].isspace()}
    spans = spans_of(text, cuts | borders)
    words, _ = words_of_tokens(text, spans, [False] * len(spans))
    assert list(words) == text.split()


def test_scripts_without_spaces_are_cut_by_the_tokens() -> None:
    words, of_token = words_of_tokens("東京タワー ok", [(0, 2), (2, 5), (6, 8)], [False] * 3)
    assert words == ("東京", "タワー", "ok")
    assert of_token == (0, 1, 2)


def test_byte_tokens_of_one_character_share_its_word() -> None:
    words, of_token = words_of_tokens("猫", [(0, 1)] * 3, [False] * 3)
    assert (words, of_token) == (("猫",), (0, 0, 0))


def test_a_token_across_a_space_joins_its_words() -> None:
    words, of_token = words_of_tokens("all of the cats", [(0, 3), (3, 10), (11, 15)], [False] * 3)
    assert words == ("all", "of the", "cats")
    assert of_token == (0, 1, 2)


def test_special_tokens_belong_to_no_word() -> None:
    words, of_token = words_of_tokens("cat", [(0, 0), (0, 3), (0, 0)], [True, False, True])
    assert (words, of_token) == (("cat",), (-1, 0, -1))
