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
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, is_far
from headscope.metrics.records.examples import (
    FIELDS,
    NONE,
    choose_strongest,
    corpus_order,
    exemplar_variables,
    name_fields,
    stack_fields,
    with_numbers,
)
from headscope.model.attention import send
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
        order = batch.once("draw order", lambda: self._order(batch))
        drawn = torch.where(pairs.weight > 0, order[:, None], torch.inf).min(0)
        own = {name: sums[layer.index] for name, sums in state.sums.items()}
        cells = _contested(own, batch, pairs.weight.amax(0), drawn.values)
        at = (..., cells.head, cells.kind)
        weight = pairs.weight[at]  # batch cell
        rows = torch.cat([_strongest(weight, batch), drawn.indices[at][None]])
        found = (weight.gather(0, rows), rows, *pairs.locate(rows, cells))
        compete = partial(_compete, own, batch.numbers, cells.on_host)
        state.receive(compete, torch.stack([each.double() for each in found]), drawn.values[at])

    def _order(self, batch: AnnotatedBatch) -> Float[Tensor, "batch kind"]:
        order = draw_order(self.seed, batch.numbers, len(self.kinds))
        return torch.from_numpy(order).to(batch.mask.device)

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The strongest of both, and of two drawn at random the one with the smaller number."""
        found = _better(
            stack_fields(left), stack_fields(right), is_left=left["order"] <= right["order"]
        )
        return name_fields(found) | {"order": np.minimum(left["order"], right["order"])}

    def compute(self, sums: Sums, records: Records) -> Variables:
        """kind_exemplar_weight, _sentence, _query, _key by layer, head, kind, pick; -1: none."""
        axes = Axis("kind", self.kinds), Axis("pick", PICKS)
        return exemplar_variables("kind_exemplar", self.grid, sums, *axes, bits=32)


@dataclass(frozen=True)
class _Cells:
    """Some heads and kinds, the kinds of labels before those of distances."""

    head: Int[Tensor, "cell"]
    kind: Int[Tensor, "cell"]
    on_host: tuple[Int[np.ndarray, "cell"], Int[np.ndarray, "cell"]]  # the same

    @classmethod
    def of(cls, chosen: Bool[np.ndarray, "head kind"], device: torch.device) -> "_Cells":
        """Those that are chosen."""
        kind, head = np.nonzero(chosen.T)
        heads, kinds = (send(torch.from_numpy(each), device) for each in (head, kind))
        return cls(heads, kinds, (head, kind))

    def count_below(self, kind: int) -> int:
        """How many are of the kinds before this one."""
        return int(np.searchsorted(self.on_host[1], kind))


def _contested(
    own: Sums,
    batch: AnnotatedBatch,
    best: Float[Tensor, "head kind"],
    order: Float[Tensor, "head kind"],
) -> _Cells:
    """Where the best input of a batch may be kept, or the one that is drawn from it.

    A GPU is not waited for: there all heads and kinds are said to be contested.
    """
    if is_far(best):
        every = np.ones(best.shape, dtype=bool)
        return batch.once("cells of kinds", lambda: _Cells.of(every, best.device))
    weight = best.numpy()
    is_strong = (weight > 0) & (weight >= own["weight"][..., STRONGEST - 1])
    return _Cells.of(is_strong | (order.numpy() < own["order"]), best.device)


def _compete(
    own: Sums,
    numbers: Int[np.ndarray, "batch"],
    place: tuple[Int[np.ndarray, "cell"], Int[np.ndarray, "cell"]],
    found: Float[np.ndarray, "field pick cell"],
    order: Float[np.ndarray, "cell"],
) -> None:
    """Keep what is better than what is there, at some heads and kinds."""
    challengers = np.moveaxis(with_numbers(found, numbers), 1, -1)
    so_far = np.stack([own[name][place] for name in FIELDS])
    better = _better(so_far, challengers, is_left=own["order"][place] <= order)
    for name, values in zip(FIELDS, better, strict=True):
        own[name][place] = values
    own["order"][place] = np.minimum(own["order"][place], order)


def _better(
    left: Float[np.ndarray, "field *cell pick"],
    right: Float[np.ndarray, "field *cell pick"],
    *,
    is_left: Bool[np.ndarray, "*cell"],
) -> Float[np.ndarray, "field *cell pick"]:
    """The strongest of both, and the one that was drawn first, which stands last."""
    strongest = choose_strongest(left[..., :-1], right[..., :-1], STRONGEST)
    drawn = np.where(is_left, left[..., -1], right[..., -1])
    return np.concatenate([strongest, drawn[..., None]], axis=-1)


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
        missing = BANDS[-1][0] - apart.shape[-1]  # where no two tokens are that far apart
        if missing > 0:
            apart = torch.nn.functional.pad(apart, (0, missing))
        of_bands = [apart[..., low - 1 : high].amax(-1, keepdim=True) for low, high in BANDS]
        return torch.cat([self.peaks.by_key.amax(-1, keepdim=True), *of_labels, *of_bands], dim=-1)

    def locate(
        self, rows: Int[Tensor, "pick cell"], cells: _Cells
    ) -> tuple[Int[Tensor, "pick cell"], Int[Tensor, "pick cell"]]:
        """Query and key of the largest weights of some inputs."""
        labelled = cells.count_below(1 + sum(map(len, self.labels)))
        of_labels, of_bands = slice(labelled), slice(labelled, None)
        pairs = (
            self._locate_labels(rows[:, of_labels], cells.head[of_labels], cells.kind[of_labels]),
            self._locate_bands(rows[:, of_bands], cells.head[of_bands], cells.kind[of_bands]),
        )
        queries, keys = zip(*pairs, strict=True)
        return torch.cat(queries, dim=-1), torch.cat(keys, dim=-1)

    def _locate_labels(
        self, rows: Int[Tensor, "pick cell"], head: Int[Tensor, "cell"], kind: Int[Tensor, "cell"]
    ) -> tuple[Int[Tensor, "pick cell"], Int[Tensor, "pick cell"]]:
        codes, axis, wanted = self.batch.once("codes of kinds", self._codes)
        by_key = self.peaks.by_key[rows, head]  # pick cell key
        by_key.masked_fill_(codes[rows, axis[kind]] != wanted[kind, None], -1.0)
        key = by_key.argmax(-1)
        return self.peaks.kept[rows, head, :, key].argmax(-1), key

    def _locate_bands(
        self, rows: Int[Tensor, "pick cell"], head: Int[Tensor, "cell"], kind: Int[Tensor, "cell"]
    ) -> tuple[Int[Tensor, "pick cell"], Int[Tensor, "pick cell"]]:
        first = 1 + sum(map(len, self.labels))
        inside = self.batch.once("bands of separation", partial(_bands, self.batch))
        weights = self.peaks.kept[rows, head].mul_(inside[kind - first])  # pick cell query key
        key = weights.amax(-2).argmax(-1, keepdim=True)
        column = weights.take_along_dim(key[..., None], -1)[..., 0]
        return column.argmax(-1), key[..., 0]

    def _of_label(self, axis: Axis) -> Float[Tensor, "batch head label"]:
        places = self.batch.once(f"places of {axis.name}", partial(self._places, axis))
        none = self.peaks.by_key.new_zeros(*self.peaks.by_key.shape[:2], len(axis) + 1)
        places = places[:, None].expand_as(self.peaks.by_key)
        return none.scatter_reduce(-1, places, self.peaks.by_key, "amax")[..., :-1]

    def _places(self, axis: Axis) -> Int[Tensor, "batch key"]:
        """The label of every token; what has none comes after all labels."""
        codes = self.batch.labels[axis.name]
        return torch.where(codes < 0, len(axis), codes)

    def _codes(
        self,
    ) -> tuple[Int[Tensor, "batch axis key"], Int[Tensor, "kind"], Int[Tensor, "kind"]]:
        """The labels of every token on all axes, and the axis and the label of every kind.

        Every key is of the kind ANY, which has an axis of its own with one label.
        """
        codes = [self.batch.labels[axis.name] for axis in self.labels]
        alike = torch.zeros_like(self.batch.mask, dtype=torch.long)
        sizes = [1, *map(len, self.labels)]
        axis = np.repeat(np.arange(len(sizes)), sizes)
        wanted = np.concatenate([np.arange(size) for size in sizes])
        device = self.batch.mask.device
        return (
            torch.stack([alike, *codes], dim=1),
            send(torch.from_numpy(axis), device),
            send(torch.from_numpy(wanted), device),
        )


def _bands(batch: AnnotatedBatch) -> Float[Tensor, "band query key"]:
    """1 where two tokens are as far apart as the band says."""
    size = batch.mask.shape[1]
    apart = separation(0, size, size, batch.mask.device)
    inside = [(apart >= low) & (apart <= (size if high is None else high)) for low, high in BANDS]
    return torch.stack(inside).float()


def _strongest(
    weight: Float[Tensor, "batch cell"], batch: AnnotatedBatch
) -> Int[Tensor, "rank cell"]:
    """Places in the batch of the best inputs, the earlier in the corpus first on a tie."""
    order = corpus_order(batch)
    left, ranked = weight[order], []
    for _ in range(min(STRONGEST, len(left))):  # sorting all inputs takes several times as long
        ranked.append(left.argmax(0, keepdim=True))
        left.scatter_(0, ranked[-1], -1.0)
    return order[torch.cat(ranked)]
