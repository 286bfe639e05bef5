"""Ratios of sums over inputs, with standard errors, from sums that add.

Every input gives a numerator x and a denominator y. The value is R = Σx / Σy. Both are summed for
every group of documents, so that the value without any one group is known at the end; how far these
values spread is the standard error (`headscope.results.replicates`).

A metric that is such a ratio says only what x and y are:

```
HeadRatio      from the sums of a layer                    inputs of any length
MatrixRatio    from the whole matrices of a layer
TextRatio      from the corpus alone
```

The ratios of all heads added together: a few large operations instead of many small ones.

The items of all ratios stand side by side, for every group of documents:

             pos_to: NOUN VERB …  | distance | entropy
  head 0          Σ     Σ            Σ          Σ
  head 1          Σ     Σ            Σ          Σ

Each input's terms are float32, their sums over inputs are float64 and stay on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import GROUP, Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer
from headscope.results import replicates
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

Terms = tuple[Float[Tensor, "batch head item"], Float[Tensor, "batch head part"]]
TextTerms = tuple[Float[Tensor, "batch item"], Float[Tensor, "batch part"]]
NUMERATOR, DENOMINATOR = "numerator", "denominator"
WEIGHTED = "with a′[i, j] = a[i, j]·‖v_j W_O‖ / Σ_k a[i, k]·‖v_k W_O‖ instead of a[i, j]"
WEIGHTED_COST = "n·d²: the output projection once more, and another pass over the weights"
KOBAYASHI = "Kobayashi et al. 2020"


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
        """Empty sums for every group and head."""
        shape = (GROUPS, *self.grid.shape)
        return State(zero((*shape, self.items), (*shape, self.parts)))

    def add(
        self, state: State, index: int, groups: Int[Tensor, "batch"], x: Tensor, y: Tensor
    ) -> None:
        """Add x and y of every input of a batch to one layer."""
        sums = {name: values[:, index] for name, values in state.sums.items()}
        state.receive(partial(_add, sums), groups, x.double(), y.double())

    def compute(self, sums: Sums) -> Variables:
        """NAME, NAME_by_layer (pooled), their errors, NAME_head_mean (mean of head values), and
        the sums of every group."""
        x = _labelled(sums[NUMERATOR], self.grid.axes, self.axis)
        y = _labelled(sums[DENOMINATOR], self.grid.axes, None if self.shared else self.axis)
        return pooled_variables(self.name, x, y)


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
    merge = staticmethod(add)

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
        self.sums.add(state, layer.index, layer.batch.groups, *self.terms(layer))

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
    merge = staticmethod(add)

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
        self.sums.add(state, layer.index, layer.batch.groups, *self.terms(layer))

    def compute(self, sums: Sums, records: Records) -> Variables:
        return self.sums.compute(sums)


@dataclass(frozen=True)
class TextRatio:
    """A ratio of the corpus alone; the same estimator as for heads, without attention."""

    measure: Measure
    terms: Callable[[AnnotatedBatch], TextTerms]
    axis: Axis | None = None
    merge = staticmethod(add)

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def zero(self, inputs: int) -> State:
        return State(zero((GROUPS, len(self.axis) if self.axis else 1), (GROUPS, 1)))

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        above, below = self.terms(batch)
        state.receive(partial(_add, state.sums), batch.groups, above.double(), below.double())

    def compute(self, sums: Sums, records: Records) -> Variables:
        """NAME, NAME_se, and the sums of every group."""
        x, y = _labelled(sums[NUMERATOR], (), self.axis), _labelled(sums[DENOMINATOR], (), None)
        return ratio_variables(self.name, x, y)


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
) -> MatrixRatio:
    """The same for values of whole matrices."""
    return MatrixRatio(measure, grid, lambda layer: known(values(layer)), shared=False)


def by_norms(ratio: HeadRatio, measure: Measure) -> MatrixRatio:
    """The same ratio of attention weighted by what it gives (`headscope.model.writes`)."""
    return MatrixRatio(
        measure, ratio.grid, lambda layer: ratio.terms(layer.normed), ratio.axis, ratio.shared
    )


def known(
    values: Float[Tensor, "*shape"],
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Numerators and denominators: a value and one, or zero and zero where it is NaN."""
    there = ~values.isnan()
    return torch.where(there, values, 0.0), there.to(values.dtype)


def zero(numerator: tuple[int, ...], denominator: tuple[int, ...]) -> Sums:
    """Empty sums, the groups first; the denominator's shape broadcasts to the numerator's."""
    return {NUMERATOR: np.zeros(numerator), DENOMINATOR: np.zeros(denominator)}


def add_by_group(
    sums: Float[Tensor, "group *item"],
    terms: Float[Tensor, "batch *item"],
    groups: Int[Tensor, "batch"],
) -> None:
    """Add every input to the float64 sums of its group, always in the same order."""
    if sums.is_cuda:
        add_members(sums, terms, members_of(groups))
    else:
        sums.index_add_(0, groups, terms.double())


def members_of(groups: Int[Tensor, "batch"]) -> Float[Tensor, "group batch"]:
    """One where an input is of a group, zero elsewhere."""
    return (groups == torch.arange(GROUPS, device=groups.device)[:, None]).double()


def add_members(
    sums: Float[Tensor, "group *item"],
    terms: Float[Tensor, "batch *item"],
    members: Float[Tensor, "group batch"],
) -> None:
    """`add_by_group` as a product: on a GPU index_add has no fixed order, a product has."""
    wide = terms.double().reshape(len(terms), -1)
    sums.view(len(sums), -1).addmm_(members, wide)


