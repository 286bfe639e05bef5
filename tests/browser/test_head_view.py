"""The head view in Chromium: what is drawn is what the weights say."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from headscope.model.trace import Trace
from headscope.views import head_view
from headscope.views.lines import drawing, lines
from headscope.views.payload import quantise
from headscope.views.state import parse_pin
from headscope.views.weights import rollout, shown_weights
from tests.browser.conftest import Watched
from tests.references.decoding import dequantise
from tests.references.traces import (
    encoder_decoder_trace,
    known_trace,
    pair_side,
    random_trace,
)

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]


def test_one_line_for_each_weight_above_zero(open_page: Open) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    drawn = {(line["query"], line["key"]): line["weight"] for line in page.lines()}
    expected = {(0, 0): 1.0, (1, 0): 0.25, (1, 1): 0.75, (2, 0): 0.1, (2, 1): 0.3, (2, 2): 0.6}
    assert drawn.keys() == expected.keys()
    for pair, weight in expected.items():
        assert drawn[pair] == pytest.approx(weight, abs=1e-5)


def test_opacity_is_the_square_root_of_the_weight(open_page: Open) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    shapes = page.evaluate("window.headscope.scene().shapes.filter(s => s.kind === 'curve')")
    weights = sorted([1.0, 0.25, 0.75, 0.1, 0.3, 0.6])
    assert sorted(shape["alpha"] for shape in shapes) == pytest.approx(np.sqrt(weights), abs=1e-4)
    assert sorted(shape["width"] for shape in shapes) == pytest.approx(
        [0.6 + 2.4 * weight for weight in weights], abs=1e-4
    )


def test_the_canvas_shows_a_line_in_its_colour_and_nothing_where_the_weight_is_zero(
    open_page: Open,
) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    curves = page.evaluate("window.headscope.scene().shapes.filter(s => s.kind === 'curve')")
    full = next(curve for curve in curves if curve["alpha"] > 0.999)
    middle = [(full["from"][0] + full["to"][0]) / 2, full["from"][1]]
    beside = [full["from"][0] + 5, full["from"][1] - 9]
    on_line, off_line = page.pixels(".hs-stage canvas", [middle, beside])
    assert on_line == pytest.approx([0x1F, 0x70, 0xEB, 255], abs=3)
    assert off_line[3] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"mass": 0.6},
        {"unit": "word", "mass": 0.9},
        {"hide": ["first", "special"], "mass": 1.0},
        {"pair": "ab", "mass": 0.95},
        {"pair": "bb", "unit": "word", "hide": ["special"], "mass": 0.8},
        {"weights": "norm", "mass": 0.9, "heads": [1, 2]},
        {"unit": "span", "spans": ["1-6 all", "2-3 inner", "8+10 far, away"], "mass": 1.0},
        {"unit": "span", "spans": ["1-6 a"], "hide": ["first", "special"], "attended": "a"},
        {"spans": ["1-6 a", "8-10 b"], "attending": "b", "attended": "a", "mass": 0.9},
        {"summary": "mean", "layers": [0, 2], "heads": [1, 3], "mass": 0.9},
        {"summary": "max", "layers": [0, 1], "weights": "norm", "mass": 0.8},
        {"pinned": "q2+5-6", "mass": 0.9},
    ],
)
def test_the_page_draws_the_same_lines_as_python(open_page: Open, settings: dict) -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    view = head_view(trace, layer=1, **settings)
    seen = {
        layer: torch.from_numpy(dequantise(quantise(weights.numpy()), tuple(weights.shape)))
        for layer, weights in trace.weights.items()
    }
    stack = replace(trace.default, weights=seen)
    heads, weights = shown_weights(stack, view.state, view.state.heads)
    expected = lines(drawing(weights, stack, view.state), view.state.mass)
    chosen = parse_pin(view.state.pinned)[1] if view.state.pinned else range(len(stack.queries))
    drawn = open_page(view).lines()
    as_drawn = {(one["head"], one["query"], one["key"]): one["weight"] for one in drawn}
    found = [
        ((heads[head], query, key), weight)
        for head, query, key, weight in zip(
            expected.head, expected.query, expected.key, expected.weight, strict=True
        )
        if query in chosen
    ]
    assert len(drawn) == len(found)
    for line, weight in found:
        assert as_drawn[line] == pytest.approx(weight, rel=1e-5)


def test_hovering_a_token_shows_only_its_lines_and_their_weights(open_page: Open) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    page.token("q", 2).hover()
    assert {(line["query"], line["key"]) for line in page.lines()} == {(2, 0), (2, 1), (2, 2)}
    texts = page.evaluate("window.headscope.scene().shapes.filter(s => s.mono).map(s => s.text)")
    assert texts == ["H0", "0.100", "0.300", "0.600"]
    page.shot("head-hover")
    page.token("k", 1).hover()
    assert {(line["query"], line["key"]) for line in page.lines()} == {(1, 1), (2, 1)}
    page.page.mouse.move(5, 5)
    assert len(page.lines()) == 6


def test_clicking_pins_a_token_and_clicking_again_frees_it(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    page.token("q", 4).click()
    page.settle()
    page.page.mouse.move(5, 5)
    assert page.state()["pinned"] == "q4"
    assert {line["query"] for line in page.lines()} == {4}
    assert "pinned=q4" in page.address()
    page.token("k", 2).hover()
    expect(page.page.locator(".hs-readout")).to_have_text(re.compile("jumps → brown"))
    page.token("q", 4).click()
    assert page.state()["pinned"] is None


def test_heads_are_toggled_one_by_one_all_none_and_only_this(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    page.chip("Heads", 2).click()
    assert {line["head"] for line in page.lines()} == {0, 1, 3}
    page.chip("Heads", 3).dblclick()
    assert {line["head"] for line in page.lines()} == {3}
    page.page.get_by_role("button", name="None").click()
    assert page.lines() == []
    expect(page.page.locator(".hs-readout")).to_contain_text("No head is shown")
    page.page.get_by_role("button", name="All").click()
    assert {line["head"] for line in page.lines()} == {0, 1, 2, 3}
    page.chip("Heads", 1).press("o")
    assert page.state()["heads"] == [1]


def test_the_layer_selector_shows_another_layers_weights(open_page: Open) -> None:
    trace = random_trace()
    page = open_page(head_view(trace, heads=[0], mass=1.0))
    page.page.get_by_label("Layer").select_option("2")
    drawn = {(line["query"], line["key"]): line["weight"] for line in page.lines()}
    weights = trace.weights[2][0].numpy()
    assert drawn[5, 3] == pytest.approx(weights[5, 3], abs=1e-5)
    assert len(drawn) == (weights > 1e-5).sum()


def test_the_mass_slider_keeps_the_strongest_lines(open_page: Open) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    page.page.get_by_label("Strongest lines").fill("0.5")
    assert {(line["query"], line["key"]) for line in page.lines()} == {(0, 0), (1, 1), (2, 2)}


def test_the_mass_that_goes_to_hidden_tokens_is_written_beside_the_control(open_page: Open) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    page.page.get_by_label("Hide first token").check()
    page.settle()
    assert (
        page.page.locator(".hs-check", has_text="Hide first token").inner_text().endswith("17.5 %")
    )
    assert {(line["query"], line["key"]) for line in page.lines()} == {(1, 1), (2, 1), (2, 2)}
    page.token("q", 2).hover()
    expect(page.page.locator(".hs-readout")).to_contain_text("10.0 % of it to hidden tokens")


def test_special_tokens_words_and_sentence_pairs_have_controls(open_page: Open) -> None:
    page = open_page(head_view(random_trace(tokens=pair_side(), causal=False), mass=1.0))
    page.page.get_by_label("Hide special tokens").check()
    assert {line["key"] for line in page.lines()} == {1, 2, 3, 4, 5, 6, 8, 9, 10}
    page.page.get_by_role("radio", name="Words").click()
    page.settle()
    expect(page.token("q", 4)).to_have_text("unbelievably")
    page.page.get_by_label("Sentences").select_option("ab")
    assert {(line["query"], line["key"]) for line in page.lines()} == {
        (query, key) for query in range(1, 5) for key in range(6, 9)
    }
    page.shot("head-pair-words")


def test_rollout_and_norms_can_be_chosen_and_a_missing_one_says_why(open_page: Open) -> None:
    trace = random_trace(layers=2)
    page = open_page(head_view(trace, layer=1, mass=1.0))
    page.page.get_by_role("radio", name="Rollout").click()
    flows = rollout([trace.weights[layer].double().numpy() for layer in (0, 1)])
    drawn = {(line["query"], line["key"]): line["weight"] for line in page.lines()}
    assert drawn[4, 1] == pytest.approx(flows[1][4, 1], abs=1e-5)
    page.page.get_by_role("radio", name="Norm").click()
    assert page.state()["weights"] == "norm"
    bare = open_page(head_view(known_trace()))
    norm = bare.page.get_by_role("radio", name="Norm")
    assert "without values" in (norm.get_attribute("title") or "")
    norm.click(force=True)
    assert bare.state()["weights"] == "raw"


def test_encoder_decoder_and_cross_attention_can_be_chosen(open_page: Open) -> None:
    page = open_page(head_view(encoder_decoder_trace(), mass=1.0))
    assert page.state()["stack"] == "cross"
    expect(page.page.locator("[data-side='q'] .hs-token")).to_have_text(["x", "y", "z"])
    assert len(page.lines()) == 2 * 3 * 5
    title = page.page.get_by_role("radio", name="Rollout").get_attribute("title")
    assert title is not None and "cross-attention joins two" in title


def test_generated_text_is_set_off_from_the_prompt(open_page: Open) -> None:
    page = open_page(head_view(random_trace(prompt_length=6)))
    shapes = page.evaluate("window.headscope.scene().shapes")
    rule = next(shape for shape in shapes if shape["kind"] == "rule")
    labels = {shape["text"]: shape["at"][1] for shape in shapes if shape["kind"] == "text"}
    assert rule["dashed"]
    assert labels["over"] < rule["from"][1] < labels["the"]
    assert {"prompt", "generated"} <= labels.keys()


def test_tokens_answer_the_keyboard(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    page.token("q", 0).focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    assert {line["query"] for line in page.lines()} == {2}
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Enter")
    assert page.state()["pinned"] == "k2"
    page.page.keyboard.press("Escape")
    assert page.state()["pinned"] is None


def test_the_url_holds_the_state(open_page: Open) -> None:
    view = head_view(random_trace())
    page = open_page(view, "layer=2&heads=1,3&mass=0.5&hide=first&pinned=k1&theme=dark")
    state = page.state()
    assert (state["layer"], state["heads"], state["mass"]) == (2, [1, 3], 0.5)
    assert (state["hide"], state["pinned"], state["theme"]) == (["first"], "k1", "dark")
    page.set(layer=1)
    assert "layer=1" in page.address()
    again = open_page(view, page.address().split("#")[1])
    assert again.state() == page.state()


def test_a_url_written_by_hand_cannot_break_the_page(open_page: Open) -> None:
    page = open_page(
        head_view(random_trace()), "layer=99&heads=77&mass=7&pinned=q999&unit=x&weights=y"
    )
    state = page.state()
    assert (state["layer"], state["heads"], state["mass"]) == (0, [0, 1, 2, 3], 0.95)
    assert (state["pinned"], state["unit"], state["weights"]) == (None, "token", "raw")


def test_light_and_dark_follow_the_system_and_the_button(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    root = page.page.locator(".hs-root")
    expect(root).to_have_attribute("data-theme", "light")
    page.page.emulate_media(color_scheme="dark")
    page.page.wait_for_selector(".hs-root[data-theme='dark']")
    page.shot("head-dark")
    page.page.get_by_role("radio", name="Light").click()
    page.settle()
    expect(root).to_have_attribute("data-theme", "light")


def test_a_long_text_draws_the_strongest_lines_and_says_so(open_page: Open) -> None:
    weights = np.full((2, 120, 120), 1 / 120)
    page = open_page(
        head_view(
            Trace.from_weights(weights, [f"t{i}" for i in range(120)]),
            mass=1.0,
            layout="lines",
        )
    )
    assert len(page.lines()) == 12_000
    expect(page.page.locator(".hs-readout")).to_contain_text("12,000 of 28,800 lines")
