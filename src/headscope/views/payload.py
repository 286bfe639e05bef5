"""A trace on its way to the browser: one JSON header and one binary block per layer.

The page decodes a layer's block only when it is shown; a layer of a long input is cut into tiles,
of which only those of the shown window are decoded. The same payload feeds the notebook widget, the
self-contained HTML page and the explorer.

Numbers on their way to the browser: quantised, split into byte planes, deflated.

Weights take two bytes: each head's matrix is scaled by its largest weight and rounded to 65,535
steps, so a shown weight is within 7.7e-6 of the true one. Splitting the bytes into planes first
puts the mostly-zero high bytes side by side, which deflate likes.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import ViewError
from headscope.views import window
from headscope.views.kind import ViewKind
from headscope.views.kinds import kind_of
from headscope.views.labels import gaps, label
from headscope.views.roles import roles, worth_a_look
from headscope.views.state import ViewState
from headscope.views.weights import (
    array_of,
    checked_weights,
    head_scores,
    no_rollout,
    rollout,
    times,
)
from headscope.wording import model_title

if TYPE_CHECKING:
    from headscope.model.inputs.tokens import Tokens
    from headscope.model.trace import StackTrace, Trace

STEPS = 65535
_LEVEL = 5  # 6 and above cost twice the time for one per cent
VERSION = 3
Scores = Mapping[str, Any]  # name -> (layer, head) numbers


@dataclass(frozen=True, slots=True)
class Quantised:
    """One layer's weights as bytes, and per head the value of the largest step."""

    data: bytes
    scales: tuple[float, ...]


def quantise(weights: np.ndarray) -> Quantised:
    """(head, query, key) weights in 16 bits each."""
    scales = weights.max(axis=(1, 2), initial=0.0).astype(np.float64)
    return Quantised(_pack_levels(weights, scales), tuple(float(scale) for scale in scales))


def quantise_tile(tile: np.ndarray, scales: np.ndarray) -> bytes:
    """A part of a layer: the scales of its heads as float32, then the levels as bytes planes."""
    return scales.astype("<f4").tobytes() + _pack_levels(tile, scales)


def _pack_levels(weights: np.ndarray, scales: np.ndarray) -> bytes:
    steps = np.divide(STEPS, scales, out=np.zeros_like(scales), where=scales > 0)
    return pack(np.rint(weights * steps[:, None, None]).astype("<u2"))


def pack(array: np.ndarray) -> bytes:
    """Byte planes of a little-endian array, deflated."""
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)
    return zlib.compress(np.ascontiguousarray(flat.T).tobytes(), _LEVEL)


@dataclass(frozen=True, slots=True)
class Payload:
    """What a view needs: `header` is JSON, `blocks` are deflated bytes that the header counts."""

    header: dict[str, Any]
    blocks: Sequence[bytes]

    @property
    def is_long(self) -> bool:
        """Whether the blocks are tiles, too many to be sent all at once."""
        return self.header["tile"] is not None


@dataclass(frozen=True, slots=True)
class Blocks(Sequence[bytes]):
    """Blocks by number; `add` takes the function that makes one and hands out its number."""

    makers: list[Callable[[], bytes]] = field(default_factory=list)

    def add(self, make: Callable[[], bytes]) -> int:
        """The number of a new block."""
        self.makers.append(make)
        return len(self.makers) - 1

    def __len__(self) -> int:
        return len(self.makers)

    def __getitem__(self, index: Any) -> Any:
        return self.makers[index]()

    def __iter__(self) -> Iterator[bytes]:
        return (make() for make in self.makers)


def payload(trace: "Trace", kind: str, state: ViewState, scores: Scores | None = None) -> Payload:
    """Everything the view of this kind can show of `trace`."""
    blocks, declared = Blocks(), kind_of(kind)
    tiled = "tiles" in declared.parts and any(map(window.is_long, trace.stacks.values()))
    stacks = [
        _stack(stack, trace.word_pieces, declared, tiled, blocks, scores or {})
        for stack in trace.stacks.values()
    ]
    header = {
        "version": VERSION,
        "kind": kind,
        "model": model_title(trace.model),
        "causal": trace.is_causal,
        "prompt": trace.prompt_length,
        "bos": trace.bos,
        "tile": window.TILE if tiled else None,
        "stacks": stacks,
        "state": asdict(state),
    }
    return Payload(header, blocks if tiled else tuple(blocks))


def _stack(
    stack: "StackTrace",
    word_pieces: bool,
    kind: ViewKind,
    tiled: bool,
    blocks: Blocks,
    scores: Scores,
) -> dict[str, Any]:
    entries = _tiles(stack, blocks) if tiled else _weights(_checked(stack), blocks)
    sets: dict[str, Any] = {"raw": {"heads": list(stack.heads), "layers": entries}}
    missing: dict[str, str] = {}
    if "norms" in kind.parts:
        _add_norms(stack, sets, missing, blocks)
    if "rollout" in kind.parts:
        _add_rollout(stack, sets, missing, blocks)
    all_layers = kind.shows_all_layers
    same = stack.keys is stack.queries or stack.keys == stack.queries
    return {
        "name": stack.name,
        "layers": list(stack.layers),
        "heads": list(stack.heads),
        "queries": _side(stack.queries, word_pieces),
        "keys": None if same else _side(stack.keys, word_pieces),
        "sets": sets,
        "missing": missing,
        "scores": ordering_scores(stack, scores) if "scores" in kind.parts else {},
        "neurons": _neurons(stack, blocks) if "neurons" in kind.parts else None,
        "roles": [list(map(astuple, row)) for row in roles(stack)] if all_layers else [],
        "worth": [asdict(one) for one in worth_a_look(stack)],
    }


