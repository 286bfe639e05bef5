"""The recipes for other hosts run; the hosts are stood in for, since none is installed."""

import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
GRADIO, STREAMLIT = re.findall(
    r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def stand_in(monkeypatch: pytest.MonkeyPatch, *names: str) -> dict[str, Any]:
    made = {name: MagicMock() for name in names}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_gradio_is_given_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "gradio")
    names: dict[str, Any] = {}
    exec(GRADIO, names)
    shown = names["show"]("The old cat sat on the mat.")
    assert str(shown).lstrip().startswith("<iframe") and "560px" in shown


def test_streamlit_is_given_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    made = stand_in(monkeypatch, "streamlit", "streamlit.components", "streamlit.components.v1")
    streamlit = made["streamlit"]
    streamlit.cache_resource = lambda function: function
    streamlit.text_input.side_effect = lambda label, text: text
    streamlit.components.v1 = made["streamlit.components.v1"]
    exec(STREAMLIT, {})
    (page,), options = made["streamlit.components.v1"].html.call_args
    assert page.startswith("<!doctype html>") and options == {"height": 560}
