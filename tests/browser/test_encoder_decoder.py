"""An encoder–decoder model in the browser: source and target, three stacks, every page of a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import headscope as hs
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from tests.browser.explorer import Visit, visiting
from tests.explorer.live import live
from tests.references.explorer_models import tiny_translator
from tests.references.tiny_models import treebank

pytestmark = pytest.mark.browser

SOURCE, TARGET = "The old cat sat on the mat.", "A cat sat."


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    runs = tmp_path_factory.mktemp("runs")
    options = {"gradients": False, "probe_seeds": 1}
    for study, chosen in (("vig2019", {}), ("clark2019", options)):
        hs.study(study, tiny_translator(), treebank(40), runs / study, **chosen)
    library = Library([Path(runs / "vig2019"), Path(runs / "clark2019")])
    with live(create_app(library, Texts("tiny-t5", tiny_translator))) as place:
        yield place


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


def shown(visit: Visit, side: str) -> list[str]:
    return visit.at(f"#view [data-side={side}] .hs-token").all_inner_texts()


def choose_stack(visit: Visit, name: str) -> None:
    visit.at("#view select[aria-label=Attention]").select_option(name)


def test_source_and_target_are_typed_and_every_stack_is_shown(visit: Visit) -> None:
    trace = tiny_translator().trace(SOURCE, target=TARGET)
    visit.open("/text")
    visit.at("#text").fill(SOURCE)
    visit.at("#target").fill(TARGET)
    visit.at("#generate").fill("0")
    visit.at("#trace").click()
    expect(visit.at("#status")).to_contain_text("10 source and 6 target tokens")
    for name in ("cross", "decoder", "encoder"):
        choose_stack(visit, name)
        stack = trace.stacks[name]
        expect(visit.at("#view [data-side=k] .hs-token")).to_have_count(len(stack.keys))
        assert shown(visit, "q") == list(stack.queries.labels)
        assert shown(visit, "k") == list(stack.keys.labels)
    visit.watched.shot("explorer-cross-attention")
    address = visit.address()
    assert "stack=encoder" in address and "target=A+cat+sat." in address
    visit.open(address)
    expect(visit.at("#view select[aria-label=Attention]")).to_have_value("encoder")


def test_the_weights_on_screen_are_those_of_the_cross_attention(visit: Visit) -> None:
    weights = tiny_translator().trace(SOURCE, target=TARGET).stacks["cross"].weights[1]
    visit.open(f"/text?text={SOURCE}&target={TARGET}&generate=0#stack=cross&layer=1&heads=2")
    visit.at("#view [data-side=q] .hs-token").nth(3).click()
    visit.at("#view [data-side=k] .hs-token").nth(2).hover()
    expect(visit.at("#view .hs-readout")).to_contain_text(f"H2 {weights[2, 3, 2]:.3f}")


def test_without_a_target_the_model_writes_and_the_boundary_is_known(visit: Visit) -> None:
    visit.open(f"/text?text={SOURCE}")
    expect(visit.at("#status")).to_contain_text("source and 9 target tokens")
    choose_stack(visit, "decoder")
    expect(visit.at("#view [data-side=q] .hs-token")).to_have_count(9)


def test_the_model_and_neuron_views_have_all_stacks(visit: Visit) -> None:
    visit.open(f"/text?text={SOURCE}&target={TARGET}&generate=0&kind=model")
    choose_stack(visit, "cross")
    expect(visit.at("#view .hs-thumb")).to_have_count(8)
    visit.at("#view .hs-thumb").nth(5).click()
    expect(visit.at("#view .hs-enlarged [data-side=k] .hs-token")).to_have_count(10)
    visit.watched.shot("explorer-cross-model-view")
    visit.at("#kind-neuron").check()
    choose_stack(visit, "cross")
    expect(visit.at("#view .hs-query-list .hs-option")).to_have_count(6)


def test_every_page_shows_the_runs_of_its_encoder(visit: Visit) -> None:
    visit.open("/overview?run=vig2019&measure=distance")
    expect(visit.at(".heatmap .cell")).to_have_count(8)
    visit.cell("L1H2").click()
    expect(visit.at(".title h1")).to_have_text("Head L1H2")
    visit.at("#exemplar-0").click()
    expect(visit.at("#view .hs-token").first).to_be_visible()
    expect(visit.at("#view [aria-label='Attention']")).to_have_value("encoder")
    visit.follow("/clusters?run=clark2019")
    expect(visit.at(".dot")).to_have_count(8)
    visit.follow("/findings?run=clark2019")
    expect(visit.at(".downloads button").first).to_be_visible()
    visit.follow("/head?run=clark2019&head=L0H1")
    expect(visit.at("#exemplar-0")).to_be_visible()
