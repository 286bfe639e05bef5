"""What is said of runs, whoever asks: the server answers with it, a site has it in files."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import headscope
from headscope.errors import HeadscopeError
from headscope.explorer.answers.pictures import (
    behaviour_of,
    catalogue,
    clusters,
    column_titles,
    measure_columns,
    whole_numbers,
    why_no_map,
)
from headscope.explorer.answers.runs import Library, OpenRun, number
from headscope.explorer.head_schemas import HeadEntry, Heads
from headscope.explorer.schemas import (
    Cell,
    Clusters,
    ModelFacts,
    RunDetail,
    RunSummary,
    Said,
    Session,
    StoredTable,
    TextLimits,
)
from headscope.head import Head
from headscope.results.dataset import left_out
from headscope.results.statements import Table

TELLING = 10  # tokens of a head that the search knows


def session(library: Library, model: ModelFacts, limits: TextLimits) -> Session:
    """The runs and the model."""
    runs = [summary(library.run(slug)) for slug in library.slugs]
    return Session(headscope.__version__, runs, model, limits)


def detail(opened: OpenRun) -> RunDetail:
    """One run and its measures."""
    result = opened.run.result
    return RunDetail(
        **vars(summary(opened)),
        about=opened.run.about,
        measures=[] if result is None else catalogue(result),
        left_out={} if result is None else left_out(result),
    )


def heads(opened: OpenRun) -> Heads:
    """Every head of the run with what it looks at."""
    data, looks = opened.data, _looks(opened)
    layers, numbers = whole_numbers(data["layer"]), whole_numbers(data["head"])
    return Heads([_entry(opened, looks, Head(i, j)) for i in layers for j in numbers])


def _entry(opened: OpenRun, looks: Mapping[str, str], head: Head) -> HeadEntry:
    tokens = opened.run.records.top_tokens(*head)
    telling = [one.token for one in tokens if (one.side, one.by) == ("key", "lift")]
    behaviour = behaviour_of(opened.data, *head)
    return HeadEntry(str(head), *head, behaviour, looks.get(str(head)), telling[:TELLING])


def map_of(opened: OpenRun) -> Clusters:
    """The map of heads."""
    return clusters(opened.data, _looks(opened))


def said(opened: OpenRun) -> Said:
    """The tables, judged claims and chosen heads that are stored with the run."""
    stored_with, known = opened.statements, measure_columns(opened.data)
    tables = [stored(one, known) for one in stored_with.tables]
    return Said(tables, list(stored_with.findings), list(stored_with.choices))


def as_json(value: Any) -> bytes:
    """A dataclass as JSON."""
    return json.dumps(value, default=vars, ensure_ascii=False, allow_nan=False).encode()


def summary(opened: OpenRun) -> RunSummary:
    """One run in the menus."""
    run = opened.run
    axes = {} if run.result is None else run.result.coords
    return RunSummary(
        slug=opened.slug,
        study=run.study,
        state=run.state,
        notes=list(run.notes),
        model=run.model,
        corpus=run.corpus,
        layers=whole_numbers(axes["layer"]) if "layer" in axes else [],
        heads=whole_numbers(axes["head"]) if "head" in axes else [],
        records=bool(run.records.files),
        closed={} if run.state != "complete" else dict(_closed(opened)),
    )


def _closed(opened: OpenRun) -> Iterator[tuple[str, str]]:
    """The pages on which this run has nothing to show, and why."""
    if "head_position" not in opened.data:
        yield "clusters", why_no_map(opened.data)
    try:
        said = opened.statements
    except HeadscopeError:  # a run of an older version; its pages say so
        return
    if not said.tables:
        yield "tables", "This run has no tables."
    if not said.findings and not said.choices:
        yield "findings", "This study makes no claims to be judged."


def stored(table: Table, known: Mapping[str, str]) -> StoredTable:
    """A stored table with its rows as lists, in the order of the columns."""
    columns = list(dict.fromkeys(column for row in table.rows for column in row))
    rows = [[_cell(row.get(column)) for column in columns] for row in table.rows]
    titles = column_titles(known, columns)
    return StoredTable(table.name, table.title, table.caption, columns, titles, rows)


def _cell(value: Any) -> Cell:
    return number(value) if isinstance(value, float) else value


def _looks(opened: OpenRun) -> dict[str, str]:
    """What is said of each head, in a sentence."""
    return {one.name: one.sentence for one in opened.statements.heads}
