"""The contract of a metric, zero → see → merge → compute, and the ratio that nearly all are.

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

Nearly every metric is a ratio of sums over inputs. Every input gives a numerator x and a
denominator y. The value is R = Σx / Σy. Both are summed for every group of documents, so that the
value without any one group is known at the end; how far these values spread is the standard error
(`headscope.results.replicates`). Such a metric says only what x and y are:

```
Ratio        from the sums of a layer       and of even attention: NAME_even
TextRatio    from the corpus alone
```

Each input's terms are float32, their sums over inputs are float64.
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

from collections.abc import Callable
from dataclasses import replace

from jaxtyping import Float, Int

from headscope.observe.layer import BlockLayer, even_layer
from headscope.results import replicates

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


Terms = tuple[Float[Tensor, "batch head item"], Float[Tensor, "batch head part"]]
TextTerms = tuple[Float[Tensor, "batch item"], Float[Tensor, "batch part"]]
Values = Float[Tensor, "batch head item"]
NUMERATOR, DENOMINATOR = "numerator", "denominator"
EVEN_NUMERATOR, EVEN_DENOMINATOR = "even_numerator", "even_denominator"
EVEN = "even attention"


@dataclass(frozen=True)
class Ratio(Metric):
    """A ratio per head, pooled per layer, and of even attention.

    `terms` gives x and y of every input and head from a layer. Where all items have one y, its last
    axis is one.
    """

    measure: Measure
    grid: Grid
    terms: Callable[[Layer], Terms]
    axis: Axis | None = None
    shared: bool = True  # whether all items have one y
    has_even: bool = True  # whether NAME_even is there: the same terms of even attention
    needs_matrices: bool = False

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.measure, even_of(self.measure)) if self.has_even else (self.measure,)

    def zero(self) -> Sums:
        items = len(self.axis) if self.axis else 1
        parts = 1 if self.shared else items
        sums = head_sums(self.grid, items, parts)
        if self.has_even:
            sums |= {EVEN_NUMERATOR: group_zeros(items), EVEN_DENOMINATOR: group_zeros(parts)}
        return sums

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        if self.has_even:
            x, y = self.terms(even_layer(batch))
            add_by_group(sums[EVEN_NUMERATOR], x[:, 0], batch.groups)
            add_by_group(sums[EVEN_DENOMINATOR], y[:, 0], batch.groups)

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        add_terms(sums, layer.index, self.terms(layer), layer.batch.groups)

    def compute(self, sums: Sums) -> Variables:
        """NAME, NAME_by_layer (pooled), their errors, NAME_head_mean (mean of head values), the
        sums of every group, and the ratio of even attention."""
        variables = head_variables(self.name, sums, self.grid, self.axis, shared=self.shared)
        if self.has_even:
            x = _labelled(sums[EVEN_NUMERATOR], (), self.axis)
            y = _labelled(sums[EVEN_DENOMINATOR], (), None if self.shared else self.axis)
            variables |= ratio_variables(f"{self.name}_even", x, y)
        return variables


@dataclass(frozen=True)
class TextRatio(Metric):
    """A ratio of the corpus alone; the same estimator as for heads, without attention."""

    measure: Measure
    terms: Callable[[AnnotatedBatch], TextTerms]
    axis: Axis | None = None

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.measure.name

    @property
    def measures(self) -> tuple[Measure, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.measure,)

    def zero(self) -> Sums:
        items = len(self.axis) if self.axis else 1
        return {NUMERATOR: group_zeros(items), DENOMINATOR: group_zeros(1)}

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        x, y = self.terms(batch)
        add_by_group(sums[NUMERATOR], x, batch.groups)
        add_by_group(sums[DENOMINATOR], y, batch.groups)

    def compute(self, sums: Sums) -> Variables:
        """NAME, NAME_se, and the sums of every group."""
        x, y = _labelled(sums[NUMERATOR], (), self.axis), _labelled(sums[DENOMINATOR], (), None)
        return ratio_variables(self.name, x, y)


def document_mean(
    measure: Measure,
    grid: Grid,
    values: Callable[[Layer], Values],
    axis: Axis | None = None,
    *,
    has_even: bool = True,
) -> Ratio:
    """The mean over documents that weigh the same, however long they are (Clark et al. 2019).

    `values` averages each document; NaN marks those that have no value. As a ratio of sums the
    numerator is that average and the denominator one, so heads get their standard errors over
    documents from the same sums.
    """

    def terms(layer: Layer) -> Terms:
        return where_known(values(layer))

    return Ratio(measure, grid, terms, axis, shared=False, has_even=has_even)


def by_norms(ratio: Ratio) -> Ratio:
    """The same ratio of attention weighted by value norms (`headscope.model.writes`)."""

    def terms(layer: Layer) -> Terms:
        assert isinstance(layer, BlockLayer)  # as every metric gets that needs matrices
        return ratio.terms(layer.normed)

    measure = norm_of(ratio.measure)
    return replace(ratio, measure=measure, terms=terms, has_even=False, needs_matrices=True)


def norm_of(measure: Measure) -> Measure:
    """The measure of `by_norms`."""
    return replace(
        measure,
        name=f"{measure.name}_norm",
        title=f"{measure.title} by value norms",
        meaning=f"The {measure.name} of attention times the norm of what each token gives.",
        formula=f"the one of {measure.name} with a′[i, j] = a[i, j]·‖v_j W_O‖ / "
        "Σ_k a[i, k]·‖v_k W_O‖ instead of a[i, j]",
        reference="Kobayashi et al. 2020",
        baselines=measure.baselines[:1],
        published=(),
    )


def even_of(measure: Measure) -> Measure:
    """The baseline of a measure: what attention that is the same everywhere gives."""
    return Measure(
        f"{measure.name}_even",
        title=f"{measure.title}, even attention",
        meaning=f"The {measure.name} of a head that spreads its attention evenly.",
        formula=f"the one of {measure.name} with a[i, j] := 1 / the number of tokens that i sees, "
        "however small that is",
        reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
        unit=measure.unit,
        axes=measure.axes,
    )


def where_known(values: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
    """Numerators and denominators: a value and one, or zero and zero where it is NaN."""
    is_known = ~values.isnan()
    return torch.where(is_known, values, 0.0), is_known.to(values.dtype)


def head_sums(grid: Grid, items: int, parts: int) -> Sums:
    """Empty sums of x and y for every head: so many numerators, and denominators or one of them."""
    return {
        NUMERATOR: group_zeros(*grid.shape, items),
        DENOMINATOR: group_zeros(*grid.shape, parts),
    }


def add_terms(sums: Sums, index: int, terms: Terms, groups: Int[Tensor, "batch"]) -> None:
    """Add x and y of every input of a batch to one layer."""
    for name, values in zip((NUMERATOR, DENOMINATOR), terms, strict=True):
        add_by_group(sums[name][:, index], values, groups)


def head_variables(
    name: str, sums: Sums, grid: Grid, axis: Axis | None, *, shared: bool
) -> Variables:
    """What follows from `head_sums`: see `Ratio.compute`."""
    x = _labelled(sums[NUMERATOR], grid.axes, axis)
    y = _labelled(sums[DENOMINATOR], grid.axes, None if shared else axis)
    return pooled_variables(name, x, y)


def add_by_group(
    sums: Float[Tensor, "group *item"],
    terms: Float[Tensor, "batch *item"],
    groups: Int[Tensor, "batch"],
) -> None:
    """Add every input to the float64 sums of its group, always in the same order."""
    if sums.is_cuda:  # where index_add_ has no fixed order, but a product has
        members = groups == torch.arange(GROUPS, device=groups.device)[:, None]
        sums += torch.tensordot(members.double(), terms.double(), 1)
    else:
        sums.index_add_(0, groups, terms.double())


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
    variables = ratio_variables(name, numerator, denominator)
    pooled = ratio_variables(f"{name}_by_layer", numerator.sum("head"), denominator.sum("head"))
    for pooled_name in (f"{name}_by_layer", f"{name}_by_layer_se"):
        variables[pooled_name] = pooled[pooled_name]
    variables[f"{name}_head_mean"] = variables[name].mean("head")
    return variables


def contributions_of(
    total: Float[np.ndarray, "*item"],
    without: Float[np.ndarray, "group *item"],
    weight: Float[np.ndarray, "group *item"],
) -> Float[np.ndarray, "group *item"]:
    """Numerators of every group for a statistic that is no ratio of sums.

    `total` is the statistic times the weight of all groups, `without` the same without each. The
    numerator of group g is what is missing without it. These do not quite add up to `total`; what
    is left over is shared out in proportion to the weight without g, which moves all replicates by
    the same amount and leaves their spread, the standard error, exactly as it is.
    """
    numerator = np.where(weight > 0, total - without, 0.0)
    other_weight = np.where(weight > 0, weight.sum(0) - weight, 0.0)
    left_over, shared = total - numerator.sum(0), np.broadcast_to(other_weight.sum(0), total.shape)
    part = np.divide(left_over, shared, out=np.zeros_like(left_over), where=shared > 0)
    return numerator + other_weight * part


def _labelled(values: Tensor, axes: tuple[Axis, ...], last: Axis | None) -> xr.DataArray:
    """Sums of groups with named axes; a last axis of one that has no name is dropped."""
    return label(values, GROUP, *axes, last) if last else label(values[..., 0], GROUP, *axes)
