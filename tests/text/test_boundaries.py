"""Sentences end where a reader would end them, in several scripts, and nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.text.boundaries import cut_sentences, sentence_ends

# | stands where a sentence ends.
CASES = [
    "It rained.| We stayed.",
    "Dr. Ito met Mrs. J. R. Hale at 3.30 p.m. on Jan. 4, see Fig. 2 and p. 7, e.g. Part 3.",
    "It was 3 p.m.| They left Smith Inc.| Nobody, etc., cared.",
    "He joined the U.S. Army.| She stayed in the U.S.| The rest is known.",
    "“Why?” he asked.| “Because.”| She left (for good).| (All did.)| Then…| Nothing.",
    "\"Stop!\" she cried.| Really?!| Yahoo! is a name... or was.| 'Yes.'| No.",
    "1. First of all.| 2. And so on.| He was 7.| The dog was 8.| In 1999.| 2000 came.",
    "No. 5 is alive.| I said no.| He left.| So did I.| Good.",
    "See example.com and v1.2.3, not 3.5.| End",
    "Am 3. Oktober kam Hr. Maier.| Er ging z.B. nach Rom.| „Komm her.“| Er kam.",
    "¿Quién es?| ¡Tú!| La Sra. López no.| Mme. Curie oui.| Si?| È vero.",
    "Hei!| Mitä kuuluu?| Esim. Liisa tulee.| Ei, ns. kissa.",
    "雨停了。|他们走了！|真的吗？！|“是的。”|她说。",
    "猫です。|「はい。」|そうですか？|ええ、3.5点。",
    "هل أنت بخير؟| نعم.| شكرا!| إلى اللقاء",
    "यह घर है।| वह कहाँ गया?| हम गए॥| बस।",
    "یہ کتاب ہے۔| وہ گیا۔",
    "Որտե՞ղ է։| Այստեղ։",
    "Это дом.| А. С. Пушкин жил здесь.| Да.",
    "집에 갔다.| 비가 왔다.",
    "no mark at all",
]


@pytest.mark.parametrize("marked", CASES)
def test_sentences_end_where_a_reader_ends_them(marked: str) -> None:
    expected = [part.strip() for part in marked.split("|")]
    assert list(cut_sentences(marked.replace("|", ""))) == expected


WORDS = ["Dr", "U.S", "a", "Word", "word", "7", "他", "हम", "e.g", "A", " ", "  ", "\t", "\u00a0"]
SIGNS = [".", "!", "?", "…", "。", "！", "।", "؟", '"', "'", "“", "”", "„", "」", "(", ")", ","]
PIECES = st.lists(st.sampled_from(WORDS + SIGNS), max_size=30)


@settings(max_examples=300, deadline=None)
@given(PIECES.map("".join))
def test_nothing_but_space_is_lost_and_a_sentence_is_not_cut_again(text: str) -> None:
    found = list(cut_sentences(text))
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(each and each == each.strip() for each in found)
    assert [list(cut_sentences(each)) for each in found] == [[each] for each in found]
    ends = list(sentence_ends(text))
    assert ends == sorted(ends) and ends[-1] == len(text)
    starts = [0, *ends[:-1]]
    pieces = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    assert [piece for piece in pieces if piece] == found
