"""Any statistic of a head that is a ratio of sums over inputs, for heads and for whole layers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headscope.metrics import ratio
from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.layer import ObservedLayer

Terms = tuple[Float[Tensor, "batch head item"], Float[Tensor, "batch head part"]]


@dataclass(frozen=True)
class HeadRatio:
    """Σx / Σy per head, with the pooled value of every layer (sums over its heads, then the ratio).

    `terms` gives x and y of every input; y may be shared by all items (a last axis of one).
    """

    name: str
    grid: Grid
    terms: Callable[[ObservedLayer], Terms]
    axis: Axis | None = None
    description: str = ""
    shared: bool = True  # whether all items have one y

    def zero(self, inputs: int) -> State:
        """Empty sums for heads and for layers."""
        layers, heads = self.grid.shape
        by_head = ratio.zero((layers, heads, self.items), (layers, heads, self.parts))
        by_layer = ratio.zero((layers, self.items), (layers, self.parts))
        return State(_join(by_head, by_layer))

    @property
    def items(self) -> int:
        """How many ratios a head has."""
        return len(self.axis) if self.axis else 1

    @property
    def parts(self) -> int:
        """How many denominators a head has."""
        return 1 if self.shared else self.items

    def update_layer(self, state: State, layer: ObservedLayer) -> None:
        """Add the inputs of a batch."""
        self.add(state, layer.index, *self.terms(layer))

    def add(self, state: State, index: int, x: Tensor, y: Tensor) -> None:
        """Add x and y of every input of a batch to one layer."""
        state.receive(partial(_add, state, index), x.double(), y.double())

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Sums add."""
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """NAME, NAME_by_layer (pooled), NAME_head_mean (mean of head values), and their errors."""
        axes = (self.axis,) if self.axis else ()
        by_head, by_layer = _split(sums)
        heads = self.grid.array(self._trim(ratio.value(by_head)), *axes)
        layer_axes = (Axis("layer", self.grid.layers), *axes)
        variables = {
            self.name: heads.assign_attrs(description=self.description),
            f"{self.name}_se": self.grid.array(self._trim(ratio.standard_error(by_head)), *axes),
            f"{self.name}_by_layer": label(self._trim(ratio.value(by_layer)), *layer_axes),
            f"{self.name}_by_layer_se": label(
                self._trim(ratio.standard_error(by_layer)), *layer_axes
            ),
        }
        return variables | {f"{self.name}_head_mean": heads.mean("head")}

    def _trim(self, values: np.ndarray) -> np.ndarray:
        return values if self.axis else values[..., 0]


def _add(state: State, index: int, above: np.ndarray, below: np.ndarray) -> None:
    by_layer = ratio.sums_over(above.sum(1), below.sum(1))
    for name, values in _join(ratio.sums_over(above, below), by_layer).items():
        state.sums[name][index] += values


def _join(by_head: Sums, by_layer: Sums) -> Sums:
    heads = {f"head.{name}": values for name, values in by_head.items()}
    return heads | {f"layer.{name}": values for name, values in by_layer.items()}


def _split(sums: Sums) -> tuple[Sums, Sums]:
    by_head = {name: sums[f"head.{name}"] for name in (*ratio.NUMERATOR, *ratio.DENOMINATOR)}
    by_layer = {name: sums[f"layer.{name}"] for name in (*ratio.NUMERATOR, *ratio.DENOMINATOR)}
    return by_head, by_layer
