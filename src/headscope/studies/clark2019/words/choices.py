"""The best heads of a result: for each relation, for coreference, and those that earn a name."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.probes.relations import DIRECTIONS
from headscope.probes.selection import DIFFERENCE, BestHead, best_heads, counts_of
from headscope.probes.trees import ALL, CONTENT, PUNCTUATION
from headscope.results.findings import (
    SHARE,
    Found,
    find_interval,
    hold_out,
    ratio_over_groups,
    sums_at,
)

SUMS = (ALL, CONTENT)
NO_RELATION = (*SUMS, "root", *PUNCTUATION)  # nothing that a head could be for
CLEAR_MARGIN = 0.1  # over the best fixed offset, with the head chosen on other documents
CLEAR_ACCURACY = 0.5
MOST_NAMED = 6
COREFERENCE = "coreference"


@dataclass(frozen=True)
class BestResolver:
    """The best head for coreference, for one set of candidates."""

    candidates: str
    layer: int  # its number
    head: int
    accuracy: Found  # on all mentions, with a 95 % interval
    held_out: Found  # of heads chosen on the other half of the groups of documents


def relation_rows(result: xr.Dataset) -> list[BestHead]:
    """The best head of every relation, the sums first, then the most frequent relations."""
    names = tuple(result["relation"].values.tolist())
    found = best_heads(counts_of(result), names)
    return sorted(found, key=lambda row: (row.relation not in SUMS, -row.words, row.relation))


def relation_row(result: xr.Dataset, names: set[str]) -> BestHead | None:
    """The best head of the most frequent relation with one of these names."""
    known = tuple(result["relation"].values.tolist())
    found = best_heads(counts_of(result), known, names)
    return min(found, key=lambda row: (-row.words, row.relation), default=None)


def layer_number(result: xr.Dataset, place: int) -> int:
    """The number of the layer at a place of the result."""
    return int(result["layer"].values[place])


def best_resolver(result: xr.Dataset, candidates: str) -> BestResolver | None:
    """The head that resolves most mentions; None if none was scored."""
    at = {"candidates": candidates, "mention": "all"}
    sums = sums_at(result, "coref_accuracy", at)  # group layer head
    correct, scored = sums.numerator, sums.denominator
    if not scored.sum() > 0:  # NaN where no window was read
        return None
    layer, head = np.unravel_index(correct.sum(0).argmax(), correct.shape[1:])
    own = ratio_over_groups(correct[:, layer, head], scored[:, layer, head], is_counted=True)
    return BestResolver(
        candidates,
        layer_number(result, int(layer)),
        int(head),
        find_interval(own, 0, SHARE),
        hold_out(result, "coref_accuracy", at).find(),
    )


def resolver_gap(result: xr.Dataset, system: str) -> xr.DataArray:
    """Accuracy of a head chosen on other documents − that of a system; among all words."""
    held_out = hold_out(result, "coref_accuracy", {"candidates": "words", "mention": "all"})
    right = sums_at(result, "coref_baseline", {"system": system, "mention": "all"}).numerator
    return ratio_over_groups(held_out.numerator - right, held_out.denominator)


def nominal_strength(result: xr.Dataset) -> xr.DataArray:
    """How much more a head chosen on other documents gains over matching head words on nominal
    mentions than on all of them."""
    nominal, every = (_gain_on(result, mention) for mention in ("nominal", "all"))
    return (nominal - every).assign_attrs(groups=nominal.attrs["groups"])


def _gain_on(result: xr.Dataset, mention: str) -> xr.DataArray:
    """Accuracy of the head that is best on all mentions − that of head match, on one kind."""
    chosen = hold_out(result, "coref_accuracy", {"candidates": "words", "mention": "all"}).places
    scored = sums_at(result, "coref_accuracy", {"candidates": "words", "mention": mention})
    match = sums_at(result, "coref_baseline", {"system": "head_match", "mention": mention})
    gain, below = (np.full(len(match.numerator), np.nan) for _ in range(2))
    layers = result["layer"].values.tolist()
    for half, place in enumerate(chosen):
        if place is not None:
            others = slice(1 - half, None, 2)
            at = (others, layers.index(place["layer"]), place["head"])
            gain[others] = scored.numerator[at] - match.numerator[others]
            below[others] = scored.denominator[at]
    return ratio_over_groups(gain, below)


def direction_gaps(result: xr.Dataset, few: int) -> dict[str, xr.DataArray]:
    """For every relation: best accuracy from dependents less that from heads, held out."""
    rows = [row for row in relation_rows(result) if row.words >= few]
    known = [row.relation for row in rows if row.relation not in NO_RELATION]
    return {
        name: _held_out(result, name, DIRECTIONS[0]) - _held_out(result, name, DIRECTIONS[1])
        for name in known
        if not name.endswith(" with 's")
    }


def _held_out(result: xr.Dataset, relation: str, direction: str) -> xr.DataArray:
    at = {"relation": relation, "direction": direction}
    return hold_out(result, "relation_accuracy", at).replicates


def clear_relations(result: xr.Dataset, few: int) -> list[BestHead]:
    """Relations that a head finds clearly better than any fixed offset, the clearest first.

    Clear is what leaves no doubt: the whole interval of the held-out margin exceeds the threshold.
    """
    rows = [row for row in relation_rows(result) if row.relation not in SUMS]
    clear = [
        row
        for row in rows
        if row.words >= few
        and row.held_out_margin.low > CLEAR_MARGIN
        and row.held_out.value >= CLEAR_ACCURACY
    ]
    return sorted(clear, key=lambda row: -row.held_out_margin.value)


def name_linguistic(result: xr.Dataset, few: int) -> xr.Dataset:
    """Give the heads that find relations or antecedents their names, over any surface behaviour."""
    labels = result["behaviour"].transpose("layer", "head").values.astype("<U32")
    if "relation_accuracy_numerator" in result:
        # Backwards, so that of two relations with one head the clearer one stays.
        for row in clear_relations(result, few)[:MOST_NAMED][::-1]:
            labels[row.layer, row.head] = row.relation
    resolver = best_resolver(result, "words") if "coref_accuracy_numerator" in result else None
    if resolver is not None and _beats_head_match(result):
        place = result["layer"].values.tolist().index(resolver.layer)
        labels[place, resolver.head] = COREFERENCE
    return result.assign(behaviour=(("layer", "head"), labels))


def _beats_head_match(result: xr.Dataset) -> bool:
    return find_interval(resolver_gap(result, "head_match"), 0, DIFFERENCE).low > 0