def sum_by_group(
    terms: Float[Tensor, "batch *item"], groups: Int[Tensor, "batch"]
) -> Float[Tensor, "group *item"]:
    """Float64 sums of a batch within every group."""
    sums = terms.new_zeros(GROUPS, *terms.shape[1:], dtype=torch.float64)
    add_by_group(sums, terms, groups)
    return sums


def ratio_variables(name: str, numerator: xr.DataArray, denominator: xr.DataArray) -> Variables:
    """NAME, NAME_se, NAME_numerator and NAME_denominator from the sums of every group.

    The denominator may lack dimensions of the numerator: it is then shared along them.
    """
    value, error = replicates.ratio_of(numerator, denominator)
    return {
        name: value,
        f"{name}_se": error,
        f"{name}_{NUMERATOR}": numerator,
        f"{name}_{DENOMINATOR}": denominator,
    }


def pooled_variables(name: str, numerator: xr.DataArray, denominator: xr.DataArray) -> Variables:
    """The same of sums that every head has, and NAME_by_layer, NAME_by_layer_se, NAME_head_mean."""
    heads = ratio_variables(name, numerator, denominator)
    pooled = ratio_variables(f"{name}_by_layer", numerator.sum("head"), denominator.sum("head"))
    kept = (f"{name}_by_layer", f"{name}_by_layer_se")
    return {
        **heads,
        **{each: pooled[each] for each in kept},
        f"{name}_head_mean": heads[name].mean("head"),
    }


def contributions_of(
    whole: Float[np.ndarray, "*item"],
    without: Float[np.ndarray, "group *item"],
    weight: Float[np.ndarray, "group *item"],
) -> Float[np.ndarray, "group *item"]:
    """Numerators of every group for a statistic that is no ratio of sums.

    `whole` is the statistic times the weight of all groups, `without` the same without each. The
    numerator of group g is what is missing without it. These do not quite add up to `whole`; what
    is left over is shared out in proportion to the weight without g, which moves all replicates by
    the same amount and leaves their spread, the standard error, exactly as it is.
    """
    numerator = np.where(weight > 0, whole - without, 0.0)
    rest = np.where(weight > 0, weight.sum(0) - weight, 0.0)
    left_over, shared = whole - numerator.sum(0), np.broadcast_to(rest.sum(0), whole.shape)
    part = np.divide(left_over, shared, out=np.zeros_like(left_over), where=shared > 0)
    return numerator + rest * part


def _labelled(values: np.ndarray, axes: tuple[Axis, ...], last: Axis | None) -> xr.DataArray:
    """Sums of groups with named axes; a last axis of one that has no name is dropped."""
    return label(values, GROUP, *axes, last) if last else label(values[..., 0], GROUP, *axes)


def _add(sums: Sums, groups: np.ndarray, above: np.ndarray, below: np.ndarray) -> None:
    for name, terms in ((NUMERATOR, above), (DENOMINATOR, below)):
        add_by_group(
            torch.from_numpy(sums[name]), torch.from_numpy(terms), torch.from_numpy(groups)
        )


class RatioGroup:
    """The sums of several ratios over one shard.

    Terms of one type of number stand side by side; to mix types, each would be copied by itself.
    """

    def __init__(self, metrics: Sequence[HeadRatio | MatrixRatio], device: torch.device) -> None:
        self._metrics = metrics
        self._device = device
        self._shape = metrics[0].sums.grid.shape
        self._slots: dict[torch.dtype, list[_Slot]] = {}  # what stands side by side, in order
        # The layer comes first here, so that what is added to is in one place.
        self._sums: dict[torch.dtype, Float[Tensor, "layer group head item"]] = {}

    def update(self, layer: Layer) -> None:
        """Add one layer of one batch."""
        terms: dict[torch.dtype, list[Tensor]] = {}
        slots: dict[torch.dtype, list[_Slot]] = {}
        for metric in self._metrics:
            for name, found in zip((NUMERATOR, DENOMINATOR), _terms(metric, layer), strict=True):
                terms.setdefault(found.dtype, []).append(found)
                slots.setdefault(found.dtype, []).append((metric.name, name, found.shape[-1]))
        if not self._sums:
            self._slots, self._sums = slots, {kind: self._room(slots[kind]) for kind in slots}
        assert slots == self._slots  # the same in every layer
        for kind, found in terms.items():
            self._add(self._sums[kind][layer.index], torch.cat(found, dim=-1), layer.batch)

    def _room(self, slots: Sequence["_Slot"]) -> Tensor:
        (layers, heads), items = self._shape, sum(size for _, _, size in slots)
        return torch.zeros(layers, GROUPS, heads, items, dtype=torch.float64, device=self._device)

    def _add(self, sums: Tensor, terms: Tensor, batch: AnnotatedBatch) -> None:
        if sums.is_cuda:
            add_members(sums, terms, batch.once("members", partial(members_of, batch.groups)))
        else:
            add_by_group(sums, terms, batch.groups)

    def finish(self, states: Mapping[str, State]) -> None:
        """Add everything to the states of the metrics."""
        for kind, sums in self._sums.items():
            slots = self._slots[kind]
            parts = sums.transpose(0, 1).split([size for _, _, size in slots], dim=-1)
            for (metric, name, _), part in zip(slots, parts, strict=True):
                states[metric].add(name, part)


_Slot = tuple[str, str, int]  # metric, numerator or denominator, how many numbers


def _terms(metric: HeadRatio | MatrixRatio, layer: Layer) -> Terms:
    if isinstance(metric, HeadRatio):
        return metric.terms(layer)
    assert isinstance(layer, DenseLayer)  # the loop refuses matrix metrics on anything else
    return metric.terms(layer)
