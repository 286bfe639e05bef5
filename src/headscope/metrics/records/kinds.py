"""Pairs of tokens by kind: per head the strongest of every kind, and one that was drawn at random.

A kind is what a head may be known for: attention to a tag, to a relation, over a distance.

    kind      any   tag DET   tag NOUN   …   relation nsubj   …   distance 1   distance 2–3   …
    strongest the inputs in which the head is surest of a pair of that kind, and the pair
    random    the same of an input drawn by the seed, to be read beside them
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.metrics.records.examples import (
    FIELDS,
    NONE,
    corpus_order,
    exemplar_variables,
    name_fields,
)
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer, DensePeaks
from headscope.observe.layer import separation
from headscope.observe.offsets import largest_by_separation
from headscope.results.measure import Measure

ANY = "any"
BANDS = ((1, 1), (2, 3), (4, 7), (8, 15), (16, None))  # tokens apart, both ends included
STRONGEST = 3
RANDOM = "random"
PICKS = (*map(str, range(1, STRONGEST + 1)), RANDOM)

KIND_EXEMPLAR_WEIGHT = Measure(
    "kind_exemplar_weight",
    title="Weight of an exemplar of a kind",
    meaning="The largest weight on a pair of that kind in one input: of the surest inputs, and of "
    "one drawn at random among those that have such a pair.",
    formula="max a[i, j] over the pairs of an input whose key has the tag or relation, or whose "
    "tokens are that far apart",
    reference="Vig & Belinkov 2019, Tables 1–3",
    cost="n², one maximum for the tags and relations and one for every distance",
    more="is surer of the pair",
    axes={"kind": "Kind", "pick": "Pick"},
    with_errors=False,
    also=("kind_exemplar_sentence", "kind_exemplar_query", "kind_exemplar_key"),
)


def tag_kind(tag: str) -> str:
    """The name of the pairs whose key has the tag."""
    return f"tag {tag}"


def relation_kind(relation: str) -> str:
    """The name of the pairs whose key has the relation."""
    return f"relation {relation}"


def distance_kind(tokens: float) -> str:
    """The name of the pairs that are about so many tokens apart."""
    apart = max(1, round(tokens))
    return next(_band_name(band) for band in BANDS if band[1] is None or apart <= band[1])


def _band_name(band: tuple[int, int | None]) -> str:
    low, high = band
    far = f"{low} or more" if high is None else str(low) if low == high else f"{low}–{high}"
    return f"distance {far}"


def draw_order(
    seed: int, numbers: Int[np.ndarray, "batch"], kinds: int
) -> Float[np.ndarray, "batch kind"]:
    """A number in [0, 1) for every input and kind; the input with the smallest one is drawn.

    It follows from the seed and the input's number in the corpus alone, so that batches and shards
    do not matter (the last steps are those of SplitMix64).
    """
    with np.errstate(over="ignore"):
        kind = np.arange(1, kinds + 1, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (numbers.astype(np.uint64)[:, None] + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = mixed + kind + np.uint64(seed) * np.uint64(0x94D049BB133111EB)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed >> np.uint64(11)) * 2.0**-53


@dataclass(frozen=True)
class KindExemplars:
    """Per head and kind the inputs with the largest weight on a pair of it, and one at random.

    Ties go to the input that comes first in the corpus, then to the first key and query.
    """

    grid: Grid
    labels: tuple[Axis, ...] = ()  # tags and relations, by the name of their label
    seed: int = 0
    with_self: bool = False  # whether a token's attention to itself may be an exemplar
    name: str = "kind_exemplars"
    measures: tuple[Measure, ...] = (KIND_EXEMPLAR_WEIGHT,)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The names of all kinds."""
        named = {"tag": tag_kind, "deprel": relation_kind}
        of_labels = [named[axis.name](str(text)) for axis in self.labels for text in axis.labels]
        return (ANY, *of_labels, *map(_band_name, BANDS))

    def zero(self, inputs: int) -> State:
        shape = (*self.grid.shape, len(self.kinds))
        sums = {name: np.full((*shape, len(PICKS)), NONE) for name in FIELDS}
        return State(sums | {"order": np.full(shape, np.inf)})

    def update_matrix(self, state: State, layer: DenseLayer) -> None:
        """Let the inputs of a batch compete with those kept so far."""
        batch, pairs = layer.batch, _Pairs(layer.batch, layer.peaks(self.with_self), self.labels)
        weight = pairs.weight  # batch head kind
        order = batch.once("draw order", lambda: self._order(batch))
        drawn = torch.where(weight > 0, order[:, None], torch.inf).min(0)
        rows = torch.cat([_strongest(weight, batch), drawn.indices[None]])
        found = (weight.gather(0, rows), rows, *pairs.locate(rows))
        receive = partial(self._compete, state, layer.index, batch.numbers)
        state.receive(receive, torch.stack([each.double() for each in found]), drawn.values)

    def _order(self, batch: AnnotatedBatch) -> Float[Tensor, "batch kind"]:
        order = draw_order(self.seed, batch.numbers, len(self.kinds))
        return torch.from_numpy(order).to(batch.mask.device)

    def _compete(
        self,
        state: State,
        index: int,
        numbers: Int[np.ndarray, "batch"],
        found: Float[np.ndarray, "field pick head kind"],
        order: Float[np.ndarray, "head kind"],
    ) -> None:
        fields = name_fields(np.moveaxis(found, 1, -1), numbers)
        challenger = {name: _fill(values) for name, values in fields.items()}
        own = {name: sums[index] for name, sums in state.sums.items()}
        for name, values in _better(own, challenger | {"order": order}).items():
            state.sums[name][index] = values

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The strongest of both, and of two drawn at random the one with the smaller number."""
        return _better(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """kind_exemplar_weight, _sentence, _query, _key by layer, head, kind, pick; -1: none."""
        axes = Axis("kind", self.kinds), Axis("pick", PICKS)
        return exemplar_variables("kind_exemplar", self.grid, sums, *axes, bits=32)


@dataclass(frozen=True)
class _Pairs:
    """The largest weights of a layer by kind, and the pairs that have them."""

    batch: AnnotatedBatch
    peaks: DensePeaks
    labels: tuple[Axis, ...]

    @cached_property
    def weight(self) -> Float[Tensor, "batch head kind"]:
        """The largest weight of every kind; 0 where an input has no such pair."""
        of_labels = [self._of_label(axis) for axis in self.labels]
        apart = largest_by_separation(self.peaks.kept, is_causal=self.batch.is_causal)
        none = apart.new_zeros(*apart.shape[:-1], 1)  # where no two tokens are that far apart
        of_bands = [
            torch.cat([none, apart[..., low - 1 : high]], dim=-1).amax(-1, keepdim=True)
            for low, high in BANDS
        ]
        return torch.cat([self.peaks.by_key.amax(-1, keepdim=True), *of_labels, *of_bands], dim=-1)

    def locate(
        self, rows: Int[Tensor, "pick head kind"]
    ) -> tuple[Int[Tensor, "pick head kind"], Int[Tensor, "pick head kind"]]:
        """Query and key of the largest weights of some inputs."""
        before = rows.shape[-1] - len(BANDS)
        head = torch.arange(rows.shape[1], device=rows.device)[:, None]
        key = self._key_of_labels(rows[..., :before], head)
        query = self.peaks.kept[rows[..., :before], head, :, key].argmax(-1)
        pairs = [(query, key)]
        for place, band in enumerate(self.bands, start=before):
            cells = self.peaks.kept[rows[..., place], head[:, 0]].mul_(band)  # pick head query key
            key = cells.amax(-2).argmax(-1, keepdim=True)
            column = cells.take_along_dim(key[..., None], -1)[..., 0]
            pairs.append((column.argmax(-1, keepdim=True), key))
        queries, keys = zip(*pairs, strict=True)
        return torch.cat(queries, dim=-1), torch.cat(keys, dim=-1)

    def _of_label(self, axis: Axis) -> Float[Tensor, "batch head label"]:
        codes = self.batch.labels[axis.name]
        places = torch.where(codes < 0, len(axis), codes)[:, None].expand_as(self.peaks.by_key)
        none = self.peaks.by_key.new_zeros(*self.peaks.by_key.shape[:2], len(axis) + 1)
        return none.scatter_reduce(-1, places, self.peaks.by_key, "amax")[..., :-1]

    def _key_of_labels(
        self, rows: Int[Tensor, "pick head kind"], head: Int[Tensor, "head one"]
    ) -> Int[Tensor, "pick head kind"]:
        by_key = self.peaks.by_key[rows, head]  # pick head kind key
        start = 1  # every key is of the kind ANY
        for axis in self.labels:
            stop = start + len(axis)
            codes = self.batch.labels[axis.name][rows[..., start:stop]]
            wanted = torch.arange(len(axis), device=rows.device)[:, None]
            by_key[:, :, start:stop].masked_fill_(codes != wanted, -1.0)
            start = stop
        return by_key.argmax(-1)

    @cached_property
    def bands(self) -> Float[Tensor, "band query key"]:
        """1 where two tokens are as far apart as the band says."""
        size = self.batch.mask.shape[1]
        return self.batch.once("bands of separation", partial(_bands, size, self.batch))


def _bands(size: int, batch: AnnotatedBatch) -> Float[Tensor, "band query key"]:
    apart = separation(0, size, size, batch.mask.device)
    inside = [(apart >= low) & (apart <= (size if high is None else high)) for low, high in BANDS]
    return torch.stack(inside).float()


def _strongest(
    weight: Float[Tensor, "batch head kind"], batch: AnnotatedBatch
) -> Int[Tensor, "rank head kind"]:
    """Places in the batch of the best inputs, the earlier in the corpus first on a tie."""
    order = corpus_order(batch)
    left, ranked = weight[order], []
    for _ in range(min(STRONGEST, len(left))):  # sorting all inputs takes several times as long
        ranked.append(left.argmax(0, keepdim=True))
        left.scatter_(0, ranked[-1], -1.0)
    return order[torch.cat(ranked)]


def _fill(values: Float[np.ndarray, "head kind pick"]) -> Float[np.ndarray, "head kind pick"]:
    """A pick for every place: a batch of fewer inputs has fewer of the strongest."""
    missing = len(PICKS) - values.shape[-1]
    none = np.full((*values.shape[:-1], missing), NONE)
    return np.concatenate([values[..., :-1], none, values[..., -1:]], axis=-1)


def _better(left: Sums, right: Sums) -> Sums:
    """The strongest along the last axis, and the one that was drawn first."""
    both = {
        name: np.concatenate([left[name][..., :-1], right[name][..., :-1]], -1) for name in FIELDS
    }
    ranked = np.lexsort((both["sentence"], -both["weight"]), axis=-1)[..., :STRONGEST]
    is_left = left["order"] <= right["order"]
    found = {"order": np.where(is_left, left["order"], right["order"])}
    for name in FIELDS:
        drawn = np.where(is_left, left[name][..., -1], right[name][..., -1])
        strongest = np.take_along_axis(both[name], ranked, -1)
        found[name] = np.concatenate([strongest, drawn[..., None]], -1)
    return found
