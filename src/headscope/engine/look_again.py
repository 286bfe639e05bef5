"""The inputs that were chosen as examples once more: the largest weights of their rows.

The first pass says which inputs are examples of which heads; only these few are run again. A piece
is a block of inputs; it is computed in batches of its own size, so that the numbers do not depend
on the size that the first pass had.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.engine.forward import Allowance, choose_path, show_layers
from headscope.engine.question import Inputs
from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.files import pack_arrays, unpack_arrays
from headscope.metrics.examples import EXAMPLE_PEAK
from headscope.model.attention import send
from headscope.model.capture.dense import Observer
from headscope.model.loading.network import evaluating
from headscope.observe.batch import NO_LABEL, Cut, Example
from headscope.observe.layer import Layer
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    FileRows,
    check_files,
    with_checksums,
    write_records,
)

BLOCK = 32  # inputs of a piece
TOKENS, TOKENS_CUDA = 1024, 16384  # of a batch
PER_ROW, LEAST = 8, 0.005  # weights of a row that are kept, and how large they must be
INPUTS_AT_ONCE = 256  # of a group of rows
LONGEST = 2**16  # tokens of an input whose places fit into the files
LABELS = {"tags": "tag", "relations": "deprel"}  # columns of the file, labels of tokens
# What is kept of an example: its surest pair, how many weights, and their queries and keys.
KINDS = {
    "pairs": np.uint16,
    "counts": np.int64,
    "query": np.uint16,
    "key": np.uint16,
    "weight": np.float32,
}

Block = tuple[int, ...]  # numbers of inputs
InputsAgain = Callable[[Setup, Sequence[int]], Inputs]


def why_no_examples(setup: Setup) -> str | None:
    """Why nothing can be kept of single inputs, or None."""
    if setup.context is not None and setup.context > LONGEST:
        return f"places in an input of more than {LONGEST:,} tokens do not fit into the files"
    return None


def blocks_of(result: xr.Dataset, variables: Sequence[str]) -> list[Block]:
    """Blocks of the inputs that some variables of a result name, in the order of their numbers."""
    parts = [result[name].values.ravel() for name in variables if name in result]
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
    numbers = numbers[numbers >= 0].tolist()
    return [tuple(numbers[at : at + BLOCK]) for at in range(0, len(numbers), BLOCK)]


class Collection(Protocol):
    """What is kept of the inputs of one block besides their weights."""

    def watching(self, cut: Cut) -> AbstractContextManager[Observer | None]:
        """While a batch runs; an observer where its queries, keys or values are wanted."""
        ...

    def arrays(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """What was kept, once all batches have run."""
        ...


class Beside(Protocol):
    """What a study keeps besides examples of the inputs that are looked at again."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of the result that name further inputs to look at."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """The files that may be written."""
        ...

    def collector(self, setup: Setup, result: xr.Dataset) -> Callable[[], Collection]:
        """Makes the empty collection of a block; sent to workers."""
        ...

    def finish(
        self, setup: Setup, result: xr.Dataset, blocks: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[xr.Dataset, dict[str, Iterator[FileRows]]]:
        """The result with what follows from the collections, and the rows of the files."""
        ...


def from_the_beginning(example: Example) -> int:
    """The place of an input in its document, where that is not known."""
    return 0


@dataclass(frozen=True)
class LookAgain(Stage[Block]):
    """Writes the examples of every head and the tokens of their inputs, as a stage of the run."""

    inputs: InputsAgain  # of some numbers, made once more in their order
    with_self: Callable[[Setup], bool]  # whether a token's weight on itself may be the largest
    start: Callable[[Example], int] = from_the_beginning  # first token of an input in its document
    beside: Beside | None = None
    name: str = "second_look"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Block]:
        """Blocks of the inputs that are looked at again."""
        if "example_input" not in result:
            return ()
        more = () if self.beside is None else self.beside.variables
        return blocks_of(result, ("example_input", *more))

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> "Look":
        """The work to be done on every block."""
        example_inputs = result["example_input"].transpose("layer", "head", ...).values
        return Look(
            setup,
            threads,
            self.inputs,
            self.start,
            example_inputs.reshape(*example_inputs.shape[:2], -1),
            self.with_self(setup),
            None if self.beside is None else self.beside.collector(setup, result),
        )

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Block, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with the checksums of the files, if there are any."""
        if "example_input" not in result:
            return result
        seen = Seen([unpack_arrays(content) for content in outcomes.values()])
        files = {EXAMPLES: example_rows(result, seen), INPUTS: input_rows(seen)}
        if self.beside is not None:
            result, more = self.beside.finish(setup, result, seen.blocks)
            files |= more
        checksums = {name: write_records(folder / name, groups) for name, groups in files.items()}
        return with_checksums(result, checksums)

    def check_files(self, result: xr.Dataset, folder: Path) -> None:
        """Refuse files that are missing or damaged."""
        more = () if self.beside is None else self.beside.files
        check_files(result, folder, (EXAMPLES, INPUTS, *more))


@dataclass(frozen=True)
class Look(ModelWork[Block]):
    """Computes the weights and tokens to store of a block of inputs."""

    inputs: InputsAgain
    start: Callable[[Example], int]
    example_inputs: Int[np.ndarray, "layer head example"]  # numbers of inputs, -1 for none
    with_self: bool
    collect: Callable[[], Collection] | None

    def describe(self, block: Block, /) -> str:
        """Name the block by its first and last input."""
        return f"The second look at inputs {block[0]} to {block[-1]}"

    def compute(self, block: Block, /) -> bytes:
        """The weights and tokens to store, as the content of a file."""
        inputs, model = self.inputs(self.setup, block), self.setup.model
        tokens = TOKENS_CUDA if self.needs_gpu else TOKENS
        arrays = Allowance(model.name, tokens).use(lambda most: self._look(inputs, most))
        described = [
            describe(self.setup, example, self.start(example)) for example in inputs.examples
        ]
        return pack_arrays({**arrays, "inputs": np.array(json.dumps(described))})

    def _look(self, inputs: Inputs, tokens: int) -> dict[str, np.ndarray]:
        columns, model, table = inputs.columns, self.setup.model, ExampleTable()
        heads = self._heads_of(columns.numbers)
        collection = None if self.collect is None else self.collect()
        with torch.inference_mode(), evaluating(model.network):
            for rows in model.buckets(columns.lengths.tolist(), tokens):
                cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
                with nullcontext() if collection is None else collection.watching(cut) as see:
                    self._look_at(cut.to(model.device), heads, table, see)
        more = {} if collection is None else collection.arrays(inputs.examples)
        return table.arrays() | more

    def _heads_of(self, numbers: Int[np.ndarray, "input"]) -> dict[int, dict[int, list[int]]]:
        """The heads that have each of these inputs as an example, by layer, by input."""
        heads: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for layer, head, rank in np.argwhere(np.isin(self.example_inputs, numbers)).tolist():
            of_layer = heads[int(self.example_inputs[layer, head, rank])][layer]
            if head not in of_layer:  # one input may be in two bands
                of_layer.append(head)
        return heads

    def _look_at(
        self,
        cut: Cut,
        heads: dict[int, dict[int, list[int]]],
        table: "ExampleTable",
        see: Observer | None,
    ) -> None:
        model, batch = self.setup.model, cut.annotated

        def show(layer: Layer) -> None:
            pairs = [
                (row, head)
                for row, number in enumerate(batch.numbers.tolist())
                for head in heads[number][layer.index]
            ]
            if pairs:
                numbers = [int(batch.numbers[row]) for row, _ in pairs]
                places = [
                    (layer.index, head, number)
                    for (_, head), number in zip(pairs, numbers, strict=True)
                ]
                table.add(places, *look_at(layer, pairs, with_self=self.with_self))

        reading = self.setup.reading
        path = choose_path(model, cut.batch.ids.shape[1], self.setup.attention, reading=reading)
        if path == "fused" and see is not None:
            path = "rows" if "rows" in model.modes else "dense"
        show_layers(model, cut.batch, batch, path, show, reading, see)


@dataclass
class ExampleTable:
    """Weights seen so far of single heads on single inputs, in buffers that grow."""

    places: list[tuple[int, int, int]] = field(default_factory=list)  # layer, head, input
    columns: dict[str, bytearray] = field(default_factory=lambda: defaultdict(bytearray))

    def add(
        self,
        places: list[tuple[int, int, int]],
        pairs: Int[Tensor, "example 2"],
        sparse: Float[Tensor, "4 entry"],
    ) -> None:
        """Add the largest pairs and the weights of one layer; `sparse` is in order of examples."""
        example, query, key, weight = sparse.cpu().numpy()
        counts = np.bincount(example.astype(int), minlength=len(places))
        of_layer = (pairs.cpu().numpy(), counts, query, key, weight)
        self.places += places
        for (name, kind), values in zip(KINDS.items(), of_layer, strict=True):
            self.columns[name] += values.astype(kind).tobytes()

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays: the weights of all examples one behind the other."""
        if not self.places:
            return {"places": np.zeros((0, 3), np.int64)}
        arrays = {name: np.frombuffer(self.columns[name], kind) for name, kind in KINDS.items()}
        arrays |= {"pairs": arrays["pairs"].reshape(-1, 2), "stops": arrays.pop("counts").cumsum()}
        return {"places": np.array(self.places), **arrays}


