"""Σ|a − m| over many inputs for a centre m that is known only later, without keeping the inputs.

As a function of m the sum is convex and made of straight pieces. Its value and slope are kept at
knots around the mean of the inputs at hand: dense where the mean of all inputs should fall, a few
standard errors away, and wider apart as far as one standard deviation for inputs that differ from
the others. Between two knots the sum lies above both tangents and below the chord, so every answer
comes with a bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

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
    layers = [_of_layer(layer, valid) for layer in weights.unbind(1)]
    names, dims = ("middle", "error", "value", "slope"), (0, 0, 1, 1)
    found = {
        PREFIX + name: torch.stack(kept, dim)
        for name, dim, kept in zip(names, dims, zip(*layers, strict=True), strict=True)
    }
    return found | {PREFIX + "count": valid.sum(0)}


def _of_layer(weights: Tensor, valid: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Middle, error, values and slopes of one layer.

    Sorted once, the inputs on either side of a knot are a count and a difference of running sums;
    in float64 and from the middle, since weights may differ little.
    """
    seen = valid.T[None]  # head cell input
    count = seen.sum(-1)
    apart = weights.permute(1, 2, 0).double()
    middle = apart.sum(-1) / count.clamp(min=1)
    apart = (apart - middle[..., None]).masked_fill_(~seen, torch.inf).sort().values
    apart = apart.masked_fill_(apart == torch.inf, 0.0)
    error = (apart.square().sum(-1) / count.clamp(min=1).square()).sqrt().clamp(min=FINEST)
    return (middle, error, *_at_knots(apart, count, error))


def _at_knots(
    apart: Float[Tensor, "head cell input"], count: Tensor, error: Float[Tensor, "head cell"]
) -> tuple[Float[Tensor, "knot head cell"], Int[Tensor, "knot head cell"]]:
    """Value and slope from distances in rising order; places beyond the count hold zeros."""
    knots = torch.from_numpy(KNOTS).to(error) * error[..., None]
    running = torch.nn.functional.pad(apart.cumsum(-1), (1, 0))
    places = torch.arange(apart.shape[-1], device=apart.device)
    rising = apart.masked_fill(places >= count[..., None], torch.inf)
    below = torch.searchsorted(rising, knots, right=True)
    total, left = running[..., -1:], running.gather(-1, below)
    slope = 2 * below - count[..., None]
    value = knots * slope + total - 2 * left
    return value.permute(2, 0, 1), slope.permute(2, 0, 1).int()
