"""The ways of looking at a layer, and the proof on the probe that a way is right for a network.

dense   whole matrices, tokens × tokens for every head: everything can be asked of them
rows    the model's own function on some query rows at a time: the same weights, block × tokens
fused   no weights at all, but queries, keys and the sum of every row: what follows from them
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from headscope.errors import HeadscopeError
from headscope.model.attention import LayerAttention, PlainAttention, RowAttention, Stack
from headscope.model.capture.call import Forward
from headscope.model.capture.capture import capture
from headscope.model.capture.fused import capture_fused
from headscope.model.capture.masks import deferring
from headscope.model.capture.plan import Plan
from headscope.model.capture.rows import capture_rows
from headscope.model.capture.validate import TOLERANCE, Expectation

Way = Literal["dense", "rows", "fused"]
PROBE_BLOCK = 2  # of the five tokens of the probe

# What a network may do when it gets a recipe for a mask, or no weights, where it wants a tensor.
FAILURES = (TypeError, AttributeError, RuntimeError, ValueError, AssertionError, HeadscopeError)


@dataclass(frozen=True)
class Ways:
    """The ways besides dense that were proved, and whether masks can be deferred in them."""

    deferred: Mapping[Way, bool]
    refused: Mapping[Way, str]  # why not, of the others

    def __contains__(self, way: Way) -> bool:
        return way == "dense" or way in self.deferred

    @contextmanager
    def masks(self, way: Way) -> Iterator[None]:
        """The masks that the network needs in a way: deferred where it can bear it."""
        with deferring() if self.deferred.get(way, False) else nullcontext():
            yield


@dataclass(frozen=True)
class _Seen:
    """What a forward pass of the probe gave: the output and the weights of every layer."""

    output: Tensor
    weights: list[Tensor]


def prove_ways(plan: Plan, forward: Forward, expected: Mapping[Stack, Expectation]) -> Ways:
    """Compare every way with the dense one: the same weights, the same output."""
    if plan.backend.name != "interface":
        reason = "this family computes attention outside the attention interface"
        return Ways({}, {"rows": reason, "fused": reason})
    with torch.no_grad():
        dense = _dense(plan, forward, expected)
        ways: dict[Way, Callable[[], _Seen]] = {
            "rows": lambda: _rows(plan, forward, expected),
            "fused": lambda: _fused(plan, forward, expected),
        }
        proved: dict[Way, bool | None] = {way: _prove(run, dense) for way, run in ways.items()}
    deferred: dict[Way, bool] = {way: found for way, found in proved.items() if found is not None}
    refused: dict[Way, str] = {way: _why_not(plan, way) for way in proved if way not in deferred}
    return Ways(deferred, refused)


def _prove(run: Callable[[], _Seen], dense: _Seen) -> bool | None:
    """Whether masks can be deferred; None if the way is not right even with whole masks."""
    for deferred in (True, False):
        try:
            with deferring() if deferred else nullcontext():
                seen = run()
        except FAILURES:
            continue
        if _agree(seen, dense):
            return deferred
    return None


def _agree(seen: _Seen, dense: _Seen) -> bool:
    pairs = [(seen.output, dense.output), *zip(seen.weights, dense.weights, strict=False)]
    return len(seen.weights) == len(dense.weights) and all(
        one.shape == other.shape
        and torch.allclose(one.float(), other.float(), rtol=_slack(other), atol=_slack(other))
        for one, other in pairs
    )


def _slack(values: Tensor) -> float:
    return 1e-5 if values.dtype == torch.float32 else TOLERANCE[values.dtype]


def _why_not(plan: Plan, way: Way) -> str:
    if way == "fused" and not plan.stacks[0].plain:
        return "its weights are not softmax(scaling·q·k + mask)"
    return "its scores have parts besides queries, keys and mask"


def _dense(plan: Plan, forward: Forward, stacks: Mapping[Stack, Expectation]) -> _Seen:
    weights: list[Tensor] = []

    def keep(layer: LayerAttention) -> None:
        weights.append(layer.weights)

    return _Seen(_first(capture(forward, plan, keep, stacks, "shape")), weights)


def _rows(plan: Plan, forward: Forward, stacks: Mapping[Stack, Expectation]) -> _Seen:
    blocks: list[list[Tensor]] = []

    def keep(block: RowAttention) -> None:
        if block.start == 0:
            blocks.append([])
        blocks[-1].append(block.weights)

    output = capture_rows(forward, plan, keep, stacks, PROBE_BLOCK)
    return _Seen(_first(output), [torch.cat(layer, 2) for layer in blocks])


def _fused(plan: Plan, forward: Forward, stacks: Mapping[Stack, Expectation]) -> _Seen:
    weights: list[Tensor] = []

    def keep(layer: PlainAttention) -> None:
        text = layer.texts[0]
        weights.append(text.weights(0, text.query.shape[1])[None])

    return _Seen(_first(capture_fused(forward, plan, keep, stacks)), weights)


def _first(output: Any) -> Tensor:
    """The hidden states of the last layer."""
    return output[0]
