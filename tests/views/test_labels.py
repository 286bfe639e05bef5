"""Labels show what is invisible and never change how their neighbours are read."""

import unicodedata
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.font_manager import get_font

from headscope.views.labels import bare, gaps, is_right_to_left, label, short


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" cat", "cat"),
        ("##ing", "##ing"),
        (" ", "␣"),
        ("", "␣"),
        ("   ", "␣␣␣"),
        ("\n", "⏎"),
        ("a\tb", "a⇥b"),
        ("\x00", "‹U+0000›"),
        ("\r", "‹U+000D›"),
        ("\u202eevil", "‹U+202E›evil"),
        ("\u200f", "‹U+200F›"),
        ("\ud800", "‹U+D800›"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("القطة", "القطة"),
        ("</script>", "</script>"),
    ],
)
def test_tokens_are_shown_as_what_they_are(token: str, shown: str) -> None:
    assert label(token) == shown


@given(st.text())
def test_a_label_is_never_empty_and_holds_no_control_character(token: str) -> None:
    shown = label(token)
    assert shown
    hidden = {"Cc", "Cs", "Zl", "Zp"}
    assert not any(unicodedata.category(char) in hidden for char in shown)
    assert not any(
        unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "PDF") for char in shown
    )


def test_signs_for_what_is_invisible_are_in_the_font_that_comes_with_matplotlib() -> None:
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    letters = set(map(chr, get_font(str(font)).get_charmap()))
    invisible = [*map(chr, range(0x20)), " ", *map(chr, range(0x7F, 0xA1)), "\u2028", "\u202e"]
    assert set("".join(map(label, invisible))) <= letters


def test_direction_is_decided_by_the_majority_of_labels() -> None:
    assert is_right_to_left(("القطة", "جلست", "x" * 5000))
    assert not is_right_to_left(("cat", "sat", "على"))
    assert not is_right_to_left(("1", "2", "."))


def test_labels_are_cut_for_print() -> None:
    assert short("abc", 3) == "abc"
    assert short("abcd", 3) == "ab…"


def test_the_part_of_a_character_that_a_token_is_stays_in_its_label() -> None:
    assert [label(token) for token in ("你 1/3", "你 2/3", " 你 3/3")] == [
        "你 1/3",
        "你 2/3",
        "你 3/3",
    ]


def test_in_running_text_a_character_in_parts_is_read_once() -> None:
    tokens = ["“ 1/2", "“ 2/2", "fine", " 你 1/3", "你 2/3", "你 3/3", " 1/2"]
    assert "".join(map(bare, tokens)) == "“²fine你²³1/2"


def test_gaps_tell_where_a_text_has_spaces_and_new_lines() -> None:
    text = "A cat.\nIt sat\n\non"
    offsets = [(0, 1), (1, 5), (5, 6), (6, 9), (9, 13), (13, 15), (15, 17)]
    tokens = [text[start:end] for start, end in offsets]
    assert gaps(tokens, text, offsets, word_pieces=False) == [0, 1, 0, 2, 1, 0, 1]
    pieces = ["[CLS]", "a", "cat", ".", "it", "sat", "on", "[SEP]"]
    spans = [(0, 0), (0, 1), (2, 5), (5, 6), (7, 9), (10, 13), (15, 17), (0, 0)]
    assert gaps(pieces, text, spans, word_pieces=True) == [0, 1, 1, 0, 2, 1, 2, 1]
