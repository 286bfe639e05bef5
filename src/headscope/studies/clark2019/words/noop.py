"""The no-op reading of attention to delimiters (§3.2): what the best heads do with other words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head, name_in_paper
from headscope.probes.noop import SIDES
from headscope.probes.relations import DIRECTIONS
from headscope.probes.selection import BestHead
from headscope.results.findings import DIFFERENCE, Finding, Found, NotMeasured, find_interval, whole
from headscope.results.replicates import groups_of, replicated
from headscope.results.statements import Tabulation
from headscope.studies.clark2019.words.choices import (
    NO_RELATION,
    clear_relations,
    layer_number,
    relation_row,
    relation_rows,
)

FEW = 20  # words with a relation; of fewer the best head is best by chance
OBJECTS = {"obj", "dobj"}
NOOP, GRADIENT = "noop", "noop_gradient"
NO_HEAD = "no head finds a relation clearly better than a fixed offset"
Pair = tuple[xr.DataArray, xr.DataArray]  # where it applies, where it does not


def pair_of(data: xr.Dataset, row: BestHead, prefix: str = NOOP) -> Pair:
    """What the best head of a relation pays to delimiters, in the direction that it is best in."""
    side = SIDES[DIRECTIONS.index(row.direction)]
    place = {"relation": row.relation, "head": row.head, "layer": layer_number(data, row.layer)}
    applies, other = (data[f"{prefix}_{name}{side}"].sel(place) for name in ("applies", "not"))
    return applies, other


def noop_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """For the best head of every relation with enough words: both shares, and both gradients."""
    data = replicated(result, (*_names(NOOP), *_names(GRADIENT)))
    ends = ("numerator", "denominator")
    groups = groups_of(result[[f"{name}_{end}" for name in _names(NOOP) for end in ends]])
    rows = (row for row in relation_rows(result) if row.relation not in NO_RELATION)
    return [_row(data, groups, row) for row in rows if row.words >= FEW]


def _row(data: xr.Dataset, groups: int, row: BestHead) -> dict[str, Any]:
    applies, other = pair_of(data, row)
    found = find_interval(other - applies, groups, DIFFERENCE)
    cells: dict[str, Any] = {
        "relation": row.relation,
        "words": row.words,
        "head": name_head(layer_number(data, row.layer), row.head),
        "attending": "dependent" if row.direction == DIRECTIONS[0] else "head",
        "accuracy": row.accuracy.value,
        "applies": float(whole(applies)),
        "does not": float(whole(other)),
        **found.cells("difference"),
    }
    if f"{GRADIENT}_applies" not in data:
        return cells
    gradients = (float(whole(each)) for each in pair_of(data, row, GRADIENT))
    return cells | dict(zip(("gradient applies", "gradient does not"), gradients, strict=True))


def _difference(data: xr.Dataset) -> xr.DataArray:
    return _mean([other - applies for applies, other in _clear(data, NOOP)])


def _gradient_difference(data: xr.Dataset) -> xr.DataArray:
    return _mean([other / applies for applies, other in _clear(data, GRADIENT)])


def _clear(data: xr.Dataset, prefix: str) -> list[Pair]:
    rows = _clear_rows(data)
    if not rows:
        raise NotMeasured(NO_HEAD)
    return [pair_of(data, row, prefix) for row in rows]


def _clear_rows(data: xr.Dataset) -> list[BestHead]:
    """The relations that a head clearly finds, each once."""
    return [row for row in clear_relations(data, FEW) if not row.relation.endswith(" with 's")]


def _mean(values: Sequence[xr.DataArray]) -> xr.DataArray:
    found = xr.concat(values, "clear", coords="minimal", compat="override").mean("clear")
    return found.reset_coords(drop=True)


def _say_clear(data: xr.Dataset, found: Found) -> str:
    rows = _clear_rows(data)
    pairs = [pair_of(data, row) for row in rows]
    applies, other = (float(np.mean([whole(pair[n]) for pair in pairs])) for n in range(2))
    named = ", ".join(row.relation for row in rows[:5]) + (" …" if len(rows) > 5 else "")
    return f"{applies:.2f} where it applies, {other:.2f} elsewhere; {named}"


def _say_gradients(data: xr.Dataset, found: Found) -> str:
    return f"of {len(_clear_rows(data))} relations, elsewhere relative to where it applies"


def _objects(data: xr.Dataset) -> xr.DataArray:
    applies, other = pair_of(data, _object_row(data))
    return (other - applies).reset_coords(drop=True)


def _object_row(data: xr.Dataset) -> BestHead:
    row = relation_row(data, OBJECTS)
    if row is None or row.words < FEW:
        raise NotMeasured("the corpus has too few direct objects")
    return row


def _say_objects(data: xr.Dataset, found: Found) -> str:
    row = _object_row(data)
    applies, other = (float(whole(each)) for each in pair_of(data, row))
    head = name_in_paper(layer_number(data, row.layer), row.head)
    return f"{head}: {applies:.2f} where it applies, {other:.2f} elsewhere"


def _names(prefix: str) -> list[str]:
    return [f"{prefix}_{name}{side}" for name in ("applies", "not") for side in SIDES]


TABLE = Tabulation(
    "noop",
    "Attention to delimiters as doing nothing",
    "For the best head of each relation: the share that words pay to delimiters or the null token, "
    "where the relation applies to the attending word and where it does not, the difference with "
    "its 95 % interval, and the mean |∂L/∂a| of these weights where gradients were computed.",
    ("noop_applies", "relation_accuracy_numerator"),
    noop_rows,
)
FINDINGS = (
    Finding(
        "Heads look at delimiters where the relation they find does not apply.",
        "words that a head has nothing to do for attend to [SEP]",
        "mean over the relations that a head clearly finds: share to delimiters of words to which "
        "the relation does not apply, less that of the others, is above 0",
        (*_names(NOOP), "relation_accuracy"),
        _difference,
        is_signed=True,
        range=DIFFERENCE,
        words=_say_clear,
    ),
    Finding(
        "So it is with the head that finds direct objects.",
        "8-10: words that are no direct object attend to [SEP]",
        "the same for its best head alone is above 0",
        (*_names(NOOP), "relation_accuracy"),
        _objects,
        is_signed=True,
        range=DIFFERENCE,
        words=_say_objects,
    ),
    Finding(
        "There the loss depends less on it.",
        "expected of a no-op; the paper shows gradients by layer",
        "mean over the same relations of the gradient to delimiters elsewhere / where the relation "
        "applies, below 1",
        (*_names(GRADIENT), "relation_accuracy"),
        _gradient_difference,
        threshold=1.0,
        more="below",
        unit="×",
        range=(0.0, np.inf),
        words=_say_gradients,
    ),
)
