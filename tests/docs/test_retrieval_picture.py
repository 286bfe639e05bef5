"""The picture of a retrieval prompt is drawn from any model."""

from pathlib import Path

import pytest

from tests.docs.page_module import load_page


def test_the_picture_and_its_numbers_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_page("retrieval_picture").main("mini-gpt2", str(tmp_path))
    drawn = (tmp_path / "retrieval-shares.svg").read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert "What “answer” looks at · mini-gpt2 · first left out" in drawn
    for number in range(1, 5):
        share, even = next(
            line.split(" | ")[1:] for line in said.splitlines() if f"Document {number} |" in line
        )
        assert f"{share}, by length {even.removesuffix(' |')}" in drawn
    assert said.count("%") == 8 + 5  # two for each document, and the five strongest heads
