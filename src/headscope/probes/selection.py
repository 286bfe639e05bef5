"""The best head for each relation, chosen on the data it is scored on and on other documents.

A head picked from hundreds because it scores best is expected to score less on new data. The paper
picks on the evaluation data; here a head is also picked on half of the groups of documents and
scored on the other, both ways round, and the counts of both are added.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.probes.relations import DIRECTIONS, OFFSETS
from headscope.probes.trees import accuracy
from headscope.results.findings import SHARE, Found, find_interval, ratio_over_groups

DIFFERENCE = (-1.0, 1.0)
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
    accuracy: Found  # with a 95 % interval, as all that follow
    coverage: float  # share of the words that the head could be asked for
    offset: int  # the best fixed offset on the same words
    baseline: float
    margin: float  # accuracy − baseline
    held_out: Found  # accuracy of heads chosen on the other half
    held_out_margin: Found  # over the best offset in the same direction
    held_out_of_all: Found  # words found by heads chosen on the other half / all words
    margin_replicates: xr.DataArray
    of_all_replicates: xr.DataArray
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
    correct = result["relation_accuracy_numerator"]
    scored = result["relation_accuracy_denominator"]
    words = result["offset_accuracy_denominator"]
    offsets = result["offset_accuracy_scored_numerator"]
    return RelationCounts(
        correct.transpose("group", "layer", "head", "direction", "relation").values,
        scored.transpose("group", "direction", "relation").values,
        words.transpose("group", "relation").values,
        # Other variables of a result may have further offsets.
        offsets.sel(offset=list(OFFSETS))
        .transpose("group", "direction", "offset", "relation")
        .values,
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
    elsewhere, held_right, held_total, held_offset = _held_out(correct, scored, offsets)
    margin = ratio_over_groups(held_right - held_offset, held_total)
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
        held_out_of_all=find_interval(of_all, 0, SHARE),
        margin_replicates=margin,
        of_all_replicates=of_all,
        same_choice=elsewhere == [chosen, chosen],
    )


def _share(right: np.ndarray, total: np.ndarray) -> Found:
    return find_interval(ratio_over_groups(right, total, is_counted=True), 0, SHARE)


def _held_out(
    correct: Float[np.ndarray, "group layer head direction"],
    scored: Float[np.ndarray, "group direction"],
    offsets: Float[np.ndarray, "group direction offset"],
) -> tuple[list[Chosen], np.ndarray, np.ndarray, np.ndarray]:
    """What the even and the odd groups choose, and counts of every group for the others' choice.

    The counts are words found, words scored, and words found by the best offset; NaN where the half
    that had to choose has no words. The offset is the best of all documents: no choice favours it.
    """
    chosen = [choose(correct[half::2].sum(0), scored[half::2].sum(0)) for half in range(2)]
    right, total, at_offset = (np.full(len(scored), np.nan) for _ in range(3))
    for half, (layer, head, direction) in enumerate(chosen):
        if scored[half::2].sum() > 0:
            others = slice(1 - half, None, 2)
            best = int(offsets[:, direction].sum(0).argmax())
            right[others] = correct[others, layer, head, direction]
            total[others] = scored[others, direction]
            at_offset[others] = offsets[others, direction, best]
    return chosen, right, total, at_offset
