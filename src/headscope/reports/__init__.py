"""The report of finished runs: figures, tables, and one self-contained page that holds them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headscope.errors import HeadscopeError, RunError
from headscope.files import find_place, replacing
from headscope.head import Head, read_head
from headscope.plots import FORMATS, style
from headscope.plots import render as render_figure
from headscope.reports.page import Chapter, ShownFigure, general_figures, render, show_measures
from headscope.reports.parts import (
    Group,
    ShownHead,
    ShownTable,
    csv_rows,
    show_head,
    show_table,
    to_latex,
)
from headscope.results.examples import ANY, counts_itself, exemplars_of, marks_word_pieces
from headscope.results.inspection import said as said_of
from headscope.results.ranks import check_heads
from headscope.results.records import EXAMPLES
from headscope.results.run import Run, read_finished
from headscope.results.statements import Choice, Row, claim_rows, read_statements
from headscope.results.tables import Column, tabulate, to_csv
from headscope.studies import STUDIES, find_study
from headscope.studies.study import Study

EXEMPLAR_TITLES = {
    "table1": "Table 1: heads that specialise in a part of speech",
    "table2": "Table 2: heads that specialise in a relation",
    "table3": "Table 3: heads by distance, entropy and variability",
    "asked": "Heads you asked for",
}


@dataclass(frozen=True)
class Look:
    """How figures are drawn, beside what matplotlib's rcParams say."""

    width: float | None = None  # inches
    font: str | None = None  # family
    formats: tuple[str, ...] = FORMATS


def report(
    run: str | Path,
    *more: str | Path,
    out: str | Path | None = None,
    heads: Sequence[str] = (),
    study: Study | str | None = None,
    width: float | None = None,
    font: str | None = None,
    formats: Sequence[str] | None = None,
) -> Path:
    """Write figures, tables and one page for one or more finished runs; returns the page's path.

    A run is its directory or its result.nc. The page is report.html in the first run unless `out`
    names another file. `heads` ("L4H11") adds exemplars of these heads. `study` is the declaration
    of a study of your own, or its import path, for its figures: a run directory may come from a
    stranger, so that nothing it names is imported. `width` (inches) and `font` (a family) are those
    of every figure; other settings are taken from matplotlib's rcParams. `formats` are those of the
    figures' files, all by default; the page needs the SVG, so that it is always written.
    """
    look = _look(width, font, FORMATS if formats is None else formats)
    runs = [read_finished(each) for each in (run, *more)]
    page = runs[0].path / "report.html" if out is None else find_place(out)
    asked = [_asked(heads, each) for each in runs]
    own = find_study(study) if isinstance(study, str) else study
    chapters = [
        _chapter(each, choices, own, _folder(each.path, page), look)
        for each, choices in zip(runs, asked, strict=True)
    ]
    _write(page, render(chapters).encode("utf-8"))
    return page


def _look(width: float | None, font: str | None, formats: Sequence[str]) -> Look:
    if width is not None and not width > 0:
        raise RunError(f"Figures cannot be {width} inches wide; give a positive width.")
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise RunError(
            f"Figures are not written as {unknown[0]!r}; choose from {', '.join(FORMATS)}."
        )
    return Look(width, font, tuple(formats))


