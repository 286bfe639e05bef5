"""Which head of one network does what a head of another does: matching by behaviour, not by number.

A head's profile is all that two runs both measured of it, each slice of a measure standardised over
the heads of both networks. The distance of two heads is the root mean square difference of their
profiles. Of all ways to give every head of the smaller network a partner of its own, the matching
takes the one with the smallest total distance (Kuhn 1955).

Of many heads some pair is always near. How near is told by networks that have nothing to do with
each other: the second one's heads with every principal component of their profiles dealt out anew,
matched in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.measure import measure_names
from headscope.results.slices import Slice, slices

CHANCE = 0.05  # a partner no nearer than this share of the matches of strangers is none
STRANGERS = 20  # networks made up to match with
FEWEST_SLICES = 2
FEWEST_HEADS = 0.5  # share of the heads that a slice must be known of
FAR = 1e6  # distance of heads of which nothing in common is known


@dataclass(frozen=True)
class Profiles:
    """The heads of two networks by what both runs measured; NaN is unknown."""

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
    chance: float  # share of the matches of strangers that are at least as near

    @property
    def is_good(self) -> bool:
        """Whether the pair is nearer than matched strangers are."""
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
    left, right = _assign(distances)
    strange = _strange_distances(profiles.first_values, profiles.second_values)
    matches = [
        Match(
            profiles.first[i],
            profiles.second[j],
            float(distances[i, j]),
            float(np.searchsorted(strange, distances[i, j], side="right") / strange.size),
        )
        for i, j in zip(left, right, strict=True)
    ]
    matches.sort(key=lambda match: (match.distance, match.first))
    return Matching(
        tuple(matches),
        _without(profiles.first, left),
        _without(profiles.second, right),
        profiles.columns,
        float(distances[distances < FAR].mean()),
    )


def _assign(distances: Float[np.ndarray, "head other"]) -> tuple[np.ndarray, np.ndarray]:
    left, right = linear_sum_assignment(distances)
    known = distances[left, right] < FAR
    return left[known], right[known]


def _strange_distances(
    first: Float[np.ndarray, "head column"], second: Float[np.ndarray, "other column"]
) -> Float[np.ndarray, "match"]:
    """Distances of matched heads, in order, where the second network is dealt out anew."""
    random = np.random.default_rng(STRANGERS)
    left, (scores, sizes, directions) = (
        np.nan_to_num(first),
        np.linalg.svd(np.nan_to_num(second), full_matrices=False),
    )
    found = []
    for _ in range(STRANGERS):
        dealt = random.permuted(scores, axis=0) * sizes @ directions
        distances = _distances(left, dealt)
        found.append(distances[linear_sum_assignment(distances)])
    return np.sort(np.concatenate(found))


def shared_profiles(first: xr.Dataset, second: xr.Dataset) -> Profiles:
    """What both runs know of most heads, without slices that one lacks or that never vary."""
    a, b = _table(first), _table(second)
    shared = [name for name in a if name in b]
    if not shared:
        raise _too_few()
    left, right = (np.stack([table[name] for name in shared], 1) for table in (a, b))
    both = np.concatenate([left, right])
    middle, spread = np.nanmean(both, 0), np.nanstd(both, 0)
    known = spread > 1e-12
    if known.sum() < FEWEST_SLICES:
        raise _too_few()
    middle, spread = middle[known], spread[known]
    return Profiles(
        heads_of(first),
        heads_of(second),
        tuple(name for name, keep in zip(shared, known, strict=True) if keep),
        (left[:, known] - middle) / spread,
        (right[:, known] - middle) / spread,
    )


def _too_few() -> RunError:
    return RunError(
        "The two runs share too few measures of heads to match them by what they do; "
        "run the same study on both models."
    )


def heads_of(result: xr.Dataset) -> tuple[Head, ...]:
    """All heads in the order of a flattened layer × head array."""
    layers, heads = result["layer"].values, result["head"].values
    return tuple(Head(int(layer), int(head)) for layer in layers for head in heads)


def _table(result: xr.Dataset) -> dict[str, np.ndarray]:
    """The values of every slice over all heads, but for slices that tell heads apart by noise."""
    return {
        cut.spec: np.where(np.isfinite(cut.values.values), cut.values.values, np.nan).ravel()
        for name in measure_names(result)
        for cut in slices(result, name)
        if _tells_heads_apart(cut)
    }


def _tells_heads_apart(cut: Slice) -> bool:
    """Whether it is known of most heads, which differ by more than their errors."""
    values = cut.values.values[np.isfinite(cut.values.values)]
    if values.size < FEWEST_HEADS * cut.values.size:
        return False
    errors = np.array([]) if cut.errors is None else cut.errors.values
    errors = errors[np.isfinite(errors)]
    return not errors.size or float(values.std()) > float(np.median(errors))


def _distances(
    first: Float[np.ndarray, "head column"], second: Float[np.ndarray, "other column"]
) -> Float[np.ndarray, "head other"]:
    """Root mean square differences over what is known of both heads."""
    has, other = np.isfinite(first).astype(float), np.isfinite(second).astype(float)
    x, y = np.nan_to_num(first), np.nan_to_num(second)
    squares = x**2 @ other.T + has @ (y**2).T - 2 * x @ y.T
    count = has @ other.T
    with np.errstate(all="ignore"):
        return np.where(count > 0, np.sqrt(np.maximum(squares, 0) / count), FAR)


def _without(heads: Sequence[Head], taken: np.ndarray) -> tuple[Head, ...]:
    return tuple(head for place, head in enumerate(heads) if place not in set(taken.tolist()))
