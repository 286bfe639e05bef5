"""The modes of computing a layer, and the proof on the probe that a mode is right for a network.

dense   whole matrices, tokens × tokens for every head: everything can be asked of them
rows    the model's own function on some query rows at a time: the same weights, block × tokens
fused   no weights at all, but queries, keys and the sum of every row: what follows from them
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from headscope.errors import CaptureError, HeadscopeError
from headscope.model.attention import Forward, Packing, Stack, widen
from headscope.model.capture.dense import Progress
from headscope.model.capture.interface import bind, run_with
from headscope.model.capture.kernels import attend_batch, attend_texts, is_packable, spans_of
from headscope.model.capture.plan import Plan
from headscope.model.capture.rows import cut, deferring
from headscope.model.capture.validate import Expectation

Mode = Literal["dense", "rows", "fused"]
Found = tuple[Tensor, Tensor]  # output and weights of one call
PROBE_BLOCK = 2  # of the five tokens of the probe
SLACK = 1e-5  # how far two modes may be apart by rounding in float32

# What a network may do when it gets a recipe for a mask, or no weights, where it wants a tensor.
FAILURES = (TypeError, AttributeError, RuntimeError, ValueError, AssertionError, HeadscopeError)


@dataclass(frozen=True)
class Modes:
    """The modes besides dense that were proved, and whether masks can be deferred in them."""

    model: str
    deferred: Mapping[Mode, bool]
    refused: Mapping[Mode, str]  # why not, of the others

    def __contains__(self, mode: Mode) -> bool:
        return mode == "dense" or mode in self.deferred

    @contextmanager
    def masks(self, mode: Mode) -> Iterator[None]:
        """The masks that the network needs in a mode: deferred where it accepts that."""
        if mode in self.refused:
            raise CaptureError(
                f"The attention of {self.model} cannot be computed by {mode}: "
                f"{self.refused[mode]}; look at whole matrices instead."
            )
        with deferring() if self.deferred[mode] else nullcontext():
            yield


def prove_modes(
    model: str, plan: Plan, forward: Forward, expected: Mapping[Stack, Expectation]
) -> Modes:
    """Hold every call of every mode against the model's own function on the same arguments."""
    if plan.backend.name != "interface":
        reason = "this family computes attention outside the attention interface"
        return Modes(model, {}, {"rows": reason, "fused": reason})
    queries = next(iter(expected.values())).queries
    spans, packing = spans_of(queries), Packing.of(queries)
    modes: dict[Mode, Callable[[Callable, dict[str, Any]], Found]] = {
        "rows": _in_rows,
        "fused": lambda _, given: _by_parts(given, spans, packing),
    }
    deferred: dict[Mode, bool] = {}
    for mode, attend in modes.items():
        for choice in (True, False):
            if mode not in deferred and _agrees(plan, forward, expected, attend, choice):
                deferred[mode] = choice
    refused: dict[Mode, str] = {
        mode: _why_not(plan, mode) for mode in modes if mode not in deferred
    }
    return Modes(model, deferred, refused)


def _agrees(
    plan: Plan,
    forward: Forward,
    expected: Mapping[Stack, Expectation],
    mode: Callable[[Callable, dict[str, Any]], Found],
    deferred: bool,
) -> bool:
    """Whether output and weights of every call are the model's own."""
    progress, same = Progress(plan, expected), []

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = bind(resolved, args, kwargs)
        wide = {name: _widen(value) for name, value in given.items()}
        progress.next()
        own = resolved(**cut(wide, 0, wide["query"].shape[2]))[:2]
        same.append(all(map(_close, mode(resolved, wide), own)))
        # Its own output goes on, so that rounding does not add up from layer to layer.
        return own[0].to(given["query"].dtype), None

    try:
        with torch.no_grad(), deferring() if deferred else nullcontext():
            run_with(forward, attend)
        progress.finish()
    except FAILURES:
        return False
    return all(same)


def _widen(value: Any) -> Any:
    """Two-byte numbers would hide mistakes behind their rounding."""
    return widen(value) if isinstance(value, Tensor) and value.is_floating_point() else value


def _close(one: Tensor, other: Tensor) -> bool:
    largest = max(1.0, float(other.abs().max()))
    return one.shape == other.shape and float((one - other).abs().max()) <= SLACK * largest


def _in_rows(resolved: Callable, given: dict[str, Any]) -> Found:
    queries = given["query"].shape[2]
    starts = range(0, queries, PROBE_BLOCK)
    blocks = [resolved(**cut(given, s, min(s + PROBE_BLOCK, queries)))[:2] for s in starts]
    return torch.cat([b[0] for b in blocks], 1), torch.cat([b[1] for b in blocks], 2)


def _by_parts(given: dict[str, Any], spans: Sequence[slice], packing: Packing) -> Found:
    output, texts = attend_texts(given, spans)
    if is_packable(given, packing):
        output, _ = attend_batch(given, packing, "self", 0)
    return output, torch.stack([text.weights(0, text.query.shape[1]) for text in texts])


def _why_not(plan: Plan, mode: Mode) -> str:
    if mode == "fused" and not plan.stacks[0].plain:
        return "its weights are not softmax(scaling·q·k + mask)"
    return "its scores have parts besides queries, keys and mask"
