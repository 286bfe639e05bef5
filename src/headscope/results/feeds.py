"""What feeds a head: the composition of a result, head by head."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.results.measure import heads_of, variable_along
from headscope.results.replicates import margin_of

COMPOSITION = ("layer", "head", "side", "source")  # dimensions of what feeds heads
Side = Literal["key", "query"]
SIDES: tuple[Side, ...] = ("key", "query")
MOST = 3  # heads that a head is said to be fed by
_HEAD = re.compile(r"L\d+H\d+")


@dataclass(frozen=True)
class Feed:
    """A part of the network that makes some of a head's choice."""

    head: Head
    side: Side
    source: str  # L4H2, MLP 0, embedding, position, biases
    share: float
    margin: float  # half of the 95 % interval; NaN where it is unknown

    @property
    def is_of_head(self) -> bool:
        """Whether the part is a head, not an MLP or an embedding."""
        return _HEAD.fullmatch(self.source) is not None


def all_feeds(data: xr.Dataset) -> Iterator[Feed]:
    """Every part of every head, in the order of the heads; parts that add nothing are left out."""
    name = variable_along(data, *COMPOSITION)
    if name is None:
        return
    values = data[name].transpose(*COMPOSITION)
    of_errors = margin_of(data, name)
    margins = np.full(values.shape, np.nan)
    if of_errors is not None:
        margins = of_errors.transpose(*COMPOSITION).values
    sides, sources = (values[name].values.tolist() for name in ("side", "source"))
    of_heads = values.values.reshape(-1, len(sides), len(sources))
    margins = margins.reshape(of_heads.shape)
    for number, head in enumerate(heads_of(data)):
        for side, source in np.argwhere(of_heads[number] != 0).tolist():
            share, margin = float(of_heads[number, side, source]), margins[number, side, source]
            named = cast(Side, str(sides[side])), str(sources[source])
            yield Feed(head, *named, share, float(margin))


def fed_by(data: xr.Dataset, head: Head, side: Side = "key") -> list[Feed]:
    """The earlier heads that make most of a head's choice on one side, largest first."""
    if variable_along(data, *COMPOSITION) is None:
        return []
    return strongest_feeds(data.sel(layer=[head.layer], head=[head.head]), side)


def strongest_feeds(data: xr.Dataset, side: Side = "key") -> list[Feed]:
    """The earlier heads that make most of the choice of every head on one side."""
    feeds: dict[Head, list[Feed]] = {}
    for feed in all_feeds(data):
        if feed.side == side and feed.is_of_head and feed.share > 0:
            feeds.setdefault(feed.head, []).append(feed)
    ordered = (sorted(few, key=lambda feed: -feed.share) for few in feeds.values())
    return [feed for few in ordered for feed in few[:MOST]]
