"""Choosing several tokens, naming spans, and the text shaded by attention, in Chromium."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from playwright.sync_api import expect

from headscope.model.trace import Trace
from headscope.views import head_view, model_view
from headscope.views.lines import attention_on_text, drawing
from headscope.views.weights import shown_weights
from tests.browser.conftest import Watched
from tests.references.chats import chat_model
from tests.references.traces import random_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]

CHAT = [{"role": "user", "content": "Two, and two?"}, {"role": "assistant", "content": "Four."}]


@lru_cache(maxsize=1)
def chat_trace() -> Trace:
    return chat_model("SmolLM3").trace(messages=CHAT)


def _drag(page: Watched, side: str, first: int, last: int) -> None:
    page.token(side, first).hover()
    page.page.mouse.down()
    page.token(side, last).hover()
    page.page.mouse.up()


def test_dragging_over_tokens_chooses_them_and_makes_a_span(open_page: Open) -> None:
    trace = random_trace()
    page = open_page(head_view(trace, layer=0, heads=[1], hide=(), mass=1.0))
    _drag(page, "q", 3, 6)
    assert page.state()["pinned"] == "q3-6"
    assert {line["query"] for line in page.lines()} == {3, 4, 5, 6}
    shown = page.evaluate("window.headscope.scene().shapes.filter(s => s.mono).map(s => s.text)")
    mean = trace.weights[0][1, 3:7, 0].mean().item()
    assert shown[1] == f"{mean:.3f}"
    page.page.get_by_label("Name of the span").fill("middle, part")
    page.page.get_by_role("button", name="Make a span").click()
    page.settle()
    assert page.state()["spans"] == ["3-6 middle, part"] and page.state()["pinned"] is None
    page.page.reload()  # the URL holds the span
    page.page.evaluate("window.headscope.ready")
    assert page.state()["spans"] == ["3-6 middle, part"]
    page.page.get_by_role("button", name="Remove the span “middle, part”").click()
    assert page.state()["spans"] == []
    page.token("q", 1).click()
    page.token("q", 4).click(modifiers=["ControlOrMeta"])
    assert page.state()["pinned"] == "q1+4"
    page.token("q", 6).click(modifiers=["Shift"])
    assert page.state()["pinned"] == "q4-6"


def test_the_keyboard_chooses_and_names_as_well(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    page.token("q", 2).focus()
    for key in ("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowUp"):
        page.page.keyboard.press(key)
    assert page.state()["pinned"] == "q2-3"
    page.page.keyboard.press("s")
    page.page.keyboard.type("two")
    page.page.keyboard.press("Enter")
    assert page.state()["spans"] == ["2-3 two"]
    page.token("k", 5).focus()
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Control+Space")
    assert page.state()["pinned"] == "k5-6"


def test_the_turns_of_a_chat_are_shown_and_filtered(open_page: Open) -> None:
    trace = chat_trace()
    page = open_page(head_view(trace, layer=0, heads=[0], mass=1.0, hide=()))
    assert [span.split(" ", 1)[1] for span in page.state()["spans"]] == ["user", "assistant"]
    names = "window.headscope.scene().shapes.filter(s => s.bold && !s.mono).map(s => s.text)"
    assert page.evaluate(names) == ["user", "assistant"]
    page.page.get_by_label("From", exact=True).select_option("assistant")
    page.page.get_by_label("To", exact=True).select_option("user")
    user, assistant = (set(span.tokens) for span in trace.segments)
    drawn = page.lines()
    assert drawn
    assert {line["query"] for line in drawn} <= assistant
    assert {line["key"] for line in drawn} <= user
    assert page.barriers() == []
    page.shot("chat")
    page.set(unit="span", attending=None, attended=None)
    drawn = {(line["query"], line["key"]): line["weight"] for line in page.lines()}
    share = trace.shares().share.sel({"layer": 0, "head": 0, "from": "assistant", "to": "user"})
    assert drawn[1, 0] == pytest.approx(float(share), abs=1e-4)


def test_a_summary_begins_with_the_heads_of_the_layer(open_page: Open) -> None:
    page = open_page(head_view(random_trace(), layer=1, heads=[2]))
    page.page.get_by_role("radio", name="Mean").click()
    state = page.state()
    assert (state["summary"], state["layers"], state["heads"]) == ("mean", [1], [0, 1, 2, 3])
    page.chip("Layers", 2).click()
    assert page.state()["layers"] == [1, 2]
    weights = np.mean([random_trace().weights[n].numpy() for n in (1, 2)], axis=(0, 1))
    for line in page.lines():
        expected = weights[line["query"], line["key"]]
        assert line["weight"] == pytest.approx(expected, abs=2e-5)
    model = open_page(model_view(random_trace(), summary="max"))
    expect(model.page.get_by_role("heading", name="Maximum of layers 0–2")).to_be_visible()
    model.page.locator(".hs-thumb").nth(5).click()
    expect(model.page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def test_text_is_shaded_by_what_the_chosen_tokens_look_at(open_page: Open) -> None:
    trace = replace(chat_trace(), prompt_length=len(chat_trace().tokens) - 4)
    view = head_view(trace, layout="text", summary="mean", hide="first")
    page = open_page(view)
    stack = trace.default
    _, weights = shown_weights(stack, view.state, view.state.heads)
    picture = drawing(weights, stack, view.state)
    tokens = page.page.locator(".hs-text .hs-token")
    expect(tokens).to_have_count(len(trace.tokens))
    for pinned in (None, "q7", "q5+9-12", "k3"):
        page.set(pinned=pinned)
        wanted = attention_on_text(picture, pinned, trace.prompt_length)
        opacity = 0.75 * np.sqrt(wanted / wanted.max())
        assert np.array(page.evaluate(_OPACITIES)) == pytest.approx(opacity, abs=0.006)
    page.page.get_by_role("button", name="Generated tokens").click()
    assert page.state()["pinned"] == f"q{trace.prompt_length}-{len(trace.tokens) - 1}"
    assert page.barriers() == []
    page.shot("text")
    assert "<rect" in page.evaluate("window.headscope.printPage()")


_OPACITIES = """[...document.querySelectorAll(".hs-text .hs-token")].map((token) => {
  const parts = token.style.backgroundColor.match(/[\\d.]+/g);
  return parts ? Number(parts[3] ?? 1) : 0;
})"""
