"""A long text is traced layer by layer, as the layers are looked at: one of them is in memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.model.model import Model
    from headscope.model.trace import Trace

Capture = Callable[[int], "Trace"]


@dataclass(frozen=True)
class Layers(Mapping[int, "Tensor"]):
    """Something of every layer by its number, captured when it is asked for."""

    numbers: tuple[int, ...]
    read: Callable[[int], "Tensor"]

    def __getitem__(self, layer: int) -> "Tensor":
        return self.read(layer)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def layerwise(model: "Model", capture: Capture) -> "Trace":
    """The trace with all layers of all stacks; `capture` traces the layers of one number.

    Queries and keys are not part of it: the views of long texts need weights and norms alone.
    """
    once = lru_cache(maxsize=1)(capture)
    first = once(min(layer for stack in model.stacks for layer in stack.attending))
    plans = {stack.name: stack for stack in model.stacks}
    stacks = {
        name: replace(
            stack,
            layers=plans[stack.name].attending,
            weights=Layers(plans[stack.name].attending, _weights(once, name)),
            query=None,
            key=None,
            value=None,
            bias=None,
            value_norms=None
            if stack.value_norms is None
            else Layers(plans[stack.name].attending, _norms(once, name)),
        )
        for name, stack in first.stacks.items()
    }
    return replace(first, stacks=stacks)


def _weights(capture: Capture, stack: str) -> Callable[[int], "Tensor"]:
    return lambda layer: capture(layer).stacks[stack].weights[layer]


def _norms(capture: Capture, stack: str) -> Callable[[int], "Tensor"]:
    def read(layer: int) -> "Tensor":
        norms = capture(layer).stacks[stack].value_norms
        assert norms is not None  # the first layer had them
        return norms[layer]

    return read
