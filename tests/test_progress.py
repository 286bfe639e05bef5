"""Progress: a bar on a terminal, plain lines elsewhere, the items untouched."""

import re
import sys

import pytest

from headscope.progress import show_progress


def test_progress_is_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(show_progress(iter("abc"), 3, "paragraphs")) == ["a", "b", "c"]
    assert capsys.readouterr().err.startswith("3 paragraphs, ")


def test_progress_is_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(show_progress(iter("abc"), 3, "paragraphs")) == ["a", "b", "c"]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    assert "3/3 paragraphs" in shown


def test_an_item_may_count_for_several(capsys: pytest.CaptureFixture[str]) -> None:
    shards = [range(4), range(3)]
    assert list(show_progress(shards, 7, "sentences", label="study", size=len)) == shards
    assert capsys.readouterr().err.startswith("study: 7 sentences, ")


def test_one_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(show_progress("a", 1, "sentences")) == ["a"]
    assert capsys.readouterr().err.startswith("1 sentence, ")
