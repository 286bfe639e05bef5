"""What a reader sees first: one head that follows a pattern, why, and the others one click away."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect

from headscope.views import head_view, model_view, neuron_view
from headscope.views.lines import opacity
from tests.browser.conftest import Watched
from tests.references.traces import patterned_trace, random_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]
CURVES = "window.headscope.scene().shapes.filter(s => s.kind === 'curve')"


def test_the_head_view_opens_on_a_telling_head_and_says_why(open_page: Open) -> None:
    page = open_page(head_view(patterned_trace()), more=False)
    assert {line["head"] for line in page.lines()} == {2}
    assert {(line["query"], line["key"]) for line in page.lines()} == {
        (query, key) for query, key in [(5, 2), (6, 3), (8, 5), (9, 2), (9, 6)]
    }  # the first token, on which it rests, is hidden
    expect(page.page.locator(".hs-why")).to_have_text(
        re.compile("^In this text L1H2 rests on the first token .* goes to what followed it")
    )
    page.page.get_by_role("button", name="L0H1").click()
    drawn = page.lines()
    assert {line["head"] for line in drawn} == {1}
    assert all(line["key"] == line["query"] - 1 for line in drawn if line["weight"] > 0.5)
    expect(page.page.locator(".hs-why")).to_contain_text(
        "In this text L0H1 looks at the previous token (9"
    )
    page.shot("first-sight-head")


def test_what_is_hidden_is_said_and_shown_on_demand(open_page: Open) -> None:
    trace = patterned_trace()
    page = open_page(head_view(trace), more=False)
    note = page.page.locator(".hs-hidden-note")
    rows = trace.weights[1][2].numpy()[1:]
    share = float((rows[:, 0] / rows.sum(-1)).mean())
    expect(note).to_contain_text(f"First token hidden: {share:.1%}".replace("%", " %"))
    assert all(line["key"] > 0 for line in page.lines())
    note.get_by_role("button", name="Show").click()
    assert any(line["key"] == 0 for line in page.lines())
    expect(note).to_be_hidden()


def test_the_model_view_opens_with_that_head_enlarged_and_tells_the_share_of_all(
    open_page: Open,
) -> None:
    trace = patterned_trace()
    page = open_page(model_view(trace))
    expect(page.page.locator(".hs-enlarged h2")).to_have_text("Layer 1, head 2")
    assert {line["head"] for line in page.lines()} == {2}
    every = np.stack([trace.weights[layer].numpy()[:, 1:, 0] for layer in range(2)])
    label = page.page.locator(".hs-check", has_text="Hide first token")
    expect(label).to_contain_text(f"{every.mean():.1%}".replace("%", " %"))
    page.page.get_by_role("button", name="L0H1").click()
    page.settle()
    expect(page.page.locator(".hs-enlarged h2")).to_have_text("Layer 0, head 1")
    expect(label).to_contain_text(f"{every.mean():.1%}".replace("%", " %"))


def test_the_neuron_view_opens_on_a_word(open_page: Open) -> None:
    page = open_page(neuron_view(random_trace(causal=False)))
    assert len(page.page.locator(".hs-query .hs-word").inner_text()) > 2
    expect(page.page.locator(".hs-readout")).to_have_text(re.compile("L0H0, computed here"))


def test_where_no_head_stands_out_all_of_the_first_layer_are_shown(open_page: Open) -> None:
    page = open_page(head_view(random_trace()), more=False)
    assert {line["head"] for line in page.lines()} == {0, 1, 2, 3}
    expect(page.page.locator(".hs-worth")).to_be_hidden()


@pytest.mark.parametrize("heads", [[1], [0, 2], [0, 1, 2, 3]])
def test_several_heads_are_drawn_by_weight_over_their_number(
    open_page: Open, heads: list[int]
) -> None:
    trace = random_trace()
    page = open_page(head_view(trace, layer=1, heads=heads, mass=1.0))
    weights = trace.weights[1].numpy()[heads]
    expected = opacity(weights[weights > 1e-5], len(heads))
    seen = 0.005  # fainter lines are hardly there, and not drawn
    drawn = sorted(one["alpha"] for one in page.evaluate(CURVES) if one["alpha"] > seen)
    assert drawn == pytest.approx(np.sort(expected[expected > seen]), abs=1e-4)
    if len(heads) > 1:
        assert max(drawn) <= 1 / len(heads)
    page.token("q", 6).hover()
    row = weights[:, 6]
    strong = sorted(curve["alpha"] for curve in page.evaluate(CURVES))
    assert strong == pytest.approx(np.sort(np.sqrt(row[row > 1e-5])), abs=5e-4)  # quantised


def test_the_readout_names_the_head_beside_every_number(open_page: Open) -> None:
    trace = random_trace(heads=6)
    page = open_page(head_view(trace, layer=2, mass=1.0))
    page.token("q", 7).hover()
    row = trace.weights[2].numpy()[:, 7]
    places = np.argsort(-row.ravel())[:3]
    said = page.page.locator(".hs-readout").inner_text()
    assert re.findall(r"L2H\d 0\.\d+ to \S+", said) == [
        f"L2H{head} {row[head, key]:.3f} to {trace.tokens[key]}"
        for head, key in (divmod(int(place), 10) for place in places)
    ]
    texts = page.evaluate("window.headscope.scene().shapes.filter(s => s.mono).map(s => s.text)")
    assert texts == ["largest", *(f"H{row[:, k].argmax()} {row[:, k].max():.3f}" for k in range(8))]
    cells = page.evaluate("window.headscope.scene().shapes.filter(s => s.kind === 'cells')")
    assert [cell["alpha"] for cell in cells] == pytest.approx(row[:, :8].T.ravel(), abs=1e-5)


def test_the_readout_stays_in_sight(open_page: Open) -> None:
    page = open_page(head_view(random_trace()), more=False)
    page.resize(900, 320)
    page.token("q", 9).scroll_into_view_if_needed()
    page.token("q", 9).hover()
    expect(page.page.locator(".hs-readout")).to_be_in_viewport()


def test_the_controls_come_in_two_steps(open_page: Open) -> None:
    page = open_page(head_view(random_trace()), more=False)
    expect(page.page.get_by_label("Layer")).to_be_visible()
    expect(page.chip("Heads", 0)).to_be_visible()
    expect(page.page.get_by_label("Hide first token")).to_be_hidden()
    page.page.get_by_text("More", exact=True).click()
    expect(page.page.get_by_label("Hide first token")).to_be_visible()
