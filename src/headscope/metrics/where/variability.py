"""Whether a head's attention depends on content or on position (Vig & Belinkov 2019, Eq. 5).

Σ|a[i,j] − ā[i,j]| / (2 Σ a[i,j]) over the first N positions, where ā is the mean over the inputs
that have the pair. The mean is known only at the end: a small shard records the N×N corner of every
input, a large one Σ|a − m| as a function of the mean m.

That function is convex and made of straight pieces. Its value and slope are kept at knots around
the mean of the inputs at hand: dense where the mean of all inputs should fall, a few standard
errors away, and wider apart as far as one standard deviation for inputs that differ from the
others. Between two knots the sum lies above both tangents and below the chord, so every answer
comes with a bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics import ratio
from headscope.metrics.metric import GROUP, Grid, Records, State, Sums, Variables, add, label
from headscope.model.attention import send
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure, Published
from headscope.results.replicates import GROUPS

VARIABILITY = Measure(
    "variability",
    title="Variability",
    meaning="0: the same positions in every input; 1: content decides.",
    formula="Σ |a[i, j] − ā[i, j]| / (2 Σ a[i, j]) over the first 10 positions; ā is the mean over "
    "the inputs that have the pair",
    reference="Vig & Belinkov 2019, Eq. 5, Fig. 10",
    cost="100 weights of every input and head are held until the end of a shard",
    more="depends more on content than on position",
    published=(Published("lowest, in L4H11", "GPT-2 small, Vig & Belinkov 2019", 0.004),),
)

FEW = 1024  # inputs of a shard whose corners take little more room than sums at knots


@dataclass(frozen=True)
class Variability:
    """0 for a head that looks at the same positions in every input, 1 at most."""

    grid: Grid
    is_causal: bool
    size: int = 10  # N, counted from the start of the input, the null token included
    name: str = "variability"
    measures: tuple[Measure, ...] = (VARIABILITY,)
    merge = staticmethod(add)

    def zero(self, inputs: int) -> State:
        """Room for one corner per input."""
        layers, heads = self.grid.shape
        cells = len(self._cells)
        sums = {"weight": np.zeros((layers, heads, cells)), "count": np.zeros((layers, 1, cells))}
        corners = np.zeros((inputs, layers, heads, cells), np.float32)
        valid, group = np.zeros((inputs, cells), bool), np.zeros((inputs, 1), np.int64)
        return State(sums, {"corners": corners, "valid": valid, "group": group})

    def update_layer(self, state: State, layer: Layer) -> None:
        """Record and sum the corners of a batch."""
        query, key, valid = layer.batch.once_on_host(f"corner {self.size}", self._corner)
        corner = layer.corner(self.size, query, key).masked_fill(~valid[:, None], 0.0)
        rows = layer.batch.once_on_host("rows", lambda batch: torch.from_numpy(batch.rows))
        here = slice(None, len(query))  # cells are in the order of the input's length
        state.record("corners", (rows, layer.index, slice(None), here), corner)
        state.add("weight", corner.sum(0, dtype=torch.float64), (layer.index, slice(None), here))
        if layer.index == 0:  # the same in all
            state.record("valid", (rows, here), valid)
            state.record("group", (rows,), layer.batch.groups[:, None])
            state.add("count", valid.sum(0, dtype=torch.float64), (slice(None), 0, here))

    def condense(self, state: State) -> None:
        """Replace the corners of a large shard by sums that need no input of their own."""
        if len(state.records["corners"]) <= FEW:
            return
        corners, valid, group = map(state.take, ("corners", "valid", "group"))
        kept = keep_deviations(corners, valid)
        kept |= _by_group(corners, valid, group[:, 0], kept[MIDDLE])
        for name, values in kept.items():
            state.receive(partial(state.records.__setitem__, name), values)

    def _corner(self, batch: AnnotatedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys of the cells that a batch can have, and which of its inputs do."""
        cells = self._cells
        cells = cells[cells.max(1) < batch.mask.shape[1]]
        query, key = torch.from_numpy(cells.T.copy()).to(batch.mask.device)
        return query, key, batch.pairs_of(0, self.size)[:, query, key]

    def compute(self, sums: Sums, records: Records) -> Variables:
        """variability(layer, head), its error taking the mean as known, and the sums."""
        mean = sums["weight"] / np.maximum(sums["count"], 1)
        total = ratio.zero((GROUPS, *self.grid.shape), (GROUPS, *self.grid.shape))
        for shard in records():
            terms = _exact_terms if "corners" in shard else _condensed_terms
            total = add(total, terms(shard, mean))
        x, y = (label(values, GROUP, *self.grid.axes) for values in total.values())
        return ratio.ratio_variables(self.name, x, y)

    @property
    def _cells(self) -> np.ndarray:
        """(query, key) of every cell that can count, the shortest input's cells first."""
        query, key = np.indices((self.size, self.size)).reshape(2, -1)
        cells = np.stack([query, key], 1)[(key <= query) & (key > 0) | (not self.is_causal)]
        return cells[np.argsort(cells.max(1), kind="stable")]


