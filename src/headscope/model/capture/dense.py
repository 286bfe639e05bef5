"""One captured forward pass: calls become layers, each validated and shown once."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.attention import Call, Forward, LayerAttention, Stack
from headscope.model.capture.plan import Plan, Slot
from headscope.model.capture.validate import (
    Checks,
    Expectation,
    Validation,
)

Observer = Callable[[LayerAttention], None]


def capture(
    forward: Forward,
    plan: Plan,
    observer: Observer,
    expected: Mapping[Stack, Expectation],
    validate: Validation = "full",
) -> Any:
    """Run the forward pass and show its layers to the observer, one at a time, nothing retained."""
    progress, checks = Progress(plan, expected), Checks(validate)

    def watch(call: Call) -> None:
        slot = progress.next()
        if slot is None:
            return
        layer = _layer(_brought(call, expected[slot.stack].device), slot)
        wanted = expected[slot.stack].of_keys(layer.weights.shape[-1])
        checks.see(layer.weights, slot.layer, wanted)
        observer(layer)

    output = plan.backend.run(forward, watch)
    progress.finish()
    checks.finish()
    return output


class Progress:
    """Counts the calls of one forward pass, for only their order says which layer they are."""

    def __init__(self, plan: Plan, expected: Mapping[Stack, Expectation]) -> None:
        self._slots = [slot for slot in plan.slots if slot is None or slot.stack in expected]
        self._expected = expected
        self._seen = 0

    def next(self) -> Slot | None:
        """What the next call is; None for a call that is no layer of its own."""
        if self._seen >= len(self._slots):
            self._miscounted("more than")
        self._seen += 1
        return self._slots[self._seen - 1]

    def finish(self) -> None:
        """Make sure that no layer was left out."""
        if self._seen != len(self._slots):
            self._miscounted(f"{self._seen} instead of")

    def _miscounted(self, found: str) -> None:
        model = next(iter(self._expected.values())).model
        raise CaptureError(
            f"{model} computed attention {found} {len(self._slots)} times, as often as on the "
            "probe; load the model again, without gradient checkpointing or changes to its layers."
        )


def _brought(call: Call, home: torch.device) -> Call:
    """The call with its tensors where the inputs are: layers may be on devices of their own.

    Gradients are asked of the very tensor that the network computed, so that one stays.
    """
    if call.weights.device == home or call.weights.requires_grad:
        return call
    parts = {each.name: getattr(call, each.name) for each in fields(call)}
    extras = {name: _to(part, home) for name, part in call.extras.items()}
    return Call(**{**{name: _to(part, home) for name, part in parts.items()}, "extras": extras})


def _to(part: Any, home: torch.device) -> Any:
    return part.to(home) if isinstance(part, Tensor) else part


def _layer(call: Call, slot: Slot) -> LayerAttention:
    # The very tensor where possible: gradients of the weights are asked of it.
    weights = call.weights
    if slot.streams > 1:
        weights = weights[:, :, : weights.shape[2] // slot.streams]
    if slot.scores:
        weights = weights.softmax(-1)
    return LayerAttention(
        stack=slot.stack,
        layer=slot.layer,
        weights=weights,
        query=call.query,
        key=call.key,
        value=call.value,
        scaling=call.scaling,
        mask=call.mask,
        extras=call.extras,
        module=call.module,
    )
