"""One captured forward pass: calls become layers, each validated and shown once."""

from collections.abc import Callable, Mapping
from typing import Any

from headscope.errors import CaptureError
from headscope.model.attention import LayerAttention, Stack
from headscope.model.capture.call import Call, Forward
from headscope.model.capture.plan import Plan, Slot
from headscope.model.capture.validate import (
    Expectation,
    Validation,
    check_shape,
    check_values,
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
    slots = [slot for slot in plan.slots if slot is None or slot.stack in expected]
    progress = _Progress(slots, observer, expected, validate)
    output = plan.backend.run(forward, progress.watch)
    progress.finish()
    return output


class _Progress:
    """Counts the calls of one forward pass, for only their order says which layer they are."""

    def __init__(
        self,
        slots: list[Slot | None],
        observer: Observer,
        expected: Mapping[Stack, Expectation],
        validate: Validation,
    ) -> None:
        self._slots = slots
        self._observer = observer
        self._expected = expected
        self._validate = validate
        self._seen = 0

    def watch(self, call: Call) -> None:
        """Validate one call and show it as the layer it is."""
        if self._seen >= len(self._slots):
            self._miscounted("more than")
        slot = self._slots[self._seen]
        self._seen += 1
        if slot is None:
            return
        expected = self._expected[slot.stack]
        layer = _layer(call, slot)
        check_shape(layer.weights, slot.layer, expected)
        if self._validate == "full":
            check_values(layer.weights, slot.layer, expected)
        self._observer(layer)

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
