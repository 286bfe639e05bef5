"""Metric multidimensional scaling: points on a plane whose distances are near to given ones.

Majorisation (de Leeuw 1977) follows a start downhill and stops in the valley where it began. The
classical solution (Torgerson 1952) lies in a good one. The starts are those of the distances as
they are, drawn together and pulled apart: from the best of them descents end lower than from random
places, as a rule, and nothing in the map is random.
"""

from itertools import combinations

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh

AXES = 3  # of a classical solution; every two of them are a start
POWERS = (0.5, 1.0, 1.5)  # of the distances that have one
FIRST_STEPS, FOLLOWED = 25, 3  # of all starts, and how many of them are followed to their end
STEPS = 500
ENOUGH = 1e-6  # share of the misfit by which five steps have to lower it
NEAREST = 1e-9  # points that are closer count as that far apart

Distances = Float[np.ndarray, "unit unit"]
Places = Float[np.ndarray, "unit axis"]


def scale_to_plane(distances: Distances) -> Places:
    """The best of the maps from several starts, its centre at zero."""
    targets = distances.astype(np.float32)  # half of the time; a map has no sixth digit
    begun: list[tuple[float, Places]] = []
    for power in POWERS:
        axes = classical_axes(distances**power)
        for pair in combinations(range(axes.shape[1]), 2):
            begun.append(majorise(targets, axes[:, list(pair)], FIRST_STEPS))
    begun.sort(key=lambda descent: descent[0])
    ends = [majorise(targets, places, STEPS) for _, places in begun[:FOLLOWED]]
    _, best = min(ends, key=lambda descent: descent[0])
    return (best - best.mean(0)).astype(np.float64)


def classical_axes(distances: Distances) -> Places:
    """The first axes of the classical solution, the longest first.

    Along each the largest entry is positive. Distances that no space has give squared lengths below
    zero, whose absolute value serves as a start as well.
    """
    squares = np.square(distances, dtype=np.float64)
    means = squares.mean(0)
    products = -(squares - means - means[:, None] + squares.mean()) / 2
    count = len(distances)
    lengths, axes = eigh(products, subset_by_index=(count - AXES, count - 1))
    signs = np.sign(axes[np.abs(axes).argmax(0), np.arange(AXES)])
    return (axes * signs * np.sqrt(np.abs(lengths)))[:, ::-1]


def majorise(targets: Distances, places: Places, steps: int) -> tuple[float, Places]:
    """Move points until five steps lower the misfit by next to nothing; the misfit, and the places.

    Four steps of five go twice as far, which is never uphill and halves their number; before the
    misfit is compared comes a plain one.
    """
    places = places.astype(np.float32)
    apart, across = np.empty_like(targets), np.empty_like(targets)
    before = misfit = np.inf
    for step in range(steps + 1):
        _set_distances(places, apart, across)
        if step % 5 == 0:
            np.subtract(apart, targets, out=across)
            misfit = float(np.square(across, out=across).sum())
            if step == steps or before - misfit <= ENOUGH * misfit:
                break
            before = misfit
        np.maximum(apart, NEAREST, out=apart)
        pull = np.divide(targets, apart, out=apart)
        # Not a product of matrices: its threads would wait for each other longer than they compute.
        pulled = [np.einsum("ij,j->i", pull, axis) for axis in places.T.copy()]
        moved = (pull.sum(1, keepdims=True) * places - np.stack(pulled, axis=1)) / len(places)
        places = moved if step % 5 == 4 else 2 * moved - places
    return misfit, places


def _set_distances(places: Places, apart: Distances, across: Distances) -> None:
    """Write the distances of all points into `apart`; `across` is room to compute in."""
    np.subtract.outer(places[:, 0], places[:, 0], out=apart)
    np.subtract.outer(places[:, 1], places[:, 1], out=across)
    np.square(apart, out=apart)
    apart += np.square(across, out=across)
    np.sqrt(apart, out=apart)


def stress(places: Places, distances: Distances) -> float:
    """Kruskal's stress: how far distances on the map are from the given ones, 0 a perfect fit."""
    apart, across = np.empty_like(distances), np.empty_like(distances)
    _set_distances(places, apart, across)
    return float(np.sqrt(np.square(apart - distances).sum() / np.square(apart).sum()))
