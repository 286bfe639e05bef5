"""Whatever a token holds, it is shown as text: in every view, on the page and in what is saved."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from headscope.views import View, head_view, model_view, neuron_view
from headscope.views.labels import label
from tests.browser.conftest import Watched
from tests.references.traces import HOSTILE, random_trace, side

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]

TRACE = random_trace(tokens=side(HOSTILE))
TRACE_OF_HOSTILE_MODEL = type(TRACE)(HOSTILE[0], TRACE.stacks, TRACE.is_causal)
VIEWS = {
    "head": head_view(TRACE_OF_HOSTILE_MODEL, pinned=3),
    "model": model_view(
        TRACE_OF_HOSTILE_MODEL, enlarged=True, scores={HOSTILE[0]: [[1.0] * 4] * 3}
    ),
    "neuron": neuron_view(TRACE_OF_HOSTILE_MODEL),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_hostile_tokens_stay_text(open_page: Open, kind: str) -> None:
    view: View = VIEWS[kind]
    page = open_page(view)
    shown = set(page.page.locator(".hs-token, .hs-option").all_text_contents())
    assert {label(token) for token in HOSTILE} <= shown
    assert page.page.evaluate("window.hacked") is None
    expect(page.page.locator("#headscope img, #headscope script")).to_have_count(0)
    assert page.page.locator(".hs-model").text_content() == HOSTILE[0]
    page.shot(f"hostile-{kind}")


@pytest.mark.parametrize("kind", VIEWS)
def test_the_saved_picture_is_well_formed_and_inert(open_page: Open, kind: str) -> None:
    page = open_page(VIEWS[kind])
    text = page.page.evaluate("window.headscope.printPage()")
    page.page.evaluate(
        """text => new Promise(done => {
          const frame = document.createElement("iframe");
          frame.srcdoc = text;
          frame.onload = done;
          document.body.append(frame);
        })""",
        text,
    )
    assert page.page.evaluate("document.querySelector('iframe').contentWindow.hacked") is None
    inside = page.page.frame_locator("iframe")
    expect(inside.locator("img, script")).to_have_count(0)
    assert inside.locator("text", has_text="</script><").count() > 0


def test_a_long_token_is_cut_on_screen_and_whole_in_its_title(open_page: Open) -> None:
    page = open_page(VIEWS["head"])
    token = page.token("q", 5)
    box = token.bounding_box()
    assert box and box["width"] <= 181
    expect(token).to_have_attribute("title", "x" * 5000)
