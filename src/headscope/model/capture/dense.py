"""One captured forward pass: calls become layers, each validated and shown once.

Every layer is checked before it is shown: a wrong number is an error, never a result.

```
          keys  a b c ·        · is padding: its rows are not looked at, its columns must be empty
  query a       x . . .
        b       x x . .        x may carry weight; each real row sums to 1,
        c       x x x .        or to less where the family has a learned sink
        ·       ? ? ? ?
```
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.attention import Forward, LayerAttention, Stack

if TYPE_CHECKING:
    from headscope.model.capture.plan import Plan, Slot

Observer = Callable[[LayerAttention], None]
Validation = Literal["full", "shape"]

# How far a row may be from 1 by rounding alone; bfloat16 rows were measured 0.002 off.
TOLERANCE = {
    torch.float64: 1e-6,
    torch.float32: 1e-4,
    torch.float16: 5e-3,
    torch.bfloat16: 2e-2,
}
_REMEDY = (
    "the capture of this family cannot be trusted with this input: run `headscope check` on the "
    "model and see docs/models.md."
)


@dataclass(frozen=True, repr=False)
class Expectation:
    """What the weights of one stack must look like for one batch, or for some of its queries."""

    model: str
    stack: Stack
    heads: int
    queries: Bool[Tensor, "batch query"]
    keys: Bool[Tensor, "batch key"]
    causal: bool
    sink: bool
    padded: bool
    start: int = 0  # the first of these queries

    @property
    def device(self) -> torch.device:
        """Where the inputs are, and whatever is shown of a layer."""
        return self.queries.device

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch × head × query × key."""
        return (self.queries.shape[0], self.heads, self.queries.shape[1], self.keys.shape[1])

    def of_rows(self, start: int, stop: int) -> "Expectation":
        """What the weights of some query rows must look like."""
        return replace(self, queries=self.queries[:, start:stop], start=start)

    @cached_property
    def forbidden(self) -> Float[Tensor, "batch cell 1"] | None:
        """1 where a real query must not look; None if it may look everywhere."""
        if not (self.padded or self.causal):
            return None
        forbidden = ~self.keys[:, None, :].expand(-1, self.queries.shape[1], -1)
        if self.causal:
            every = torch.ones(forbidden.shape[1:], dtype=torch.bool, device=self.device)
            forbidden = forbidden | every.triu(1 + self.start)
        return (forbidden & self.queries[:, :, None]).flatten(1)[:, :, None].float()


def capture(
    forward: Forward,
    plan: "Plan",
    observer: Observer,
    expected: Mapping[Stack, Expectation],
    validate: Validation = "full",
) -> Any:
    """Run the forward pass and show its layers to the observer, one at a time, nothing retained."""
    progress, checks = Progress(plan, expected), Checks(validate)

    def watch(call: LayerAttention) -> None:
        slot = progress.next()
        if slot is None:
            return
        layer = _numbered(_brought(call, expected[slot.stack].device), slot)
        checks.see(layer.weights, slot.layer, expected[slot.stack])
        observer(layer)

    output = plan.backend.run(forward, watch)
    progress.finish()
    checks.finish()
    return output


class Progress:
    """Counts the calls of one forward pass, for only their order says which layer they are."""

    def __init__(self, plan: "Plan", expected: Mapping[Stack, Expectation]) -> None:
        self._slots = [slot for slot in plan.slots if slot is None or slot.stack in expected]
        self._expected = expected
        self._seen = 0

    def next(self) -> "Slot | None":
        """What the next call is; None for a call that is no layer of its own."""
        if self._seen >= len(self._slots):
            self._miscounted("more than")
        self._seen += 1
        return self._slots[self._seen - 1]

    def finish(self) -> None:
        """Make sure that no layer was left out."""
        if self._seen != len(self._slots):
            self._miscounted(f"{self._seen} instead of")

    def _miscounted(self, count: str) -> None:
        model = next(iter(self._expected.values())).model
        raise CaptureError(
            f"{model} computed attention {count} {len(self._slots)} times, as often as on the "
            "probe; load the model again, without gradient checkpointing or changes to its layers."
        )


