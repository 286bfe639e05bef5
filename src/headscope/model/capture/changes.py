"""Forward passes in which heads are changed on their way to the output projection.

Interventions happen where every family on the attention interface hands over the same thing, what
each head found for each query:  batch × query × head × width.
"""

from collections.abc import Callable, Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor

from headscope.model.attention import Stack
from headscope.model.capture.call import Forward
from headscope.model.capture.dense import Progress
from headscope.model.capture.interface import run_with
from headscope.model.capture.plan import Plan
from headscope.model.capture.validate import Expectation

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
    forward: Forward, plan: Plan, change: Change, expected: Mapping[Stack, Expectation]
) -> Any:
    """Run the forward pass with the heads of the first stack changed."""
    progress, first = Progress(plan, expected), next(iter(expected))

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output, weights, *more = resolved(*args, **kwargs)
        if weights is None:  # no call that the plan knows of
            return output, weights, *more
        slot = progress.next()
        if slot is not None and slot.stack == first:
            home = expected[first].device
            output = change(slot.layer, output.to(home)).to(output.device)
        return output, weights, *more

    result = run_with(forward, attend)
    progress.finish()
    return result
