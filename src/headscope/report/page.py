"""The report as one HTML page that needs nothing but itself: no script, no network."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.plots.style import INK
from headscope.report.tables import Row, framed, to_html
from headscope.results import dataset as results
from headscope.studies.study import Figure, Study, Table

CAVEAT = (
    "Attention weights say where a head reads from, not why the model answers as it does: a head "
    "can attend to a token and make no use of it, and changing attention often leaves the output "
    "unchanged. Read these figures as a description of behaviour, not as an explanation of it."
)
TEXT_WIDTH = 600.0  # points of the page's column: wider figures may leave it
PAPER_COLUMNS = 17  # a table with more does not fit a printed page
SKIP_REASONS = {
    "too long": "longer than the model takes",
    "empty": "no token",
    "alignment: straddles": "a token covers parts of two words",
    "alignment: shared": "two words are written as one",
    "alignment: differs": "a word is not in the text at its place",
    "alignment: uncovered": "a letter of a word is in no token",
}
VERDICT_CLASSES = {"yes": "yes", "no": "no", "unclear": "unclear"}


@dataclass(frozen=True)
class Chapter:
    """Everything the page shows of one run."""

    study: Study
    result: xr.Dataset
    settings: dict[str, Any]
    figures: Sequence[tuple[Figure, str]]  # with their SVG
    tables: Sequence[tuple[Table, list[Row]]]
    findings: Sequence[dict[str, str]]
    exemplars: Sequence[tuple[str, str, str]]  # anchor, title, HTML


def render(chapters: Sequence[Chapter]) -> str:
    """The whole page."""
    title = " · ".join(f"{c.study.name}: {_model(c.result)}" for c in chapters)
    body = "".join(_chapter(chapter, f"run{place}") for place, chapter in enumerate(chapters))
    css = files("headscope.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _chapter(chapter: Chapter, anchor: str) -> str:
    sections = [
        ("findings", "Findings", _findings(chapter)),
        ("figures", "Figures", "".join(_figure(*pair) for pair in chapter.figures)),
        ("exemplars", "Exemplars", _exemplars(chapter)),
        ("tables", "Tables", "".join(_table(*pair) for pair in chapter.tables)),
        ("method", "What was run", _method(chapter)),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{anchor}-{name}">{title}</a>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{anchor}-{name}"><h2>{title}</h2>{html}</section>'
        for name, title, html in sections
    )
    return f'<div class="run" id="{anchor}">{_head(chapter)}<nav>{links}</nav>{body}</div>'


def _head(chapter: Chapter) -> str:
    study, result = chapter.study, chapter.result
    paper = study.citation.split(",")[0]
    return (
        f'<p class="eyebrow">{escape(study.name)} · after {escape(paper)}</p>'
        f"<h1>What the heads of {escape(_model(result))} look at</h1>"
        f'<p class="lead">{escape(study.question)}</p>'
        f"{_facts(chapter)}{_skips(chapter)}"
        f'<div class="note"><p><b>Attention is not explanation.</b> {escape(CAVEAT)}</p></div>'
    )


def _model(result: xr.Dataset) -> str:
    """The model's name; of a local directory or file its last part."""
    name = result.attrs["model"]
    return Path(name).name if Path(name).is_absolute() else name


def _facts(chapter: Chapter) -> str:
    result = chapter.result
    kind = "causal" if result.attrs["is_causal"] else "bidirectional"
    facts = {
        "Model": _model(result),
        "Heads": f"{result.sizes['layer']} layers × {result.sizes['head']}, {kind}",
        chapter.study.unit.capitalize(): f"{result.attrs['sentences']:,}",
        "Tokens": f"{result.attrs['tokens']:,}, {result.attrs['mean_tokens']:.1f} each",
    }
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">{items}</dl>'