def _exact_terms(shard: Mapping[str, np.ndarray], mean: np.ndarray) -> Sums:
    """Terms of the ratio for the inputs of a shard whose corners were recorded."""
    corners = torch.from_numpy(np.ascontiguousarray(shard["corners"]))
    valid = torch.from_numpy(np.ascontiguousarray(shard["valid"]))
    group = torch.from_numpy(shard["group"][:, 0].copy())
    off = _distances(corners, valid, torch.from_numpy(mean).float())
    numerator, denominator = ratio.sum_by_group(off, group), _paid(corners, group)
    return {ratio.NUMERATOR: numerator.numpy(), ratio.DENOMINATOR: denominator.numpy()}


def _condensed_terms(shard: Mapping[str, np.ndarray], mean: np.ndarray) -> Sums:
    """Terms of the ratio from sums: the whole is as exact as the knots, its groups are shares.

    A group's own sum is that around the mean of the shard, moved along its slope.
    """
    whole, _ = Deviations.unpack(shard).at(mean)
    moved = (shard["group_slope"] * (mean - shard[MIDDLE])).sum(-1)
    by_group = np.maximum(shard["group_off"] + moved, 0.0)
    total = by_group.sum(0)
    scale = np.divide(whole.sum(-1), total, out=np.ones_like(total), where=total > 0)
    return {ratio.NUMERATOR: by_group * scale, ratio.DENOMINATOR: shard["group_paid"]}


def _by_group(corners: Tensor, valid: Tensor, group: Tensor, middle: Tensor) -> dict[str, Tensor]:
    """What every group of documents contributes around the mean of the shard."""
    centres = middle.float()
    found: dict[str, list[Tensor]] = {"group_off": [], "group_slope": []}
    for index, centre in enumerate(centres):  # layer by layer: the corners fill enough memory
        layer = corners[:, index : index + 1]
        side = torch.where(layer > centre, -1.0, 1.0).masked_fill_(~valid[:, None, None], 0.0)
        off = _distances(layer, valid, centre)
        found["group_off"].append(ratio.sum_by_group(off, group))
        found["group_slope"].append(ratio.sum_by_group(side, group).float())
    joined = {name: torch.cat(parts, 1) for name, parts in found.items()}
    return joined | {"group_paid": _paid(corners, group)}


def _distances(corners: Tensor, valid: Tensor, centre: Tensor) -> Tensor:
    """Σ over cells of |a − centre|, for every input and head."""
    off = (corners - centre).abs_().masked_fill_(~valid[:, None, None], 0.0)
    return off.sum(-1, dtype=torch.float64)


def _paid(corners: Tensor, group: Tensor) -> Tensor:
    return ratio.sum_by_group(2 * corners.sum(-1, dtype=torch.float64), group)


_NEAR = np.linspace(0.25, 4, 16)  # standard errors of the mean
_FAR = np.array([5, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128])
KNOTS = np.concatenate([-_FAR[::-1], -_NEAR[::-1], [0.0], _NEAR, _FAR])
FINEST = 2.0**-40  # a standard error of at least this: equal weights lie between two knots
PREFIX = "knots/"
MIDDLE = PREFIX + "middle"


