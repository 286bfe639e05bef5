"""The inputs that were chosen, once more: their largest weights, and the vectors of sampled tokens.

The first pass says which inputs are examples of which heads and which tokens are sampled; only
these few are run again. A piece is a block of inputs; it is computed in batches of its own size, so
that the numbers do not depend on the size that the first pass had.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.engine.edges import Arrays, Edge, EdgesSeen, merged, strongest
from headscope.engine.forward import Allowance
from headscope.files import pack_arrays
from headscope.model.attention import LayerAttention, RowAttention, widen
from headscope.model.capture.modes import block_rows
from headscope.model.model import Model
from headscope.model.writes import Readout, find_readout
from headscope.observe.inputs import Cut
from headscope.observe.show import DENSE_TOKENS
from headscope.studies.study import Inputs, Part, Setup, WithModel
from headscope.workers.threads import use_threads

BLOCK = 32  # inputs of a piece
TOKENS, TOKENS_CUDA = 1024, 16384  # of a batch
PER_ROW, LEAST = 8, 0.005  # weights of a row that are kept, and how large they must be

Block = tuple[int, ...]  # numbers of inputs


@dataclass(frozen=True)
class Chosen:
    """The inputs that are examples, by layer and head, and the sampled tokens."""

    examples: Int[np.ndarray, "layer head example"]  # numbers of inputs, -1 for none
    sample: Int[np.ndarray, "point 2"]  # input and place

    @classmethod
    def of(cls, result: xr.Dataset) -> "Chosen":
        """What the result says was chosen."""
        examples = result["example_input"].transpose("layer", "head", ...).values
        pair = [result[f"sample_{name}"].values for name in ("input", "position")]
        sample = np.stack(pair, -1)
        return cls(examples.reshape(*examples.shape[:2], -1), sample[sample[:, 0] >= 0])

    @property
    def inputs(self) -> list[int]:
        """All inputs that are looked at again, in the order of their numbers."""
        known = np.unique(np.concatenate([self.examples.ravel(), self.sample[:, 0]]))
        return known[known >= 0].tolist()

    def heads_of(self, number: int) -> list[tuple[int, int]]:
        """The places of the heads that have an input as an example."""
        found = np.argwhere((self.examples == number).any(-1)).tolist()
        return [(layer, head) for layer, head in found]

    def places_in(self, number: int) -> list[int]:
        """The sampled tokens of an input."""
        return sorted(self.sample[self.sample[:, 0] == number, 1].tolist())


@dataclass(frozen=True)
class SecondPass(WithModel):
    """Computes what is kept of a block of inputs."""

    setup: Setup
    make_parts: Callable[[Setup], tuple[Part, ...]]
    chosen: Chosen
    threads: int
    fingerprint: str  # of the model that the run is of

    def describe(self, block: Block, /) -> str:
        """The block by its inputs."""
        return f"The second pass over inputs {block[0]} to {block[-1]}"

    def __call__(self, block: Block, /) -> bytes:
        """What is kept of the inputs, as the content of a file."""
        part = find_part(self.make_parts(self.setup))
        assert part is not None and part.again is not None
        made, model = part.again(self.setup, block), self.setup.model
        tokens = TOKENS_CUDA if self.needs_gpu else TOKENS
        with use_threads(self.threads), torch.inference_mode():
            kept = Allowance(model.name, tokens).use(lambda most: self._look(made, most))
        return pack_arrays(kept.arrays() | {"inputs": np.array(json.dumps(describe_inputs(made)))})

    def _look(self, made: Inputs, tokens: int) -> "_Kept":
        columns, model, kept = made.columns, self.setup.model, _Kept()
        for rows in model.buckets(columns.lengths.tolist(), tokens):
            cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
            self._look_at(cut.to(model.device), kept)
        return kept

    def _look_at(self, cut: Cut, kept: "_Kept") -> None:
        model, readout = self.setup.model, self._readout
        looking = _Looking.at(cut, self.chosen, model, kept)
        if isinstance(readout, str):
            _show(model, cut, looking)
        else:
            with readout.watching() as residuals:
                _show(model, cut, looking)
            own = residuals[-1][looking.rows, looking.places]
            kept.vectors["residual"].append(widen(own).cpu().numpy())
            numbers = looking.numbers.tolist()
            kept.edges.append(looking.edges.read(readout, residuals[-1], cut.batch, numbers))
        for name, values in looking.vectors.items():
            kept.vectors[name].append(values.cpu().numpy())

    @cached_property
    def _readout(self) -> Readout | str:
        return find_readout(self.setup.model)


def find_part(parts: Sequence[Part]) -> Part | None:
    """The part whose inputs can be made again, if any."""
    return next((part for part in parts if part.again is not None), None)


def describe_inputs(made: Inputs) -> list[dict[str, Any]]:
    """The tokens of inputs as they are shown, and where they are from."""
    return [
        {
            "input": int(example.number),
            "document": "" if example.sentence is None else example.sentence.document,
            "start": 0 if example.sentence is None else int(example.sentence.id or 0),
            "tokens": list(example.encoded.tokens),
        }
        for example in made.examples
    ]


def _show(model: Model, cut: Cut, looking: "_Looking") -> None:
    """Run a batch: whole matrices, or blocks of rows where those would be large."""
    tokens = cut.batch.ids.shape[1]
    if tokens <= DENSE_TOKENS or "rows" not in model.modes:
        model.forward(cut.batch, looking.see, logits=False)
        return
    block = block_rows(len(cut.batch.ids) * model.heads, tokens, cut.batch.ids.device)
    model.forward_rows(cut.batch, looking.see, block, logits=False)


@dataclass
class _Kept:
    """What was seen so far: sparse weights by layer, head and input, and vectors by layer."""

    places: list[tuple[int, int, int]] = field(default_factory=list)  # layer, head, input
    weights: list[list[np.ndarray]] = field(default_factory=list)  # (query, key, weight) in blocks
    tokens: list[tuple[int, int]] = field(default_factory=list)  # input, place
    vectors: dict[str, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))
    edges: list[Arrays] = field(default_factory=list)  # one of each batch

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays: the weights of all examples one behind the other."""
        whole = [np.concatenate(blocks, axis=1) for blocks in self.weights]
        flat = np.concatenate([np.zeros((3, 0)), *whole], axis=1)
        stops = np.cumsum([each.shape[1] for each in whole]).astype(np.int64)
        return {
            "places": np.array(self.places, dtype=np.int64).reshape(-1, 3),
            "stops": stops,
            "query": flat[0].astype(np.uint16),
            "key": flat[1].astype(np.uint16),
            "weight": flat[2].astype(np.float32),
            "tokens": np.array(self.tokens, dtype=np.int64).reshape(-1, 2),
            **{f"vectors/{name}": np.concatenate(each) for name, each in self.vectors.items()},
            **{f"edges/{name}": each for name, each in merged(self.edges).items()},
        }