def look_at(
    layer: Layer, pairs: Sequence[tuple[int, int]], *, with_self: bool
) -> tuple[Int[Tensor, "example 2"], Float[Tensor, "4 entry"]]:
    """Of some inputs and heads of a layer the pair of the largest kept weight, and sparse weights.

    Of equal weights the first pair counts. Sparse weights are as they are, the null filter not
    applied; they come as (example, query, key, weight), row by row, the largest of a row first.
    """
    batch = layer.batch
    rows, heads = (
        send(torch.tensor(values), batch.mask.device) for values in zip(*pairs, strict=True)
    )
    tokens, first = batch.mask.shape[1], batch.first_peak_token
    largest = torch.zeros(len(pairs), device=rows.device)
    places = torch.zeros(len(pairs), 2, dtype=torch.int64, device=rows.device)
    sparse: list[Tensor] = []
    for start in range(0, tokens, layer.block):
        stop = min(start + layer.block, tokens)
        keys = stop if batch.is_causal else tokens  # no query of the block sees a later one
        weights = layer.weights(start, stop)[..., :keys][rows, heads]
        is_pair = batch.mask[rows, start:stop, None] & batch.mask[rows, None, :keys]
        weights.masked_fill_(~is_pair, 0.0)  # rows of padding may hold anything
        sparse.append(largest_of_rows(weights, start))
        weights.masked_fill_(~batch.pairs_of(start, stop)[rows, :, :keys], 0.0)
        weights[..., :first] = 0.0
        weights[:, : max(0, first - start)] = 0.0
        if not with_self:
            weights.diagonal(offset=start, dim1=1, dim2=2).zero_()
        weight, flat_index = weights.flatten(1).max(-1)
        is_larger = weight > largest
        largest = torch.where(is_larger, weight, largest)
        pair = torch.stack([flat_index // keys + start, flat_index % keys], dim=-1)
        places = torch.where(is_larger[:, None], pair, places)
    entries = torch.cat(sparse, dim=1)
    return places, entries[:, entries[0].argsort(stable=True)]


def largest_of_rows(
    weights: Float[Tensor, "example query key"],
    start: int = 0,
    count: int = PER_ROW,
    least: float = LEAST,
) -> Float[Tensor, "4 entry"]:
    """Example, query, key and weight of the largest weights of every row, the largest first."""
    values, keys = weights.topk(min(count, weights.shape[-1]), dim=-1)
    example, query, rank = (values > least).nonzero(as_tuple=True)
    key, weight = keys[example, query, rank], values[example, query, rank]
    return torch.stack([example.double(), query.double() + start, key.double(), weight.double()])


def describe(setup: Setup, example: Example, start: int) -> dict[str, Any]:
    """The tokens of an input as they are shown, their labels, and where they are from."""
    sentence, tokens = example.sentence, example.tokens
    pairs = zip(tokens.offsets, tokens.special, strict=True)
    spans = [span for span, is_special in pairs if not is_special]
    text = tokens.text[spans[0][0] : spans[-1][1]] if spans else ""
    labels = {
        column: [
            "" if code == NO_LABEL else setup.labels[name][code] for code in example.labels[name]
        ]
        for column, name in LABELS.items()
        if name in example.labels and name in setup.labels
    }
    return {
        "input": int(example.number),
        "document": "" if sentence is None else sentence.document,
        "id": "" if sentence is None else sentence.id,
        "start": start,
        "text": text,
        "tokens": list(tokens.labels),
        "null": [position for position, is_null in enumerate(example.null) if is_null],
        **{column: labels.get(column, []) for column in LABELS},
    }


@dataclass(frozen=True)
class Seen:
    """The outcomes of all blocks."""

    blocks: Sequence[Mapping[str, np.ndarray]]

    def inputs(self) -> dict[int, dict[str, Any]]:
        """Every input that was looked at again, by number."""
        described = [
            description for block in self.blocks for description in json.loads(str(block["inputs"]))
        ]
        return {description["input"]: description for description in described}

    def places(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """The block, and the index there, of every layer, head and input."""
        return {
            (layer, head, number): (block, index)
            for block, arrays in enumerate(self.blocks)
            for index, (layer, head, number) in enumerate(arrays["places"].tolist())
        }

    def example(self, block: int, index: int) -> dict[str, Any]:
        """The surest pair and the sparse weights of an example."""
        arrays = self.blocks[block]
        start = int(arrays["stops"][index - 1]) if index else 0
        part = slice(start, int(arrays["stops"][index]))
        query, key = arrays["pairs"][index].tolist()
        sparse = {name: arrays[name][part] for name in ("query", "key", "weight")}
        return {"attending": query, "attended": key, **sparse}


def example_rows(result: xr.Dataset, seen: Seen) -> Iterator[FileRows]:
    """The rows of examples.parquet, one head after another."""
    numbers = result["example_input"].transpose("layer", "head", "band", "pick")
    peaks = result[EXAMPLE_PEAK.name].transpose(*numbers.dims).values
    layers, bands = (numbers[name].values.tolist() for name in ("layer", "band"))
    places = seen.places()
    for layer, head in np.ndindex(numbers.shape[:2]):
        rows: list[dict[str, Any]] = []
        for (band, rank), number in np.ndenumerate(numbers.values[layer, head]):
            if number < 0:
                continue
            about = {"layer": layers[layer], "head": head, "band": bands[band], "rank": rank}
            about |= {"input": int(number), "peak": float(peaks[layer, head, band, rank])}
            rows.append(about | seen.example(*places[layer, head, int(number)]))
        yield rows


def input_rows(seen: Seen) -> Iterator[FileRows]:
    """The rows of inputs.parquet, some inputs at a time."""
    inputs = seen.inputs()
    numbers = sorted(inputs)
    for at in range(0, len(numbers), INPUTS_AT_ONCE):
        yield [inputs[number] for number in numbers[at : at + INPUTS_AT_ONCE]]
