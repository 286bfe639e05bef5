"""One short input of the corpus with the weights of all heads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Metric, Sums, Variables
from headscope.observe.batch import SPECIAL, AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

EXAMPLE_MAP = Measure(
    "example_map",
    title="Attention in one example",
    meaning="The weights of one short stretch of the corpus, as they are.",
    formula="a[i, j]",
    reference="Vig & Belinkov 2019, Fig. 4; Clark et al. 2019, Fig. 1",
    axes={"query": "From", "key": "To"},
    with_errors=False,
)


@dataclass(frozen=True)
class _Input:
    """The input of a batch that is shown."""

    rank: tuple[int, int, int]  # distance from the wanted length, number, length
    row: int
    places: list[int]  # of the tokens shown
    ids: list[int]
    null: list[bool]


@dataclass(frozen=True)
class ExampleMap(Metric):
    """The input whose length is nearest to `size`; of a longer one the first token and a stretch
    around its first [SEP], so that every kind of token can be seen.

    Of several inputs the first in the corpus is taken: batches and shards do not matter.
    """

    grid: Grid
    decode: Callable[[Sequence[int]], Sequence[str]]  # ids to readable tokens
    size: int = 32
    name: str = "example"
    measures: tuple[Measure, ...] = (EXAMPLE_MAP,)

    def zero(self) -> Sums:
        weights = torch.zeros(*self.grid.shape, self.size, self.size, dtype=torch.float64)
        tokens = {name: torch.full((self.size,), -1) for name in ("ids", "places", "null")}
        return {
            "rank": torch.full((3,), torch.inf, dtype=torch.float64),
            "weights": weights,
        } | tokens

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Take the tokens of the batch's best input if it is better than the one so far."""
        best = self._best_of(batch)
        if best.rank >= tuple(sums["rank"].tolist()):
            return
        # These stay on the host, where they are asked for without waiting for a GPU.
        sums["rank"] = torch.tensor(best.rank, dtype=torch.float64)
        for name in ("ids", "places", "null"):
            values = torch.full((self.size,), -1)
            values[: len(best.ids)] = torch.tensor(getattr(best, name))
            sums[name] = values

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Keep the weights if the batch has the best input so far."""
        best = self._best_of(layer.batch)
        if best.rank != tuple(sums["rank"].tolist()):
            return
        stretches = _stretches(best.places)
        rows = torch.cat([layer.text(best.row, *stretch) for stretch in stretches], dim=1)
        shown: Float[Tensor, "head query key"] = torch.cat(
            [rows[..., start:stop] for start, stop in stretches], dim=2
        )
        weights, size = sums["weights"][layer.index], len(best.places)
        weights.zero_()
        weights[:, :size, :size] = shown

    def _best_of(self, batch: AnnotatedBatch) -> _Input:
        return batch.once(f"example {self.size}", lambda: self._find_best(batch.host or batch))

    def _find_best(self, batch: AnnotatedBatch) -> _Input:
        lengths = batch.mask.sum(-1).tolist()
        ranks = [
            (abs(length - self.size), int(number), length)
            for length, number in zip(lengths, batch.numbers, strict=True)
        ]
        row = min(range(len(ranks)), key=ranks.__getitem__)
        places = self._places(batch.labels["special"][row, : lengths[row]].tolist())
        ids, null = batch.labels["token"][row].tolist(), batch.null[row].tolist()
        return _Input(
            ranks[row],
            row,
            places,
            [ids[position] for position in places],
            [null[position] for position in places],
        )

    def _places(self, special: Sequence[int]) -> list[int]:
        """The tokens to show of an input, given the special class of each."""
        if len(special) <= self.size:
            return list(range(len(special)))
        sep = SPECIAL.index("sep")
        around = special.index(sep) if sep in special else 0
        start = min(max(1, around - self.size * 2 // 3), len(special) - self.size + 1)
        return [0, *range(start, start + self.size - 1)]

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The better of the two."""
        return left if left["rank"].tolist() <= right["rank"].tolist() else right

    def compute(self, sums: Sums) -> Variables:
        """example_map(layer, head, query, key), labelled with the tokens; none without inputs."""
        ids = [index for index in sums["ids"].tolist() if index >= 0]
        if not ids:
            return {}
        tokens = tuple(f"{position} {text}" for position, text in enumerate(self.decode(ids)))
        weights = sums["weights"][..., : len(ids), : len(ids)]
        example = self.grid.array(weights, Axis("query", tokens), Axis("key", tokens))
        number, length = (int(value) for value in sums["rank"][1:])
        attributes = {
            name: sums[name][: len(ids)].numpy().astype(np.int32) for name in ("places", "null")
        }
        return {"example_map": example.assign_attrs(sentence=number, tokens=length, **attributes)}


def _stretches(places: Sequence[int]) -> list[tuple[int, int]]:
    """Start and stop of the stretches of consecutive tokens."""
    starts = [position for position in places if position - 1 not in places]
    stops = [position + 1 for position in places if position + 1 not in places]
    return list(zip(starts, stops, strict=True))
