"""JSON answers about runs, shared by the server and the static site.

What the pages draw of a result: measures over heads, two runs side by side, the map of heads.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from msgspec import structs

import headscope
from headscope.errors import HeadscopeError, RunError
from headscope.explorer import wire as sent
from headscope.explorer.answers.runs import Column as HeadColumn
from headscope.explorer.answers.runs import OpenRun, Sources
from headscope.explorer.wire import RefusedError
from headscope.head import Head, read_head
from headscope.results.compare import Comparison as Compared
from headscope.results.compare import clear_and_all, compare_runs, rows_of
from headscope.results.compare.differences import Kind
from headscope.results.dataset import read_attribute
from headscope.results.describe import PORTRAIT, read_description
from headscope.results.evidence import PROFILE
from headscope.results.head_map import map_heads
from headscope.results.measure import (
    BY_LAYER,
    DIVERGENCE,
    GRID,
    MAP,
    Behaviour,
    Measure,
    RoleGroup,
    Slice,
    baseline_of,
    behaviours_of,
    cut,
    further_axes,
    heads_of,
    measure_names,
    measure_of,
    number,
    plain_label,
    select,
    variable_along,
)
from headscope.results.replicates import margin_of
from headscope.results.statements import Table, tally
from headscope.results.tables import MEASURE_KINDS, Column

TELLING = 10  # tokens of a head that the search knows


def session(sources: Sources) -> sent.Session:
    """The runs and the model."""
    runs = [summary(sources.library.run(slug)) for slug in sources.library.slugs]
    return sent.Session(headscope.__version__, runs, sources.model(), sources.limits)


def detail(opened: OpenRun) -> sent.RunDetail:
    """One run and its measures."""
    result = opened.run.result
    return sent.RunDetail(
        **structs.asdict(summary(opened)),
        about=opened.run.settings,
        measures=[] if result is None else catalogue(result),
        first=[] if result is None else shown_first(result),
        left_out={} if result is None else read_attribute(result, "left_out"),
    )


def shown_first(data: xr.Dataset) -> list[str]:
    """The two measures that pages begin with: those that the study names, then any."""
    names = measure_names(data)
    named = [name for name in str(data.attrs.get("shown_first", "")).split() if name in names]
    return list(dict.fromkeys([*named, *names]))[:2]


def heads(opened: OpenRun) -> sent.Heads:
    """Every head with what it looks at, for the search."""
    return sent.Heads([_entry(opened, head) for head in heads_of(opened.data)])


def _entry(opened: OpenRun, head: Head) -> sent.HeadEntry:
    tokens = opened.run.records.top_tokens(*head)
    telling = [one.token for one in tokens if (one.side, one.by) == ("key", "lift")]
    behaviour = behaviour_of(opened.data, *head)
    return sent.HeadEntry(
        str(head), *head, behaviour, sentence_of(opened.data, head), telling[:TELLING]
    )


def said(opened: OpenRun) -> sent.Said:
    """The tables, judged claims and chosen heads that are stored with the run."""
    statements = opened.statements
    tables = [stored(opened.data, table) for table in statements.tables]
    claims = list(statements.findings)
    return sent.Said(tally(claims), tables, claims, list(statements.choices))


def summary(opened: OpenRun) -> sent.RunSummary:
    """One run in the menus."""
    run = opened.run
    axes = {} if run.result is None else run.result.coords
    return sent.RunSummary(
        slug=opened.slug,
        study=run.study,
        state=run.state,
        notes=run.remarks,
        model=run.model,
        corpus=run.corpus,
        layers=axes["layer"].values.tolist() if "layer" in axes else [],
        heads=axes["head"].values.tolist() if "head" in axes else [],
        records=opened.has_records,
        described=run.result is not None and {PORTRAIT, PROFILE} <= set(run.result.variables),
        closed={} if run.state != "complete" else dict(_closed(opened)),
    )


def _closed(opened: OpenRun) -> Iterator[tuple[str, str]]:
    """The pages on which this run has nothing to show, and why."""
    if variable_along(opened.data, *MAP) is None:
        yield "clusters", why_no_map(opened.data)
    try:
        said = opened.statements
    except HeadscopeError:  # a run of an older version; its pages say so
        return
    if not said.findings and not said.choices and not said.tables:
        yield "findings", "This study makes no claims to be judged."


def stored(data: xr.Dataset, table: Table) -> sent.StoredTable:
    """A stored table with its rows as lists, in the order of the columns."""
    columns = [
        sent.TableColumn(each.name, column_title(data, table, each), each.kind, each.of)
        for each in table.columns
    ]
    rows = [[_cell(row[column.name]) for column in table.columns] for row in table.rows]
    return sent.StoredTable(table.name, table.title, table.caption, columns, rows)


def _cell(value: Any) -> sent.Cell:
    return number(value) if isinstance(value, float) else value


MOST_ROWS = 100
OF_MEASURE = ("meaning", "unit", "formula", "reference", "more")
PARTS = ("first", "second", "difference", "low", "high", "effect")


def catalogue(data: xr.Dataset) -> list[sent.MeasureEntry]:
    """What the menus offer."""
    return [_measure_entry(data, measure_of(data, name)) for name in measure_names(data)]


def axis_title(measure: Measure, axis: str) -> str:
    """What a dimension of a measure is called."""
    return measure.axes.get(axis, plain_label(axis).capitalize())


def measured(opened: OpenRun, spec: str) -> sent.Picture:
    """One measure over layers and heads."""
    chosen = find(opened.data, spec)
    (column,) = [
        each for each in opened.columns[chosen.measure.name] if each.chosen.at == chosen.at
    ]
    return picture(opened.data, column)


def specs(opened: OpenRun) -> list[str]:
    """Every slice of every measure, as addresses name it."""
    return [column.chosen.spec for columns in opened.columns.values() for column in columns]


def picture(data: xr.Dataset, column: HeadColumn) -> sent.Picture:
    """A slice with everything that the overview shows beside it."""
    chosen, measure = column.chosen, column.chosen.measure
    return sent.Picture(
        spec=chosen.spec,
        title=chosen.title,
        **{name: getattr(measure, name) for name in OF_MEASURE},
        layers=data["layer"].values.tolist(),
        heads=data["head"].values.tolist(),
        values=_grid(chosen.values),
        errors=None if column.errors is None else _rows(column.errors),
        profile=profile(data, chosen),
        baseline=baseline_of(data, chosen),
        published=chosen.published,
    )


def find(data: xr.Dataset, spec: str) -> Slice:
    """The slice that a spec in an address names."""
    try:
        return cut(data, spec)
    except RunError as error:
        raise RefusedError(404, str(error)) from error


def profile(data: xr.Dataset, chosen: Slice) -> sent.Profile:
    """One value a layer: pooled where the study pooled, otherwise the mean over heads."""
    pooled = f"{chosen.measure.name}{BY_LAYER}"
    if pooled not in data:
        return sent.Profile(_values(chosen.values.mean("head", skipna=True)), None, False)
    ends = ("", BY_LAYER, f"{BY_LAYER}_se", "_numerator", "_denominator")
    names = [f"{chosen.measure.name}{end}" for end in ends]
    parts = {name: select(data[name], chosen.at) for name in names if name in data}
    margin = margin_of(xr.Dataset(parts), chosen.measure.name, BY_LAYER)
    return sent.Profile(_values(parts[pooled]), None if margin is None else _values(margin), True)


def map_of(opened: OpenRun) -> sent.Clusters:
    """The map of heads."""
    data = opened.data
    name = variable_along(data, *MAP)
    if name is None:
        raise RefusedError(409, why_no_map(data))
    positions = data[name].transpose(*MAP)
    heads = [
        sent.MappedHead(
            name=str(name),
            layer=read_head(str(name)).layer,
            x=number(x),
            y=number(y),
            behaviour=behaviour_of(data, *read_head(str(name))),
            looks=sentence_of(data, read_head(str(name))),
        )
        for name, (x, y) in zip(positions["unit"].values, positions.values, strict=True)
    ]
    return sent.Clusters(
        heads=heads,
        behaviours=names_of_heads(data),
        stress=number(positions.attrs.get("stress", np.nan)),
    )


def sentence_of(data: xr.Dataset, head: Head) -> str | None:
    """What a head looks at, as every page says it; None where the run has no portraits."""
    if "description" not in data:
        return None
    return str(data["description"].sel(head._asdict()).values.item())


def behaviour_of(data: xr.Dataset, layer: int, head: int) -> str | None:
    """The short name of a head, by its portrait or else by the study; None without either."""
    if PORTRAIT in data:
        stored = str(data[PORTRAIT].sel(layer=layer, head=head).values.item())
        return read_description(Head(layer, head), "", stored).name
    if "behaviour" not in data:
        return None
    return str(data["behaviour"].sel(layer=layer, head=head).values.item())


def names_of_heads(data: xr.Dataset) -> list[Behaviour]:
    """The short names of a run's heads with their groups, by which they are coloured."""
    described = map_heads(data)
    if described is None:
        return behaviours_of(data) if "behaviour" in data else []
    numbers: Counter[RoleGroup] = Counter()
    names: list[Behaviour] = []
    for role in described.names:
        names.append(Behaviour(role.name, role.group, numbers[role.group]))
        numbers[role.group] += 1
    return names