def _folder(run: Path, page: Path) -> Path:
    """Where figures and tables go: into the run, or beside a page elsewhere if it is read-only."""
    for folder in (run, page.parent / f"{page.stem}-{run.name}"):
        try:
            for name in ("figures", "tables"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            page.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        return folder
    raise RunError(
        f"{run} cannot be written; name a page in a place that can with --out FILE.html, and "
        "figures and tables are written beside it."
    )


def _chapter(
    run: Run, asked: Sequence[Choice], study: Study | None, folder: Path, look: Look
) -> Chapter:
    said = read_statements(run.data)
    found = study or (find_study(run.study) if run.study in STUDIES else None)
    if said.findings:
        _write_table(folder, "findings", "Findings", *tabulate(claim_rows(said.findings)))
    return Chapter(
        run=run,
        study=found,
        heads=said.heads,
        findings=said.findings,
        figures=_draw_figures(run, found, folder, look, is_own=study is not None),
        tables=[
            _write_table(folder, each.file, each.title, each.columns, each.rows, each.caption)
            for each in said.tables
        ],
        measures=show_measures(run.data),
        exemplars=_write_exemplars(run, [*said.choices, *asked], folder),
        method=_describe_method(run, found, is_own=study is not None),
    )


@contextmanager
def _of_a_stranger(run: Run, part: str, is_own: bool) -> Iterator[None]:
    """A run may come from a stranger and have only the names of what a study needs.

    A study that was given by its author shows where it fails.
    """
    try:
        yield
    except Exception as error:
        if is_own or isinstance(error, HeadscopeError):
            raise
        raise RunError(
            f"{run.path} says that it is a run of {run.study}, and its {part} cannot be drawn "
            f"({said_of(error)}); run the study again in a new directory."
        ) from error


def _describe_method(run: Run, study: Study | None, *, is_own: bool) -> str:
    """How to read the numbers."""
    if study is None:
        return "Layers and heads count from 0."
    with _of_a_stranger(run, "description", is_own):
        return f"After {study.citation}. {study.notes(run.data)}"


def _draw_figures(
    run: Run, study: Study | None, folder: Path, look: Look, *, is_own: bool
) -> list[ShownFigure]:
    """Draw and write every figure that the result has the variables for."""
    figures = (study.figures if study else ()) or general_figures(run.data)
    shown = []
    for figure in figures:
        if all(name in run.data for name in figure.needs):
            with _of_a_stranger(run, figure.name, is_own), style(figure.name, look.font):
                files = render_figure(figure.draw(run.data), look.width, look.formats)
                note = figure.note(run.data)
            for ending, content in files.items():
                _write(folder / "figures" / f"{figure.name}.{ending}", content)
            shown.append(ShownFigure(figure, files["svg"].decode("utf-8"), note))
    return shown


def _write_table(
    folder: Path,
    file: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    caption: str = "",
) -> ShownTable:
    shown = show_table(columns, rows, title, caption, file)
    header = [column.name for column in columns]
    cells = [[row[name] for name in header] for row in rows]
    _write(folder / "tables" / f"{file}.csv", to_csv(header, cells))
    _write(folder / "tables" / f"{file}.tex", to_latex(shown))
    return shown


def _write_exemplars(run: Run, choices: Sequence[Choice], folder: Path) -> list[Group]:
    """The exemplar tables as files, and what the page shows of them."""
    with_self, word_pieces = counts_itself(run.data), marks_word_pieces(run.data)
    groups: list[Group] = []
    for name in dict.fromkeys(choice.table for choice in choices):
        rows: list[Row] = []
        heads: list[ShownHead] = []
        for choice in choices:
            if choice.table == name:
                head, kind = Head(choice.layer, choice.head), choice.kind or ANY
                exemplars = exemplars_of(run.records, head, kind, with_self=with_self)
                rows += csv_rows(choice, exemplars, word_pieces=word_pieces)
                heads.append(show_head(choice, exemplars, word_pieces=word_pieces))
        if rows:
            title = EXEMPLAR_TITLES.get(name, name)
            _write_table(folder, name, title, *tabulate(rows))
            groups.append(Group(name, title, tuple(heads)))
    return groups


def _asked(heads: Sequence[str], run: Run) -> list[Choice]:
    asked = check_heads([read_head(name) for name in heads], run.data)
    if asked and EXAMPLES not in run.records.files:
        raise RunError(f"{run.path} has no exemplars to show: its study keeps none.")
    return [Choice("asked", layer, head, "asked for") for layer, head in asked]


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step: on a full disk nothing is left of it."""
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}); make room there, or choose "
            "another place with --out FILE.html."
        ) from error
