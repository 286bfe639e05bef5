"""The contract of a metric: zero → see → merge → compute.

A metric is a frozen value; everything that changes is in its sums, which merge exactly and in any
order. They lie where the model is while a shard is computed, and on the host otherwise.

```python
@dataclass(frozen=True)
class Words(Metric):
    name: str = "words"
    measures: tuple[Measure, ...] = (WORDS,)

    def zero(self) -> Sums:
        return {"words": torch.zeros(GROUPS, dtype=torch.float64)}

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        sums["words"] += sum_by_group(batch.mask.sum(1), batch.groups)

    def compute(self, sums: Sums) -> Variables:
        return {"words": label(sums["words"], GROUP)}
```
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

Sums = dict[str, Tensor]
Variables = dict[str, xr.DataArray]


class Metric:
    """Sees the text of a batch, then the model, then every layer; overrides what it needs."""

    name: str  # of its sums, unique within a study
    measures: tuple[Measure, ...]  # what the variables of `compute` are, in words
    needs_matrices: bool = False  # whole matrices of a layer, which long inputs do not get

    def zero(self) -> Sums:
        """The sums before anything was seen."""
        raise NotImplementedError

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Add what needs the corpus alone: a frequency, a baseline."""

    def see_model(
        self, sums: Sums, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Run the model itself: a loss, a gradient, an intervention."""

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Add one layer of one batch."""

    def shrink(self, sums: Sums) -> Sums:
        """The sums of a shard as they are stored; may be smaller than those to add to."""
        return sums

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The sums of both; associative, and `zero` changes nothing."""
        return {name: left[name] + right[name] for name in left}

    def compute(self, sums: Sums) -> Variables:
        """Variables of the result by name."""
        raise NotImplementedError

    @property
    def sees_layers(self) -> bool:
        """Whether the layers have to be shown to it."""
        return type(self).see_layer is not Metric.see_layer


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

    def array(self, values: np.ndarray | Tensor, *axes: "Axis") -> xr.DataArray:
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


def label(values: np.ndarray | Tensor, *axes: Axis) -> xr.DataArray:
    """An array with named, labelled axes."""
    coordinates = {axis.name: np.array(axis.labels) for axis in axes}
    return xr.DataArray(np.asarray(values), coords=coordinates, dims=list(coordinates))


def group_zeros(*shape: int) -> Tensor:
    """Empty float64 sums for every group of documents."""
    return torch.zeros(GROUPS, *shape, dtype=torch.float64)
