"""What a trace keeps of the layers it is shown, in one pass or in steps that are stitched together.

```
  one pass    x . . .      three tokens, then one:   x . .
              x x . .                                x x .
              x x x .                                x x x
              x x x x                                      + x x x x
```
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headscope.errors import ModelError
from headscope.model.attention import LayerAttention, Stack
from headscope.model.capture.call import Call, bias, sink, softcap
from headscope.model.capture.plan import Plan, StackPlan
from headscope.model.norms import value_norms
from headscope.model.trace import Side, StackTrace

# Masks add the most negative number of their dtype; beyond this a key is masked, not merely
# unlikely.
_MASKED = -1e4

Pieces = dict[int, list[Tensor]]  # by layer, one for each pass


@dataclass
class Kept:
    """What is kept of one stack, by layer number and pass."""

    weights: Pieces = field(default_factory=dict)
    query: Pieces = field(default_factory=dict)
    key: Pieces = field(default_factory=dict)
    value: Pieces = field(default_factory=dict)
    bias: Pieces = field(default_factory=dict)
    value_norms: Pieces = field(default_factory=dict)
    scaling: dict[int, float] = field(default_factory=dict)
    sink: dict[int, Tensor] = field(default_factory=dict)
    softcap: float | None = None


class Recording:
    """Keeps row 0 of a batch; a layer or head that no stack has is refused at once."""

    def __init__(
        self, plan: Plan, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
    ) -> None:
        _check("layer", layers, {n for stack in plan.stacks for n in stack.attending})
        _check("head", heads, {n for stack in plan.stacks for n in range(stack.heads)})
        self._plan = plan
        self._layers = None if layers is None else set(layers)
        self._heads = heads
        self._kept: dict[Stack, Kept] = {}
        self._projection = {(s.stack, s.layer): s.projection for s in plan.slots if s is not None}

    def __call__(self, seen: LayerAttention) -> None:
        """Copy what was chosen of one layer, in one pass."""
        stack = self._plan.stack(seen.stack)
        heads = self._heads_of(stack)
        if (self._layers is not None and seen.layer not in self._layers) or not heads:
            return
        kept = self._kept.setdefault(seen.stack, Kept())
        is_first = seen.layer not in kept.weights
        _add(kept.weights, seen.layer, seen.weights[0, heads])
        if stack.no_neurons is None:
            self._keep_scores(kept, seen, heads)
        # Of a source, every pass sees the same keys and values.
        if stack.no_neurons is None and (is_first or seen.stack != "cross"):
            self._keep_keys(kept, seen, heads)
        if stack.no_norms is None and (is_first or seen.stack != "cross"):
            self._keep_values(kept, seen, heads)

    def stacks(self, queries: dict[Stack, Side], keys: dict[Stack, Side]) -> dict[str, StackTrace]:
        """What was kept, with the tokens on both axes."""
        return {
            name: self._stack(name, kept, queries[name], keys[name])
            for name, kept in self._kept.items()
        }

    def _heads_of(self, stack: StackPlan) -> list[int]:
        chosen = range(stack.heads) if self._heads is None else self._heads
        return [head for head in chosen if head < stack.heads]

    def _key_heads_of(self, stack: StackPlan, heads: Sequence[int]) -> list[int]:
        groups = stack.heads // stack.key_heads
        return sorted({head // groups for head in heads})

    def _keep_scores(self, kept: Kept, seen: LayerAttention, heads: list[int]) -> None:
        assert seen.query is not None and seen.scaling is not None
        _add(kept.query, seen.layer, seen.query[0, heads])
        kept.scaling[seen.layer] = seen.scaling
        call = Call(weights=seen.weights, mask=seen.mask, extras=seen.extras)
        kept.softcap = softcap(call)
        added, dropped = bias(call), sink(call)
        if added is not None:
            own = added[0, ..., : seen.weights.shape[-1]]
            kept.bias.setdefault(seen.layer, []).append(_bias(own, heads))
        if dropped is not None and seen.layer not in kept.sink:
            kept.sink[seen.layer] = _copy(dropped[heads])

    def _keep_keys(self, kept: Kept, seen: LayerAttention, heads: list[int]) -> None:
        assert seen.key is not None
        rows = self._key_heads_of(self._plan.stack(seen.stack), heads)
        _add(kept.key, seen.layer, _new(seen, seen.key[0])[rows])

    def _keep_values(self, kept: Kept, seen: LayerAttention, heads: list[int]) -> None:
        projection = self._projection[seen.stack, seen.layer]
        assert seen.value is not None and projection is not None
        stack = self._plan.stack(seen.stack)
        rows, value = self._key_heads_of(stack, heads), _new(seen, seen.value[0])
        _add(kept.value, seen.layer, value[rows])
        _add(kept.value_norms, seen.layer, value_norms(value, projection, stack.heads)[heads])

    def _stack(self, name: Stack, kept: Kept, queries: Side, keys: Side) -> StackTrace:
        plan = self._plan.stack(name)
        heads = self._heads_of(plan)
        rows = self._key_heads_of(plan, heads)
        groups = plan.heads // plan.key_heads
        across = name == "cross"
        heights = {n: [piece.shape[1] for piece in kept.weights[n]] for n in kept.weights}
        return StackTrace(
            name=name,
            layers=tuple(kept.weights),
            heads=tuple(heads),
            weights=_stitched(kept.weights, heights, 0.0, across=across) or {},
            queries=queries,
            keys=keys,
            query=_joined(kept.query),
            key=_joined(kept.key),
            value=_joined(kept.value),
            key_head_of=tuple(rows.index(head // groups) for head in heads),
            scaling=kept.scaling or None,
            bias=_stitched(kept.bias, heights, -torch.inf, across=across),
            softcap=kept.softcap,
            sink=kept.sink or None,
            value_norms=_joined(kept.value_norms),
            no_norms=plan.no_norms,
        )


def _new(seen: LayerAttention, keys: Tensor) -> Tensor:
    """The keys of this pass's own tokens; those before them were kept in an earlier one."""
    return keys if seen.stack == "cross" else keys[:, -seen.weights.shape[2] :]


