"""One head's card: its measures with ranks, what the run says of it, similar heads, exemplars.

What a run keeps of a head besides numbers stands beside it: tokens, examples, maps.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar, cast

import numpy as np
import xarray as xr
from msgspec import Struct

from headscope.errors import RunError
from headscope.explorer import wire as sent
from headscope.explorer.answers import axis_title, behaviour_of, sentence_of
from headscope.explorer.answers.runs import Column, OpenRun
from headscope.explorer.wire import RefusedError
from headscope.head import Head, read_head
from headscope.results.cost import cost_sentence
from headscope.results.dataset import read_attribute
from headscope.results.examples import Exemplar, exemplars_of, has_bands, marks_word_pieces
from headscope.results.feeds import SIDES, Feed, fed_by
from headscope.results.measure import (
    DIVERGENCE,
    GRID,
    heads_of,
    measure_of,
    number,
    plain_label,
    variable_along,
)
from headscope.results.ranks import check_heads
from headscope.results.records import SPACES, TOP_BAND, WRITES, BandExample, Point, Records
from headscope.results.replicates import margin_of
from headscope.views.labels import bare, is_right_to_left, label, spaces_before

Made = TypeVar("Made", bound=Struct)
ENOUGH = 20  # words of a relation: with fewer some head is right by chance
FEW = 3  # a measure with up to this many slices is listed, one with more is drawn as bars
NEAREST = 6
# Further dimensions of a histogram, and whether a bin is named by its lower end.
AXES = {"separation": "Distance in tokens", "peak": "Largest weight in an input"}
NO_WRITES = "This run does not say what the head writes."


def card(opened: OpenRun, name: str) -> sent.Card:
    """One head's card."""
    data = opened.data
    head = find_head(data, name)
    bins = histogram_names(data)
    columns = [each for name, each in opened.columns.items() if name not in bins]
    listed = [each for each in columns if len(each) <= FEW]
    drawn = [each for each in columns if len(each) > FEW]
    return sent.Card(
        name=str(head),
        layer=head.layer,
        head=head.head,
        behaviour=behaviour_of(data, *head),
        looks=sentence_of(data, head),
        measures=[_line(data, each, head) for few in listed for each in few],
        groups=[group for many in drawn for group in _groups(data, many, head)],
        histograms=histograms(data, head),
        nearest=nearest_heads(opened, head),
        feeds=[_feed(feed) for side in SIDES for feed in fed_by(data, head, side)],
        cost=cost_sentence(data, head),
        exemplars=[_exemplar(data, one) for one in exemplars(opened, head)],
    )


def _feed(feed: Feed) -> sent.Feed:
    margin = feed.margin if np.isfinite(feed.margin) else None
    return sent.Feed(feed.source, feed.side, feed.share, margin)


def nearest_heads(opened: OpenRun, head: Head) -> sent.Neighbours:
    """The heads most like it: by divergence of their attention, else by their measures."""
    data, own = opened.data, str(head)
    divergence = variable_along(data, *DIVERGENCE)
    if divergence is not None:
        row = data[divergence].sel(unit=own)
        names, distances = [str(one) for one in row["other"].values], row.values
        basis = "Jensen–Shannon divergence of their attention, summed over all rows"
    else:
        names, table = _standardised(opened)
        distances = np.sqrt(((table - table[names.index(own)]) ** 2).mean(1))
        basis = "root mean square difference of the measures, in standard deviations"
    return sent.Neighbours(basis, _closest(own, names, distances))


def find_head(data: xr.Dataset, name: str) -> Head:
    """The head of that name, or a RefusedError that says which there are."""
    try:
        return check_heads([read_head(name)], data)[0]
    except RunError as error:
        raise RefusedError(404, str(error)) from error


def _line(data: xr.Dataset, column: Column, head: Head) -> sent.Line:
    """A slice's value at the head, its error, its rank from the top and the mean over heads."""
    chosen, at = column.chosen, column.places[head]
    own = number(column.values[at])
    return sent.Line(
        spec=chosen.spec,
        title=chosen.title,
        unit=chosen.measure.unit,
        value=own,
        error=None if column.errors is None else number(column.errors[at]),
        rank=None if own is None else int(column.ranks[at]),
        of=column.of,
        mean=column.mean,
        baseline=column.baseline_at(data, head),
    )


