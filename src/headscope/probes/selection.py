"""The best head for each relation, chosen on the data it is scored on and on the other half.

A head picked from hundreds because it scores best is expected to score less on new data. The paper
picks on the evaluation data; here a head is also picked on one half of the sentences and scored on
the other, both ways round, and the counts of both are added.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.probes.proportion import accuracy, wilson
from headscope.probes.relations import DIRECTIONS, OFFSETS


@dataclass(frozen=True)
class RelationCounts:
    """Counts over a corpus: everything that Table 1 is made of."""

    correct: Float[np.ndarray, "half layer head direction class"]
    scored: Float[np.ndarray, "half direction class"]
    words: Float[np.ndarray, "half class"]
    offset_correct: Float[np.ndarray, "half direction offset class"]


@dataclass(frozen=True)
class BestHead:
    """One row of Table 1."""

    relation: str
    words: int
    direction: str
    layer: int  # place among the captured layers
    head: int
    accuracy: float
    low: float  # 95 % interval
    high: float
    coverage: float  # share of the words that the head could be asked for
    offset: int  # the best fixed offset on the same words
    baseline: float
    margin: float  # accuracy − baseline
    held_out: float  # accuracy of heads chosen on the other half
    held_out_low: float
    held_out_high: float
    same_choice: bool  # whether both halves choose this head


def best_heads(counts: RelationCounts, names: tuple[str, ...]) -> list[BestHead]:
    """The best head and direction for every class that has a scored word."""
    scored = counts.scored.sum((0, 1))
    return [_best(counts, place, name) for place, name in enumerate(names) if scored[place] > 0]


def counts_of(result: xr.Dataset) -> RelationCounts:
    """The counts that a result was computed from."""
    correct = result["relation_correct"].transpose("half", "layer", "head", "direction", "relation")
    return RelationCounts(
        correct.values,
        result["relation_scored"].values,
        result["relation_words"].values,
        # Other variables of a result may have further offsets.
        result["offset_correct"].sel(offset=list(OFFSETS)).values,
    )


def choose(
    correct: Float[np.ndarray, "layer head direction"], scored: Float[np.ndarray, "direction"]
) -> tuple[int, int, int]:
    """Layer, head and direction of the highest accuracy; of equals the first.

    The directions of a causal model share the words out: the one with more words is taken, or a few
    odd words would decide. Elsewhere both directions score the same words, and both compete.
    """
    shares = np.where(scored == scored.max(), accuracy(correct, scored), -1.0)
    layer, head, direction = np.unravel_index(shares.argmax(), shares.shape)
    return int(layer), int(head), int(direction)


def _best(counts: RelationCounts, place: int, name: str) -> BestHead:
    correct, scored = counts.correct[..., place], counts.scored[..., place]
    chosen = choose(correct.sum(0), scored.sum(0))
    layer, head, direction = chosen
    right, total = correct.sum(0)[chosen], scored.sum(0)[direction]
    low, high = wilson(right, total)
    offset, baseline = _best_offset(counts, place, direction)
    elsewhere, held_right, held_total = _held_out(correct, scored)
    held_low, held_high = wilson(held_right, held_total)
    words = counts.words[:, place].sum()
    return BestHead(
        relation=name,
        words=int(words),
        direction=DIRECTIONS[direction],
        layer=layer,
        head=head,
        accuracy=float(right / total),
        low=float(low),
        high=float(high),
        coverage=float(total / words),
        offset=offset,
        baseline=baseline,
        margin=float(right / total) - baseline,
        held_out=float(accuracy(held_right, held_total)),
        held_out_low=float(held_low),
        held_out_high=float(held_high),
        same_choice=elsewhere == [chosen, chosen],
    )


def _best_offset(counts: RelationCounts, place: int, direction: int) -> tuple[int, float]:
    correct = counts.offset_correct[:, direction, :, place].sum(0)
    best = int(correct.argmax())
    return OFFSETS[best], float(correct[best] / counts.scored[:, direction, place].sum())


def _held_out(
    correct: Float[np.ndarray, "half layer head direction"],
    scored: Float[np.ndarray, "half direction"],
) -> tuple[list[tuple[int, int, int]], np.ndarray, np.ndarray]:
    """What each half chooses, and the counts of the choices on the half that did not choose."""
    chosen = [choose(correct[half], scored[half]) for half in range(2)]
    right = sum(correct[1 - half][chosen[half]] for half in range(2))
    total = sum(scored[1 - half][chosen[half][2]] for half in range(2))
    return chosen, np.asarray(right), np.asarray(total)