def _skips(chapter: Chapter) -> str:
    """What was not read and what was not measured, with the reasons."""
    skipped, missing = results.skipped(chapter.result), results.left_out(chapter.result)
    items = [
        f"<li>{count:,} × skipped: {escape(SKIP_REASONS.get(why, why))}.</li>"
        for why, count in skipped.items()
    ]
    items += [f"<li>{escape(name)} left out: {escape(why)}.</li>" for name, why in missing.items()]
    if not items:
        return ""
    head = "<p><b>What is not in these numbers</b></p>"
    return f'<div class="note">{head}<ul>{"".join(items)}</ul></div>'


def _findings(chapter: Chapter) -> str:
    note = (
        "<p>The claims of the paper, its value for the model it studied, the value measured here, "
        "and whether the claim holds for this model by the rule in small print. “Unclear” means "
        "that the difference is within two standard errors, or not significant.</p>"
    )
    rows = "".join(_finding(row) for row in chapter.findings)
    names = ("Claim", "Published", "Here", "Holds")
    head = "".join(f"<th scope=col>{name}</th>" for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return note + framed(table, "Findings", "findings")


def _finding(row: dict[str, str]) -> str:
    kind = VERDICT_CLASSES.get(row["holds"], "other")
    return (
        f'<tr><td>{escape(row["claim"])}<span class="rule">{escape(row["rule"])}</span></td>'
        f"<td>{escape(row['published'])}</td><td>{escape(row['measured'])}</td>"
        f'<td><span class="verdict {kind}">{escape(row["holds"])}</span></td></tr>'
    )


def _figure(figure: Figure, svg: str) -> str:
    """An SVG in the page takes the page's text colour, in the light and in the dark."""
    drawn = svg.replace(INK, "currentColor")
    caption = (
        f"<b>{escape(_number(figure.name))}{escape(figure.title)}.</b> {escape(figure.caption)}"
    )
    kind = "wide" if _width(svg) > TEXT_WIDTH else ""
    return (
        f'<figure id="{figure.name}" class="{kind}" aria-label="{escape(figure.title)}">'
        f"{drawn}<figcaption>{caption}</figcaption></figure>"
    )


def _width(svg: str) -> float:
    """Width of an SVG in points, from its own header."""
    found = re.search(r'width="([0-9.]+)pt"', svg)
    return float(found[1]) if found else 0.0


def _number(name: str) -> str:
    number = name.removeprefix("figure")
    return "" if number == name else f"Figure {number.lstrip('0')}: "


def _exemplars(chapter: Chapter) -> str:
    if not chapter.exemplars:
        return ""
    note = (
        "<p>For each head the sentences with its largest single weights outside the null tokens. "
        "The <b>attending</b> token is bold, the <i>attended</i> one italic; the number is the "
        "weight. All pieces of the input are shown as the model reads them.</p>"
    )
    return note + "".join(
        f'<h3 id="{anchor}">{escape(title)}</h3>{html}' for anchor, title, html in chapter.exemplars
    )


def _table(table: Table, rows: list[Row]) -> str:
    html = f"<h3>{escape(table.title)}</h3><p>{escape(table.caption)}</p>"
    shown = to_html(rows, table.title)
    if len(rows) > 40:
        shown = f"<details><summary>Show all {len(rows)} rows</summary>{shown}</details>"
    if len(rows[0]) <= PAPER_COLUMNS:
        return html + shown
    note = f'<p class="paper">Too wide for paper: see tables/{escape(table.name)}.csv.</p>'
    return f'{html}<div class="screen">{shown}</div>{note}'


def _method(chapter: Chapter) -> str:
    rows = [{"setting": name, "value": value} for name, value in _flatten(chapter.settings)]
    return (
        f"<p>After {escape(chapter.study.citation)}. {escape(chapter.study.notes(chapter.result))}"
        f"</p>{to_html(rows, 'What was run')}"
        f"<footer>Made with Headscope {escape(chapter.settings['headscope'])}.</footer>"
    )


def _flatten(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            found += _flatten(value, f"{prefix}{name} ")
        else:
            found.append((f"{prefix}{name}", "–" if value is None else str(value)))
    return found
