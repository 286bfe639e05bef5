"""The neuron view in Chromium: the shown numbers add up to the weight."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from headscope import views
from headscope.model.trace import Trace
from headscope.views.weights import neurons_of, take_apart
from tests.browser.conftest import Watched
from tests.references.traces import random_trace, side

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]
neuron_view = partial(views.neuron_view, sort="text")  # rows as the weights are recorded

TABLE = """() => [...document.querySelectorAll(".hs-neuron-body .hs-neuron-row")].map(row => ({
  word: row.querySelector(".hs-word").textContent,
  figures: [...row.querySelectorAll(".hs-figure")].map(cell => cell.textContent),
  share: row.querySelector(".hs-share").textContent,
  weight: row.querySelector(".hs-weight").textContent,
}))"""


def table(page: Watched) -> list[dict[str, Any]]:
    """The rows as a reader sees them."""
    page.settle()
    return page.page.evaluate(TABLE)


def number(text: str) -> float:
    """A shown number; masked scores are minus infinity."""
    return -np.inf if text == "masked" else float(text.replace("−", "-"))


MODELS = {
    "plain": random_trace(causal=False),
    "causal": random_trace(),
    "soft-cap": random_trace(softcap=2.0),
    "sink": random_trace(sink=True),
    "position bias": random_trace(position_bias=True, causal=False),
    "everything, grouped": random_trace(
        key_heads=2, softcap=3.0, sink=True, position_bias=True, dim=16
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_shown_numbers_add_up_to_the_recorded_weight(open_page: Open, name: str) -> None:
    trace = MODELS[name]
    page = open_page(neuron_view(trace, layer=1, head=3, pinned=6))
    parts = take_apart(neurons_of(trace.default, 1, 3), 6)
    rows = table(page)
    scores = []
    for key, row in enumerate(rows):
        dot, scaled, *steps = map(number, row["figures"])
        assert dot == pytest.approx(parts.products[key].sum(), abs=6e-4)
        assert scaled == pytest.approx(parts.scaled[key], abs=6e-4)
        capped = steps.pop(0) if trace.default.softcap is not None else scaled
        scores.append(capped + (steps.pop(0) if steps else 0.0))
    sink = [float(trace.default.sink[1][3])] if trace.default.sink is not None else []
    powers = np.exp(scores)
    shown = powers / (powers.sum() + np.exp(sink).sum())
    recorded = trace.weights[1][3][6].numpy()
    assert shown == pytest.approx(recorded, abs=2e-3)
    assert [float(row["weight"]) for row in rows] == pytest.approx(recorded, abs=6e-5)
    page.shot(f"neuron-{re.sub('[^a-z]+', '-', name)}")


def test_the_total_is_one_and_the_sink_has_its_own_row(open_page: Open) -> None:
    page = open_page(neuron_view(random_trace(sink=True)))
    totals = page.page.locator(".hs-total").all_inner_texts()
    assert totals[0].split()[:2] == ["learned", "sink"]
    assert totals[1].split()[-1] == "1.0000"


def test_the_page_says_how_far_it_is_from_the_recorded_weights(open_page: Open) -> None:
    page = open_page(neuron_view(random_trace(key_heads=2)))
    note = page.page.locator(".hs-readout").inner_text()
    assert float(note.split("at most ")[1].split(".")[0].replace("e−", "e-")) < 1e-4
    assert "Heads 0, 1 share these keys." in note


def test_a_model_that_does_something_else_is_not_hidden(open_page: Open) -> None:
    trace = random_trace()
    wrong = replace(trace.default, scaling=dict.fromkeys(range(3), 1.0))
    page = open_page(neuron_view(Trace(trace.model, {"self": wrong}, trace.is_causal)))
    note = page.page.locator(".hs-readout").inner_text()
    assert "does something here that these steps do not show" in note


def test_hovering_a_neuron_shows_its_share_in_every_score(open_page: Open) -> None:
    trace = random_trace(causal=False)
    page = open_page(neuron_view(trace, layer=0, head=1, pinned=4))
    page.page.locator("[data-strip='product']").hover(position={"x": 6 * 5 + 2, "y": 30})
    parts = take_apart(neurons_of(trace.default, 0, 1), 4)
    expect(page.page.locator(".hs-share").first).to_have_text("neuron 5")
    for key, row in enumerate(table(page)):
        contribution, percent = row["share"].split(maxsplit=1)
        assert number(contribution) == pytest.approx(parts.products[key, 5] * 8**-0.5, abs=6e-4)
        share = 100 * parts.products[key, 5] / parts.dots[key]
        assert number(percent.removesuffix(" %")) == pytest.approx(share, abs=0.51)
    shares = [parts.products[key].sum() / parts.dots[key] for key in range(10)]
    assert shares == pytest.approx(np.ones(10))


def test_neurons_are_sorted_by_contribution(open_page: Open) -> None:
    trace = random_trace(causal=False)
    page = open_page(neuron_view(trace, layer=0, head=1, pinned=4))
    page.page.get_by_role("radio", name="By contribution").click()
    page.settle()
    parts = take_apart(neurons_of(trace.default, 0, 1), 4)
    order = np.argsort(-(parts.weights @ parts.products))
    for place in (0, 3, 7):
        page.page.locator("[data-strip='key']").hover(position={"x": 6 * place + 2, "y": 30})
        expect(page.page.locator(".hs-share").first).to_have_text(f"neuron {order[place]}")


def test_positive_is_blue_and_negative_orange(open_page: Open) -> None:
    trace = random_trace(causal=False)
    page = open_page(neuron_view(trace, layer=0, head=0))
    pixels = page.pixels("[data-strip='key']", [[6 * neuron + 3, 11] for neuron in range(8)])
    assert trace.key is not None
    for value, (red, _, blue, _) in zip(trace.key[0][0][0].tolist(), pixels, strict=True):
        assert (blue > red) == (value > 0)


def test_the_query_token_is_chosen_by_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page(neuron_view(random_trace(), pinned=9))
    expect(page.page.locator(".hs-query .hs-word")).to_have_text(".")
    page.page.get_by_role("option", name="fox").click()
    page.settle()
    assert page.state()["pinned"] == "q3"
    expect(page.page.locator(".hs-masked .hs-word")).to_have_text(
        [
            "jumps",
            "over",
            "the",
            "lazy",
            "dog",
            ".",
        ]
    )
    page.page.keyboard.press("ArrowDown")
    page.page.get_by_role("option", name="jumps").press("ArrowDown")
    page.settle()
    expect(page.page.locator(".hs-query .hs-word")).to_have_text("over")


def test_the_strongest_tokens_come_first_and_the_query_stays_in_sight(open_page: Open) -> None:
    trace = random_trace(layers=1, tokens=side([f"t{i}" for i in range(70)]))
    page = open_page(views.neuron_view(trace, layer=0, head=1, pinned=50), more=False)
    recorded = trace.weights[0][1][50].numpy()
    weights = [float(row["weight"]) for row in table(page)]
    assert weights == pytest.approx(-np.sort(-recorded), abs=6e-5)
    strongest = [f"t{key}" for key in np.argsort(-recorded)[:51]]
    assert [row["word"] for row in table(page)][:51] == strongest
    page.page.locator(".hs-neuron-view").evaluate("node => (node.scrollTop = node.scrollHeight)")
    expect(page.page.locator(".hs-neuron-row[data-key='69']")).to_be_in_viewport()
    expect(page.page.locator(".hs-query .hs-word")).to_be_in_viewport()
    expect(page.page.locator(".hs-query .hs-word")).to_have_text("t50")


def test_layer_and_head_are_chosen(open_page: Open) -> None:
    trace = random_trace()
    page = open_page(neuron_view(trace, pinned=9))
    page.page.get_by_label("Layer").select_option("2")
    page.page.get_by_label("Head", exact=True).select_option("3")
    recorded = trace.weights[2][3][9].numpy()
    assert [float(row["weight"]) for row in table(page)] == pytest.approx(recorded, abs=6e-5)


CELLS = """color => window.headscope.scene().shapes
  .filter(s => s.kind === 'cells' && s.color === color).map(s => [s.boxes, s.alpha])"""


def test_every_query_has_its_vector_and_lines_lead_to_what_it_looks_at(open_page: Open) -> None:
    trace = random_trace()
    page = open_page(neuron_view(trace, layer=1, head=2, pinned=7, mass=1.0))
    assert trace.query is not None
    cell = page.page.evaluate("document.querySelector('[data-strip=queries]').clientWidth") / 8
    points = [
        [cell * (neuron + 0.5), 22 * (query + 0.5)] for query in range(10) for neuron in (0, 5)
    ]
    for (red, _, blue, _), value in zip(
        page.pixels("[data-strip='queries']", points),
        trace.query[1][2][:, [0, 5]].ravel().tolist(),
        strict=True,
    ):
        assert (blue > red) == (value > 0)
    drawn = {line["key"]: line["weight"] for line in page.lines()}
    recorded = trace.weights[1][2][7].numpy()
    assert drawn == pytest.approx({key: recorded[key] for key in range(8)}, abs=1e-5)
    curves = page.evaluate("window.headscope.scene().shapes.filter(s => s.kind === 'curve')")
    assert {curve["from"][1] for curve in curves} == {curves[0]["from"][1]}
    assert sorted(curve["alpha"] for curve in curves) == pytest.approx(
        sorted(np.sqrt(recorded[:8])), abs=1e-4
    )
    strongest = int(recorded.argmax())
    canvas = page.page.evaluate("document.querySelector('.hs-query-lines').clientWidth")
    on_line, beside = page.pixels(
        ".hs-query-lines", [[canvas - 1, 22 * (strongest + 0.5)], [canvas - 1, 22 * 9.5]]
    )
    assert on_line[3] > 60 > beside[3]


@pytest.mark.parametrize("order", ["number", "contribution"])
def test_the_products_add_up_to_the_score(open_page: Open, order: str) -> None:
    trace = random_trace(causal=False)
    page = open_page(neuron_view(trace, layer=0, head=1, pinned=4, neurons=order))
    parts = take_apart(neurons_of(trace.default, 0, 1), 4)
    ink = page.evaluate(CELLS, "#1c2128")
    assert len(ink) == 1  # the ends of the sums
    ends = np.array(ink[0][0]).reshape(-1, 4)
    height = ends[:, 1] - 22 * np.arange(10)
    # All rows share a scale: where a sum ends is a straight line over the scores.
    line = np.polyfit(parts.scaled, height, 1)
    assert line[0] < 0
    assert height == pytest.approx(np.polyval(line, parts.scaled), abs=1e-6)


def test_score_and_weight_of_every_key_lie_on_the_curve(open_page: Open) -> None:
    trace = random_trace(causal=False, sink=True)
    page = open_page(neuron_view(trace, layer=0, head=1, pinned=4))
    parts = take_apart(neurons_of(trace.default, 0, 1), 4)
    shapes = page.evaluate(
        "window.headscope.scene().shapes.filter(s => s.alpha === 0.75 && s.boxes?.[3] === 6)"
    )
    assert len(shapes) == 1
    dots = np.array(shapes[0]["boxes"]).reshape(-1, 4)
    weights = np.append(parts.weights, parts.sink)
    assert trace.default.sink is not None
    scores = np.append(parts.scores, float(trace.default.sink[0][1]))
    order = np.argsort(-weights, kind="stable")
    for place, values in ((0, scores[order]), (1, weights[order])):
        fitted = np.polyfit(values, dots[:, place], 1)
        assert dots[:, place] == pytest.approx(np.polyval(fitted, values), abs=1e-6)
        assert (fitted[0] > 0) == (place == 0)


def test_a_legend_names_sign_and_strength(open_page: Open) -> None:
    trace = random_trace(causal=False)
    page = open_page(neuron_view(trace, layer=0, head=1, pinned=4))
    texts = page.evaluate("window.headscope.scene().shapes.filter(s => s.text).map(s => s.text)")
    assert trace.query is not None and trace.key is not None
    most = max(float(part[0][1].abs().max()) for part in (trace.query, trace.key))
    assert f"+{float(f'{most:.2g}'):g}" in texts and f"−{float(f'{most:.2g}'):g}" in texts
    expect(page.page.get_by_role("img", name="Blue is positive, orange negative")).to_be_visible()


def test_pointing_at_a_key_shows_its_way_from_score_to_weight(open_page: Open) -> None:
    page = open_page(neuron_view(random_trace(causal=False), layer=0, head=1, pinned=4))
    picture = "document.querySelector('.hs-softmax').toDataURL()"
    before = page.evaluate(picture)
    page.page.locator(".hs-neuron-row[data-key='1']").hover(position={"x": 30, "y": 10})
    assert page.evaluate(picture) != before
