"""What a metric knows after some inputs. What a GPU found comes home without waiting for it."""

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
    """Sums and records on the host; `pending` and `away` are empty except within a shard."""

    sums: Sums
    records: dict[str, np.ndarray] = field(default_factory=dict)
    pending: list[tuple[Apply, tuple[Tensor, ...]]] = field(default_factory=list, repr=False)
    away: dict[str, Tensor] = field(default_factory=dict, repr=False)  # records on a GPU

    def receive(self, apply: Apply, *found: Tensor) -> None:
        """Call `apply` with the tensors as arrays: now, or in `settle` if they are on a GPU.

        Waiting for every number would leave the GPU idle until the next work reaches it.
        """
        if any(is_far(tensor) for tensor in found):
            self.pending.append((apply, tuple(map(_send_home, found))))
        else:
            apply(*(tensor.cpu().numpy() for tensor in found))

    def record(self, name: str, place: tuple[Any, ...], values: Tensor) -> None:
        """Put values into a record: now, or into its copy on the GPU, which comes home whole."""
        if not is_far(values):
            self.records[name][place] = values.cpu().numpy()
            return
        if name not in self.away:
            shape = self.records[name].shape
            self.away[name] = torch.zeros(shape, dtype=values.dtype, device=values.device)
        self.away[name][place] = values

    def settle(self) -> None:
        """Apply what is on its way, in the order it was found."""
        home = {name: _send_home(tensor) for name, tensor in self.away.items()}
        if (self.pending or home) and torch.cuda.is_available():
            torch.cuda.synchronize()
        for apply, found in self.pending:
            apply(*(tensor.numpy() for tensor in found))
        self.records.update({name: tensor.numpy() for name, tensor in home.items()})
        self.pending.clear()
        self.away.clear()


def is_far(tensor: Tensor) -> bool:
    """Whether the host has to wait for a tensor."""
    return tensor.is_cuda


def _send_home(tensor: Tensor) -> Tensor:
    """A copy that will be complete when the GPU has come so far; pinned, so that nobody waits."""
    home = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return home.copy_(tensor, non_blocking=True)
