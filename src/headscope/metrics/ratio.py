"""Ratios of sums over inputs, with standard errors, from sums that add.

Every input gives a numerator x and a denominator y. The value is R = Σx / Σy; its variance is that
of the ratio estimator, Σ(x − R·y)² / (Σy)² · n/(n−1), which needs only Σx, Σy, Σx², Σxy, Σy² and n.

A metric that is such a ratio says only what x and y are:

```
HeadRatio      from the sums of a layer                    inputs of any length
MatrixRatio    from the whole matrices of a layer
TextRatio      from the corpus alone
```
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

Terms = tuple[Float[Tensor, "batch head item"], Float[Tensor, "batch head part"]]
TextTerms = tuple[Float[Tensor, "batch item"], Float[Tensor, "batch part"]]
NUMERATOR = ("x", "xx", "xy")
DENOMINATOR = ("y", "yy", "n")


@dataclass(frozen=True)
class HeadSums:
    """Σx / Σy per head, and pooled per layer: sums over its heads, then the ratio."""

    name: str
    grid: Grid
    axis: Axis | None = None
    shared: bool = True  # whether all items have one y

    @property
    def items(self) -> int:
        """How many ratios a head has."""
        return len(self.axis) if self.axis else 1

    @property
    def parts(self) -> int:
        """How many denominators a head has."""
        return 1 if self.shared else self.items

    def zero(self) -> State:
        """Empty sums for heads and for layers."""
        layers, heads = self.grid.shape
        by_head = zero((layers, heads, self.items), (layers, heads, self.parts))
        by_layer = zero((layers, self.items), (layers, self.parts))
        return State(_join(by_head, by_layer))

    def add(self, state: State, index: int, x: Tensor, y: Tensor) -> None:
        """Add x and y of every input of a batch to one layer."""
        state.receive(partial(_add_heads, state, index), x.double(), y.double())

    def compute(self, sums: Sums) -> Variables:
        """NAME, NAME_by_layer (pooled), NAME_head_mean (mean of head values), and their errors."""
        axes = (self.axis,) if self.axis else ()
        by_head, by_layer = _split(sums)
        heads = self.grid.array(self._trim(value(by_head)), *axes)
        errors = self.grid.array(self._trim(standard_error(by_head)), *axes)
        layer_axes = (Axis("layer", self.grid.layers), *axes)
        return {
            self.name: heads,
            f"{self.name}_se": errors,
            f"{self.name}_by_layer": label(self._trim(value(by_layer)), *layer_axes),
            f"{self.name}_by_layer_se": label(self._trim(standard_error(by_layer)), *layer_axes),
            f"{self.name}_head_mean": heads.mean("head"),
        }

    def _trim(self, values: np.ndarray) -> np.ndarray:
        return values if self.axis else values[..., 0]


@dataclass(frozen=True)
class HeadRatio:
    """A ratio per head. `terms` gives x and y of every input from the sums of a layer.

    y may be shared by all items (a last axis of one).
    """

    measure: Measure
    grid: Grid
    terms: Callable[[Layer], Terms]
    axis: Axis | None = None
    shared: bool = True

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    @property
    def sums(self) -> HeadSums:
        """The numbers that are added up."""
        return HeadSums(self.name, self.grid, self.axis, self.shared)

    def zero(self, inputs: int) -> State:
        return self.sums.zero()

    def update_layer(self, state: State, layer: Layer) -> None:
        self.sums.add(state, layer.index, *self.terms(layer))

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        return self.sums.compute(sums)


@dataclass(frozen=True)
class MatrixRatio:
    """A ratio per head. `terms` gives x and y of every input from whole matrices."""

    measure: Measure
    grid: Grid
    terms: Callable[[DenseLayer], Terms]
    axis: Axis | None = None
    shared: bool = True

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    @property
    def sums(self) -> HeadSums:
        """The numbers that are added up."""
        return HeadSums(self.name, self.grid, self.axis, self.shared)

    def zero(self, inputs: int) -> State:
        return self.sums.zero()

    def update_matrix(self, state: State, layer: DenseLayer) -> None:
        self.sums.add(state, layer.index, *self.terms(layer))

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        return self.sums.compute(sums)


@dataclass(frozen=True)
class TextRatio:
    """A ratio of the corpus alone; the same estimator as for heads, without attention."""

    measure: Measure
    terms: Callable[[AnnotatedBatch], TextTerms]
    axis: Axis | None = None

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def zero(self, inputs: int) -> State:
        return State(zero((len(self.axis) if self.axis else 1,), (1,)))

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        above, below = self.terms(batch)
        state.receive(partial(_add, state), above.double(), below.double())

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """NAME and NAME_se."""
        axes = (self.axis,) if self.axis else ()
        found = {self.name: value(sums), f"{self.name}_se": standard_error(sums)}
        return {
            name: label(values if self.axis else values[0], *axes) for name, values in found.items()
        }


def document_mean(
    measure: Measure,
    grid: Grid,
    values: Callable[[Layer], Float[Tensor, "batch head item"]],
    axis: Axis | None = None,
) -> HeadRatio:
    """The mean over documents that weigh the same, however long they are (Clark et al. 2019).

    `values` averages each document; NaN marks those that have no value. As a ratio of sums the
    numerator is that average and the denominator one, so heads get their standard errors over
    documents from the same sums.
    """
    return HeadRatio(measure, grid, lambda layer: known(values(layer)), axis, shared=False)


def document_mean_of_matrices(
    measure: Measure,
    grid: Grid,
    values: Callable[[DenseLayer], Float[Tensor, "batch head item"]],
    axis: Axis | None = None,
) -> MatrixRatio:
    """The same for values of whole matrices."""
    return MatrixRatio(measure, grid, lambda layer: known(values(layer)), axis, shared=False)


def known(
    values: Float[Tensor, "*shape"],
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Numerators and denominators: a value and one, or zero and zero where it is NaN."""
    there = ~values.isnan()
    return torch.where(there, values, 0.0), there.to(values.dtype)