@dataclass(frozen=True)
class _Looking:
    """What is wanted of one batch."""

    model: Model
    lengths: Int[Tensor, "batch"]
    numbers: Int[np.ndarray, "batch"]
    wanted: dict[int, list[tuple[int, int]]]  # (row, head) by the place of a layer
    rows: Int[Tensor, "point"]  # of the sampled tokens
    places: Int[Tensor, "point"]
    kept: _Kept
    edges: EdgesSeen
    vectors: dict[str, Tensor] = field(default_factory=dict)  # of the sampled tokens

    @classmethod
    def at(cls, cut: Cut, chosen: Chosen, model: Model, kept: _Kept) -> "_Looking":
        """What is wanted of the inputs of a batch."""
        device, numbers = cut.batch.ids.device, cut.annotated.numbers
        wanted: dict[int, list[tuple[int, int]]] = defaultdict(list)
        points: list[tuple[int, int]] = []
        for row, number in enumerate(numbers.tolist()):
            for layer, head in chosen.heads_of(number):
                wanted[layer].append((row, head))
            points += [(row, place) for place in chosen.places_in(number)]
        kept.tokens += [(int(numbers[row]), place) for row, place in points]
        pairs = torch.tensor(points, dtype=torch.long, device=device).reshape(-1, 2)
        lengths = cut.batch.mask.sum(-1)
        rows, places = pairs[:, 0], pairs[:, 1]
        return cls(model, lengths, numbers, wanted, rows, places, kept, EdgesSeen(model))

    def see(self, seen: LayerAttention | RowAttention) -> None:
        """Keep what is wanted of a layer, or of some of its query rows."""
        stack = self.model.stacks[0]
        if seen.stack != stack.name:
            return
        start = seen.start if isinstance(seen, RowAttention) else 0
        layer = stack.attending.index(seen.layer)
        self.edges.see(seen, self._keep_weights(layer, seen.weights, start))
        if seen.query is not None and seen.key is not None and seen.value is not None:
            self._keep_vectors(layer, seen, start)

    def _keep_vectors(self, layer: int, seen: LayerAttention | RowAttention, start: int) -> None:
        inside = (self.places >= start) & (self.places < start + seen.weights.shape[2])
        found = take_vectors(seen, self.rows[inside], self.places[inside], start)
        for name, values in found.items():
            room = self.vectors.setdefault(
                f"{name}/{layer}", values.new_zeros(len(self.places), *values.shape[1:])
            )
            room[inside] = values

    def _keep_weights(
        self, layer: int, weights: Float[Tensor, "batch head query key"], start: int
    ) -> list[Edge]:
        """Keep the largest weights of the examples, and say which of them are the strongest."""
        edges: list[Edge] = []
        pairs = self.wanted.get(layer, [])
        if start == 0:
            for row, head in pairs:
                self.kept.places.append((layer, head, int(self.numbers[row])))
                self.kept.weights.append([])
        first = len(self.kept.weights) - len(pairs)
        for place, (row, head) in enumerate(pairs):
            length = int(self.lengths[row])
            found = largest_of_rows(weights[row, head, : max(0, length - start), :length])
            found[0] += start
            kept = found.double().cpu().numpy()
            self.kept.weights[first + place].append(kept)
            edges += [Edge(layer, head, row, *each) for each in strongest(kept)]
        return edges


