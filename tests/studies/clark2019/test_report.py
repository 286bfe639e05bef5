"""Findings, figures and tables of clark2019 say what the result says."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.heads import name_in_paper
from headscope.plots.style import style, to_svg
from headscope.results.findings import Measured, judge
from headscope.results.heads import layers_between
from headscope.studies.clark2019.surface.figures import FIGURES, clearest_heads
from headscope.studies.clark2019.surface.findings import FINDINGS
from headscope.studies.clark2019.surface.tables import TABLES
from tests.metrics.tiny_models import tiny_bert, tiny_gpt2
from tests.studies.clark2019.corpora import paragraphs


@cache
def result() -> xr.Dataset:
    return hs.study("clark2019", tiny_bert(), paragraphs(2), repeated_sequences=2, period=4)


def claim(start: str, changed: xr.Dataset) -> Measured:
    finding = next(each for each in FINDINGS if each.claim.startswith(start))
    return judge(finding, changed)


def with_offset(offset: int, values: list[list[float]]) -> xr.Dataset:
    changed = result().copy(deep=True)
    changed["offset_share"].loc[{"offset": offset}] = values
    return changed


def test_heads_are_named_as_we_count_and_as_the_paper_does() -> None:
    assert name_in_paper(7, 9) == "L7H9 (paper 8-10)"


def test_previous_token_heads_are_counted_and_named() -> None:
    some = claim("Some heads look mostly at the prev", with_offset(-1, [[0.1, 0.7], [0.9, 0.5]]))
    assert some.verdict == "yes"
    assert some.value == "2: L1H0 (paper 2-1) 0.90, L0H1 (paper 1-2) 0.70"
    none = claim("Some heads look mostly at the prev", with_offset(-1, [[0.1, 0.2], [0.4, 0.3]]))
    assert none.verdict == "no"
    assert none.value == "0; most in L1H0 (paper 2-1) 0.40"


def test_next_token_heads_should_be_in_the_lower_half() -> None:
    low, high = [[0.9, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.9, 0.8]]
    assert claim("Next-token heads", with_offset(1, low)).verdict == "yes"
    assert claim("Next-token heads", with_offset(1, high)).verdict == "no"
    nothing = np.zeros((2, 2)).tolist()
    assert claim("Next-token heads", with_offset(1, nothing)).verdict == "not measured"


@pytest.mark.parametrize(("share", "verdict"), [(0.8, "yes"), (0.2, "no"), (0.5001, "unclear")])
def test_the_separator_claim_needs_two_standard_errors(share: float, verdict: str) -> None:
    changed = result().copy(deep=True)
    changed["special_share_by_layer"].loc[{"special": "sep"}] = share
    changed["special_share_by_layer_se"].loc[{"special": "sep"}] = 0.01
    assert claim("In the upper middle layers", changed).verdict == verdict


def test_a_fading_gradient_is_judged_relative_to_all_attention() -> None:
    changed = result().copy(deep=True)
    changed["gradient_by_layer"][:] = [[2.0, 1.0, 1.0], [4.0, 1.0, 8.0]]
    faded = claim("Where attention to [SEP] is large", changed)
    assert faded == Measured("2.00 → 0.50 of the mean gradient", "yes")


def test_heads_of_one_layer_are_compared_with_heads_of_others() -> None:
    changed = result().copy(deep=True)
    matrix = np.array([[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 3], [5, 5, 3, 0]], float)
    changed["head_divergence"][:] = matrix
    changed["head_divergence"].attrs["rows"] = 10.0
    found = claim("Heads of one layer", changed)
    assert found == Measured("0.200 within, 0.500 between layers", "yes")


def test_depths_are_those_of_the_paper_in_a_model_of_its_size() -> None:
    twelve = xr.Dataset(coords={"layer": np.arange(12)})
    assert layers_between(twelve, 5 / 12, 10 / 12) == [5, 6, 7, 8, 9]
    assert layers_between(xr.Dataset(coords={"layer": [0]}), 5 / 12, 10 / 12) == [0]


def test_the_clearest_heads_are_those_with_the_largest_values() -> None:
    for pattern, layer, head, value in clearest_heads(result()):
        assert value > 0, pattern
        if pattern == "attends broadly":
            assert value == float(result()["entropy"].max())
            assert value == float(result()["entropy"].sel(layer=layer, head=head))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_figure_names_what_it_shows(figure) -> None:  # noqa: ANN001
    with style(figure.name):
        svg = to_svg(figure.draw(result()))
    expected = {
        "figure01": "(paper ",
        "figure02": "[SEP] → [SEP]",
        "figure03": "all unmasked tokens",
        "figure04": "uniform",
        "figure06": "by behaviour",
        "divergence": "L1H1",
        "offsets": "previous token",
        "newer": "induction",
    }
    assert expected[figure.name] in svg


def test_the_figures_of_a_model_without_delimiters_leave_them_out() -> None:
    model = tiny_gpt2()
    model.tokenizer.bos_token = model.tokenizer.eos_token = None
    found = hs.study("clark2019", model, paragraphs(2), repeated_sequences=2, period=4)
    with style("figure02"):
        drawn = {figure.name: to_svg(figure.draw(found)) for figure in FIGURES}
    assert "[CLS]" not in drawn["figure02"] and "periods and commas" in drawn["figure02"]
    assert all(
        each.verdict != "yes" for each in (claim("In the upper", found), claim("There", found))
    )


def test_tables_hold_the_values_of_the_result() -> None:
    rows = {table.name: table.rows(result()) for table in TABLES}
    assert len(rows["heads"]) == 4 and len(rows["layers"]) == 2 and len(rows["neighbours"]) == 4
    second = rows["heads"][1]
    assert second["head"] == "L0H1 (paper 1-2)"
    assert second["entropy"] == float(result()["entropy"].sel(layer=0, head=1))
    assert second["gradient sep"] == float(result()["gradient"].sel(layer=0, head=1, target="sep"))
    assert sum(row["heads"] for row in rows["behaviours"]) == 4


def test_the_report_is_one_page_with_all_figures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hs.study("clark2019", tiny_bert(), paragraphs(2), run, repeated_sequences=2, period=4)
    page = hs.report(run).read_text(encoding="utf-8")
    for figure in FIGURES:
        assert f'id="{figure.name}"' in page
        assert (run / "figures" / f"{figure.name}.png").stat().st_size > 1000
    assert "Segments" in page and "weigh the same" in page
    assert (run / "tables" / "neighbours.csv").exists()
