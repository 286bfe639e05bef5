"""The inputs in which a head is surest (Vig & Belinkov 2019, Tables 1–3)."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import ObservedLayer

FIELDS = ("weight", "sentence", "query", "key")
NONE = -1.0


@dataclass(frozen=True)
class Exemplars:
    """Per head the `count` inputs with the largest kept weight, and the pair that has it.

    Ties go to the input that comes first in the corpus, within an input to the first pair.

    Variables: exemplar_weight
    Formula: max a[i, j] over the pairs of an input, the largest inputs first
    Reference: Vig & Belinkov 2019, Tables 1–3
    Range: 0 to 1
    Cost: n², one maximum

    Variables: exemplar_sentence, exemplar_query, exemplar_key
    Formula: the sentence and the pair i, j that have exemplar_weight
    Reference: Vig & Belinkov 2019, Tables 1–3
    Range: places from 0; −1 where there is none
    Cost: none beyond exemplar_weight
    """

    grid: Grid
    count: int = 5
    with_self: bool = True  # whether a token's attention to itself may be an exemplar
    name: str = "exemplars"

    def zero(self, inputs: int) -> State:
        """No exemplars yet."""
        return State({name: np.full((*self.grid.shape, self.count), NONE) for name in FIELDS})

    def update_layer(self, state: State, layer: ObservedLayer) -> None:
        """Let the best inputs of a batch compete with those kept so far."""
        peaks = layer.peaks(self.with_self)
        rows = _best_rows(peaks.weight, _corpus_order(layer.batch), self.count)
        head = torch.arange(rows.shape[1], device=rows.device).expand_as(rows)
        found = (peaks.weight.gather(0, rows), rows, *peaks.locate(rows, head))
        compete = partial(self._compete, state, layer.index, layer.batch.numbers)
        state.receive(compete, torch.stack([values.double() for values in found]))

    def _compete(
        self,
        state: State,
        index: int,
        numbers: Int[np.ndarray, "batch"],
        found: Float[np.ndarray, "field rank head"],
    ) -> None:
        fields = dict(zip(FIELDS, found, strict=True))
        fields["sentence"] = numbers[fields["sentence"].astype(np.int64)].astype(np.float64)
        challengers = {name: np.where(found[0] > 0, fields[name], NONE).T for name in FIELDS}
        kept_so_far = {name: state.sums[name][index] for name in FIELDS}
        for name, values in _choose(kept_so_far, challengers, self.count).items():
            state.sums[name][index] = values

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The best of both."""
        return _choose(left, right, self.count)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """exemplar_weight, _sentence, _query and _key by layer, head and rank; -1 where none."""
        rank = Axis("rank", range(self.count))
        weight = np.where(sums["weight"] > 0, sums["weight"], np.nan)
        variables = {"exemplar_weight": self.grid.array(weight, rank)}
        places = {f"exemplar_{name}": sums[name].astype(np.int64) for name in FIELDS[1:]}
        return variables | {name: self.grid.array(values, rank) for name, values in places.items()}


def _corpus_order(batch: AnnotatedBatch) -> Int[Tensor, "batch"]:
    """Places in the batch, the earlier in the corpus first."""

    def order() -> Tensor:
        return torch.from_numpy(np.argsort(batch.numbers)).to(batch.mask.device)

    return batch.once("corpus order", order)


def _best_rows(
    best: Float[Tensor, "batch head"], order: Int[Tensor, "batch"], count: int
) -> Int[Tensor, "rank head"]:
    """Places in the batch of each head's best inputs, the earlier in the corpus first on a tie."""
    ranked = best[order].sort(dim=0, descending=True, stable=True).indices[:count]
    return order[ranked]


def _choose(left: Sums, right: Sums, count: int) -> Sums:
    """The largest weights of two candidate lists along their last axis."""
    both = {name: np.concatenate([left[name], right[name]], axis=-1) for name in FIELDS}
    order = np.lexsort((both["sentence"], -both["weight"]), axis=-1)[..., :count]
    return {name: np.take_along_axis(both[name], order, -1) for name in FIELDS}
