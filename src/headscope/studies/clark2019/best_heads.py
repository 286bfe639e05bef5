"""The best heads of a result: for each relation, for coreference, and those that earn a name.

A head picked from hundreds because it scores best is expected to score less on new data. The paper
picks on the evaluation data; here a head is also picked on half of the groups of documents and
scored on the other, both ways round, and the counts of both are added.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.claims import Replicates
from headscope.results.held_out import hold_out, ratio_over_groups, score_elsewhere, sums_at
from headscope.results.intervals import DIFFERENCE, SHARE, Interval, find_interval
from headscope.studies.clark2019.probes.noop import SIDES
from headscope.studies.clark2019.probes.relations import DIRECTIONS, OFFSETS
from headscope.studies.clark2019.probes.trees import ALL, CONTENT, PUNCTUATION, accuracy

Chosen = tuple[int, int, int]  # layer, head, direction, each by its place


@dataclass(frozen=True)
class RelationCounts:
    """Counts of every group of documents: everything that Table 1 is made of."""

    correct: Float[np.ndarray, "group layer head direction class"]
    scored: Float[np.ndarray, "group direction class"]
    words: Float[np.ndarray, "group class"]
    offset_correct: Float[np.ndarray, "group direction offset class"]


@dataclass(frozen=True)
class BestHead:
    """One row of Table 1."""

    relation: str
    words: int
    direction: str
    layer: int  # place among the captured layers
    head: int
    accuracy: Interval  # with a 95 % interval, as all that follow
    coverage: float  # share of the words that the head could be asked for
    offset: int  # the best fixed offset on the same words
    baseline: float
    margin: float  # accuracy − baseline
    held_out: Interval  # accuracy of heads chosen on the other half
    held_out_margin: Interval  # over the best offset in the same direction
    margin_replicates: xr.DataArray
    of_all_replicates: xr.DataArray  # words found by heads chosen on the other half / all words
    same_choice: bool  # whether both halves choose this head


def best_heads(
    counts: RelationCounts, names: tuple[str, ...], wanted: Set[str] | None = None
) -> list[BestHead]:
    """The best head and direction for every class, or those wanted, that has a scored word."""
    scored = counts.scored.sum((0, 1))
    return [
        _best(counts, place, name)
        for place, name in enumerate(names)
        if scored[place] > 0 and (wanted is None or name in wanted)
    ]


def counts_of(result: xr.Dataset) -> RelationCounts:
    """The counts that a result was computed from."""

    # Other variables of a result may have further offsets.
    known = result.sel(offset=list(OFFSETS))

    def counts(name: str, *axes: str) -> np.ndarray:
        return known[name].transpose("group", *axes, "relation").values

    return RelationCounts(
        counts("relation_accuracy_numerator", "layer", "head", "direction"),
        counts("relation_accuracy_denominator", "direction"),
        counts("offset_accuracy_denominator"),
        counts("offset_accuracy_scored_numerator", "direction", "offset"),
    )


def choose(
    correct: Float[np.ndarray, "layer head direction"], scored: Float[np.ndarray, "direction"]
) -> Chosen:
    """Layer, head and direction of the highest accuracy; of equals the first.

    The directions of a causal model share the words out: the one with more words is taken, or a few
    odd words would decide. Elsewhere both directions score the same words, and both compete.
    """
    shares = np.where(scored == scored.max(), accuracy(correct, scored), -1.0)
    layer, head, direction = np.unravel_index(shares.argmax(), shares.shape)
    return int(layer), int(head), int(direction)


def _best(counts: RelationCounts, place: int, name: str) -> BestHead:
    correct, scored = counts.correct[..., place], counts.scored[..., place]
    words, offsets = counts.words[:, place], counts.offset_correct[..., place]
    chosen = choose(correct.sum(0), scored.sum(0))
    layer, head, direction = chosen
    right, total = correct[:, layer, head, direction], scored[:, direction]
    offset = int(offsets[:, direction].sum(0).argmax())
    baseline = float(offsets[:, direction, offset].sum() / total.sum())
    # All in the direction of the row, so that accuracies beside each other are of the same words.
    of_heads = correct[..., direction].reshape(len(correct), -1, 1)
    elsewhere, held_right, held_total = score_elsewhere(
        of_heads, np.broadcast_to(total[:, None, None], of_heads.shape)
    )
    held_right, held_total = held_right[:, 0], held_total[:, 0]
    # The offset is the best of all documents: no choice favours it.
    margin = ratio_over_groups(held_right - offsets[:, direction, offset], held_total)
    of_all = ratio_over_groups(held_right, words, is_counted=True)
    return BestHead(
        relation=name,
        words=int(words.sum()),
        direction=DIRECTIONS[direction],
        layer=layer,
        head=head,
        accuracy=_share(right, total),
        coverage=float(total.sum() / words.sum()),
        offset=OFFSETS[offset],
        baseline=baseline,
        margin=float(right.sum() / total.sum()) - baseline,
        held_out=_share(held_right, held_total),
        held_out_margin=find_interval(margin, 0, DIFFERENCE),
        margin_replicates=margin,
        of_all_replicates=of_all,
        same_choice=bool((elsewhere == layer * correct.shape[2] + head).all()),
    )


def _share(right: np.ndarray, total: np.ndarray) -> Interval:
    return find_interval(ratio_over_groups(right, total, is_counted=True), 0, SHARE)


SUMS = (ALL, CONTENT)
NO_RELATION = (*SUMS, "root", *PUNCTUATION)  # nothing that a head could be for
CLEAR_MARGIN = 0.1  # over the best fixed offset, with the head chosen on other documents
CLEAR_ACCURACY = 0.5
MOST_NAMED = 6
COREFERENCE = "coreference"
ENOUGH = 20  # words of a relation that a best head can be chosen by
NOOP, GRADIENT = "noop", "noop_gradient"
Pair = tuple[xr.DataArray, xr.DataArray]  # where it applies, where it does not


@dataclass(frozen=True)
class BestResolver:
    """The best head for coreference, for one set of candidates."""

    candidates: str
    layer: int  # its number
    head: int
    accuracy: Interval  # on all mentions, with a 95 % interval
    held_out: Interval  # of heads chosen on the other half of the groups of documents


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
    if resolver is not None:
        gap = find_interval(resolver_gap(result, "head_match"), 0, DIFFERENCE)
        if gap.low > 0:
            place = result["layer"].values.tolist().index(resolver.layer)
            labels[place, resolver.head] = COREFERENCE
    return result.assign(behaviour=(("layer", "head"), labels))


def pair_of(data: Replicates, row: BestHead, prefix: str = NOOP) -> Pair:
    """What the best head of a relation pays to delimiters, in the direction that it is best in."""
    side = SIDES[DIRECTIONS.index(row.direction)]
    place = {"relation": row.relation, "head": row.head, "layer": data.layers[row.layer]}
    applies, other = (data[f"{prefix}_{name}{side}"].sel(place) for name in ("applies", "not"))
    return applies, other


def noop_names(prefix: str) -> list[str]:
    """The variables of what words pay to delimiters, or of gradients there."""
    return [f"{prefix}_{name}{side}" for name in ("applies", "not") for side in SIDES]
