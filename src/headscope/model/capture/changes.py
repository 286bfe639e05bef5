"""Forward passes in which heads are changed on their way to the output projection.

Interventions happen where every family on the attention interface hands over the same thing, what
each head found for each query:  batch × query × head × width.

Many changes of one layer share everything below it. The layers below are stepped over and return
what the last of them returned before, so that the network's own code makes masks, positions and
logits as ever:

```
  earlier pass    0 → 1 → 2 → 3 → logits      what every layer returned is kept
  from layer 2    ·   ·   2 → 3 → logits      1 returns what it did, once for every change
```

Families whose layers share modules, or hand more from layer to layer than a state, cannot do this.
Which ones can is proved on the probe: from every layer on, the same logits must come out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headscope.model.attention import Forward, Stack
from headscope.model.capture.backends import hooked, run_with
from headscope.model.capture.dense import Expectation, Progress
from headscope.model.capture.plan import Plan
from headscope.model.inputs.batch import Batch, probe_batch

if TYPE_CHECKING:
    from headscope.model.model import Model

# Given the number of a layer and the output of its heads: what goes on instead.
Change = Callable[
    [int, Float[Tensor, "batch query head width"]], Float[Tensor, "batch query head width"]
]
PROBE_TOKENS = 7
TOLERANCE = 1e-4


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


@dataclass(frozen=True)
class Earlier:
    """What every layer returned in a pass over a batch, and its logits."""

    batch: Batch
    returned: Sequence[Any]
    logits: Float[Tensor, "batch token vocabulary"]


@dataclass(frozen=True)
class LayersAbove:
    """The layers of a network whose passes can begin at any of them."""

    model: "Model"
    layers: nn.ModuleList

    def record(self, batch: Batch) -> Earlier:
        """A whole pass; what every layer returns is kept."""
        returned: list[Any] = []

        def look(_: nn.Module, __: tuple[Any, ...], gave: Any) -> None:
            returned.append(gave)

        with hooked(self.layers, look):
            logits = self.model.forward(batch).logits
        return Earlier(batch, returned, logits)

    def run(
        self, earlier: Earlier, first: int, copies: int, change: Change
    ) -> Float[Tensor, "row token vocabulary"]:
        """Logits of so many copies of the batch, one behind the other, from a layer on.

        `change` is called for the layers from `first` on, with all copies at once.
        """
        batch = repeat(earlier.batch, copies)
        below = _repeat(earlier.returned[first - 1], copies) if first else None
        attending = iter(layer for layer in self.model.stacks[0].attending if layer >= first)

        def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            output, weights, *more = resolved(*args, **kwargs)
            return change(next(attending), output), weights, *more

        with _stepping_over(list(self.layers)[:first], below):
            return run_with(lambda: self.model.forward(batch), attend).logits


def find_layers(model: "Model") -> LayersAbove | None:
    """The layers of a model, if a pass that begins at any of them is proved to be right."""
    layers = _find_list(model)
    if layers is None:
        return None
    above, stack = LayersAbove(model, layers), model.stacks[0]
    probe = probe_batch(model.network, PROBE_TOKENS, model.device)
    with torch.no_grad():
        try:
            earlier = above.record(probe)
            if len(earlier.returned) != len(layers):
                return None
            for layer in stack.attending:
                logits = above.run(earlier, layer, 2, lambda _, output: output)
                if not _is_same(logits, earlier.logits):
                    return None
        except (TypeError, ValueError, RuntimeError, AttributeError, StopIteration, KeyError):
            return None  # a network that needs more of the layers below
    return above


def take_rows(batch: Batch, rows: Int[Tensor, "some"]) -> Batch:
    """Some texts of a batch, padded as they were."""
    places = rows.tolist()
    return replace(
        batch,
        ids=batch.ids[rows],
        mask=batch.mask[rows],
        segments=batch.segments[rows],
        rows=tuple(batch.rows[place] for place in places),
        lengths=tuple(batch.lengths[place] for place in places),
    )


def repeat(batch: Batch, copies: int) -> Batch:
    """The texts of a batch, all of them so many times."""
    return take_rows(batch, torch.arange(len(batch)).repeat(copies))


def _find_list(model: "Model") -> nn.ModuleList | None:
    """The list in which every layer has the projection that belongs to it."""
    stack = model.stacks[0]
    slots = [slot for slot in model.plan.slots if slot is not None and slot.stack == stack.name]
    for found in model.network.modules():
        if isinstance(found, nn.ModuleList) and len(found) == stack.layers:
            own = [set(layer.modules()) for layer in found]
            if all(slot.projection in own[slot.layer] for slot in slots):
                return found
    return None


def _is_same(logits: Tensor, wanted: Tensor) -> bool:
    largest = wanted.abs().max().clamp(min=1e-6)
    return bool((logits - wanted).abs().max() <= TOLERANCE * largest)


def _repeat(returned: Any, copies: int) -> Any:
    """What a layer returned, every tensor of it for each copy."""
    if isinstance(returned, Tensor):
        return returned.repeat(copies, *(1,) * (returned.ndim - 1))
    if isinstance(returned, tuple):
        return tuple(_repeat(each, copies) for each in returned)
    return returned


@contextmanager
def _stepping_over(layers: Sequence[nn.Module], returned: Any) -> Iterator[None]:
    """Let layers return what is given instead of computing."""

    def give(*_: Any, **__: Any) -> Any:
        return returned

    try:
        for layer in layers:
            layer.forward = give
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)
