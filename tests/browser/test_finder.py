"""Heads are found by their measures, in the plane and in the table, with the mouse and without."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from playwright.sync_api import Page, expect

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.dataset import load
from headscope.results.replicates import margin_of
from tests.browser.explorer import Visit, visiting
from tests.explorer.live import live
from tests.references.runs import write_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "vig", "vig2019")
    write_run(folder / "clark", "clark2019")
    return folder


@pytest.fixture(scope="module")
def vig(folder: Path) -> xr.Dataset:
    return load(folder / "vig")


@pytest.fixture(scope="module")
def place(folder: Path) -> Iterator[str]:
    library = Library([folder / "vig", folder / "clark"])
    with live(create_app(library, Texts(None, None))) as place:
        yield place


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


def names_of(data: xr.Dataset, keep: np.ndarray) -> list[str]:
    return [f"L{layer}H{head}" for layer, head in np.argwhere(keep)]


def shown(value: float) -> str:
    return f"{value:.{4 if value < 0.1 else 3}f}"


def points(visit: Visit) -> list[str]:
    return visit.page.eval_on_selector_all(".dot", "dots => dots.map((one) => one.dataset.head)")


def test_conditions_in_the_address_keep_the_heads_that_meet_them(
    visit: Visit, vig: xr.Dataset
) -> None:
    visit.open("/finder?run=vig&where=entropy>%3D1.2;pos_to~NOUN<%3D0.1")
    keep = (vig["entropy"].values >= 1.2) & (vig["pos_to"].sel(tag="NOUN").values <= 0.1)
    assert sorted(points(visit)) == names_of(vig, keep)
    expect(visit.at("#count")).to_have_text(f"{keep.sum()} of 16 heads fit.")
    assert sorted(visit.at("table td a").all_inner_texts()) == names_of(vig, keep)


def test_a_condition_is_added_changed_and_removed(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/finder?run=vig")
    visit.at("#add-filter").click()
    visit.wait()
    visit.choose("where-0", "distance")
    visit.choose("where-0-sign", "<=")
    visit.at("#where-0-value").fill("3.5")
    keep = vig["distance"].values <= 3.5
    expect(visit.at("#count")).to_contain_text(f"{keep.sum()} of 16")
    assert "where=distance%3C%3D3.5" in visit.address()
    visit.page.reload()
    visit.wait()
    assert sorted(points(visit)) == names_of(vig, keep)
    visit.at("#where-0-drop").click()
    visit.wait()
    assert len(points(visit)) == 16


def test_what_is_broken_in_an_address_is_left_out(visit: Visit) -> None:
    broken = "where=nothing>%3D1;%25E0%25>%3D2;entropy>%3Dx;;&x=%25&color=zz"
    visit.open(f"/finder?run=vig&{broken}")
    assert len(points(visit)) == 16
    expect(visit.at(".condition")).to_have_count(0)


def test_the_search_knows_names_and_behaviours(visit: Visit, folder: Path) -> None:
    visit.open("/finder?run=clark")
    visit.at("#q").fill("broad")
    behaviour = load(folder / "clark")["behaviour"].values
    broad = names_of(load(folder / "clark"), behaviour == "broad")
    expect(visit.at(".dot")).to_have_count(len(broad))
    assert sorted(points(visit)) == broad
    visit.at("#q").fill("l1h2")
    expect(visit.at("#count")).to_contain_text("1 of 16")
    expect(visit.at("#found tbody a")).to_have_text("L1H2")
    expect(visit.at(".scatter")).to_have_count(0)  # one point tells of no relation
    visit.at("#q").fill("nothing at all")
    expect(visit.at("main")).to_contain_text("No head fits all of it.")
    assert "q=nothing+at+all" in visit.address()
    visit.at("#clear-filters").click(force=True)


def test_a_point_tells_its_values_with_their_errors_and_opens_its_card(
    visit: Visit, vig: xr.Dataset
) -> None:
    visit.open("/finder?run=vig&x=distance&y=entropy&color=null_share")
    visit.at(".dot[data-head='L2H1']").hover()
    for name in ("distance", "entropy", "null_share"):
        margin = margin_of(vig, name)
        assert margin is not None
        value, error = float(vig[name][2, 1]), float(margin[2, 1])
        places = len(shown(value).partition(".")[2])  # an error is as exact as its value
        expect(visit.at("#readout")).to_contain_text(f"{shown(value)} ± {error:.{places}f}")
    expect(visit.at(".scatter .errors")).to_have_attribute("d", re.compile("M"))
    visit.at(".dot[data-head='L2H1']").click()
    visit.wait()
    assert visit.address().startswith("/head?run=vig&head=L2H1")


def test_the_keyboard_goes_from_head_to_head(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/finder?run=vig&x=distance&y=entropy")
    order = np.argsort(vig["distance"].values.ravel())
    names = [f"L{i // 4}H{i % 4}" for i in order]
    visit.at(".dot").first.focus()
    expect(visit.at("#readout strong")).to_have_text(names[0])
    visit.page.keyboard.press("ArrowRight")
    expect(visit.at("#readout strong")).to_have_text(names[1])
    visit.page.keyboard.press("Enter")
    visit.wait()
    assert f"head={names[1]}" in visit.address()


def test_r_is_pearsons_for_few_and_many_heads(visit: Visit, vig: xr.Dataset) -> None:
    script = """async pairs => {
      const { pearson } = await import("/static/charts/relation.js");
      return pairs.map((points) => pearson(points.map(([x, y]) => ({ x, y }))));
    }"""
    visit.open("/finder?run=vig&x=distance&y=entropy")
    random = np.random.default_rng(0)
    pairs = []
    for count, slope in ((3, 0.0), (4, 1.0), (16, 0.3), (64, -0.2), (1024, 0.05), (40, 30.0)):
        x = random.normal(size=count)
        pairs.append(np.stack([x, slope * x + random.normal(size=count)], 1))
    found = visit.page.evaluate(script, [one.tolist() for one in pairs])
    for one, pair in zip(found, pairs, strict=True):
        assert one == pytest.approx(np.corrcoef(pair.T)[0, 1], abs=1e-12)
    constant = visit.page.evaluate(script, [[[1, 1], [1, 2], [1, 3]], [[0, 1], [1, 2]]])
    assert constant == [None, None]
    r = np.corrcoef(vig["entropy"].values.ravel(), vig["distance"].values.ravel())[0, 1]
    expect(visit.at("#correlation")).to_contain_text(f"r = {r:.3f}")


def test_what_is_asked_for_is_a_column_that_sorts_and_stays_in_the_address(
    visit: Visit, vig: xr.Dataset
) -> None:
    visit.open("/finder?run=vig&x=entropy&y=pos_to~VERB")
    visit.page.get_by_role("button", name="Attention to a tag: VERB").last.click()
    values = vig["pos_to"].sel(tag="VERB").values
    best = np.unravel_index(np.argmax(values), values.shape)
    expect(visit.at("table tbody tr td").first).to_have_text(f"L{best[0]}H{best[1]}")
    assert "sort=-pos_to%7EVERB" in visit.address()
