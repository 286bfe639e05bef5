"""How far apart related tokens are: P(dependency | separation) and the mean span of an arc."""

from dataclasses import dataclass

import numpy as np
import torch

from headscope.metrics.metric import Axis, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.pairs import count_by_separation, each_once, related_pairs

LONGEST = 100  # separations shown one by one; longer ones count in the mean span only


@dataclass(frozen=True)
class DependencySpan:
    """Fraction of token pairs at each separation that are related, and the spans of those.

    A pair of tokens is counted once, whichever of the two is the query.

    Variables: dependency_probability, dependency_probability_se
    Formula: related pairs at the separation / pairs at the separation; error √(p(1 − p)/pairs)
    Reference: Vig & Belinkov 2019, text on Fig. 8
    Range: 0 to 1
    Cost: n·100 and the arcs, once for all heads

    Variables: dependency_within
    Formula: arcs up to the separation / arcs
    Reference: Vig & Belinkov 2019, text on Fig. 8
    Range: 0 to 1, rising
    Cost: none beyond dependency_probability

    Variables: mean_dependency_span
    Formula: Σ |i − j| of related pairs / related pairs
    Reference: Vig & Belinkov 2019, text on Fig. 8
    Range: from 1, in tokens
    Cost: none beyond dependency_probability
    """

    name: str = "dependency_span"

    def zero(self, inputs: int) -> State:
        """No pairs yet."""
        sums = {name: np.zeros(LONGEST + 1) for name in ("pairs", "related")}
        return State(sums | {"arcs": np.zeros(1), "span": np.zeros(1)})

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count the pairs of a batch."""
        arcs = torch.cat(related_pairs(batch))
        arcs = each_once(arcs[arcs[:, 1] > arcs[:, 2]], batch.mask.shape[1])
        separation = arcs[:, 1] - arcs[:, 2]
        near = torch.bincount(separation[separation <= LONGEST], minlength=LONGEST + 1)
        state.sums["pairs"] += count_by_separation(batch, LONGEST).cpu().numpy()
        state.sums["related"] += near.cpu().numpy()
        state.sums["arcs"] += len(arcs)
        state.sums["span"] += float(separation.sum())

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Sums add."""
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """P(dependency | separation) with its binomial error, share of arcs within, mean span."""
        pairs, related, arcs = sums["pairs"][1:], sums["related"][1:], sums["arcs"][0]
        with np.errstate(invalid="ignore", divide="ignore"):
            probability = related / pairs
            error = np.sqrt(probability * (1 - probability) / pairs)
            within, span = related.cumsum() / arcs, sums["span"][0] / arcs
        axis = Axis("separation", range(1, LONGEST + 1))
        return {
            "dependency_probability": label(probability, axis),
            "dependency_probability_se": label(error, axis),
            "dependency_within": label(within, axis),
            "mean_dependency_span": label(np.asarray(span)),
        }
