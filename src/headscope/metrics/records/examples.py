"""Inputs worth looking at: those in which a head is surest, and one with all heads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.observe.batch import SPECIAL, AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

FIELDS = ("weight", "sentence", "query", "key")
NONE = -1.0

EXEMPLAR_WEIGHT = Measure(
    "exemplar_weight",
    title="Weight of an exemplar",
    meaning="The largest weight that the head has in one input, the surest inputs first.",
    formula="max a[i, j] over the pairs of an input, the largest inputs first",
    reference="Vig & Belinkov 2019, Tables 1–3",
    cost="n², one maximum",
    more="is surer of the pair",
    axes={"rank": "Rank"},
    with_errors=False,
    also=("exemplar_sentence", "exemplar_query", "exemplar_key"),  # where the weight is
)
EXAMPLE_MAP = Measure(
    "example_map",
    title="Attention in one example",
    meaning="The weights of one short stretch of the corpus, as they are.",
    formula="a[i, j]",
    reference="Vig & Belinkov 2019, Fig. 4; Clark et al. 2019, Fig. 1",
    cost="the weights of one input are kept",
    axes={"query": "From", "key": "To"},
    with_errors=False,
)


@dataclass(frozen=True)
class Exemplars:
    """Per head the `count` inputs with the largest kept weight, and the pair that has it.

    Ties go to the input that comes first in the corpus, within an input to the first pair.
    """

    grid: Grid
    count: int = 5
    with_self: bool = False  # whether a token's attention to itself may be an exemplar
    name: str = "exemplars"
    measures: tuple[Measure, ...] = (EXEMPLAR_WEIGHT,)

    def zero(self, inputs: int) -> State:
        return State({name: np.full((*self.grid.shape, self.count), NONE) for name in FIELDS})

    def update_layer(self, state: State, layer: Layer) -> None:
        """Let the best inputs of a batch compete with those kept so far."""
        peaks = layer.peaks(self.with_self)
        rows = _best_rows(peaks.weight, corpus_order(layer.batch), self.count)
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
        kept_so_far = np.stack([state.sums[name][index] for name in FIELDS])
        challengers = np.moveaxis(with_numbers(found, numbers), 1, -1)
        best = choose_strongest(kept_so_far, challengers, self.count)
        for name, values in zip(FIELDS, best, strict=True):
            state.sums[name][index] = values

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The best of both."""
        return name_fields(choose_strongest(stack_fields(left), stack_fields(right), self.count))

    def compute(self, sums: Sums, records: Records) -> Variables:
        """exemplar_weight, _sentence, _query and _key by layer, head and rank; -1 where none."""
        rank = Axis("rank", range(self.count))
        return exemplar_variables("exemplar", self.grid, sums, rank)


def stack_fields(sums: Sums) -> Float[np.ndarray, "field *any"]:
    """What is known of exemplars in one array."""
    return np.stack([sums[name] for name in FIELDS])


def name_fields(stacked: Float[np.ndarray, "field *any"]) -> Sums:
    """The same by name."""
    return dict(zip(FIELDS, stacked, strict=True))


def with_numbers(
    found: Float[np.ndarray, "field *any"], numbers: Int[np.ndarray, "batch"]
) -> Float[np.ndarray, "field *any"]:
    """What was found in a batch with the number of each input; -1 where no weight is."""
    weight, row, query, key = found
    fields = np.stack([weight, numbers[row.astype(np.int64)], query, key])
    return np.where(weight > 0, fields, NONE)


def choose_strongest(
    left: Float[np.ndarray, "field *any rank"],
    right: Float[np.ndarray, "field *any rank"],
    count: int,
) -> Float[np.ndarray, "field *any rank"]:
    """The largest weights of two candidate lists; on a tie the earlier in the corpus."""
    both = np.concatenate([left, right], axis=-1)
    weight, sentence, *_ = both
    order = np.lexsort((sentence, -weight), axis=-1)[..., :count]
    return np.take_along_axis(both, order[None], -1)


def exemplar_variables(
    prefix: str, grid: Grid, sums: Sums, *axes: Axis, bits: int = 64
) -> Variables:
    """PREFIX_weight, PREFIX_sentence, _query and _key, in numbers of so many bits."""
    weight = np.where(sums["weight"] > 0, sums["weight"], np.nan).astype(f"f{bits // 8}")
    places = {name: sums[name].astype(f"i{bits // 8}") for name in FIELDS[1:]}
    found = {"weight": weight, **places}
    return {f"{prefix}_{name}": grid.array(values, *axes) for name, values in found.items()}


