"""The model view in Chromium: thumbnails, their order, and the enlarged head."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect

from headscope.model.trace import Trace
from headscope.views import model_view
from headscope.views.lines import binned, drawing, lines
from headscope.views.payload import quantise
from headscope.views.weights import head_scores
from tests.browser.conftest import Watched
from tests.references.decoding import dequantise
from tests.references.traces import encoder_decoder_trace, known_trace, pair_side, random_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]

CURVES = "window.headscope.scene().shapes.filter(s => s.kind === 'curve')"
NAMES = "[...document.querySelectorAll('.hs-thumb')].map(b => b.getAttribute('aria-label'))"


def names(page: Watched) -> list[str]:
    """Layer and head of the thumbnails as they stand: "0.3"."""
    page.settle()
    labels = page.page.evaluate(NAMES)
    return [label.split(":")[0].replace("Layer ", "").replace(", head ", ".") for label in labels]


def test_every_layer_and_head_has_a_thumbnail_in_its_row(open_page: Open) -> None:
    page = open_page(model_view(random_trace()))
    assert names(page) == [f"{layer}.{head}" for layer in range(3) for head in range(4)]
    expect(page.page.locator(".hs-row-name")).to_have_text(["", "L0", "L1", "L2"])
    page.shot("model-lines")


def test_a_thumbnail_draws_the_lines_of_its_head(open_page: Open) -> None:
    page = open_page(model_view(known_trace(), thumbnail="lines", mass=1.0))
    alphas = [curve["alpha"] for curve in page.evaluate(CURVES)]
    expected = np.sqrt([1.0, 0.25, 0.75, 0.1, 0.3, 0.6])
    assert sorted(alphas) == pytest.approx(sorted(expected), abs=1e-4)
    box = page.page.locator(".hs-thumb canvas").bounding_box()
    assert box
    first_row = [[box["width"] / 2, box["height"] * (0.1 + 0.8 / 6)]]
    assert page.pixels(".hs-thumb canvas", first_row)[0][3] > 200


def test_thumbnails_of_long_texts_share_bins_as_in_python(open_page: Open) -> None:
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.full(70, 0.1), (1, 1, 70))
    trace = Trace.from_weights(weights, [f"t{i}" for i in range(70)])
    view = model_view(trace, thumbnail="lines", mass=0.9)
    stack = trace.default
    seen = dequantise(quantise(weights[0].astype(np.float32)), (1, 70, 70))
    picture = binned(drawing(seen, stack, view.state), 28)
    expected = np.sqrt(np.sort(lines(picture, 0.9).weight))
    drawn = sorted(curve["alpha"] for curve in open_page(view).evaluate(CURVES))
    assert drawn == pytest.approx(expected, abs=1e-4)


def test_clicking_enlarges_a_head_with_its_tokens(open_page: Open) -> None:
    trace = random_trace()
    page = open_page(model_view(trace, mass=1.0))
    page.page.get_by_role("gridcell", name="Layer 1, head 2").click()
    page.settle()
    drawn = {(line["query"], line["key"]): line for line in page.lines()}
    assert drawn[6, 3]["weight"] == pytest.approx(float(trace.weights[1][2][6, 3]), abs=1e-5)
    assert {line["head"] for line in drawn.values()} == {2}
    expect(page.page.locator(".hs-enlarged h2")).to_have_text("Layer 1, head 2")
    page.token("q", 3).hover()
    assert {line["query"] for line in page.lines()} == {3}
    page.shot("model-enlarged")
    page.page.get_by_role("button", name="Close").click()
    expect(page.page.locator(".hs-enlarged")).to_be_hidden()


def test_arrow_keys_move_through_the_grid(open_page: Open) -> None:
    page = open_page(model_view(random_trace()))
    page.page.get_by_role("gridcell", name="Layer 0, head 0").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.page.keyboard.press(key)
    page.page.keyboard.press("Enter")
    state = page.state()
    assert (state["layer"], state["head"], state["enlarged"]) == (1, 2, True)
    page.page.keyboard.press("ArrowLeft")
    page.settle()
    expect(page.page.locator(".hs-enlarged h2")).to_have_text("Layer 1, head 1")
    for _ in range(5):
        page.page.keyboard.press("ArrowUp")
    assert page.state()["layer"] == 0
    page.page.keyboard.press("Escape")
    assert page.state()["enlarged"] is False


def test_layers_and_heads_can_be_chosen(open_page: Open) -> None:
    page = open_page(model_view(random_trace(), layers=[0, 2], heads=[1, 3]))
    assert names(page) == ["0.1", "0.3", "2.1", "2.3"]
    page.chip("Layers", 0).click()
    page.chip("Heads", 0).click()
    assert names(page) == ["2.0", "2.1", "2.3"]
    page.page.get_by_role("button", name="None").first.click()
    page.settle()
    expect(page.page.locator(".hs-sheet")).to_contain_text("No layer or no head is chosen")


@pytest.mark.parametrize("score", ["entropy", "distance", "first token"])
def test_heads_are_ordered_by_a_score_within_layers_and_across(open_page: Open, score: str) -> None:
    trace = random_trace()
    page = open_page(model_view(trace))
    page.page.get_by_label("Order by").select_option(score)
    values = np.stack([head_scores(trace.weights[layer].numpy())[score] for layer in range(3)])
    rows = [f"{layer}.{head}" for layer in range(3) for head in np.argsort(-values[layer])]
    assert names(page) == rows
    page.page.get_by_label("Across layers").check()
    best = [divmod(int(place), 4) for place in np.argsort(-values.ravel())]
    assert names(page) == [f"{layer}.{head}" for layer, head in best]
    page.page.get_by_role("button", name="high first").click()
    assert names(page) == [f"{layer}.{head}" for layer, head in reversed(best)]


def test_own_scores_can_order_the_heads_and_missing_ones_come_last(open_page: Open) -> None:
    mine = np.arange(12.0).reshape(3, 4)
    mine[1, 0] = np.nan
    page = open_page(model_view(random_trace(), scores={"mine": mine}, order="mine", ranked=True))
    shown = names(page)
    assert shown[:2] == ["2.3", "2.2"]
    assert shown[-1] == "1.0"


def test_thumbnails_are_matrices_in_the_colour_of_what_a_head_does(open_page: Open) -> None:
    page = open_page(model_view(known_trace()))
    cells = page.evaluate(
        "window.headscope.scene().shapes.filter(s => s.kind === 'cells' && s.color === '#5c646d')"
    )
    shades = {round(shape["alpha"] * 16): len(shape["boxes"]) // 4 for shape in cells}
    expected = [round(float(np.sqrt(weight)) * 16) for weight in (1, 0.25, 0.75, 0.1, 0.3, 0.6)]
    assert {level: count for level, count in shades.items() if count} == {
        level: expected.count(level) for level in expected
    }
    expect(page.page.locator(".hs-caption")).to_have_text("unnamed")
    page.shot("model-matrix")


def test_filters_rollout_and_stacks_work_here_too(open_page: Open) -> None:
    page = open_page(model_view(random_trace(tokens=pair_side(), causal=False), thumbnail="lines"))
    before = len(page.evaluate(CURVES))
    page.page.get_by_label("Hide special tokens").check()
    page.page.get_by_label("Sentences").select_option("aa")
    page.page.get_by_role("radio", name="Words").click()
    page.page.get_by_label("Strongest lines").fill("0.4")
    page.settle()
    assert len(page.evaluate(CURVES)) < before
    page.page.get_by_role("radio", name="Rollout").click()
    assert names(page) == ["0.0", "1.0", "2.0"]
    page.page.get_by_role("radio", name="Norm").click()
    assert len(names(page)) == 12
    translator = open_page(model_view(encoder_decoder_trace()))
    translator.page.get_by_label("Attention").select_option("cross")
    assert len(names(translator)) == 4


def test_a_grid_of_32_by_32_heads_is_drawn(open_page: Open) -> None:
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.full(6, 0.3), (32, 32, 6)).astype(np.float32)
    page = open_page(model_view(Trace.from_weights(weights, [f"t{i}" for i in range(6)])))
    assert len(names(page)) == 1024
    page.page.locator("[aria-label^='Layer 31, head 31']").click()
    assert page.state()["layer"] == 31
    assert {line["head"] for line in page.lines()} == {31}