def _add(pieces: Pieces, layer: int, piece: Tensor) -> None:
    pieces.setdefault(layer, []).append(_copy(piece))


def _joined(pieces: Pieces) -> dict[int, Tensor] | None:
    """Pieces whose tokens follow one another: head × token × width, or head × token."""
    found = {n: own[0] if len(own) == 1 else torch.cat(own, 1) for n, own in pieces.items()}
    return found or None


def _stitched(
    pieces: Pieces, heights: Mapping[int, Sequence[int]], empty: float, *, across: bool
) -> dict[int, Tensor] | None:
    """Rows below rows. Those of a text's own tokens end at the last of them; a window may have
    left out the first columns.
    """
    found: dict[int, Tensor] = {}
    for layer in list(pieces):
        own = pieces.pop(layer)  # a layer at a time, so that not all are there twice
        found[layer] = own[0] if len(own) == 1 else _below(own, heights[layer], empty, across)
    return found or None


def _below(own: Sequence[Tensor], heights: Sequence[int], empty: float, across: bool) -> Tensor:
    rows = sum(heights)
    columns = own[0].shape[2] if across else rows
    whole = own[0].new_full((max(each.shape[0] for each in own), rows, columns), empty)
    stop = 0
    for piece, height in zip(own, heights, strict=True):
        start, stop = stop, stop + height
        last = columns if across else stop
        whole[:, start:stop, last - piece.shape[2] : last] = piece
    return whole


def _check(what: str, chosen: Sequence[int] | None, known: set[int]) -> None:
    if chosen is None:
        return
    unknown = [number for number in chosen if number not in known]
    if unknown or not chosen:
        asked = unknown[0] if unknown else "(none chosen)"
        raise ModelError(f"The model has no {what} {asked}; it has {what}s {_ranges(known)}.")


def _ranges(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    if len(numbers) == high - low + 1:
        return f"{low} to {high}"
    return ", ".join(str(number) for number in sorted(numbers))


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32, copy=True)


def _bias(added: Tensor, heads: list[int]) -> Tensor:
    own = added[heads] if added.ndim == 3 and added.shape[0] > 1 else added
    copied = _copy(own)
    return copied.masked_fill(copied < _MASKED, -torch.inf)
