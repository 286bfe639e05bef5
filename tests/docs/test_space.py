"""The hosted demo answers as the package does; `tests/hosts` starts it under Gradio."""

import runpy
from pathlib import Path

import pytest

SPACE = Path(__file__).parents[2] / "space"
APP = runpy.run_path(str(SPACE / "app.py"))


@pytest.mark.parametrize("kind", APP["KINDS"])
def test_a_text_is_shown_in_a_frame(kind: str) -> None:
    shown = APP["show"](APP["TEXT"], kind, APP["HEAD"])
    assert shown.startswith("<iframe") and "mini-gpt2" in shown


@pytest.mark.parametrize(
    ("text", "head", "part"),
    [
        ("", "L5H5", "empty"),
        ("Birds", "fifth", "names no head"),
        ("Birds", "L9H0", "Layer 9 is not in"),
    ],
)
def test_a_visitors_mistake_is_a_sentence(text: str, head: str, part: str) -> None:
    shown = APP["show"](text, "head", head)
    assert shown.startswith("<p>") and part in shown


def test_it_installs_from_a_clone_and_says_how_it_is_started() -> None:
    needed = (SPACE / "requirements.txt").read_text().split("\n")
    assert "headscope @ git+https://github.com/headscope/headscope" in needed
    assert "sdk: gradio\napp_file: app.py\n" in (SPACE / "README.md").read_text()