def comparison(a: OpenRun, b: OpenRun) -> sent.Comparison:
    """The largest differences of two runs."""
    _ = a.data, b.data  # a run without a result is refused with its notes
    found = compare_runs(a.run, b.run, names=(a.slug, b.slug))
    clear, count = clear_and_all(found)
    matching = found.matching
    alone = () if matching is None else (*matching.first_alone, *matching.second_alone)
    return sent.Comparison(
        confidence=found.confidence,
        by=list(found.by),
        notes=list(found.notes),
        measures=list(dict.fromkeys(found.differences["measure"].values)),
        clear=clear,
        intervals=count,
        rows=_largest(found, "heads"),
        layers=_largest(found, "layers"),
        matches=[
            sent.MatchedHeads(
                str(one.first), str(one.second), one.distance, one.chance, one.is_good
            )
            for one in (matching.matches if matching is not None else ())
        ],
        alone=[str(head) for head in alone],
    )


def difference(a: OpenRun, b: OpenRun, spec: str) -> sent.Difference:
    """One measure in two runs."""
    chosen = find(a.data, spec)
    find(b.data, spec)
    return differences(a, b, chosen.measure.name)[chosen.spec]


def compared_specs(a: OpenRun, b: OpenRun) -> list[str]:
    """The slices that both runs have, of the measures that are compared head with head."""
    found = comparison(a, b)
    if "index" not in found.by:
        return []
    common = set(specs(b))
    return [spec for spec in specs(a) if spec in common and spec.split("~")[0] in found.measures]


