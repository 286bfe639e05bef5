"""Writing the report of finished runs: figures, tables, and the page that holds all of it."""

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from headscope.engine.exemplars import read_exemplars
from headscope.engine.run import read_settings
from headscope.files import find_place, write_text
from headscope.heads import read_head
from headscope.plots.style import save, style
from headscope.report import exemplars as shown
from headscope.report.page import Chapter, render
from headscope.report.tables import Row, write_csv
from headscope.results import dataset as results
from headscope.results import findings as judged
from headscope.results.heads import check_heads
from headscope.studies import find_study
from headscope.results.statements import Choice, Figure, Study, Table

EXEMPLAR_TITLES = {
    "table1": "Table 1: heads that specialise in a part of speech",
    "table2": "Table 2: heads that specialise in a relation",
    "table3": "Table 3: heads by distance, entropy and variability",
    "asked": "Heads you asked for",
}


def report(
    run: str | Path, *more: str | Path, out: str | Path | None = None, heads: Sequence[str] = ()
) -> Path:
    """Write figures, tables and one page for one or more finished runs; returns the page's path.

    The page is report.html in the first run unless `out` names another file. `heads` ("L4H11")
    adds exemplars of these heads.
    """
    paths = [find_place(run), *map(find_place, more)]
    chapters = [_chapter(path, heads) for path in paths]
    page = find_place(out) if out is not None else paths[0] / "report.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, render(chapters))
    return page


def _chapter(run: Path, heads: Sequence[str]) -> Chapter:
    settings = read_settings(run)
    study, result = find_study(settings["study"]), results.load(run)
    if "stack" in result.dims:
        result = result.isel(stack=0)
    (run / "figures").mkdir(exist_ok=True)
    (run / "tables").mkdir(exist_ok=True)
    found = judged.rows(study.findings, result)
    write_csv(run / "tables" / "findings.csv", found)
    return Chapter(
        study=study,
        result=result,
        settings=settings,
        figures=_draw_figures(run, study, result),
        tables=_write_tables(run, study, result),
        findings=found,
        exemplars=_write_exemplars(run, study, result, heads),
    )


def _draw_figures(run: Path, study: Study, result: xr.Dataset) -> list[tuple[Figure, str]]:
    drawn = []
    for figure in study.figures:
        if all(name in result for name in figure.needs):
            with style(figure.name):
                svg = save(figure.draw(result), run / "figures", figure.name)
            drawn.append((figure, svg))
    return drawn


def _write_tables(run: Path, study: Study, result: xr.Dataset) -> list[tuple[Table, list[Row]]]:
    written = []
    for table in study.tables:
        if all(name in result for name in table.needs):
            rows = table.rows(result)
            write_csv(run / "tables" / f"{table.name}.csv", rows)
            written.append((table, rows))
    return written


def _write_exemplars(
    run: Path, study: Study, result: xr.Dataset, heads: Sequence[str]
) -> list[tuple[str, str, str]]:
    """The exemplar tables as CSV; for the page their anchors, titles and HTML."""
    choices = study.choices(result) + _asked(heads, result)
    if not choices:
        return []
    exemplars = read_exemplars(run / "exemplars.parquet")
    sections = []
    for name, title in EXEMPLAR_TITLES.items():
        chosen = [choice for choice in choices if choice.table == name]
        rows = shown.csv_rows(chosen, exemplars)
        if not rows:
            continue
        write_csv(run / "tables" / f"{name}.csv", rows)
        html = "".join(shown.head_html(c, shown.of_choice(c, exemplars)) for c in chosen)
        sections.append((name, title, html))
    return sections


def _asked(heads: Sequence[str], result: xr.Dataset) -> list[Choice]:
    asked = check_heads([read_head(name) for name in heads], result)
    return [Choice("asked", layer, head, "asked for") for layer, head in asked]