def largest_of_rows(
    weights: Float[Tensor, "query key"], count: int = PER_ROW, least: float = LEAST
) -> Float[Tensor, "3 kept"]:
    """Query, key and weight of the largest weights of every row, the largest first."""
    values, keys = widen(weights).topk(min(count, weights.shape[1]), dim=-1)
    query, rank = (values > least).nonzero(as_tuple=True)
    return torch.stack([query.float(), keys[query, rank].float(), values[query, rank].float()])


def take_vectors(
    seen: LayerAttention | RowAttention,
    rows: Int[Tensor, "point"],
    places: Int[Tensor, "point"],
    start: int,
) -> dict[str, Float[Tensor, "point head dim"]]:
    """Query, key, value and output of the heads at some tokens; heads may share keys and values."""
    assert seen.query is not None and seen.key is not None and seen.value is not None
    weights = widen(seen.weights[rows, :, places - start])  # point head key
    value = widen(seen.value[rows])  # point key_head key dim
    groups = weights.shape[1] // value.shape[1]
    grouped = weights.unflatten(1, (value.shape[1], groups))
    return {
        "query": widen(seen.query[rows, :, places - start]),
        "key": widen(seen.key[rows, :, places]),
        "value": widen(seen.value[rows, :, places]),
        "output": torch.einsum("phgk,phkd->phgd", grouped, value).flatten(1, 2),
    }
