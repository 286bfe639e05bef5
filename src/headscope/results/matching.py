"""Which head of one network does what a head of another does: matching by behaviour, not by number.

A head's profile is all that two runs both measured of it, each slice of a measure standardised over
the heads of both networks. The distance of two heads is the root mean square difference of their
profiles. Of all ways to give every head of the smaller network a partner of its own, the matching
takes the one with the smallest total distance (Kuhn 1955).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from headscope.errors import RunError
from headscope.heads import Head
from headscope.results.measure import measure_names
from headscope.results.slices import slices

CHANCE = 0.05  # a partner no nearer than this share of arbitrary pairs is none
FEWEST_SLICES = 2


@dataclass(frozen=True)
class Profiles:
    """The heads of two networks by what both runs measured."""

    first: tuple[Head, ...]
    second: tuple[Head, ...]
    columns: tuple[str, ...]  # slices, NAME~LABEL
    first_values: Float[np.ndarray, "head column"]
    second_values: Float[np.ndarray, "head column"]


@dataclass(frozen=True)
class Match:
    """A head, its partner in the other network, and how alike they are."""

    first: Head
    second: Head
    distance: float  # root mean square difference, in standard deviations over heads
    chance: float  # share of arbitrary pairs of heads that are at least as near

    @property
    def is_good(self) -> bool:
        """Whether the pair is nearer than arbitrary pairs are."""
        return self.chance <= CHANCE


@dataclass(frozen=True)
class Matching:
    """Every head of the smaller network with its partner, and the heads that have none."""

    matches: tuple[Match, ...]  # the best first
    first_alone: tuple[Head, ...]
    second_alone: tuple[Head, ...]
    columns: tuple[str, ...]
    arbitrary: float  # mean distance of arbitrary pairs: what no likeness at all looks like

    @property
    def mean_distance(self) -> float:
        """Of all matched pairs."""
        return float(np.mean([match.distance for match in self.matches]))


def match_heads(first: xr.Dataset, second: xr.Dataset) -> Matching:
    """The heads of two results paired by what they do, of whatever shapes the networks are."""
    profiles = shared_profiles(first, second)
    distances = _distances(profiles.first_values, profiles.second_values)
    left, right = linear_sum_assignment(distances)
    spread = np.sort(distances.ravel())
    matches = [
        Match(
            profiles.first[i],
            profiles.second[j],
            float(distances[i, j]),
            float(np.searchsorted(spread, distances[i, j], side="right") / spread.size),
        )
        for i, j in zip(left, right, strict=True)
    ]
    matches.sort(key=lambda match: (match.distance, match.first))
    return Matching(
        tuple(matches),
        _without(profiles.first, left),
        _without(profiles.second, right),
        profiles.columns,
        float(distances.mean()),
    )


def shared_profiles(first: xr.Dataset, second: xr.Dataset) -> Profiles:
    """What both runs know of every head, without slices that one lacks or that never vary."""
    a, b = _table(first), _table(second)
    shared = [name for name in a if name in b]
    left, right = (np.stack([table[name] for name in shared], 1) if shared else np.zeros((0, 0))
                   for table in (a, b))  # fmt: skip
    both = np.concatenate([left, right]) if shared else left
    spread = both.std(0) if shared else np.zeros(0)
    known = np.isfinite(spread) & (spread > 0)
    if known.sum() < FEWEST_SLICES:
        raise RunError(
            "The two runs share too few measures of heads to match them by what they do; "
            "run the same study on both models."
        )
    middle, scale = both[:, known].mean(0), spread[known]
    return Profiles(
        heads_of(first),
        heads_of(second),
        tuple(name for name, keep in zip(shared, known, strict=True) if keep),
        (left[:, known] - middle) / scale,
        (right[:, known] - middle) / scale,
    )


def heads_of(result: xr.Dataset) -> tuple[Head, ...]:
    """All heads in the order of a flattened layer × head array."""
    layers, heads = result["layer"].values, result["head"].values
    return tuple(Head(int(layer), int(head)) for layer in layers for head in heads)


def _table(result: xr.Dataset) -> dict[str, np.ndarray]:
    """The values of every slice over all heads; slices unknown for some head are left out."""
    found = {
        cut.spec: cut.values.values.ravel()
        for name in measure_names(result)
        for cut in slices(result, name)
    }
    return {spec: values for spec, values in found.items() if np.isfinite(values).all()}


def _distances(
    first: Float[np.ndarray, "head column"], second: Float[np.ndarray, "other column"]
) -> Float[np.ndarray, "head other"]:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    return np.sqrt(np.maximum(squares, 0) / first.shape[1])


def _without(heads: Sequence[Head], taken: np.ndarray) -> tuple[Head, ...]:
    return tuple(head for place, head in enumerate(heads) if place not in set(taken.tolist()))
