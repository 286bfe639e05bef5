"""What a run keeps of a head besides numbers, as the pages show it: tokens, examples, maps."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np
import xarray as xr

from headscope.explorer.columns import number
from headscope.explorer.limits import RefusedError
from headscope.explorer.runs import OpenRun
from headscope.explorer.schemas import (
    Band,
    Bin,
    EdgeAdds,
    Example,
    HeadRecords,
    Histogram,
    InputText,
    Samples,
    Space,
    TokenRow,
    TopTokens,
    WrittenToken,
)
from headscope.head import Head
from headscope.results.dataset import left_out
from headscope.results.measure import GRID, measure_of
from headscope.results.records import (
    EDGES,
    SPACES,
    TOP_BAND,
    WRITES,
    BandExample,
    Point,
    Records,
    WrittenEdge,
)
from headscope.views.labels import are_word_pieces, is_right_to_left

# Further dimensions of a histogram, and whether a bin is named by its lower end.
AXES = {"separation": "Distance in tokens", "peak": "Largest weight in an input"}
NO_WRITES = "This run does not say what the head writes."
NO_EDGES = "This run does not say what single edges add; run the study anew into another directory."


def histogram_names(data: xr.Dataset) -> list[str]:
    """The variables that are a histogram for every head."""
    return [str(name) for name in data.data_vars if _axis(data, str(name)) is not None]


def histograms(data: xr.Dataset, head: Head) -> list[Histogram]:
    """The histograms of one head."""
    return [_histogram(data, name, head) for name in histogram_names(data)]


def head_records(opened: OpenRun, head: Head) -> HeadRecords:
    """What is kept of the head; a RefusedError where the study keeps nothing."""
    kept = records_of(opened)
    written, points = kept.writes(*head), kept.points(*head)
    samples = {(one.input, one.position): one for one in points}
    return HeadRecords(
        name=str(head),
        tops=list(_tops(kept, head)),
        bands=list(_bands(kept.examples(*head), kept.edges(*head))),
        samples=Samples(
            [one.input for one in samples.values()],
            [one.position for one in samples.values()],
            [one.token for one in samples.values()],
        ),
        spaces=list(_spaces(points, list(samples))),
        raises=[WrittenToken(one.token, one.logit) for one in written if one.direction == "raises"],
        lowers=[WrittenToken(one.token, one.logit) for one in written if one.direction == "lowers"],
        no_writes=None if written else _why_not(opened, WRITES, NO_WRITES),
        no_edges=None if EDGES in kept.files else _why_not(opened, EDGES, NO_EDGES),
        causal=bool(opened.data.attrs.get("is_causal", True)),
    )


def input_text(opened: OpenRun, asked: str) -> InputText:
    """The tokens of one input."""
    if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        raise RefusedError(404, "There is no such input; inputs go by their numbers.")
    kept = records_of(opened).inputs([int(asked)])[int(asked)]
    tokens = list(kept.tokens)
    return InputText(
        kept.input,
        kept.document,
        kept.start,
        tokens,
        is_right_to_left(tokens),
        are_word_pieces(tokens),
    )


def records_of(opened: OpenRun) -> Records:
    """The run's records; a RefusedError where its study keeps none."""
    if not opened.run.records.files:
        raise RefusedError(
            409,
            f"The run {opened.slug} keeps no tokens, examples or maps; `headscope study luger2026` "
            "makes a run that does.",
        )
    return opened.run.records


def _axis(data: xr.Dataset, name: str) -> str | None:
    """The dimension that the bins of a histogram lie along; None for other variables."""
    dims = data.variables[name].dims
    further = [str(dim) for dim in dims if dim not in GRID]
    is_one = set(GRID) <= set(dims) and len(further) == 1 and further[0] in AXES
    return further[0] if is_one and not name.endswith(("_se", "_q")) else None


def _histogram(data: xr.Dataset, name: str, head: Head) -> Histogram:
    axis, measure = str(_axis(data, name)), measure_of(data, name)
    lows = np.asarray(data.variables[axis].values, float)
    highs = np.append(lows[1:], _end(axis, lows))
    values, errors = (_row(data, each, head) for each in (name, f"{name}_se"))
    bins = [
        Bin(float(low), float(high), value, None if errors is None else number(errors[place]))
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
        if values is not None and (value := number(values[place])) is not None
    ]
    return Histogram(name, measure.title, measure.meaning, AXES[axis], bins)


def _end(axis: str, lows: np.ndarray) -> float:
    """Where the last bin ends: distances double, weights end at 1."""
    return 1.0 if axis == "peak" else float(2 * lows[-1])


def _row(data: xr.Dataset, name: str, head: Head) -> np.ndarray | None:
    return np.asarray(data[name].sel(head._asdict()).values, float) if name in data else None


def _tops(kept: Records, head: Head) -> Iterator[TopTokens]:
    rows = kept.top_tokens(*head)
    for (side, by), found in groupby(rows, key=lambda one: (one.side, one.by)):
        tokens = [TokenRow(one.token, one.share, one.lift, one.count) for one in found]
        yield TopTokens(cast(Any, side), cast(Any, by), tokens)


def _bands(examples: Iterable[BandExample], edges: Sequence[WrittenEdge]) -> Iterator[Band]:
    adds: dict[int, list[EdgeAdds]] = {}
    for edge in edges:
        adds.setdefault(edge.input, []).append(_adds(edge))
    for band, found in groupby(examples, key=lambda one: one.band):
        kept = [
            Example(one.peak, one.input, sparse_rows(one), adds.get(one.input, [])) for one in found
        ]
        yield Band("top" if band == TOP_BAND else str(band + 1), kept)


def _adds(edge: WrittenEdge) -> EdgeAdds:
    return EdgeAdds(
        edge.query,
        edge.key,
        edge.weight,
        edge.token,
        edge.logit,
        list(edge.raises),
        list(edge.raises_logit),
        list(edge.lowers),
        list(edge.lowers_logit),
    )


def sparse_rows(example: BandExample) -> list[list[int]]:
    """The weights of every query in thousandths, each after its key, the largest first."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(max(example.query, default=-1) + 1)]
    for query, key, weight in zip(example.query, example.key, example.weight, strict=True):
        rows[query].append((-round(1000 * weight), key))
    return [[part for weight, key in sorted(row) for part in (key, -weight)] for row in rows]


def _spaces(points: Sequence[Point], samples: Sequence[tuple[int, int]]) -> Iterator[Space]:
    place = {sample: number for number, sample in enumerate(samples)}
    for name in SPACES:
        own = [one for one in points if one.space == name]
        placed = [(one.x, one.y) for one in own if one.x is not None and one.y is not None]
        together = placed if len(placed) == len(own) else []
        if own:
            yield Space(
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
    reason = left_out(opened.data).get(file)
    return f"Not in this run: {reason}." if reason else otherwise
