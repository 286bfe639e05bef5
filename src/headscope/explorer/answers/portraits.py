"""The map of heads, and what shows the portrait of one of them."""

import json
from functools import lru_cache

import numpy as np
import xarray as xr

from headscope.explorer import wire as sent
from headscope.explorer.answers.card import find_head
from headscope.explorer.answers.runs import OpenRun
from headscope.explorer.wire import RefusedError
from headscope.head import Head
from headscope.results.dataset import read_attribute
from headscope.results.describe import GROUPS, PORTRAIT
from headscope.results.evidence import MATRIX, NULL_NAMES, PROFILE, Evidence, read_evidence
from headscope.results.feeds import strongest_feeds
from headscope.results.head_map import MapCell, map_heads


def is_described(data: xr.Dataset) -> bool:
    """Whether a run says what its heads look at, and has what shows it."""
    return PORTRAIT in data and PROFILE in data


@lru_cache(maxsize=16)
def head_map(opened: OpenRun) -> sent.HeadMap:
    """What every head of a run looks at."""
    data = described(opened)
    summary = map_heads(data)
    assert summary is not None
    return sent.HeadMap(
        layers=data["layer"].values.tolist(),
        heads=data["head"].values.tolist(),
        causal=is_causal(data),
        nulls=null_names(data),
        summary=summary.summary,
        roles=[sent.RoleCount(each.name, each.group, each.heads) for each in summary.names],
        cells=[_cell(cell) for cell in summary.cells],
        feeds=[
            sent.MapFeed(feed.source, str(feed.head), round(feed.share, 4))
            for feed in strongest_feeds(data)
        ],
    )


def portrait(opened: OpenRun, name: str) -> sent.HeadPortrait:
    """What shows that a head looks where its sentence says."""
    data, whole = described(opened), head_map(opened)
    head = find_head(data, name)
    evidence = read_evidence(data, head) or Evidence((), ())
    matrix = data[MATRIX].sel(head._asdict()).values
    return sent.HeadPortrait(
        cell=next(cell for cell in whole.cells if cell.name == str(head)),
        nulls=whole.nulls,
        causal=whole.causal,
        parts=explained_parts(data, head),
        matrix=matrix.ravel().tolist(),
        examples=evidence.examples,
        surprises=evidence.surprises,
    )


def described(opened: OpenRun) -> xr.Dataset:
    """The result of a run that describes its heads; a RefusedError that says why it does not."""
    data = opened.data
    if is_described(data):
        return data
    reason = read_attribute(data, "left_out").get(
        "explained", "run the study again in a new directory"
    )
    raise RefusedError(409, f"The run {opened.slug} describes no head: {reason}.")


def is_causal(data: xr.Dataset) -> bool:
    """Whether tokens see only what stands before them."""
    return bool(data.attrs.get("is_causal", False))


def null_names(data: xr.Dataset) -> list[str]:
    """What the first and the last null token are called."""
    return json.loads(data.attrs.get(NULL_NAMES, "[]"))


def _cell(cell: MapCell) -> sent.HeadCell:
    return sent.HeadCell(
        name=cell.head,
        layer=cell.layer,
        head=cell.number,
        role=cell.name,
        group=cell.group,
        share=cell.share,
        explained=cell.explained,
        sentence=cell.sentence,
        cost=cell.cost,
        bars=[[round(1000 * weight) for weight in of_ink] for of_ink in cell.bars],
    )


def explained_parts(data: xr.Dataset, head: Head) -> list[sent.ExplainedShare]:
    """What each kind of feature explains of a head: of all, and of what null tokens leave."""
    at = head._asdict()
    gained = data["explained_by_numerator"].sel(at).sum("group")
    total = float(data["explained_by_denominator"].sel(at).sum())
    rest = float(data["explained_rest_denominator"].sel(at).sum())
    if not np.isfinite(float(data["explained"].sel(at))):
        return []
    return [
        sent.ExplainedShare(
            GROUPS.get(name, "sink"),
            max(gain / total, 0.0),
            max(gain / rest, 0.0) if name != "sink" else None,
        )
        for name, gain in zip(
            gained["explained_with"].values.tolist(), gained.values.tolist(), strict=True
        )
    ]
