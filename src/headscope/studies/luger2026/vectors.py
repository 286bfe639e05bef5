"""What a run of luger2026 keeps of every head besides examples: tokens, maps and writes.

```
top_tokens.parquet   from the numbers alone
maps.parquet         queries, keys, values and outputs of sampled tokens
writes.parquet       what the outputs of sampled tokens add to the logits
```

Vectors of the sampled tokens are held for all heads at once: tokens × heads × (two or three times
the width of a head) numbers, however long the corpus is.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.engine.setup import Setup
from headscope.metrics.metric import Axis
from headscope.model.attention import LayerAttention, widen
from headscope.model.capture.dense import Observer
from headscope.model.inputs.labels import display
from headscope.model.model import Model
from headscope.model.writes import Readout, find_readout, output_part
from headscope.observe.batch import Cut, Example
from headscope.results.records import (
    DIRECTIONS,
    MAPS,
    ORDERS,
    SIDES,
    SPACES,
    TOP_TOKENS,
    WRITES,
    FileRows,
)
from headscope.studies.luger2026.maps import (
    COMPONENTS,
    REDUCED,
    TINY,
    bring_together,
    find_clusters,
    find_components,
    lay_out,
)

WRITTEN_TOKENS = 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Vectors:
    """The vectors of the sampled tokens, kept while the chosen inputs are looked at again."""

    variables: tuple[str, ...] = ("sample_input",)
    files: tuple[str, ...] = (TOP_TOKENS, MAPS, WRITES)

    def collector(self, setup: Setup, result: xr.Dataset) -> "partial[VectorTable]":
        """Makes the empty table of a block."""
        sample = [result[f"sample_{name}"].values for name in ("input", "position")]
        return partial(VectorTable, setup.model, np.stack(sample, axis=-1))

    def finish(
        self, setup: Setup, result: xr.Dataset, blocks: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[xr.Dataset, dict[str, Iterator[FileRows]]]:
        """The result with what is said of the vectors, and the rows of the files."""
        files: dict[str, Iterator[FileRows]] = {TOP_TOKENS: top_token_rows(result, setup.model)}
        seen = Seen([block for block in blocks if "vectors/query/0" in block])
        if not seen.blocks:
            return result, files
        layout = lay_out_all(setup, seen)
        files[MAPS] = layout.rows(setup, seen)
        readout = find_readout(setup.model)
        if isinstance(readout, Readout):
            files[WRITES] = written_rows(setup, seen, readout, layout)
        return result.assign(layout.variables(setup)), files


@dataclass
class VectorTable:
    """Sampled tokens of a block seen so far, and their vectors by space and layer."""

    model: Model
    sample: Int[np.ndarray, "point 2"]  # input and place
    tokens: list[tuple[int, int]] = field(default_factory=list)  # input, place
    vectors: dict[str, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def watching(self, cut: Cut) -> Iterator[Observer | None]:
        """Take the vectors of the sampled tokens of a batch while it runs, if it has any."""
        numbers, device = cut.annotated.numbers.tolist(), self.model.device
        points: list[tuple[int, int]] = []
        for row, number in enumerate(numbers):
            places = self.sample[self.sample[:, 0] == number, 1]
            points += [(row, position) for position in sorted(places.tolist())]
        if not points:
            yield None
            return
        self.tokens += [(numbers[row], position) for row, position in points]
        rows, places = torch.tensor(points, dtype=torch.long, device=device).T
        seen = SeenPoints(self.model, rows, places)
        if isinstance(self._readout, Readout):
            with self._readout.watching() as residuals:
                yield seen.see
            residual = widen(residuals[-1][rows, places])
            self.vectors["residual"].append(residual.cpu().numpy())
        else:
            yield seen.see
        for name, values in seen.vectors.items():
            self.vectors[name].append(values.cpu().numpy())

    @cached_property
    def _readout(self) -> Readout | str:
        return find_readout(self.model)

    def arrays(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """Everything as arrays; nothing where no token of the block was sampled."""
        if not self.tokens:
            return {}
        shown = {example.number: example.tokens.labels for example in examples}
        words = [shown[number][position] for number, position in self.tokens]
        return {
            "tokens": np.array(self.tokens, dtype=np.int64),
            "words": np.array(json.dumps(words)),
            **{f"vectors/{name}": np.concatenate(parts) for name, parts in self.vectors.items()},
        }


@dataclass(frozen=True)
class SeenPoints:
    """Some tokens of a batch, and their vectors in every layer that was shown."""

    model: Model
    rows: Int[Tensor, "point"]
    places: Int[Tensor, "point"]
    vectors: dict[str, Tensor] = field(default_factory=dict)

    def see(self, seen: LayerAttention) -> None:
        """Take what a layer, or some rows of it, shows of the tokens."""
        stack = self.model.stacks[0]
        if seen.stack != stack.name or seen.query is None:
            return
        start = seen.start
        layer = stack.attending.index(seen.layer)
        inside = (self.places >= start) & (self.places < start + seen.weights.shape[2])
        vectors = take_vectors(seen, self.rows[inside], self.places[inside], start)
        for name, values in vectors.items():
            empty = values.new_zeros(len(self.places), *values.shape[1:])
            self.vectors.setdefault(f"{name}/{layer}", empty)[inside] = values


def take_vectors(
    seen: LayerAttention,
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


@dataclass(frozen=True)
class Seen:
    """What was kept of all blocks with sampled tokens."""

    blocks: Sequence[Mapping[str, np.ndarray]]

    def tokens(self) -> list[tuple[int, int, str]]:
        """Input, position and text of every sampled token."""
        return [
            (number, position, word)
            for block in self.blocks
            for (number, position), word in zip(
                block["tokens"].tolist(), json.loads(str(block["words"])), strict=True
            )
        ]

    def vectors(self, name: str, device: torch.device) -> Float[Tensor, "point *more"]:
        """The vectors of all sampled tokens under a name."""
        parts = [block[f"vectors/{name}"] for block in self.blocks]
        return torch.from_numpy(np.concatenate(parts)).to(device)


def _device(setup: Setup) -> torch.device:
    """Maps are laid out in float64, which some devices do not have."""
    device = setup.model.device
    return device if device.type == "cuda" else torch.device("cpu")


def _written(
    setup: Setup, outputs: Float[Tensor, "point head dim"], index: int, head: int
) -> Float[Tensor, "point width"]:
    """What a head of a layer writes into the residual stream at every sampled token."""
    part = output_part(setup.model, setup.grid.layers[index], head)
    return outputs[:, head] @ part.to(outputs.device)


def _points(setup: Setup, seen: Seen, space: str, index: int) -> Float[Tensor, "head point dim"]:
    """The points of all heads of a layer; outputs as they are written, where that is known."""
    vectors, heads = seen.vectors(f"{space}/{index}", _device(setup)), setup.grid.heads
    if space == "output" and setup.model.stacks[0].no_norms is None:
        return torch.stack([_written(setup, vectors, index, head) for head in range(heads)])
    points = vectors.transpose(0, 1)
    return points.repeat_interleave(heads // len(points), 0)  # heads may share keys and values


@dataclass(frozen=True)
class Layout:
    """Where the points of all heads lie, with variance shares and clusters."""

    components: Float[np.ndarray, "layer space head point component"]
    shares: Float[np.ndarray, "layer space head component"]
    plane: Float[np.ndarray, "layer space head point 2"]  # of queries and keys together
    clusters: Int[np.ndarray, "layer space head point"]

    def variables(self, setup: Setup) -> dict[str, xr.DataArray]:
        """component_share(layer, head, space, component) and clusters(layer, head, space)."""
        space, component = Axis("space", SPACES), Axis("component", range(1, COMPONENTS + 1))
        shares, count = np.moveaxis(self.shares, 1, 2), self.clusters.max(-1) + 1
        return {
            "component_share": setup.grid.array(shares.astype(np.float32), space, component),
            "clusters": setup.grid.array(count.transpose(0, 2, 1), space),
        }

    def rows(self, setup: Setup, seen: Seen) -> Iterator[FileRows]:
        """The rows of maps.parquet, one head after another."""
        tokens = seen.tokens()
        for index, layer in enumerate(setup.grid.layers):
            for head in range(setup.grid.heads):
                rows: list[Row] = []
                for space, name in enumerate(SPACES):
                    at = (index, space, head)
                    is_on_plane = space < self.plane.shape[1]
                    plane = self.plane[at].tolist() if is_on_plane else [(None, None)] * len(tokens)
                    for point, (number, position, word) in enumerate(tokens):
                        first, second = self.components[at][point].tolist()
                        about = {"layer": layer, "head": head, "space": name, "token": word}
                        about |= {"input": number, "position": position}
                        about |= {"component1": first, "component2": second}
                        about |= {"x": plane[point][0], "y": plane[point][1]}
                        rows.append(about | {"cluster": int(self.clusters[at][point])})
                yield rows


def lay_out_all(setup: Setup, seen: Seen) -> Layout:
    """Components, maps and clusters of every head."""
    components, shares, planes, clusters = [], [], [], []
    for index in range(len(setup.grid.layers)):
        points = {name: _points(setup, seen, name, index) for name in SPACES}
        reduced = {name: find_components(of_space, REDUCED) for name, of_space in points.items()}
        places = torch.stack([places for places, _ in reduced.values()])
        components.append(places[..., :COMPONENTS].cpu().numpy())
        shares.append(torch.stack([share[:, :COMPONENTS] for _, share in reduced.values()]).cpu())
        clusters.append(torch.stack([find_clusters(of_space) for of_space in places]))
        together = torch.cat(bring_together(points["query"], points["key"]), dim=1)
        planes.append(torch.stack(lay_out(together).chunk(2, dim=1)).cpu().numpy())
    return Layout(np.stack(components), np.stack(shares), np.stack(planes), np.stack(clusters))


def written_rows(setup: Setup, seen: Seen, readout: Readout, layout: Layout) -> Iterator[FileRows]:
    """The rows of every head: by its mean output, then along its first component."""
    model = setup.model
    places = torch.from_numpy(layout.components[:, SPACES.index("output"), ..., 0])
    residual = seen.vectors("residual", model.device)
    for index, layer in enumerate(setup.grid.layers):
        outputs = seen.vectors(f"output/{index}", model.device)
        for head in range(setup.grid.heads):
            written = _written(setup, outputs, index, head)
            along = first_component(written, places[index, head].to(written.device))
            along = along.expand_as(written)
            rows = [
                *_written_tokens(model, "mean", readout.mean_logits(residual, written)),
                *_written_tokens(model, "component", readout.mean_logits(residual, along)),
            ]
            yield [{"layer": layer, "head": head} | row for row in rows]


def first_component(
    points: Float[Tensor, "point dim"], along: Float[Tensor, "point"]
) -> Float[Tensor, "dim"]:
    """The first principal direction, as long as the points, at these places, spread along it."""
    centred = points.double() - points.double().mean(0)
    size = along.norm().clamp(min=TINY)
    return (along @ centred / (size * len(points) ** 0.5)).to(points.dtype)


def _written_tokens(model: Model, of: str, logits: Float[Tensor, "vocabulary"]) -> Iterator[Row]:
    logits = logits[: len(model.tokenizer)].detach()  # a vocabulary may be padded
    for direction in DIRECTIONS:
        top = logits.topk(min(WRITTEN_TOKENS, len(logits)), largest=direction == "raises")
        tokens = display(model.tokenizer, top.indices.tolist())
        for rank, (token, logit) in enumerate(zip(tokens, top.values.tolist(), strict=True)):
            yield {"of": of, "direction": direction, "rank": rank, "token": token, "logit": logit}


def top_token_rows(result: xr.Dataset, model: Model) -> Iterator[FileRows]:
    """The rows of top_tokens.parquet, one head after another."""
    axes = ("layer", "head", "side", "by", "top")
    ids, share, lift, count = (
        result[f"top_token{end}"].transpose(*axes).values
        for end in ("", "_share", "_lift", "_count")
    )
    layers = result["layer"].values.tolist()
    for layer, head in np.ndindex(ids.shape[:2]):
        rows: list[Row] = []
        for side_index, side in enumerate(SIDES):
            for order, by in enumerate(ORDERS):
                at = (layer, head, side_index, order)
                tokens = display(model.tokenizer, ids[at][ids[at] >= 0].tolist())
                for rank, token in enumerate(tokens):
                    about = {"layer": layers[layer], "head": head, "side": side, "by": by}
                    about |= {"rank": rank, "token": token, "share": float(share[at][rank])}
                    about |= {"lift": float(lift[at][rank]), "count": int(count[at][rank])}
                    rows.append(about)
        yield rows
