"""The best heads of a result: for each relation, for coreference, and those that earn a name."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.probes.gold import ALL, CONTENT
from headscope.probes.proportion import accuracy
from headscope.probes.selection import BestHead, best_heads, counted_interval, counts_of, halves

SUMS = (ALL, CONTENT)
CLEAR_MARGIN = 0.1  # over the best fixed offset, with the head chosen on other sentences
CLEAR_ACCURACY = 0.5
MOST_NAMED = 6
COREFERENCE = "coreference"


@dataclass(frozen=True)
class BestResolver:
    """The best head for coreference, for one set of candidates."""

    candidates: str
    layer: int  # its number
    head: int
    low: float  # 95 % interval of its accuracy on all mentions
    high: float
    held_out: float  # accuracy of heads chosen on the other half of the documents


def relation_rows(result: xr.Dataset) -> list[BestHead]:
    """The best head of every relation, the sums first, then the most frequent relations."""
    names = tuple(result["relation"].values.tolist())
    found = best_heads(counts_of(result), names)
    return sorted(found, key=lambda row: (row.relation not in SUMS, -row.words, row.relation))


def layer_number(result: xr.Dataset, place: int) -> int:
    """The number of the layer at a place of the result."""
    return int(result["layer"].values[place])


def best_resolver(result: xr.Dataset, candidates: str) -> BestResolver | None:
    """The head that resolves most mentions; None if none was scored."""
    counts = result["coref_accuracy_numerator"].sel(candidates=candidates, mention="all")
    correct = counts.transpose("group", "layer", "head").values
    scored = result["coref_accuracy_denominator"].sel(mention="all").values
    if not scored.sum() > 0:  # NaN where no window was read
        return None
    best = _highest(correct.sum(0))
    low, high = counted_interval(correct[:, *best], scored)
    by_half = halves(correct)
    chosen = [*map(_highest, by_half)]
    elsewhere = sum(by_half[1 - half][chosen[half]] for half in range(2))
    held_out = float(accuracy(np.asarray(elsewhere), scored.sum()))
    layer = layer_number(result, best[0])
    return BestResolver(candidates, layer, best[1], float(low), float(high), held_out)


def clear_relations(result: xr.Dataset, few: int) -> list[BestHead]:
    """Relations that a head finds clearly better than any fixed offset, the clearest first."""
    rows = [row for row in relation_rows(result) if row.relation not in SUMS]
    clear = [
        row
        for row in rows
        if row.words >= few
        and row.held_out - row.baseline >= CLEAR_MARGIN
        and row.held_out >= CLEAR_ACCURACY
    ]
    return sorted(clear, key=lambda row: -row.margin)


def name_linguistic(result: xr.Dataset, few: int) -> xr.Dataset:
    """Give the heads that find relations or antecedents their names, over any surface behaviour."""
    labels = result["behaviour"].transpose("layer", "head").values.astype("<U32")
    if "relation_accuracy_numerator" in result:
        # Backwards, so that of two relations with one head the clearer one stays.
        for row in clear_relations(result, few)[:MOST_NAMED][::-1]:
            labels[row.layer, row.head] = row.relation
    resolver = best_resolver(result, "words") if "coref_accuracy_numerator" in result else None
    if resolver is not None and resolver.held_out > _head_match(result):
        place = result["layer"].values.tolist().index(resolver.layer)
        labels[place, resolver.head] = COREFERENCE
    return result.assign(behaviour=(("layer", "head"), labels))


def _highest(correct: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(correct.argmax(), correct.shape)
    return int(layer), int(head)


def _head_match(result: xr.Dataset) -> float:
    return float(result["coref_baseline"].sel(system="head_match", mention="all"))
