"""Where a report is written, in which form, and what is said when it cannot be."""

import csv
import errno
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope import reports
from headscope.errors import RunError
from headscope.plots import render, style, to_svg
from headscope.reports.tables import show_number, show_table, to_latex
from headscope.results.intervals import Interval
from headscope.results.tables import Measured, tabulate, to_csv
from headscope.studies.vig2019.figures import FIGURES
from headscope.text.corpus import Corpus
from headscope.wording import plain
from tests.plots.canvas import outside, overlapping, texts
from tests.references.results import make_result
from tests.references.tiny_models import causal_model, make_sentences

DISTANCE = next(figure for figure in FIGURES if figure.name == "figure11")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    hs.study("vig2019", causal_model(), Corpus.from_sentences(make_sentences(12)), out)
    return out


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that take no time, where only what is written matters."""
    monkeypatch.setattr(reports, "render_figure", lambda *_: {"svg": b"<svg/>"})


def drawn(**settings: Any) -> dict[str, bytes]:
    rc: dict[Any, Any] = dict(settings)
    with mpl.rc_context(rc), style("figure11"):
        return render(DISTANCE.draw(make_result(2, 2)))


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_cannot_be_written_is_reported_beside_the_page(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def refuse(self: Path, *args: object, **options: object) -> None:
        if run in self.parents:
            raise PermissionError(errno.EACCES, "Permission denied")
        make(self, *args, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunError, match=r"cannot be written; name a page .* --out FILE\.html"):
        hs.report(run)
    page = hs.report(run, out=tmp_path / "there" / "page.html", formats=["svg"])
    assert page.is_file()
    assert (tmp_path / "there" / "page-run" / "figures" / "figure11.svg").is_file()
    assert (tmp_path / "there" / "page-run" / "tables" / "heads.tex").is_file()
    assert not (run / "report.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_full_disk_is_one_sentence_and_leaves_no_half_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def fill(self: Path, content: bytes) -> int:
        if ".html" not in self.name:
            return write(self, content)
        write(self, content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(RunError, match=r"cannot be written \(No space left on device\)") as said:
        hs.report(run, out=tmp_path / "page.html", formats=["svg"])
    assert "shards" not in str(said.value)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_what_the_reader_has_set_in_rcparams_wins_over_the_house_style() -> None:
    plain, own = drawn()["svg"].decode(), drawn(**{"font.family": "serif"})["svg"].decode()
    assert "serif" in own and "DejaVu Serif" in own
    assert "DejaVu Serif" not in plain
    with mpl.rc_context({"font.size": 20.0}), style("x"):
        assert mpl.rcParams["font.size"] == 20.0
    with style("x"):
        assert mpl.rcParams["font.size"] == 9.0


def test_every_figure_takes_a_width_and_a_font(run: Path) -> None:
    hs.report(run, width=4.0, font="DejaVu Serif", formats=["svg"])
    for file in (run / "figures").glob("*.svg"):
        (width,) = re.findall(r'<svg[^>]* width="([\d.]+)pt"', file.read_text(encoding="utf-8"))
        assert float(width) == pytest.approx(288, abs=0.01), file.name  # 4 inches
    assert "DejaVu Serif" in (run / "figures" / "figure11.svg").read_text(encoding="utf-8")
    with pytest.raises(RunError, match=r"cannot be 3 inches wide: .* a width of 3\.2 to 40"):
        hs.report(run, width=3.0)


def test_a_font_that_is_not_there_is_one_sentence(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RunError, match="There is no font 'Nowhere Serif' on this machine"):
        hs.report(run, font="Nowhere Serif")
    assert caplog.text == ""


@pytest.mark.parametrize("size", [(8, 8), (12, 12)])
def test_words_stay_inside_and_apart_in_a_figure_of_a_column(size: tuple[int, int]) -> None:
    result = make_result(*size)
    for figure in FIGURES:
        with style(figure.name, width=3.3):
            drawing = figure.draw(result)
            assert drawing.get_figwidth() == pytest.approx(3.3)
            assert outside(drawing) == [], figure.name
            assert list(overlapping(texts(drawing))) == [], figure.name


def test_only_the_formats_that_are_asked_for_are_drawn(run: Path, tmp_path: Path) -> None:
    with style("figure11"):
        files = render(DISTANCE.draw(make_result(2, 2)), formats=["pdf"])
    assert set(files) == {"svg", "pdf"}  # the page needs the first
    with pytest.raises(RunError, match="not written as 'gif'; choose from svg, png, pdf"):
        hs.report(run, out=tmp_path / "page.html", formats=["gif"])
    assert not any(tmp_path.iterdir())


def test_figures_are_the_same_bytes_in_every_format_when_drawn_again() -> None:
    first, second = drawn(), drawn()
    assert first == second
    assert first["pdf"].startswith(b"%PDF") and first["png"].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("error", "shown"),
    [(0.01, "0.500 ± 0.010"), (0.0004, "0.500 ± 0.0004"), (0.00002, "0.500 ± 0.00002"),
     (0.0, "0.500 ± 0.000")],
)  # fmt: skip
def test_an_error_is_never_rounded_to_nothing(error: float, shown: str) -> None:
    (row,) = show_table(*tabulate([{"share": Measured(0.5, error, "share")}]), "Table").rows
    assert (row.cells[0].text, row.cells[0].kind) == (shown, "number")


def test_a_latex_table_has_the_rules_of_booktabs_and_escapes_what_latex_reads() -> None:
    rows = [
        {"relation_name": "50 % & $x_1$ → {a}", "n": 1200, "share": Measured(0.5, 0.01, "share")}
    ]
    text = to_latex(show_table(*tabulate(rows), "Table")).decode()
    assert text.splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"relation name & n & share \\",
        r"\midrule",
        r"50 \% \& \$x\_1\$ $\to$ \{a\} & 1,200 & 0.500 $\pm$ 0.010 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_tables_have_the_columns_that_fit_unless_others_are_named() -> None:
    row = {"head": "L0H0", "accuracy": Interval(-0.5, -0.6, -0.4), "offset": -1, "n": 1, "m": 2}
    shown = show_table(*tabulate([row | {"o": 3, "p": 4}]), "Table")
    narrow = to_latex(shown.narrow(())).decode()
    assert r"head & accuracy & offset & n & m & o \\" in narrow
    assert r"L0H0 & $-$0.5 & $-$1 & 1 & 2 & 3 \\" in narrow
    assert r"head & offset \\" in to_latex(shown.narrow(("head", "offset"))).decode()


def test_bounds_are_shown_as_one_interval_and_small_numbers_are_not_zero() -> None:
    rows = [{"accuracy": Interval(0.5, 0.4, 0.6)}, {"accuracy": 1e-5}]
    shown = show_table(*tabulate(rows), "T")
    assert [cell.text for cell in shown.columns] == ["accuracy", "accuracy interval"]
    assert [[cell.text for cell in row.cells] for row in shown.rows] == [
        ["0.5", "0.400 … 0.600"],
        ["1e−05", "–"],
    ]
    assert show_number(float("nan")) == "–"


HOSTILE = (r"$\unknown$", "=cmd|' /C calc'!A0", "@SUM(1)", "\x1b[2J\u202e", "a & b \\\\ \n\n}")


def test_labels_that_look_like_formulas_are_drawn_as_they_are() -> None:
    result = make_result(2, 2)
    changed = result.assign_coords(
        tag=np.array(HOSTILE), deprel=np.array([*HOSTILE[:2], r"$\frac$"])
    )
    labelled = [each for each in FIGURES if any(has_labels(changed[name]) for name in each.needs)]
    assert len(labelled) > 3
    for figure in labelled:
        with style(figure.name):
            files = render(figure.draw(changed), formats=["svg", "pdf"])
        assert files["pdf"].startswith(b"%PDF")
        ElementTree.fromstring(files["svg"])
    assert r"$\unknown$" in drawn_labels(changed)


def has_labels(variable: xr.DataArray) -> bool:
    return bool({"tag", "deprel"} & set(variable.dims))


def drawn_labels(result: xr.Dataset) -> str:
    figure = next(figure for figure in FIGURES if "pos_to" in figure.needs)
    with style(figure.name):
        return to_svg(figure.draw(result))


def test_a_spreadsheet_finds_no_formula_and_numbers_stay_numbers() -> None:
    rows = [[text, -1.5, "-3", 2] for text in HOSTILE[:3]]
    lines = to_csv(["=A1", "value", "+offset", "n"], rows).decode().splitlines()
    assert lines == [
        "'=A1,value,'+offset,n",
        r"$\unknown$,-1.5,-3,2",
        "'=cmd|' /C calc'!A0,-1.5,-3,2",
        "'@SUM(1),-1.5,-3,2",
    ]


def test_a_number_with_its_interval_is_no_formula_and_a_token_that_looks_like_one_is() -> None:
    own = ["+0.31 (+0.10 … +0.52); of 8 heads", "+2.1 % (−0.4 … +4.6)", "-0.2 nats (−0.3 … −0.1)"]
    data = ["+1 (cmd|'/C calc'!A0)", "+", "-ing", '=A1&"(1 … 2)"', '+1+"(1 … 2)"']
    lines = to_csv([], [[text] for text in own + data]).decode().splitlines()
    cells = [cell for (cell,) in csv.reader(lines)]
    assert cells == [*own, *(f"'{text}" for text in data)]


def test_latex_and_terminal_get_no_commands_from_a_label() -> None:
    text = to_latex(show_table(*tabulate([{"a": label} for label in HOSTILE]), "T")).decode()
    assert r"\$\textbackslash{}unknown\$" in text
    assert r"a \& b \textbackslash{}\textbackslash{} \} \\" in text
    assert "\x1b" not in text and len(text.splitlines()) == 7 + len(HOSTILE)
    assert plain("a\x1b[31mb\u202ec\nd\u200de") == "a\ufffd[31mb\ufffdc\nd\u200de"
