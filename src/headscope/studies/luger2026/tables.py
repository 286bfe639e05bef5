"""Kinds of heads in numbers, from a result."""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.head import name_head
from headscope.results.held_out import hold_out
from headscope.results.ranks import names_where, top_heads
from headscope.results.statements import Tabulation, heads_table, layers_table
from headscope.results.tables import HeadName, MeasureColumn, measure_columns
from headscope.studies.luger2026.figures import DETECTORS, REACHES, SHARES
from headscope.studies.luger2026.kinds import Kind, known_kinds

MOST_NAMED = 12  # heads in a cell of the table


def name_chosen(result: xr.Dataset, chosen: Bool[np.ndarray, "layer head"]) -> str:
    """Some heads by name."""
    names = names_where(result, chosen)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _row(result: xr.Dataset, kind: Kind) -> dict[str, Any]:
    """The rule of a kind, how many heads are of it, which, and the best one."""
    judged = kind.judge(result)
    layer, head, value = top_heads(result[kind.variable], 1)[0]
    return {
        "kind": kind.name,
        "rule": f"{kind.variable} > {kind.threshold}",
        "heads": int(judged.yes.sum()),
        "unclear": int(judged.unclear.sum()),
        "best": HeadName(name_head(layer, head)),
        "value": value,
        "held_out": hold_out(result, kind.variable).find(),
        "which": name_chosen(result, judged.yes),
        "which_unclear": name_chosen(result, judged.unclear),
    }


KINDS_TABLE = Tabulation(
    "kinds",
    "Kinds of heads",
    "A head is of a kind if the whole interval of the measure lies above the threshold, and "
    "unclear if the threshold is inside it. Held out: the best head, chosen on half of the "
    "documents and scored on the other, with its 95 % interval.",
    ("first_share",),
    lambda result: [_row(result, kind) for kind in known_kinds(result)],
)


COLUMNS = tuple(map(MeasureColumn, (*SHARES, *REACHES, *DETECTORS)))


TABLES = (
    KINDS_TABLE,
    layers_table("Values of all heads together.", partial(measure_columns, chosen=COLUMNS)),
    heads_table(partial(measure_columns, chosen=COLUMNS)),
)
