"""Figures and tables of clark2019 say what the result says."""

from functools import cache
from pathlib import Path

import pytest
import xarray as xr

import headscope as hs
from headscope.head import name_in_paper
from headscope.plots import style, to_svg
from headscope.results.ranks import layers_between
from headscope.results.statements import read_statements
from headscope.results.tables import tabulate
from headscope.studies.clark2019.figures import FIGURES, clearest_heads
from headscope.studies.clark2019.tables import TABLES
from tests.references.float64_models import tiny_bert, tiny_gpt2
from tests.studies.clark2019.corpora import paragraphs


@cache
def result() -> xr.Dataset:
    return hs.study("clark2019", tiny_bert(), paragraphs(2), repeated_sequences=2, period=4)


def test_heads_are_named_as_we_count_and_as_the_paper_does() -> None:
    assert name_in_paper(7, 9) == "L7H9 (paper 8-10)"


def test_depths_are_those_of_the_paper_in_a_model_of_its_size() -> None:
    assert layers_between(range(12), 5 / 12, 10 / 12) == [5, 6, 7, 8, 9]
    assert layers_between([0], 5 / 12, 10 / 12) == [0]


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
    }
    assert expected[figure.name] in svg


def test_the_figures_of_a_model_without_delimiters_leave_them_out() -> None:
    model = tiny_gpt2()
    model.tokenizer.bos_token = model.tokenizer.eos_token = None
    found = hs.study("clark2019", model, paragraphs(2), repeated_sequences=2, period=4)
    with style("figure02"):
        drawn = {figure.name: to_svg(figure.draw(found)) for figure in FIGURES}
    assert "[CLS]" not in drawn["figure02"] and "periods and commas" in drawn["figure02"]
    judged = {each.claim: each for each in read_statements(found).findings}
    for claim in (
        "In the upper middle layers most attention goes to [SEP].",
        "In the upper middle layers [SEP] itself looks almost only at [SEP].",
    ):
        assert judged[claim].holds == "not measured"
        assert judged[claim].measured == "the model has no separator"


def test_tables_hold_the_values_of_the_result() -> None:
    rows = {table.name: tabulate(table.rows(result()))[1] for table in TABLES}
    assert len(rows["heads"]) == 4 and len(rows["layers"]) == 2 and len(rows["neighbours"]) == 4
    second = rows["heads"][1]
    assert second["head"] == "L0H1 (paper 1-2)"
    assert second["entropy"] == float(result()["entropy"].sel(layer=0, head=1))
    assert second["gradient sep"] == float(result()["gradient"].sel(layer=0, head=1, target="sep"))


def test_the_report_is_one_page_with_all_figures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hs.study("clark2019", tiny_bert(), paragraphs(2), run, repeated_sequences=2, period=4)
    page = hs.report(run, formats=["png"]).read_text(encoding="utf-8")
    for figure in FIGURES:
        assert f'id="{figure.name}"' in page
        assert (run / "figures" / f"{figure.name}.png").stat().st_size > 1000
    assert " segments · " in page and "weigh the same" in page
    assert (run / "tables" / "neighbours.csv").exists()
