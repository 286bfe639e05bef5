"""Random attention over random trees, and the batches made of it."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from headscope.engine.forward import rebuild_rows
from headscope.model.attention import TextAttention
from headscope.observe import AnnotatedBatch, BlockLayer, Layer
from headscope.results.replicates import GROUPS

TAGS = ("ADJ", "NOUN", "VERB")
RELATIONS = ("det", "nsubj", "obj", "root")
HEADS = 3


@dataclass(frozen=True)
class Input:
    """One input as a slow reader sees it: words of tokens; tags, relations, parents of words."""

    word: list[int]  # -1 for a token of no word
    tag: list[int]
    relation: list[int]
    parent: list[int]  # -1 for the root
    null: list[bool]
    weights: np.ndarray  # layer head query key
    is_causal: bool
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.word))


def random_input(rng: np.random.Generator, is_causal: bool, layers: int = 1) -> Input:
    """Up to eight words of one to three pieces; now and then a token of no word."""
    words = int(rng.integers(1, 9))
    word = [w for w in range(words) for _ in range(rng.choice([1, 1, 2, 3]))]
    if rng.random() < 0.3:
        word.insert(int(rng.integers(0, len(word) + 1)), -1)
    word = word if is_causal else [-1, *word, -1]
    null = [i == 0 if is_causal else i in (0, len(word) - 1) for i in range(len(word))]
    order = rng.permutation(words)  # every word but the first hangs on one before it in this order
    parent = [-1] * words
    for place, w in enumerate(order[1:], start=1):
        parent[int(w)] = int(order[rng.integers(0, place)])
    tag, relation = rng.integers(0, len(TAGS), words), rng.integers(0, len(RELATIONS), words)
    weights = random_weights(rng, layers, len(word), is_causal)
    return Input(word, tag.tolist(), relation.tolist(), parent, null, weights, is_causal)


def random_weights(
    rng: np.random.Generator, layers: int, length: int, is_causal: bool
) -> np.ndarray:
    """Rows that sum to one, some of them sharp, some with nearly all weight on the first token."""
    scores = rng.normal(size=(layers, HEADS, length, length)) * rng.choice([0.5, 3.0, 12.0])
    scores[..., 0] += rng.choice([0.0, 6.0], size=scores.shape[:-1])
    if is_causal:
        scores[..., ~np.tri(length, dtype=bool)] = -np.inf
    return torch.from_numpy(scores).float().softmax(-1).numpy()


def make_batch(
    inputs: list[Input], first: int = 0, rows: list[int] | None = None
) -> AnnotatedBatch:
    """The inputs padded to the longest, annotated as the engine does it."""
    size = max(each.length for each in inputs)
    places = np.arange(len(inputs)) + first if rows is None else np.array(rows)
    return AnnotatedBatch(
        numbers=places,
        rows=places - places.min(),
        groups=torch.from_numpy(places % GROUPS),
        mask=torch.tensor([[i < each.length for i in range(size)] for each in inputs]),
        null=torch.tensor([_pad(each.null, size, False) for each in inputs]),
        is_causal=inputs[0].is_causal,
        labels={
            "tag": torch.tensor([_pad(_copy(each, each.tag), size, -1) for each in inputs]),
            "deprel": torch.tensor([_pad(_copy(each, each.relation), size, -1) for each in inputs]),
        },
        arcs=torch.tensor([arc for row, each in enumerate(inputs) for arc in _arcs(row, each)])
        .reshape(-1, 3)
        .long(),
    )


def make_layer(inputs: list[Input], batch: AnnotatedBatch, layer: int = 0) -> BlockLayer:
    """Weights of one layer; padded rows hold rubbish, as they do in real models."""
    size = batch.mask.shape[1]
    weights = np.zeros((len(inputs), HEADS, size, size), np.float32)
    for row, each in enumerate(inputs):
        weights[row, :, each.length :] = 1 / size
        weights[row, :, each.length :, -1] = np.nan
        weights[row, :, : each.length, : each.length] = each.weights[layer]
    return matrix_layer(layer, batch, torch.from_numpy(weights))


def matrix_layer(
    index: int, batch: AnnotatedBatch, weights: Tensor, norms: Tensor | None = None
) -> BlockLayer:
    """A layer whose matrix is at hand."""

    def rows_of(start: int, stop: int) -> Tensor:
        return weights[:, :, start:stop]

    return BlockLayer(index, batch, rows_of, weights.shape[2], norms)


def in_blocks(layer: BlockLayer, block: int = 3) -> BlockLayer:
    """The same layer, seen some query rows at a time."""
    return BlockLayer(layer.index, layer.batch, layer.weights, block)


def from_parts(inputs: list[Input], batch: AnnotatedBatch, layer: int = 0) -> BlockLayer:
    """The same layer from queries and keys: query · key is the logarithm of the weight."""
    texts = [_as_text(each, layer) for each in inputs]
    spans = [slice(0, each.length) for each in inputs]
    return BlockLayer(layer, batch, rebuild_rows(texts, spans, batch.mask.shape[1]), block=4)


def _as_text(each: Input, layer: int) -> TextAttention:
    query = torch.from_numpy(each.weights[layer]).log().clamp(min=-200)  # exp of it is 0
    key = torch.eye(each.length).expand(HEADS, -1, -1)
    kind = "causal" if each.is_causal else "full"
    return TextAttention(query, key, 1.0, torch.zeros(HEADS, each.length), kind)


LAYERS = {
    "matrix": make_layer,
    "blocks": lambda inputs, batch: in_blocks(make_layer(inputs, batch)),
    "parts": from_parts,
}


def make_layer_of(kind: str, inputs: list[Input], batch: AnnotatedBatch) -> Layer:
    """The first layer: its matrix, blocks of its rows, or rebuilt from queries and keys."""
    return LAYERS[kind](inputs, batch)


def plain_batch(mask: Tensor) -> AnnotatedBatch:
    """A batch without null tokens, labels and arcs."""
    places = np.arange(len(mask))
    groups = torch.from_numpy(places % GROUPS)
    return AnnotatedBatch(places, places, groups, mask, torch.zeros_like(mask), is_causal=False)


def _pad(values: list, size: int, filler: object) -> list:
    return [*values, *[filler] * (size - len(values))]


def _copy(each: Input, of_word: list[int]) -> list[int]:
    return [of_word[w] if w >= 0 else -1 for w in each.word]


def _arcs(row: int, each: Input) -> list[tuple[int, int, int]]:
    pieces = [[t for t, w in enumerate(each.word) if w == index] for index in range(len(each.tag))]
    return [
        (row, parent_token, token)
        for dependent, parent in enumerate(each.parent)
        if parent >= 0
        for parent_token in pieces[parent]
        for token in pieces[dependent]
    ]


def sums_of(layer: Layer) -> dict[str, Tensor]:
    return {
        "rows": layer.rows,
        "columns": layer.columns,
        "total": layer.total,
        "self_weight": layer.self_weight,
        "to_null": layer.to_null,
        "to_first": layer.to_first,
        "row_total": layer.row_total,
        "counted": layer.counted,
        "entropy_sum": layer.entropy_sum,
        "on_arcs": layer.on_arcs,
        "distance": layer.distance,
        "largest": layer.largest(with_self=True),
        "largest apart": layer.largest(with_self=False),
        "spans": layer.spans.weight,
        "squares": layer.spans.squares,
        "on_pairs": layer.on_pairs(some_pairs(layer.batch), 0.3),
    }


def some_pairs(batch: AnnotatedBatch) -> Tensor:
    """Every third pair that counts, in the order of the inputs."""
    return batch.pairs.nonzero()[::3]


def with_first_peak(batch: AnnotatedBatch, seed: int) -> AnnotatedBatch:
    """The batch, or the same with its first token left out where largest weights are sought."""
    return replace(batch, first_peak_token=min(seed % 2, batch.mask.shape[1] - 1))