def corpus_order(batch: AnnotatedBatch) -> Int[Tensor, "batch"]:
    """Places in the batch, the earlier in the corpus first."""
    return batch.once_on_host(
        "corpus order", lambda batch: torch.from_numpy(np.argsort(batch.numbers))
    )


def _best_rows(
    best: Float[Tensor, "batch head"], order: Int[Tensor, "batch"], count: int
) -> Int[Tensor, "rank head"]:
    """Places in the batch of each head's best inputs, the earlier in the corpus first on a tie."""
    if best.dtype != torch.float32:
        ranked = best[order].sort(dim=0, descending=True, stable=True).indices[:count]
        return order[ranked]
    # One number for both: weights are not negative, so their bits are in their order. That spares a
    # stable sort of all inputs.
    late = torch.arange(len(order) - 1, -1, -1, device=order.device)
    code = (best[order].view(torch.int32).long() << 32) | late[:, None]
    return order[len(order) - 1 - (code.topk(min(count, len(order)), dim=0).values & 0xFFFFFFFF)]


@dataclass(frozen=True)
class ExampleMap:
    """The input whose length is nearest to `size`; of a longer one the first token and a stretch
    around its first [SEP], so that every kind of token can be seen.

    Of several inputs the first in the corpus is taken: batches and shards do not matter.
    """

    grid: Grid
    decode: Callable[[Sequence[int]], Sequence[str]]  # ids to readable tokens
    size: int = 32
    name: str = "example"
    measures: tuple[Measure, ...] = (EXAMPLE_MAP,)

    def zero(self, inputs: int) -> State:
        weights = np.zeros((*self.grid.shape, self.size, self.size))
        texts = {name: np.full(self.size, -1.0) for name in ("ids", "places", "null")}
        return State({"rank": np.full(3, np.inf), "weights": weights, **texts})

    def update_layer(self, state: State, layer: Layer) -> None:
        """Keep the weights if the batch has a better example, or the one being kept."""
        batch = layer.batch
        best = batch.once_on_host(f"example {self.size}", self._best)
        if best.rank > tuple(state.sums["rank"]):
            return
        shown, row, runs = slice(0, len(best.ids)), best.row, _runs(best.places)
        state.sums["rank"][:] = best.rank
        for name in ("ids", "places", "null"):
            state.sums[name][:] = -1
            state.sums[name][shown] = getattr(best, name)
        rows = torch.cat([layer.text(row, *run) for run in runs], dim=1)
        weights = torch.cat([rows[..., start:stop] for start, stop in runs], dim=2)

        index = layer.index  # not the layer: what waits for a copy would keep all of it

        def keep(weights: np.ndarray) -> None:
            state.sums["weights"][index] = 0
            state.sums["weights"][index, :, shown, shown] = weights

        state.receive(keep, weights)

    def _best(self, batch: AnnotatedBatch) -> "_Example":
        lengths = batch.mask.sum(-1).tolist()
        ranks = [
            (abs(n - self.size), int(number), n)
            for n, number in zip(lengths, batch.numbers, strict=True)
        ]
        row = min(range(len(ranks)), key=ranks.__getitem__)
        places = self._places(batch.labels["special"][row, : lengths[row]].tolist())
        ids, null = batch.labels["token"][row].tolist(), batch.null[row].tolist()
        return _Example(
            ranks[row], row, places, [ids[place] for place in places], [null[p] for p in places]
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
        return left if tuple(left["rank"]) <= tuple(right["rank"]) else right

    def compute(self, sums: Sums, records: Records) -> Variables:
        """example_map(layer, head, query, key), labelled with the tokens; none without inputs."""
        ids = [int(index) for index in sums["ids"] if index >= 0]
        if not ids:
            return {}
        tokens = tuple(f"{place} {text}" for place, text in enumerate(self.decode(ids)))
        weights = sums["weights"][..., : len(ids), : len(ids)]
        example = self.grid.array(weights, Axis("query", tokens), Axis("key", tokens))
        number, length = (int(value) for value in sums["rank"][1:])
        kept = {name: sums[name][: len(ids)].astype(np.int32) for name in ("places", "null")}
        return {"example_map": example.assign_attrs(sentence=number, tokens=length, **kept)}


@dataclass(frozen=True)
class _Example:
    """The best example of a batch: distance from the wanted length, number, length; its tokens."""

    rank: tuple[int, int, int]
    row: int
    places: list[int]  # of the tokens shown
    ids: list[int]
    null: list[bool]


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Start and stop of the stretches of consecutive tokens."""
    starts = [p for p in places if p - 1 not in places]
    stops = [p + 1 for p in places if p + 1 not in places]
    return list(zip(starts, stops, strict=True))