def _brought(call: LayerAttention, home: torch.device) -> LayerAttention:
    """The call with its tensors where the inputs are: layers may be on devices of their own.

    Gradients are asked of the very tensor that the network computed, so that one stays.
    """
    if call.weights.device == home or call.weights.requires_grad:
        return call
    parts = {part.name: _to(getattr(call, part.name), home) for part in fields(call)}
    parts["extras"] = {name: _to(part, home) for name, part in call.extras.items()}
    return LayerAttention(**parts)


def _to(part: Any, home: torch.device) -> Any:
    return part.to(home) if isinstance(part, Tensor) else part


def _numbered(call: LayerAttention, slot: "Slot") -> LayerAttention:
    # The very tensor where possible: gradients of the weights are asked of it.
    weights = call.weights
    if slot.streams > 1:
        weights = weights[:, :, : weights.shape[2] // slot.streams]
    if slot.scores:
        weights = weights.softmax(-1)
    return replace(call, stack=slot.stack, layer=slot.layer, weights=weights)


class Checks:
    """The checks of one forward pass: at once on a CPU, at its end on a GPU.

    Waiting for every layer would leave a GPU idle; nothing is given out before `finish`.
    """

    def __init__(self, validate: Validation) -> None:
        self._validate: Validation = validate
        self._waiting: list[tuple[Tensor, int, Expectation, torch.dtype]] = []

    def see(self, weights: Tensor, layer: int, expected: Expectation) -> None:
        """Refuse anything but batch × head × query × key; judge its values now, or later."""
        if tuple(weights.shape) != expected.shape:
            raise CaptureError(
                f"{_place(expected, layer)} gave weights of shape {tuple(weights.shape)} where "
                f"batch × head × query × key is {expected.shape}; {_REMEDY}"
            )
        if self._validate == "full":
            measured = measure(weights.detach(), expected)
            self._waiting.append((measured, layer, expected, weights.dtype))
        if not weights.is_cuda:
            self.finish()

    def finish(self) -> None:
        """Judge what is waiting, with one copy from the device."""
        waiting, self._waiting = self._waiting, []
        measured = torch.stack([values for values, *_ in waiting]).tolist() if waiting else []
        for values, (_, layer, expected, dtype) in zip(measured, waiting, strict=True):
            judge(values, layer, expected, TOLERANCE.get(dtype, 1e-4))


def measure(weights: Tensor, expected: Expectation) -> Float[Tensor, "4"]:
    """The smallest weight, the smallest and largest row sum, and the most that is misplaced.

    Three reductions over the weights.
    """
    # Two-byte weights add up in float32, as rounding of the sum itself would exceed the tolerance.
    wide = torch.promote_types(weights.dtype, torch.float32)
    sums = weights.sum(-1, dtype=wide)
    if expected.padded:
        sums = sums.masked_fill(~expected.queries[:, None, :], 1.0)
    misplaced = sums.new_zeros(())
    if expected.forbidden is not None:
        # Not a batched product: with a single column it costs five times as much on a CPU.
        unseen = expected.forbidden[:, None, :, 0].to(weights.dtype)
        misplaced = (weights.flatten(2) * unseen).sum(-1, dtype=wide).max()
    return torch.stack([weights.min().to(wide), *torch.aminmax(sums), misplaced])


def judge(measured: Sequence[float], layer: int, expected: Expectation, tolerance: float) -> None:
    """Refuse weights that are not finite, negative, misplaced, or do not sum to one."""
    lowest, low, high, misplaced = measured
    if not lowest >= 0:  # also true of NaN
        what = "not a number" if lowest != lowest else f"{lowest:.3g}"
        raise CaptureError(
            f"{_place(expected, layer)} has an attention weight of {what}; {_REMEDY}"
        )
    if not high <= 1 + tolerance or (low < 1 - tolerance and not expected.sink):
        worst = high if not high <= 1 + tolerance else low
        raise CaptureError(
            f"{_place(expected, layer)} has an attention row that sums to {worst:.4g} instead of "
            f"1; {_REMEDY}"
        )
    if misplaced > tolerance:
        where = "padding or later tokens" if expected.causal else "padding"
        raise CaptureError(
            f"{_place(expected, layer)} pays attention of {misplaced:.3g} to {where}, so its mask "
            f"was lost; {_REMEDY}"
        )


def _place(expected: Expectation, layer: int) -> str:
    stack = "" if expected.stack == "self" else f" {expected.stack}"
    return f"{expected.model},{stack} layer {layer},"