def _bar(data: xr.Dataset, column: Column, head: Head, label: str) -> sent.LabelBar | None:
    """One label of a large measure; None where the head has no value."""
    line = _line(data, column, head)
    if line.value is None or line.rank is None:
        return None
    rare = column.words is not None and column.words < ENOUGH
    return sent.LabelBar(label, line.value, line.error, line.rank, line.of, line.baseline, rare)


def _groups(data: xr.Dataset, columns: Sequence[Column], head: Head) -> Iterator[sent.Group]:
    """The slices of a large measure, one group for each label of all but the longest dimension."""
    measure = columns[0].chosen.measure
    longest = max(
        columns[0].chosen.at, key=lambda axis: len({one.chosen.at[axis] for one in columns})
    )
    groups: dict[str, list[sent.LabelBar | None]] = {}
    for column in columns:
        at = column.chosen.at
        others = [plain_label(label) for axis, label in at.items() if axis != longest]
        bar = _bar(data, column, head, at[longest])
        groups.setdefault(", ".join(others), []).append(bar)
    for labels, bars in groups.items():
        yield sent.Group(
            name=measure.name,
            title=f"{measure.title}: {labels}" if labels else measure.title,
            axis=axis_title(measure, longest),
            enough=ENOUGH,
            bars=[bar for bar in bars if bar is not None],
        )


def _closest(own: str, names: list[str], distances: np.ndarray) -> list[sent.Neighbour]:
    order = [i for i in np.argsort(distances, kind="stable") if names[i] != own]
    known = [i for i in order if np.isfinite(distances[i])][:NEAREST]
    return [sent.Neighbour(names[i], float(distances[i])) for i in known]


def _standardised(opened: OpenRun) -> tuple[list[str], np.ndarray]:
    """Every measure without further dimensions as a column over heads, mean 0 and deviation 1."""
    data = opened.data
    heads = [str(head) for head in heads_of(data)]
    plain: list[np.ndarray] = []
    for columns in opened.columns.values():  # a measure without any number has none
        plain += [column.values.ravel() for column in columns if not column.chosen.at]
    if not plain:
        return heads, np.full((len(heads), 1), np.nan)
    table = np.stack(plain, 1)
    table = np.where(np.isfinite(table), table, np.nan)
    table = table[:, np.isfinite(table).any(0)]
    spread = np.nanstd(table, 0)
    kept = spread > 0
    if not kept.any():  # one head, or heads that are all alike
        return heads, np.full((len(heads), 1), np.nan)
    scaled = (table[:, kept] - np.nanmean(table[:, kept], 0)) / spread[kept]
    return heads, np.nan_to_num(scaled)


def exemplars(opened: OpenRun, head: Head) -> list[Exemplar]:
    """The surest pairs of the head's top inputs; those of a run with bands stand in its records."""
    return [] if has_bands(opened.data) else exemplars_of(opened.run.records, head)


def _exemplar(data: xr.Dataset, one: Exemplar) -> sent.Exemplar:
    spaces = spaces_before(one.tokens, one.text, word_pieces=marks_word_pieces(data))
    labels = [label(token) for token in one.tokens]
    return sent.Exemplar(
        rank=one.rank,
        weight=one.weight,
        query=one.query,
        key=one.key,
        text=one.text,
        tokens=list(one.tokens),
        labels=labels,
        pieces=[label(bare(token)) for token in one.tokens],
        spaces=list(spaces),
        rtl=is_right_to_left(labels),
    )


def histogram_names(data: xr.Dataset) -> list[str]:
    """The variables that are a histogram for every head."""
    return [str(name) for name in data.data_vars if _axis(data, str(name)) is not None]


def histograms(data: xr.Dataset, head: Head) -> list[sent.Histogram]:
    """The histograms of one head."""
    return [_histogram(data, name, head) for name in histogram_names(data)]


def head_records(opened: OpenRun, name: str) -> sent.HeadRecords:
    """Tokens, examples, maps and writes that the run keeps of one head."""
    head, kept = find_head(opened.data, name), records_of(opened)
    written, points = kept.writes(*head), kept.points(*head)
    samples = {(one.input, one.position): one for one in points}
    return sent.HeadRecords(
        name=str(head),
        tops=list(_tops(kept, head)),
        bands=list(_bands(kept.examples(*head))),
        samples=sent.Samples(
            [one.input for one in samples.values()],
            [one.position for one in samples.values()],
            [one.token for one in samples.values()],
        ),
        spaces=list(_spaces(points, list(samples))),
        raises=[_as(sent.WrittenToken, one) for one in written if one.direction == "raises"],
        lowers=[_as(sent.WrittenToken, one) for one in written if one.direction == "lowers"],
        no_writes=None if written else _why_not(opened, WRITES, NO_WRITES),
    )


