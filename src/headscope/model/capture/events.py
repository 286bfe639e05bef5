"""What happens during a probe: attention calls, where they sit, which linear maps follow."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.pytorch_utils import Conv1D

from headscope.model.capture.call import Call

Projection = nn.Linear | Conv1D


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a list of layers."""

    layers: nn.ModuleList
    index: int


@dataclass
class Event:
    """One attention call, where it happened, and which linear maps ran between it and the next."""

    call: Call
    place: Place | None
    linears: list[tuple[nn.Module, Tensor]] = field(default_factory=list)

    def projection(self) -> Projection | None:
        """W_O of the attention layer, if its matrix can be read."""
        receiver = self.receiver()
        return receiver if isinstance(receiver, Projection) and self._is_plain(receiver) else None

    def receiver(self) -> nn.Module | None:
        """The linear map that received exactly the call's output."""
        output = self.call.output
        if output is None:
            return None
        flat = output.flatten(-2)
        for linear, given in self.linears:
            if given.shape == flat.shape and torch.equal(given, flat):
                return linear
        return None

    def _is_plain(self, receiver: Projection) -> bool:
        """Quantised layers hold bytes, packed blocks, or a tensor class of their own."""
        weight, output = receiver.weight, self.call.output
        plain = type(weight) in (Tensor, nn.Parameter)
        return plain and output is not None and weight.dtype == output.dtype and weight.ndim == 2


class Recorder:
    """Collects the events of one forward pass of a network."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._places: list[Place] = []
        self.events: list[Event] = []

    def watch(self, call: Call) -> None:
        """Record an attention call; the outermost list of layers is the one that counts."""
        self.events.append(Event(call, self._places[0] if self._places else None))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Follow the forward pass through the layers and linear maps of the network."""
        handles = [*self._follow_layers(), *self._follow_linears()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _follow_layers(self) -> Iterator[RemovableHandle]:
        for module in self._network.modules():
            if isinstance(module, nn.ModuleList):
                for index, layer in enumerate(module):
                    yield from self._follow(layer, Place(module, index))

    def _follow(self, layer: nn.Module, place: Place) -> Iterator[RemovableHandle]:
        def enter(*_: Any) -> None:
            self._places.append(place)

        def leave(*_: Any) -> None:
            self._places.remove(place)

        yield layer.register_forward_pre_hook(enter)
        yield layer.register_forward_hook(leave)

    def _follow_linears(self) -> Iterator[RemovableHandle]:
        def heard(module: nn.Module, args: tuple[Any, ...]) -> None:
            if self.events and args:
                self.events[-1].linears.append((module, args[0]))

        for module in self._network.modules():
            # Quantised layers need not be nn.Linear, but they keep its attributes.
            if isinstance(module, Projection) or hasattr(module, "in_features"):
                yield module.register_forward_pre_hook(heard)