@lru_cache(maxsize=4)  # a page that shows one slice shows the others next
def differences(a: OpenRun, b: OpenRun, name: str) -> dict[str, sent.Difference]:
    """The same for every slice of a measure that both runs have, by its spec."""
    found = compare_runs(a.run, b.run, names=(a.slug, b.slug), by="index", only=name)
    shape = [a.data.sizes[dim] for dim in GRID]
    grids = {part: found.differences[part].values.reshape(*shape, -1) for part in (*PARTS, "at")}
    labels = grids.pop("at")[0, 0].tolist()
    shown: dict[str, sent.Difference] = {}
    for slice_ in (column.chosen for column in a.columns[name]):
        at = tuple(slice_.at.values())
        if at in labels:
            shown[slice_.spec] = sent.Difference(
                spec=slice_.spec,
                title=slice_.title,
                confidence=found.confidence,
                layers=a.data["layer"].values.tolist(),
                heads=a.data["head"].values.tolist(),
                **{part: _rows(values[..., labels.index(at)]) for part, values in grids.items()},
            )
    return shown


_SAID = {"by layer": ", pooled over heads", "head mean": ", mean of heads"}


def column_title(data: xr.Dataset, table: Table, column: Column) -> str:
    """A column of a stored table under the name that its measure has everywhere."""
    if column.kind == "margin":
        (value,) = [each for each in table.columns if each.name == column.of]
        return f"± {column_title(data, table, value)}"
    try:
        title = cut(data, column.of).title if column.kind in MEASURE_KINDS else ""
    except RunError:  # a slice without any value
        title = ""
    return (title or plain_label(column.name)) + _SAID.get(column.kind, "")


def _measure_entry(data: xr.Dataset, measure: Measure) -> sent.MeasureEntry:
    axes = further_axes(data, measure.name)
    return sent.MeasureEntry(
        name=measure.name,
        title=measure.title,
        meaning=measure.meaning,
        unit=measure.unit,
        errors=f"{measure.name}_se" in data,
        axes=[sent.Axis(axis, axis_title(measure, axis), labels) for axis, labels in axes.items()],
    )


def _largest(found: Compared, kind: Kind) -> list[sent.DifferenceRow]:
    """The largest differences; what is equal in both runs is none."""
    return [
        sent.DifferenceRow(
            measure=row["measure"],
            title=row["title"],
            spec=row["spec"],
            first_at=row["first_at"],
            second_at=row["second_at"],
            clear=row["clear"],
            **{part: number(row[part]) for part in (*PARTS, "q")},
        )
        for row in rows_of(found, kind, MOST_ROWS)
        if row["difference"] != 0
    ]


def why_no_map(data: xr.Dataset) -> str:
    """What a run without a map of heads has instead."""
    name = variable_along(data, *DIVERGENCE)
    if name is None:
        return "This study does not compare how alike heads attend, so that it has no map of them."
    return f"There is no map of these heads: {data[name].attrs.get('no_map')}."


def _values(array: xr.DataArray) -> sent.Values:
    return [number(value) for value in array.values]


def _grid(array: xr.DataArray) -> sent.Grid:
    return _rows(array.transpose(*GRID).values)


def _rows(values: np.ndarray) -> sent.Grid:
    return [[number(value) for value in row] for row in values]
