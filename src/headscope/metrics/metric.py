"""The contract of a metric: zero → update → merge → compute.

A state holds sums, which merge exactly and in any order, and records, one row for every input,
which are never held for more than one shard: `compute` reads them back shard by shard. A metric is
a frozen value; everything that changes is in the state.

What a metric knows after some inputs; results of a GPU are copied to the host asynchronously.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.errors import RunError
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

Sums = dict[str, np.ndarray]
Apply = Callable[..., None]  # takes arrays
Records = Callable[[], Iterator[Mapping[str, np.ndarray]]]  # one mapping per shard, in shard order
Variables = dict[str, xr.DataArray]


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

    def add(self, name: str, values: Tensor, place: Any = ...) -> None:
        """Add values to a sum, or to a part of it: now, or in `settle` if they are on a GPU."""

        def add_to(found: np.ndarray) -> None:
            self.sums[name][place] += found

        self.receive(add_to, values)

    def record(self, name: str, place: tuple[Any, ...], values: Tensor) -> None:
        """Put values into a record: now, or into a copy on the GPU that `settle` fetches."""
        if not is_far(values):
            self.records[name][place] = values.cpu().numpy()
            return
        if name not in self.on_device:
            shape = self.records[name].shape
            self.on_device[name] = torch.zeros(shape, dtype=values.dtype, device=values.device)
        self.on_device[name][place] = values

    def take(self, name: str) -> Tensor:
        """A record as it is so far, wherever it is; it is then no longer part of the state."""
        here = torch.from_numpy(self.records.pop(name))
        return self.on_device.pop(name, here)

    def fetch(self) -> None:
        """Begin to copy the records that are on a GPU."""
        for name, tensor in self.on_device.items():
            self.receive(partial(self.records.__setitem__, name), tensor)
        self.on_device.clear()

    def settle(self) -> None:
        """Apply the copies, which must be complete, in the order in which they were made."""
        for apply, found in self.pending:
            apply(*(tensor.numpy() for tensor in found))
        self.pending.clear()


def is_far(tensor: Tensor) -> bool:
    """Whether the host has to wait for a tensor."""
    return tensor.is_cuda


def _copy_to_host(tensor: Tensor) -> Tensor:
    """A copy in pinned memory, complete once the GPU has caught up: the host does not wait."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return host.copy_(tensor, non_blocking=True)


@dataclass(frozen=True)
class Grid:
    """The heads of a model: how many layers, how many heads in each, and their numbers."""

    layers: tuple[int, ...]
    heads: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of layers and of heads."""
        return len(self.layers), self.heads

    @property
    def axes(self) -> tuple["Axis", "Axis"]:
        """The dimensions of a result that has a value for every head."""
        return Axis("layer", self.layers), Axis("head", range(self.heads))

    def array(self, values: np.ndarray, *axes: "Axis") -> xr.DataArray:
        """Values labelled by layer, head and the further axes."""
        return label(values, *self.axes, *axes)


@dataclass(frozen=True)
class Axis:
    """A named dimension of the result and the labels along it."""

    name: str
    labels: tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | range

    def __len__(self) -> int:
        return len(self.labels)


GROUP = Axis("group", range(GROUPS))  # of documents; first axis of every sum behind a ratio


class Named(Protocol):
    """Has a name."""

    @property
    def name(self) -> str:
        """Name of the metric's state, unique within a study."""
        ...


class Metric(Named, Protocol):
    """What every metric has, whatever it looks at."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the variables of `compute` are, in words."""
        ...

    def zero(self, inputs: int) -> State:
        """The state before a shard of that many inputs."""
        ...

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The sums of both; associative, and `zero` changes nothing."""
        ...

    def compute(self, sums: Sums, records: Records) -> Variables:
        """Variables of the result by name."""
        ...


# What a metric looks at. It may look at several things, such as the text and every layer.


@runtime_checkable
class LayerMetric(Named, Protocol):
    """Needs the sums of one layer at a time, however they were found: inputs of any length."""

    def update_layer(self, state: State, layer: Layer) -> None:
        """Add one layer of one batch to the state."""
        ...


@runtime_checkable
class MatrixMetric(Named, Protocol):
    """Needs the whole matrices of one layer at a time."""

    def update_matrix(self, state: State, layer: DenseLayer) -> None:
        """Add one layer of one batch to the state."""
        ...


@runtime_checkable
class BatchMetric(Named, Protocol):
    """Compares layers: needs the whole matrices of all of them at once."""

    def update_batch(self, state: State, layers: Sequence[DenseLayer]) -> None:
        """Add one batch to the state; the weights of all layers are kept until then."""
        ...


@runtime_checkable
class ModelMetric(Named, Protocol):
    """Runs the model itself: a loss, a gradient, an intervention."""

    def update_model(
        self, state: State, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Add one batch to the state."""
        ...


@runtime_checkable
class TextMetric(Named, Protocol):
    """Needs the corpus alone: a frequency, a baseline."""

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Add one batch to the state."""
        ...


@runtime_checkable
class CondensingMetric(Named, Protocol):
    """Can say with less, at the end of a shard, what it recorded of every input."""

    def condense(self, state: State) -> None:
        """Replace records by smaller ones, or by sums; they may still be on the device."""
        ...


def refuse_matrices(metrics: Sequence[Metric], tokens: int) -> None:
    """Refuse metrics whose type says that they need whole matrices, which long inputs lack."""
    for metric in metrics:
        if isinstance(metric, MatrixMetric | BatchMetric):
            verb = "compares" if isinstance(metric, BatchMetric) else "needs"
            raise RunError(
                f"{metric.name} {verb} whole attention matrices, which inputs of {tokens:,} "
                "tokens do not get; leave it out, or set the option attention=dense if there is "
                "memory for them."
            )


def label(values: np.ndarray, *axes: Axis) -> xr.DataArray:
    """An array with named, labelled axes."""
    kinds = tuple(type(axis.labels[0]) if len(axis) else None for axis in axes)
    coordinates = _coordinates(axes, kinds)
    return xr.DataArray(values, coords=coordinates, dims=[axis.name for axis in axes])


@lru_cache(maxsize=64)  # all arrays of a study have a few axes, and to index their labels is slow
def _coordinates(axes: tuple[Axis, ...], kinds: tuple[type | None, ...]) -> xr.Coordinates:
    """The labels along axes; `kinds` tells those apart that are equal, as 1 and 1.0 are."""
    return xr.Coordinates({axis.name: np.array(axis.labels) for axis in axes})


def add(left: Sums, right: Sums) -> Sums:
    """Sums of two states, key by key: the merge of nearly every metric."""
    return {name: left[name] + right[name] for name in left}
