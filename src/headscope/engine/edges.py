"""What the strongest edges of the examples add to the logits, found in the second pass.

```
edge (i, j) of a head:   a[i, j]·v_j W_O  ─►  the last norm at token i  ─►  the unembedding
```

Of every example are kept the edges of the rows with the largest weights, one of each row. The first
token is left out on both sides, as it is for the largest weight that an example is chosen by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.model.attention import LayerAttention, RowAttention, widen
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.tokens import display
from headscope.model.model import Model
from headscope.model.writes import Readout, output_part
from headscope.results.records import DIRECTIONS

EDGES = 3  # of an example
TOKENS = 5  # that are raised most, and lowered most
NO_TOKEN = -1
LOGITS_AT_ONCE = 2**24

Arrays = Mapping[str, np.ndarray]


class Edge(NamedTuple):
    """A weight of one row of a batch; layers are counted, not named."""

    layer: int
    head: int
    row: int
    query: int
    key: int
    weight: float


def strongest(
    kept: Float[np.ndarray, "3 kept"], count: int = EDGES
) -> Iterator[tuple[int, int, float]]:
    """Query, key and weight of the largest weights, one of each query, the first token left out."""
    query, key, weight = kept[:, (kept[0] > 0) & (kept[1] > 0)]
    order = np.argsort(-weight, kind="stable")
    _, first = np.unique(query[order], return_index=True)
    for place in order[np.sort(first)[:count]].tolist():
        yield int(query[place]), int(key[place]), float(weight[place])


@dataclass(frozen=True)
class EdgesSeen:
    """The strongest edges of a batch so far, and what each of them writes."""

    model: Model
    edges: list[Edge] = field(default_factory=list)
    written: list[Float[Tensor, "edge width"]] = field(default_factory=list)

    def see(self, seen: LayerAttention | RowAttention, edges: Sequence[Edge]) -> None:
        """Take what edges of one layer write: a[i, j]·v_j W_O."""
        if not edges or seen.value is None:
            return
        groups = seen.weights.shape[1] // seen.value.shape[1]
        rows, heads, keys = (
            torch.tensor([getattr(edge, name) for edge in edges], device=seen.value.device)
            for name in ("row", "head", "key")
        )
        weights = torch.tensor([edge.weight for edge in edges], device=seen.value.device)
        found = weights[:, None] * widen(seen.value[rows, heads // groups, keys])
        parts = {head: output_part(self.model, seen.layer, head) for head in set(heads.tolist())}
        self.edges.extend(edges)
        self.written.append(
            torch.stack([z @ parts[h] for z, h in zip(found, heads.tolist(), strict=True)])
        )

    def read(
        self,
        readout: Readout,
        residual: Float[Tensor, "batch token width"],
        batch: Batch,
        numbers: Sequence[int],
    ) -> Arrays:
        """What the strongest edges of every example add, as arrays with one row for each."""
        kept = _strongest_of_all(self.edges)
        edges = [self.edges[place] for place in kept]
        places = [[e.layer, e.head, numbers[e.row], e.query, e.key] for e in edges]
        tokens = _predicted(self.model, batch, edges)
        return {
            "places": np.array(places, dtype=np.int64).reshape(-1, 5),
            "weight": np.array([edge.weight for edge in edges], dtype=np.float32),
            "token": tokens,
            **self._logits(readout, residual, edges, kept, tokens),
        }

    def _logits(
        self,
        readout: Readout,
        residual: Float[Tensor, "batch token width"],
        edges: Sequence[Edge],
        kept: Sequence[int],
        tokens: Int[np.ndarray, "edge"],
    ) -> Arrays:
        """The logit of the predicted token, and the tokens that are raised and lowered most."""
        size = len(self.model.tokenizer)  # a vocabulary may be padded
        device, width = residual.device, residual.shape[-1]
        none = torch.zeros(0, width, device=device)
        written = torch.cat([none, *(each.to(device) for each in self.written)])[list(kept)]
        at = [(edge.row, edge.query) for edge in edges]
        rows, queries = torch.tensor(at, dtype=torch.long, device=device).reshape(-1, 2).T
        found = [_empty(min(TOKENS, size))]
        for part in torch.arange(len(edges)).split(max(1, LOGITS_AT_ONCE // size)):
            own = widen(residual[rows[part], queries[part]])
            logits = readout.logits(own, written[part.to(device)])[:, :size]
            found.append(_read(logits, torch.from_numpy(tokens)[part]))
        return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def merged(batches: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """The edges of several batches, one behind the other."""
    names = batches[0] if batches else ()
    return {name: np.concatenate([batch[name] for batch in batches]) for name in names}


def edge_rows(
    blocks: Iterable[Arrays], model: Model, shape: tuple[int, int]
) -> Iterator[list[dict[str, Any]]]:
    """The rows of edges.parquet, one head after another; of an example the strongest first."""
    arrays = merged([block for block in blocks if block])
    heads: dict[tuple[int, int], list[int]] = {}
    places: list[list[int]] = arrays["places"].tolist() if arrays else []
    for place, at in enumerate(places):
        heads.setdefault((at[0], at[1]), []).append(place)
    layers = model.stacks[0].attending
    for layer, head in np.ndindex(shape):
        own = sorted(
            heads.get((layer, head), ()),
            key=lambda place: (places[place][2], -arrays["weight"][place]),
        )
        named = {"layer": layers[layer], "head": head}
        yield [named | _row({n: a[place] for n, a in arrays.items()}, model) for place in own]


def _row(own: Arrays, model: Model) -> dict[str, Any]:
    number, query, key = own["places"][2:].tolist()
    row = {"input": number, "query": query, "key": key, "weight": float(own["weight"])}
    if own["token"] == NO_TOKEN:
        row |= {"token": None, "logit": None}
    else:
        (token,) = display(model.tokenizer, [int(own["token"])])
        row |= {"token": token, "logit": float(own["logit"])}
    for place, direction in enumerate(DIRECTIONS):
        row[direction] = list(display(model.tokenizer, own["ids"][place].tolist()))
        row[f"{direction}_logit"] = own["logits"][place].tolist()
    return row


def _strongest_of_all(edges: Sequence[Edge]) -> list[int]:
    """Places of the strongest edges of every example, which may have been seen in several parts."""
    order = sorted(range(len(edges)), key=lambda place: -edges[place].weight)
    count: dict[tuple[int, int, int], int] = {}
    kept = []
    for place in order:
        example = edges[place][:3]
        count[example] = count.get(example, 0) + 1
        if count[example] <= EDGES:
            kept.append(place)
    return sorted(kept)


def _predicted(model: Model, batch: Batch, edges: Sequence[Edge]) -> Int[np.ndarray, "edge"]:
    """The token that is predicted at each query: the next one, or in its place; at the end none."""
    ids, lengths = batch.ids.cpu(), batch.mask.sum(-1).tolist()
    step = 1 if model.is_causal else 0
    return np.array(
        [
            int(ids[e.row, e.query + step]) if e.query + step < lengths[e.row] else NO_TOKEN
            for e in edges
        ],
        dtype=np.int64,
    )


def _read(logits: Float[Tensor, "edge vocabulary"], tokens: Int[Tensor, "edge"]) -> Arrays:
    count = min(TOKENS, logits.shape[1])
    tops = [logits.topk(count, largest=direction == "raises") for direction in DIRECTIONS]
    own = logits.gather(1, tokens.clamp(min=0).to(logits.device)[:, None])[:, 0]
    return {
        "logit": own.float().cpu().numpy(),
        "ids": torch.stack([top.indices for top in tops], 1).cpu().numpy(),
        "logits": torch.stack([top.values for top in tops], 1).float().cpu().numpy(),
    }


def _empty(count: int) -> Arrays:
    shape = (0, len(DIRECTIONS), count)
    return {
        "logit": np.zeros(0, np.float32),
        "ids": np.zeros(shape, np.int64),
        "logits": np.zeros(shape, np.float32),
    }
