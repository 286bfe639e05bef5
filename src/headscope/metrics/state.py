"""What a metric knows after some inputs; results of a GPU are copied to the host asynchronously."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

Sums = dict[str, np.ndarray]
Apply = Callable[..., None]  # takes arrays


@dataclass(frozen=True)
class State:
    """Sums and records on the host; `pending` and `on_device` are empty except within a shard."""

    sums: Sums
    records: dict[str, np.ndarray] = field(default_factory=dict)
    pending: list[tuple[Apply, tuple[Tensor, ...]]] = field(default_factory=list, repr=False)
    on_device: dict[str, Tensor] = field(default_factory=dict, repr=False)  # records on a GPU

    def receive(self, apply: Apply, *found: Tensor) -> None:
        """Call `apply` with the tensors as arrays: now, or in `settle` if they are on a GPU.

        Waiting for every number would leave the GPU idle until the next work reaches it.
        """
        if any(is_far(tensor) for tensor in found):
            self.pending.append((apply, tuple(map(_copy_to_host, found))))
        else:
            apply(*(tensor.cpu().numpy() for tensor in found))

    def record(self, name: str, place: tuple[Any, ...], values: Tensor) -> None:
        """Put values into a record: now, or into a copy on the GPU that `settle` fetches."""
        if not is_far(values):
            self.records[name][place] = values.cpu().numpy()
            return
        if name not in self.on_device:
            shape = self.records[name].shape
            self.on_device[name] = torch.zeros(shape, dtype=values.dtype, device=values.device)
        self.on_device[name][place] = values

    def settle(self) -> None:
        """Wait for the copies and apply them in the order in which they were made."""
        copied = {name: _copy_to_host(tensor) for name, tensor in self.on_device.items()}
        if (self.pending or copied) and torch.cuda.is_available():
            torch.cuda.synchronize()
        for apply, found in self.pending:
            apply(*(tensor.numpy() for tensor in found))
        self.records.update({name: tensor.numpy() for name, tensor in copied.items()})
        self.pending.clear()
        self.on_device.clear()


def is_far(tensor: Tensor) -> bool:
    """Whether the host has to wait for a tensor."""
    return tensor.is_cuda


def _copy_to_host(tensor: Tensor) -> Tensor:
    """A copy in pinned memory, complete once the GPU has caught up: the host does not wait."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return host.copy_(tensor, non_blocking=True)
