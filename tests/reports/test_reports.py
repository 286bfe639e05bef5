"""The report: complete, self-contained, and safe with whatever a corpus holds."""

import csv
import re
from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import RunError
from headscope.plots import style, to_svg
from headscope.reports.exemplars import ShownExemplar, csv_rows, pieces_of
from headscope.reports.page import render_part
from headscope.reports.tables import show_table
from headscope.results.head_map import map_heads
from headscope.results.run import read_finished, write_settings
from headscope.results.statements import Choice, read_statements, tally
from headscope.results.tables import InPaper, tabulate
from headscope.studies.vig2019.figures import FIGURES
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence, Word
from headscope.theme import role_variable
from tests.references.exemplars import make_exemplar
from tests.references.results import make_result
from tests.references.tiny_models import MODELS, causal_model, make_sentences


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    evil = "<script>alert(1)</script>"
    word = Word(evil, 0, len(evil), upos="<b>X</b>", head=-1, deprel="root")
    sentences = [*make_sentences(80), Sentence(evil, (word,), document="evil")]
    hs.study("vig2019", causal_model(), Corpus.from_sentences(sentences), out)
    hs.report(out, heads=["L1H0"])
    return out


def test_the_page_needs_nothing_but_itself(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page.replace("xlink:href", "href"))
    assert "@import" not in page
    assert "url(http" not in page


def test_text_from_the_corpus_is_escaped(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "<b>X</b>" not in page
    exemplar = make_exemplar(["<i>", " &"], 1, 0)
    shown = render_part("sentence", ShownExemplar(0.5, pieces_of(exemplar, word_pieces=False)))
    assert "<u>&lt;i&gt;</u> <b>&amp;</b>" in shown and "<i>" not in shown
    shown = show_table(*tabulate([{"<a>": "<script>"}]), '"><script>')
    table = render_part("rows_of", shown, shown.rows)
    assert table.count("<script>") == 0 and table.count("&lt;script&gt;") == 2


def test_the_page_says_what_was_run_and_that_attention_is_not_explanation(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "Attention is not explanation." in page
    assert "tiny-causal" in page
    assert "corpus fingerprint" in page
    assert "Heads you asked for" in page
    assert "prefers-color-scheme: dark" in page


def test_figures_and_tables_are_named_after_the_paper(run: Path) -> None:
    names = {path.stem for path in (run / "figures").glob("*.svg")}
    numbers = ["04", "05", "06", "07", "08", "09", "10", "11", "12", "A1", "A2"]
    assert {f"figure{number}" for number in numbers} <= names
    assert names == {path.stem for path in (run / "figures").glob("*.png")}
    assert names == {path.stem for path in (run / "figures").glob("*.pdf")}
    tables = {path.stem for path in (run / "tables").glob("*.csv")}
    assert {"table1", "table2", "table3", "findings", "heads", "layers", "tags"} <= tables
    assert tables == {path.stem for path in (run / "tables").glob("*.tex")}
    with (run / "tables" / "heads.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["head"] for row in rows] == ["L0H0", "L0H1", "L1H0", "L1H1", "L2H0", "L2H1"]
    assert {"distance", "distance margin of error", "entropy", "variability"} <= set(rows[0])


def test_the_map_ten_sentences_and_the_tally_come_first_and_disclaimers_last(run: Path) -> None:
    page = (run / "report.html").read_text()
    claims = read_statements(read_finished(run).data).findings
    order = [
        "Of 6 heads ",
        "<th scope=row>L2</th>",
        "One head of each kind",
        f"Of {len(claims)} claims {tally(claims)}.",
        "<h2>Claims</h2>",
        "Figures and tables of the paper",
        "Figure 4: ",
        "Figure 12: ",
        "Figure A2: ",
        "Not in the paper: ",
        "Further tables",
        "<h2>What was run",
        "Attention is not explanation.",
    ]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    heads = map_heads(read_finished(run).data)
    assert heads is not None
    for cell in heads.cells:
        assert f'class="{role_variable(cell.group)}"' in page


def test_rows_that_the_paper_does_not_have_are_folded() -> None:
    rows = [
        {"relation": f"r{number}", "published": InPaper(0.5 if number < 3 else "nan")}
        for number in range(20)
    ]
    table = show_table(*tabulate(rows), "Table 1", file="table1")
    assert [row.cells[0].text for row in table.first_rows] == ["r0", "r1", "r2"]
    page = render_part("titled_table", table)
    assert page.index("r2") < page.index("17 rows that the paper does not have") < page.index("r3")


def test_two_runs_make_one_page_and_drawing_again_gives_the_same_bytes(
    run: Path, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in (run / "figures").glob("*.svg")}
    other = tmp_path / "other"
    hs.study("vig2019", MODELS["bidirectional"](), Corpus.from_sentences(make_sentences(20)), other)
    page = hs.report(run, other, out=tmp_path / "both.html", formats=["svg"])
    assert page == tmp_path / "both.html"
    assert page.read_text().count('<div class="run"') == 2
    assert all((run / "figures" / name).read_bytes() == drawn for name, drawn in before.items())


def test_a_corpus_without_annotation_has_a_report_that_says_so(tmp_path: Path) -> None:
    plain = Corpus.from_sentences([Sentence(each.text) for each in make_sentences(20)])
    hs.study("vig2019", causal_model(), plain, tmp_path)
    page = hs.report(tmp_path, formats=["svg"]).read_text()
    assert "Without pos_to, pos_from, tag_frequency: the corpus has no part-of-speech tags" in page
    assert "Figure 6" not in page
    assert "not measured" in page


def test_an_unfinished_run_and_a_directory_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has no run\.json"):
        hs.report(tmp_path)
    write_settings(tmp_path, {"study": "vig2019"})
    with pytest.raises(RunError, match=r"has no result\.nc yet"):
        hs.report(tmp_path)


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (32, 32)])
def test_every_figure_can_be_drawn_for_any_number_of_heads(layers: int, heads: int) -> None:
    result = make_result(layers, heads)
    for figure in FIGURES:
        with style(figure.name):
            assert to_svg(figure.draw(result)).startswith("<svg")


def test_exemplar_rows_mark_the_pair_and_read_as_the_sentence() -> None:
    exemplar = make_exemplar(["The", " cat", " sat"], 2, 1, weight=0.98765)
    row = csv_rows(Choice("table1", 4, 11, "because"), [exemplar], word_pieces=False)[0]
    assert row["sentence"] == "The _cat_ **sat**"
    assert (row["head"], row["pick"], row["weight"]) == ("L4H11", "1", 0.9877)
    assert (row["attending"], row["attended"], row["id"]) == ("sat", "cat", "s1")
    pieces = make_exemplar(["[CLS]", "cat", "##s", "."], 2, 1, text="Cats.")
    row = csv_rows(Choice("t", 4, 11, ""), [pieces], word_pieces=True)[0]
    assert (row["sentence"], row["attending"]) == ("[CLS] _cat_**s**.", "##s")


def test_the_figures_of_twelve_by_twelve_heads_leave_the_page_under_five_megabytes() -> None:
    result = make_result(12, 12)
    sizes = []
    for figure in FIGURES:
        with style(figure.name):
            sizes.append(len(to_svg(figure.draw(result)).encode()))
    assert sum(sizes) < 2_500_000  # the rest of a page is text: tables and exemplars