@dataclass(frozen=True)
class Deviations:
    """The sum at every knot, for every cell of every head."""

    middle: np.ndarray  # (head…, cell): the mean of the inputs at hand
    error: np.ndarray  # (head…, cell): its standard error, the unit of the knots
    count: np.ndarray  # (cell): inputs
    value: np.ndarray  # (knot, head…, cell)
    slope: np.ndarray  # (knot, head…, cell): inputs at or below the knot less those above

    def at(self, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ|a − centre| for every cell, and how far off it can be at most."""
        place = (centre - self.middle) / self.error
        right = np.clip(np.searchsorted(KNOTS, place), 1, len(KNOTS) - 1)
        ends = [self._knot(right - 1), self._knot(right)]
        inside = _between(centre, *ends)
        beyond = (place < KNOTS[0], place > KNOTS[-1])
        outside = [_past(centre, end, self.count) for end in ends]
        return tuple(  # pyright: ignore[reportReturnType]
            np.select(beyond, [outside[0][n], outside[1][n]], inside[n]) for n in range(2)
        )

    def _knot(self, index: np.ndarray) -> "_Knot":
        place = self.middle + self.error * KNOTS[index]
        value, slope = (
            np.take_along_axis(kept, index[None], 0)[0] for kept in (self.value, self.slope)
        )
        return _Knot(place, value, slope.astype(float))

    @classmethod
    def unpack(cls, arrays: Mapping[str, np.ndarray]) -> "Deviations":
        """What `keep_deviations` found."""
        return cls(**{name: arrays[PREFIX + name] for name in cls.__annotations__})


@dataclass(frozen=True)
class _Knot:
    place: np.ndarray
    value: np.ndarray
    slope: np.ndarray


def _between(centre: np.ndarray, left: _Knot, right: _Knot) -> tuple[np.ndarray, np.ndarray]:
    """The cubic with the values and slopes of both knots, kept within what is possible."""
    width = right.place - left.place
    t = (centre - left.place) / width
    chord = left.value + t * (right.value - left.value)
    tangent = np.maximum(
        left.value + left.slope * (centre - left.place),
        right.value + right.slope * (centre - right.place),
    )
    lift = right.value - left.value
    bend = t * (1 - t) * ((1 - t) * (left.slope * width - lift) - t * (right.slope * width - lift))
    found = np.clip(chord + bend, tangent, np.maximum(chord, tangent))
    return found, np.maximum(chord - found, found - tangent).clip(min=0)


def _past(centre: np.ndarray, end: _Knot, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tangent of the outermost knot; no slope is steeper than the number of inputs."""
    away = np.abs(centre - end.place)
    tangent = end.value + end.slope * (centre - end.place)
    return tangent, np.maximum(count - np.abs(end.slope), 0) * away


def keep_deviations(
    weights: Float[Tensor, "input layer head cell"], valid: Bool[Tensor, "input cell"]
) -> dict[str, Tensor]:
    """The arrays of `Deviations` by name, for the file of a shard.

    Every weight of a cell that an input lacks must be zero.
    """
    knots = send(torch.from_numpy(KNOTS), weights.device)  # once: a GPU is not waited for
    layers = [_of_layer(layer, valid, knots) for layer in weights.unbind(1)]
    names, dims = ("middle", "error", "value", "slope"), (0, 0, 1, 1)
    found = {
        PREFIX + name: torch.stack(kept, dim)
        for name, dim, kept in zip(names, dims, zip(*layers, strict=True), strict=True)
    }
    return found | {PREFIX + "count": valid.sum(0)}


def _of_layer(
    weights: Tensor, valid: Tensor, knots: Float[Tensor, "knot"]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Middle, error, values and slopes of one layer.

    Sorted once, the inputs on either side of a knot are a count and a difference of running sums;
    in float64 and from the middle, since weights may differ little.
    """
    seen = valid.T[None]  # head cell input
    count = seen.sum(-1)
    own = weights.permute(1, 2, 0)
    middle = own.sum(-1, dtype=torch.float64) / count.clamp(min=1)
    rising = own.masked_fill(~seen, torch.inf).sort().values  # in float32, half as wide
    apart = (rising.double() - middle[..., None]).masked_fill_(rising == torch.inf, 0.0)
    error = (apart.square().sum(-1) / count.clamp(min=1).square()).sqrt().clamp(min=FINEST)
    return (middle, error, *_at_knots(apart, count, knots * error[..., None]))


def _at_knots(
    apart: Float[Tensor, "head cell input"], count: Tensor, knots: Float[Tensor, "head cell knot"]
) -> tuple[Float[Tensor, "knot head cell"], Int[Tensor, "knot head cell"]]:
    """Value and slope from distances in rising order; places beyond the count hold zeros."""
    running = torch.nn.functional.pad(apart.cumsum(-1), (1, 0))
    places = torch.arange(apart.shape[-1], device=apart.device)
    rising = apart.masked_fill(places >= count[..., None], torch.inf)
    below = torch.searchsorted(rising, knots, right=True)
    total, left = running[..., -1:], running.gather(-1, below)
    slope = 2 * below - count[..., None]
    value = knots * slope + total - 2 * left
    return value.permute(2, 0, 1), slope.permute(2, 0, 1).int()
