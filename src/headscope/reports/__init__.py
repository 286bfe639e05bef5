"""The report of finished runs: figures, tables, and one self-contained page that holds them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from headscope.errors import HeadscopeError, RunError
from headscope.files import find_place, replacing
from headscope.head import Head, read_head
from headscope.plots import FORMATS, NARROWEST, WIDEST, require_font, style
from headscope.plots import render as render_figure
from headscope.reports.exemplars import Group, ShownHead, csv_rows, show_head
from headscope.reports.measures import general_figures, show_measures
from headscope.reports.page import Chapter, ShownFigure, published_in, render
from headscope.reports.tables import ShownTable, show_table, to_latex
from headscope.results.examples import ANY, counts_itself, exemplars_of, marks_word_pieces
from headscope.results.head_map import map_heads
from headscope.results.heads import pool
from headscope.results.ranks import check_heads
from headscope.results.records import EXAMPLES
from headscope.results.run import Run, read_finished
from headscope.results.statements import Choice, Row, Table, claim_rows, read_statements
from headscope.results.tables import tabulate, to_csv
from headscope.studies import STUDIES, find_study
from headscope.studies.study import Study
from headscope.wording import said

ASKED = "asked"  # the table of the heads that were asked for
TITLES = {ASKED: "Heads you asked for"}
# Of the tables of claims and of examples in LaTeX.
CLAIM_COLUMNS = ("claim", "published", "measured", "holds")
NARROW = ("head", "kind", "weight", "sentence")


@dataclass(frozen=True)
class Look:
    """How figures are drawn, beside what matplotlib's rcParams say."""

    width: float | None = None  # inches
    font: str | None = None  # family
    formats: tuple[str, ...] = FORMATS
    columns: tuple[str, ...] = ()  # of tables in LaTeX; those that fit a column of a paper if none


def report(
    run: str | Path,
    *more: str | Path,
    out: str | Path | None = None,
    heads: Sequence[str] = (),
    study: Study | str | None = None,
    width: float | None = None,
    font: str | None = None,
    formats: Sequence[str] | None = None,
    columns: Sequence[str] = (),
) -> Path:
    """Write figures, tables and one page for one or more finished runs; returns the page's path.

    A run is its directory or its result.nc. The page is report.html in the first run unless `out`
    names another file. `heads` ("L4H11") adds exemplars of these heads. `study` is the declaration
    of a study of your own, or its import path, for its figures: a run directory may come from a
    stranger, so that nothing it names is imported. `width` (inches) and `font` (a family) are those
    of every figure; other settings are taken from matplotlib's rcParams. `formats` are those of the
    figures' files, all by default; the page needs the SVG, so that it is always written. `columns`
    are those of the tables in LaTeX, ("all",) for all; by default those that fit a paper's column.
    """
    look = _look(width, font, FORMATS if formats is None else formats, columns)
    runs = pool([read_finished(place) for place in (run, *more)])
    page = runs[0].path / "report.html" if out is None else find_place(out)
    asked = [_asked(heads, opened) for opened in runs]
    declared = find_study(study) if isinstance(study, str) else study
    chapters = [
        _chapter(opened, choices, declared, _folder(opened.path, page), look)
        for opened, choices in zip(runs, asked, strict=True)
    ]
    _write(page, render(chapters).encode("utf-8"))
    return page


def _look(
    width: float | None, font: str | None, formats: Sequence[str], columns: Sequence[str]
) -> Look:
    if width is not None and not NARROWEST <= width <= WIDEST:
        reason = (
            "they would be too large to draw" if width > WIDEST else "their words would overlap"
        )
        raise RunError(
            f"Figures cannot be {width:g} inches wide: {reason}; give a width of {NARROWEST} to "
            f"{WIDEST}."
        )
    if font is not None:
        require_font(font)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise RunError(
            f"Figures are not written as {unknown[0]!r}; choose from {', '.join(FORMATS)}."
        )
    return Look(width, font, tuple(formats), tuple(columns))


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
    statements = read_statements(run.data)
    declared = study or (find_study(run.study) if run.study in STUDIES else None)
    tables = Tables(folder / "tables", look.columns)
    if statements.findings:
        columns, rows = tabulate(claim_rows(statements.findings))
        tables.write(Table("findings", "Claims", "", columns, rows, "findings", CLAIM_COLUMNS))
    titles = TITLES | dict(declared.choice_titles if declared else {})
    return Chapter(
        run=run,
        study=declared,
        heads=map_heads(run.data),
        claims=statements.findings,
        figures=_draw_figures(run, declared, folder, look, is_own=study is not None),
        tables=[tables.write(table) for table in statements.tables],
        measures=show_measures(run.data),
        exemplars=_write_exemplars(run, [*statements.choices, *asked], titles, tables),
        method=_describe_method(run, declared, is_own=study is not None),
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
            f"({said(error)}); run the study again in a new directory."
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
            with (
                _of_a_stranger(run, figure.name, is_own),
                style(figure.name, look.font, look.width),
            ):
                files = render_figure(figure.draw(run.data), look.width, look.formats)
                note = figure.note(run.data)
            for ending, content in files.items():
                _write(folder / "figures" / f"{figure.name}.{ending}", content)
            published = published_in(run.data, figure)
            shown.append(ShownFigure(figure, files["svg"].decode("utf-8"), note, published))
    return shown


@dataclass(frozen=True)
class Tables:
    """Where the tables of a run are written, and which columns of them in LaTeX."""

    folder: Path
    columns: tuple[str, ...]

    def write(self, table: Table) -> ShownTable:
        """Write a table as CSV and LaTeX; what the page shows of it."""
        shown = show_table(table.columns, table.rows, table.title, table.caption, table.file)
        names = [column.name for column in table.columns]
        cells = [[row[name] for name in names] for row in table.rows]
        _write(self.folder / f"{table.file}.csv", to_csv(names, cells))
        narrow = shown if self.columns == ("all",) else shown.narrow(self.columns or table.narrow)
        _write(self.folder / f"{table.file}.tex", to_latex(narrow))
        return replace(shown, on_paper=shown.narrow(table.narrow)) if shown.is_wide else shown


def _write_exemplars(
    run: Run, choices: Sequence[Choice], titles: Mapping[str, str], tables: Tables
) -> list[Group]:
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
            title = titles.get(name, name)
            tables.write(Table(name, title, "", *tabulate(rows), file=name, narrow=NARROW))
            groups.append(Group(name, title, tuple(heads)))
    return groups


def _asked(heads: Sequence[str], run: Run) -> list[Choice]:
    asked = check_heads([read_head(name) for name in heads], run.data)
    if asked and EXAMPLES not in run.records.files:
        raise RunError(f"{run.path} has no exemplars to show: its study keeps none.")
    return [Choice(ASKED, layer, head, "asked for") for layer, head in asked]


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
