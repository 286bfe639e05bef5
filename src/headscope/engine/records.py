"""Writes what a run keeps of every head besides numbers, once all shards and the second pass ended.

The files are those of `headscope.results.records`. Vectors of the sampled tokens are held for all
heads at once: tokens × heads × (two or three times the width of a head) numbers, however long the
corpus is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.engine.edges import edge_rows
from headscope.engine.second_pass import BLOCK, Block, Chosen, SecondPass, find_part
from headscope.engine.setup import Setup
from headscope.files import unpack_arrays
from headscope.metrics.records.maps import (
    COMPONENTS,
    REDUCED,
    bring_together,
    find_clusters,
    find_components,
    lay_out,
)
from headscope.model.inputs.tokens import display
from headscope.model.model import Model
from headscope.model.writes import Readout, find_readout, output_part
from headscope.results.records import (
    DIRECTIONS,
    EDGES,
    EXAMPLES,
    INPUTS,
    MAPS,
    ORDERS,
    SIDES,
    SPACES,
    TOP_TOKENS,
    WRITES,
    with_checksums,
    write_records,
)
from headscope.studies.study import Study

WRITTEN_TOKENS = 20
INPUTS_AT_ONCE = 256  # of a group of rows
Row = dict[str, Any]


@dataclass(frozen=True)
class RecordStage:
    """The second pass and the files that follow from it, as a stage of the run."""

    study: Study
    folder: Path
    name: str = "records"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Block]:
        """Blocks of the inputs that are looked at again."""
        numbers = Chosen.of(result).inputs
        return [tuple(numbers[at : at + BLOCK]) for at in range(0, len(numbers), BLOCK)]

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> SecondPass:
        """What is done to a block."""
        chosen, mark = Chosen.of(result), setup.model.fingerprint
        return SecondPass(setup, self.study.parts, chosen, threads, mark)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Block, bytes]
    ) -> xr.Dataset:
        """Write the files; the result gets their checksums, and what is said of the vectors."""
        kept = Recalled([unpack_arrays(content) for content in outcomes.values()])
        vectors = HeadVectors(setup, kept)
        groups = {
            TOP_TOKENS: _top_tokens(result, setup.model),
            EXAMPLES: _examples(result, kept),
            INPUTS: _inputs(kept),
        }
        if vectors.are_known:
            groups[MAPS] = vectors.points()
        if not isinstance(vectors.readout, str):
            groups[WRITES] = vectors.writes()
            groups[EDGES] = edge_rows(kept.edges, setup.model, setup.grid.shape)
        checksums = {name: write_records(self.folder / name, rows) for name, rows in groups.items()}
        return with_checksums(result.assign(vectors.variables()), checksums)


def record_stages(study: Study, setup: Setup, folder: Path) -> tuple[RecordStage, ...]:
    """The stage that writes records, if the study keeps any."""
    part = find_part(study.parts(setup))
    names = {metric.name for metric in part.metrics} if part is not None else set()
    needed = {"top_tokens", "band_examples", "sample"}
    return (RecordStage(study, folder),) if needed <= names else ()


@dataclass(frozen=True)
class Recalled:
    """The outcomes of all blocks."""

    blocks: Sequence[Mapping[str, np.ndarray]]

    @cached_property
    def inputs(self) -> dict[int, Row]:
        """Every input that was looked at again, by number."""
        described = (json.loads(str(block["inputs"])) for block in self.blocks)
        return {each["input"]: each for block in described for each in block}

    @cached_property
    def examples(self) -> dict[tuple[int, int, int], tuple[int, slice]]:
        """Block and place of the weights of every layer, head and input."""
        found = {}
        for number, block in enumerate(self.blocks):
            stops = block["stops"].tolist()
            slices = [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
            for place, part in zip(block["places"].tolist(), slices, strict=True):
                found[tuple(place)] = (number, part)
        return found

    def weights(self, layer: int, head: int, number: int) -> Row:
        """The sparse weights of an example."""
        block, part = self.examples[layer, head, number]
        return {name: self.blocks[block][name][part] for name in ("query", "key", "weight")}

    @property
    def edges(self) -> list[dict[str, np.ndarray]]:
        """What the strongest edges of every block add."""
        own = "edges/"
        return [
            {name.removeprefix(own): block[name] for name in block if name.startswith(own)}
            for block in self.blocks
        ]

    @cached_property
    def tokens(self) -> Int[np.ndarray, "point 2"]:
        """Input and place of every sampled token."""
        return np.concatenate([block["tokens"] for block in self.blocks])

    def vectors(self, name: str) -> Float[Tensor, "point *more"] | None:
        """The vectors of all sampled tokens under a name; None where none were seen."""
        found = [block[key] for block in self.blocks if (key := f"vectors/{name}") in block]
        return torch.from_numpy(np.concatenate(found)) if found else None


@dataclass(frozen=True)
class HeadVectors:
    """The vectors of the sampled tokens, and what is said of them head by head."""

    setup: Setup
    kept: Recalled
    _found: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def are_known(self) -> bool:
        """Whether there are vectors to lay out."""
        return self.kept.vectors("query/0") is not None and len(self.kept.tokens) > 0

    @cached_property
    def readout(self) -> Readout | str:
        """How the model reads what is written, or why that is not known."""
        return find_readout(self.setup.model)

    def variables(self) -> dict[str, xr.DataArray]:
        """component_share(layer, head, space, component) and clusters(layer, head, space)."""
        grid = self.setup.grid
        if not self._found:
            return {}
        axes = {"layer": list(grid.layers), "head": range(grid.heads), "space": list(SPACES)}
        further = axes | {"component": range(1, COMPONENTS + 1)}
        return {
            "component_share": xr.DataArray(self._found["shares"], further, list(further)),
            "clusters": xr.DataArray(self._found["clusters"], axes, list(axes)),
        }

    def points(self) -> Iterator[list[Row]]:
        """The rows of every head; what is said of all of them is noted on the way."""
        shape = (*self.setup.grid.shape, len(SPACES))
        self._found["shares"] = np.zeros((*shape, COMPONENTS), np.float32)
        self._found["clusters"] = np.zeros(shape, np.int64)
        for place in range(len(self.setup.grid.layers)):
            yield from self._points_of(place)

    def _points_of(self, place: int) -> Iterator[list[Row]]:
        layer, seed = self.setup.grid.layers[place], self.setup.seed
        spaces = {name: self._space(name, place) for name in SPACES}
        parts, clusters = {}, {}
        for at, (name, points) in enumerate(spaces.items()):
            parts[name], shares = find_components(points, REDUCED)
            clusters[name] = find_clusters(parts[name], seed)
            self._found["shares"][place, :, at] = shares[:, :COMPONENTS].cpu().numpy()
            self._found["clusters"][place, :, at] = clusters[name].amax(-1).cpu().numpy() + 1
        both = torch.cat(bring_together(spaces["query"], spaces["key"]), dim=1)
        flat = dict(zip(("query", "key"), lay_out(both).cpu().chunk(2, dim=1), strict=True))
        for head in range(self.setup.grid.heads):
            yield [
                {"layer": layer, "head": head, "space": name} | row
                for name in SPACES
                for row in self._rows(
                    parts[name][head].cpu(),
                    flat[name][head] if name in flat else None,
                    clusters[name][head].cpu(),
                )
            ]

    def _rows(self, parts: Tensor, flat: Tensor | None, clusters: Tensor) -> Iterator[Row]:
        for point, (number, position) in enumerate(self.kept.tokens.tolist()):
            x, y = (None, None) if flat is None else flat[point].tolist()
            yield {
                "input": number,
                "position": position,
                "token": self.kept.inputs[number]["tokens"][position],
                "component1": float(parts[point, 0]),
                "component2": float(parts[point, 1]),
                "x": x,
                "y": y,
                "cluster": int(clusters[point]),
            }

    def _space(self, name: str, place: int) -> Float[Tensor, "head point dim"]:
        """The points of all heads of a layer; outputs as they are written, where that is known."""
        if name == "output" and self.setup.model.stacks[0].no_norms is None:
            layer = self.setup.grid.layers[place]
            heads = range(self.setup.grid.heads)
            return torch.stack([self._written(place, layer, head) for head in heads])
        vectors = self._vectors(name, place).transpose(0, 1)
        return vectors.repeat_interleave(self.setup.grid.heads // len(vectors), 0)

    def _vectors(self, name: str, place: int) -> Float[Tensor, "point head dim"]:
        found = self.kept.vectors(f"{name}/{place}")
        assert found is not None
        return found.to(self._device)

    def _written(self, place: int, layer: int, head: int) -> Float[Tensor, "point width"]:
        """What the head writes into the residual stream at every sampled token."""
        part = output_part(self.setup.model, layer, head).to(self._device)
        return self._vectors("output", place)[:, head] @ part

    @property
    def _device(self) -> torch.device:
        """Maps are laid out in float64, which some devices do not have."""
        own = self.setup.model.device
        return own if own.type == "cuda" else torch.device("cpu")

    def writes(self) -> Iterator[list[Row]]:
        """The rows of every head: by its mean output, then along its first component."""
        readout, residual = self.readout, self.kept.vectors("residual")
        assert isinstance(readout, Readout)
        if residual is None or not len(residual):
            return
        own, at = self.setup.model.device, residual.to(self.setup.model.device)
        for place, layer in enumerate(self.setup.grid.layers):
            for head in range(self.setup.grid.heads):
                written = self._written(place, layer, head).to(own)
                along = first_component(written).expand_as(written)
                rows = [
                    *_written_rows(self.setup.model, "mean", readout.mean_logits(at, written)),
                    *_written_rows(self.setup.model, "component", readout.mean_logits(at, along)),
                ]
                yield [{"layer": layer, "head": head} | row for row in rows]


def first_component(points: Float[Tensor, "point dim"]) -> Float[Tensor, "dim"]:
    """The first principal direction, as long as the points spread along it."""
    places, _ = find_components(points[None], 1)
    along = places[0, :, 0]
    centred = points.double() - points.double().mean(0)
    size = along.norm().clamp(min=torch.finfo(torch.float64).tiny)
    return (along @ centred / (size * len(points) ** 0.5)).to(points.dtype)


def _written_rows(model: Model, of: str, logits: Float[Tensor, "vocabulary"]) -> Iterator[Row]:
    known = logits[: len(model.tokenizer)].detach()  # a vocabulary may be padded
    for direction in DIRECTIONS:
        top = known.topk(min(WRITTEN_TOKENS, len(known)), largest=direction == "raises")
        tokens = display(model.tokenizer, top.indices.tolist())
        for rank, (token, logit) in enumerate(zip(tokens, top.values.tolist(), strict=True)):
            yield {"of": of, "direction": direction, "rank": rank, "token": token, "logit": logit}


def _top_tokens(result: xr.Dataset, model: Model) -> Iterator[list[Row]]:
    axes = ("layer", "head", "side", "by", "top")
    names = {"token": "top_token"} | {n: f"top_token_{n}" for n in ("share", "lift", "count")}
    values = {name: result[own].transpose(*axes).values for name, own in names.items()}
    layers = result["layer"].values.tolist()
    for place, head in np.ndindex(values["token"].shape[:2]):
        own = {name: array[place, head] for name, array in values.items()}
        yield [
            {"layer": layers[place], "head": head, "side": side, "by": by} | row
            for at, side in enumerate(SIDES)
            for order, by in enumerate(ORDERS)
            for row in _ranked({name: array[at, order] for name, array in own.items()}, model)
        ]


def _ranked(own: Mapping[str, np.ndarray], model: Model) -> Iterator[Row]:
    ids = own["token"][own["token"] >= 0].tolist()
    for rank, token in enumerate(display(model.tokenizer, ids)):
        numbers = {name: own[name][rank].item() for name in ("share", "lift", "count")}
        yield {"rank": rank, "token": token} | numbers


def _examples(result: xr.Dataset, kept: Recalled) -> Iterator[list[Row]]:
    axes = ("layer", "head", "band", "pick")
    numbers = result["example_input"].transpose(*axes).values
    peaks = result["example_peak"].transpose(*axes).values
    layers = result["layer"].values.tolist()
    for place, head in np.ndindex(numbers.shape[:2]):
        yield [
            {"layer": layers[place], "head": head, "band": band, "rank": rank}
            | {"input": int(number), "peak": float(peaks[place, head, band, rank])}
            | kept.weights(place, head, int(number))
            for (band, rank), number in np.ndenumerate(numbers[place, head])
            if number >= 0
        ]


def _inputs(kept: Recalled) -> Iterator[list[Row]]:
    numbers = sorted(kept.inputs)
    for at in range(0, len(numbers), INPUTS_AT_ONCE):
        yield [kept.inputs[number] for number in numbers[at : at + INPUTS_AT_ONCE]]
