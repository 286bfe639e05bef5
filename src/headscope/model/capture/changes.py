"""Forward passes in which heads are changed on their way to the output projection.

Interventions happen where every family on the attention interface hands over the same thing, what
each head found for each query:  batch × query × head × width.

Several changes are made in one pass over copies of a batch, each copy changed in its own way.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.head import Head
from headscope.model.attention import Forward, Stack
from headscope.model.capture.backends import attention_call, bind, run_with
from headscope.model.capture.dense import Expectation, Observer, Progress
from headscope.model.capture.plan import Plan
from headscope.model.inputs.batch import Batch

Replacement = Literal["zero", "mean"]  # what takes the place of a head's output
# Given the number of a layer and the output of its heads: what goes on instead.
Change = Callable[
    [int, Float[Tensor, "batch query head width"]], Float[Tensor, "batch query head width"]
]


def why_no_change(plan: Plan) -> str | None:
    """Why the heads of a network cannot be changed, or None."""
    if plan.backend.name != "interface":
        return "this family computes attention outside the attention interface"
    if any(slot is None or slot.streams > 1 for slot in plan.slots):
        return "a layer of this family computes attention more than once"
    return None


def run_changed(
    forward: Forward,
    plan: Plan,
    change: Change,
    expected: Mapping[Stack, Expectation],
    observer: Observer | None = None,
) -> Any:
    """Run the forward pass with the heads of the first stack changed, and show its layers."""
    progress, first = Progress(plan, expected), next(iter(expected))

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output, weights, *more = resolved(*args, **kwargs)
        if weights is None:  # no call that the plan knows of
            return output, weights, *more
        slot = progress.next()
        if slot is not None and observer is not None:
            call = attention_call(bind(resolved, args, kwargs), output, weights)
            observer(replace(call, stack=slot.stack, layer=slot.layer))
        if slot is not None and slot.stack == first:
            home = expected[first].device
            output = change(slot.layer, output.to(home)).to(output.device)
        return output, weights, *more

    result = run_with(forward, attend)
    progress.finish()
    return result


def switch_off(
    heads: Collection[Head], replacement: Replacement, layer: int, output: Tensor
) -> Tensor:
    """The output of a layer with some heads at zero, or at their mean over the tokens of a text."""
    numbers = [head.head for head in heads if head.layer == layer]
    if not numbers:
        return output
    changed = output.clone()
    mean = output[:, :, numbers].mean(1, keepdim=True)
    changed[:, :, numbers] = mean if replacement == "mean" else 0
    return changed


def repeat(batch: Batch, copies: int) -> Batch:
    """The texts of a batch, repeated that many times."""
    return batch.part(torch.arange(len(batch)).repeat(copies))