def zero(numerator: tuple[int, ...], denominator: tuple[int, ...]) -> Sums:
    """Empty sums; the denominator's shape broadcasts to the numerator's."""
    sums = {name: np.zeros(numerator) for name in NUMERATOR}
    return sums | {name: np.zeros(denominator) for name in DENOMINATOR}


def terms(x: Float[Tensor, "batch *item"], y: Float[Tensor, "batch *part"]) -> Sums:
    """What a batch adds: float64 sums over its inputs."""
    return sums_over(x.double().cpu().numpy(), y.double().cpu().numpy())


def sums_over(x: np.ndarray, y: np.ndarray) -> Sums:
    """Sums over the first axis; numpy, because many small sums cost it less than torch."""
    return {
        "x": x.sum(0),
        "xx": np.einsum("b...,b...->...", x, x),
        "xy": np.einsum("b...,b...->...", x, y),
        "y": y.sum(0),
        "yy": np.einsum("b...,b...->...", y, y),
        "n": (y > 0).sum(0, dtype=np.float64),
    }


def value(sums: Sums) -> np.ndarray:
    """Σx / Σy, NaN where nothing was counted."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums["y"] > 0, sums["x"] / sums["y"], np.nan)


def standard_error(sums: Sums) -> np.ndarray:
    """Standard error of the ratio; NaN for fewer than two inputs."""
    ratio, n = value(sums), sums["n"]
    squares = sums["xx"] - 2 * ratio * sums["xy"] + ratio**2 * sums["yy"]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(squares, 0) / sums["y"] ** 2 * n / (n - 1)
        return np.where(n > 1, np.sqrt(variance), np.nan)


def _add_heads(state: State, index: int, above: np.ndarray, below: np.ndarray) -> None:
    by_layer = sums_over(above.sum(1), below.sum(1))
    for name, values in _join(sums_over(above, below), by_layer).items():
        state.sums[name][index] += values


def _join(by_head: Sums, by_layer: Sums) -> Sums:
    heads = {f"head.{name}": values for name, values in by_head.items()}
    return heads | {f"layer.{name}": values for name, values in by_layer.items()}


def _split(sums: Sums) -> tuple[Sums, Sums]:
    by_head = {name: sums[f"head.{name}"] for name in (*NUMERATOR, *DENOMINATOR)}
    by_layer = {name: sums[f"layer.{name}"] for name in (*NUMERATOR, *DENOMINATOR)}
    return by_head, by_layer


def _add(state: State, above: np.ndarray, below: np.ndarray) -> None:
    for name, values in sums_over(above, below).items():
        state.sums[name] += values