def input_text(opened: OpenRun, asked: str) -> sent.InputText:
    """The tokens of an input that examples and maps name."""
    if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        raise RefusedError(404, "There is no such input; inputs go by their numbers.")
    kept = records_of(opened).inputs([int(asked)])[int(asked)]
    tokens = list(kept.tokens)
    return sent.InputText(
        kept.input,
        kept.document,
        kept.start,
        tokens,
        is_right_to_left(tokens),
        marks_word_pieces(opened.data),
    )


def records_of(opened: OpenRun) -> Records:
    """The run's records; a RefusedError where its study keeps none."""
    if not opened.run.records.files:
        raise RefusedError(
            409,
            f"The run {opened.slug} keeps no tokens, examples or maps: its study makes none, or "
            "records=false was asked for.",
        )
    return opened.run.records


def _axis(data: xr.Dataset, name: str) -> str | None:
    """The dimension that the bins of a histogram lie along; None for other variables."""
    dims = data.variables[name].dims
    further = [str(dim) for dim in dims if dim not in GRID]
    is_one = set(GRID) <= set(dims) and len(further) == 1 and further[0] in AXES
    return further[0] if is_one and not name.endswith(("_se", "_q")) else None


def _histogram(data: xr.Dataset, name: str, head: Head) -> sent.Histogram:
    axis, measure = str(_axis(data, name)), measure_of(data, name)
    lows = np.asarray(data.variables[axis].values, float)
    highs = np.append(lows[1:], _end(axis, lows))
    values, margin = data[name].sel(head._asdict()).values, margin_of(data, name)
    errors = None if margin is None else margin.sel(head._asdict()).values
    bins = [
        sent.Bin(float(low), float(high), value, None if errors is None else number(errors[place]))
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
        if (value := number(values[place])) is not None
    ]
    return sent.Histogram(name, measure.title, measure.meaning, AXES[axis], bins)


def _end(axis: str, lows: np.ndarray) -> float:
    """Where the last bin ends: distances double, weights end at 1."""
    return 1.0 if axis == "peak" else float(2 * lows[-1])


def _tops(kept: Records, head: Head) -> Iterator[sent.TopTokens]:
    rows = kept.top_tokens(*head)
    for (side, by), found in groupby(rows, key=lambda one: (one.side, one.by)):
        tokens = [_as(sent.TokenRow, one) for one in found]
        yield sent.TopTokens(cast(Any, side), cast(Any, by), tokens)


def _bands(examples: Iterable[BandExample]) -> Iterator[sent.Band]:
    for band, members in groupby(examples, key=lambda one: one.band):
        shown = [sent.Example(one.peak, one.input, sparse_rows(one)) for one in members]
        yield sent.Band("top" if band == TOP_BAND else str(band + 1), shown)


def _as(kind: type[Made], row: Any) -> Made:
    """A stored row as it is sent: the fields of these names, several values as a list."""
    values = {name: getattr(row, name) for name in kind.__struct_fields__}
    return kind(**{name: [*of] if isinstance(of, tuple) else of for name, of in values.items()})


def sparse_rows(example: BandExample) -> list[list[int]]:
    """The weights of every query in thousandths, each after its key, the largest first."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(max(example.query, default=-1) + 1)]
    for query, key, weight in zip(example.query, example.key, example.weight, strict=True):
        rows[query].append((-round(1000 * weight), key))
    return [[part for weight, key in sorted(row) for part in (key, -weight)] for row in rows]


def _spaces(points: Sequence[Point], samples: Sequence[tuple[int, int]]) -> Iterator[sent.Space]:
    place = {sample: number for number, sample in enumerate(samples)}
    for name in SPACES:
        own = [one for one in points if one.space == name]
        placed = [(one.x, one.y) for one in own if one.x is not None and one.y is not None]
        together = placed if len(placed) == len(own) else []
        if own:
            yield sent.Space(
                name=cast(Any, name),
                sample=[place[one.input, one.position] for one in own],
                component1=[one.component1 for one in own],
                component2=[one.component2 for one in own],
                x=[x for x, _ in together],
                y=[y for _, y in together],
                cluster=[one.cluster for one in own],
            )


def _why_not(opened: OpenRun, file: str, otherwise: str) -> str:
    """Why a run lacks a file: the reason that its study gave, if any."""
    reason = read_attribute(opened.data, "left_out").get(file)
    return f"Not in this run: {reason}." if reason else otherwise
