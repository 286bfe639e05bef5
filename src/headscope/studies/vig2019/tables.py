"""Heads, layers, tags and relations in numbers, from a result."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.results.claims import Replicates, on_all
from headscope.results.intervals import DIFFERENCE, Interval, find_interval
from headscope.results.ranks import top_heads
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName
from headscope.studies.vig2019.claims import EITHER, SYNTAX, best_beyond, beyond

SHOWN = 12  # heads in the table of syntax


def syntax_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """The heads furthest beyond their distances, after the one that other documents choose."""
    data = Replicates(result)
    margins, elsewhere = beyond(data), best_beyond(data).find(is_share=False)
    rows: list[dict[str, Any]] = []
    for layer, head, value in top_heads(on_all(margins), SHOWN):
        if np.isfinite(value):
            of_head = margins.sel(layer=layer, head=head)
            estimate = find_interval(of_head, data.groups, DIFFERENCE)
            rows.append(_row(data, Head(layer, head), estimate))
    nan = float("nan")
    held_out = {"head": "best head, held out", "alignment": nan, "expected": nan}
    return [{**held_out, "beyond": elsewhere.cell}, *rows] if rows else []


def _row(data: Replicates, head: Head, estimate: Interval) -> dict[str, Any]:
    place = head._asdict()
    aligned, expected = (float(on_all(data.at(name, **EITHER)).sel(place)) for name in SYNTAX)
    return {
        "head": HeadName(f"{head}"),
        "alignment": aligned,
        "expected": expected,
        "beyond": estimate.cell,
    }


SYNTAX_TABLE = Tabulation(
    "syntax",
    "Syntax beyond proximity",
    "Alignment with dependency arcs (either form), what a head that looks equally far would have "
    "whatever the words are, and the difference with its 95 % interval: the heads with the largest "
    "one. Held out: chosen on half of the documents and scored on the other.",
    SYNTAX,
    syntax_rows,
)