def _side(side: "Tokens", word_pieces: bool) -> dict[str, Any]:
    labels = tuple(map(label, side.labels))
    return {
        "labels": labels,
        "special": [int(is_special) for is_special in side.special],
        "segments": list(side.segments),
        "wordOf": list(side.word_of_token),
        "words": [label(word) for word in side.words],
        "gaps": gaps(side.labels, side.text, side.offsets, word_pieces=word_pieces),
    }


def _checked(stack: "StackTrace") -> dict[int, np.ndarray]:
    return {layer: checked_weights(stack, layer) for layer in stack.layers}


def _weights(layers: Mapping[int, np.ndarray], blocks: Blocks) -> dict[str, Any]:
    entries = {}
    for layer, weights in layers.items():
        block = quantise(weights)
        number = blocks.add(partial(bytes, block.data))
        entries[str(layer)] = {"block": number, "scales": block.scales}
    return entries


def _tiles(stack: "StackTrace", blocks: Blocks) -> dict[str, Any]:
    """A block for every tile of every layer; a tile carries the scales of its layer's heads."""

    @cache
    def scales(layer: int) -> np.ndarray:
        return checked_weights(stack, layer).max(axis=(1, 2), initial=0.0).astype(np.float64)

    def make(layer: int, queries: slice, keys: slice) -> bytes:
        whole = scales(layer)
        return quantise_tile(array_of(stack.weights, layer)[:, queries, keys], whole)

    rows, columns = window.tiles(len(stack.queries)), window.tiles(len(stack.keys))
    return {
        str(layer): {
            "tiles": [[blocks.add(partial(make, layer, row, column)) for column in columns]
                      for row in rows]
        }
        for layer in stack.layers
    }  # fmt: skip


def _add_norms(
    stack: "StackTrace", sets: dict[str, Any], missing: dict[str, str], blocks: Blocks
) -> None:
    """‖a·v·W_O‖ is the raw weight times one factor per head and key: only the factors travel."""
    if stack.value_norms is None:
        missing["norm"] = f"Norm-weighted attention is not available: {stack.no_norms}."
        return
    norms, shape = stack.value_norms, [len(stack.heads), len(stack.keys)]
    factors = {
        str(layer): {"block": blocks.add(partial(_packed, norms, layer)), "shape": shape}
        for layer in stack.layers
    }
    sets["norm"] = {**sets["raw"], "factors": factors}


def _add_rollout(
    stack: "StackTrace", sets: dict[str, Any], missing: dict[str, str], blocks: Blocks
) -> None:
    reason = no_rollout(stack)
    if reason is not None:
        missing["rollout"] = reason
        return
    flows = rollout(list(_checked(stack).values()))
    layers = {layer: flow[None] for layer, flow in zip(stack.layers, flows, strict=True)}
    sets["rollout"] = {"heads": [0], "layers": _weights(layers, blocks)}


def ordering_scores(stack: "StackTrace", extra: Scores) -> dict[str, list[list[float | None]]]:
    """What heads can be ordered by: a row for each layer of the stack, a number for each head."""
    rows = [head_scores(checked_weights(stack, layer)) for layer in stack.layers]
    table = {name: [_rounded(row[name]) for row in rows] for name in rows[0]}
    for name, values in extra.items():
        table[name] = _given_scores(name, values, stack)
    return table


def _given_scores(name: str, values: Any, stack: "StackTrace") -> list[list[float | None]]:
    array = np.asarray(values, dtype=float)
    layers, heads = list(stack.layers), list(stack.heads)
    if array.ndim != 2 or array.shape[0] <= max(layers) or array.shape[1] <= max(heads):
        raise ViewError(
            f"The score {name!r} has shape {times(array.shape)}; give one number for each layer "
            f"and head, at least {max(layers) + 1} × {max(heads) + 1}."
        )
    return [_rounded(row) for row in array[np.ix_(layers, heads)]]


def _rounded(row: np.ndarray) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in row]


def _neurons(stack: "StackTrace", blocks: Blocks) -> dict[str, Any] | None:
    if stack.query is None or stack.key is None or stack.scaling is None:
        return None
    return {
        "keyHeadOf": list(stack.key_head_of),
        "softcap": stack.softcap,
        "layers": {str(layer): _layer_neurons(stack, layer, blocks) for layer in stack.layers},
    }


def _layer_neurons(stack: "StackTrace", layer: int, blocks: Blocks) -> dict[str, Any]:
    assert stack.query is not None and stack.key is not None and stack.scaling is not None
    bias, sink = stack.bias or {}, stack.sink or {}
    return {
        "query": _floats(stack.query, layer, blocks),
        "key": _floats(stack.key, layer, blocks),
        "scaling": stack.scaling[layer],
        "bias": _floats(bias, layer, blocks) if layer in bias else None,
        "sink": array_of(sink, layer).tolist() if layer in sink else None,
    }


def _floats(parts: Mapping[int, Any], layer: int, blocks: Blocks) -> dict[str, Any]:
    shape = list(array_of(parts, layer).shape)
    return {"block": blocks.add(partial(_packed, parts, layer)), "shape": shape}


def _packed(parts: Mapping[int, Any], layer: int) -> bytes:
    return pack(array_of(parts, layer).astype("<f4"))
