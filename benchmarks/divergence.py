"""Pairwise divergence of all heads on one segment: ours, the entropy form and the two-KL form.

python -m benchmarks.divergence        one core, all ways side by side; for a GPU see gpu_divergence

Last comes the map of 1,024 heads that follows from their divergences.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.spatial.distance import cdist

from headscope.metrics.divergence import (
    SMOOTHING,
    choose_implementation,
    cut_blocks,
    divergence,
    divergence_of_sums,
    sum_middles,
)
from headscope.metrics.scaling import scale_to_plane, stress


def segment(heads: int, tokens: int) -> torch.Tensor:
    scores = torch.randn(heads, tokens, tokens, generator=torch.Generator().manual_seed(0)) * 2
    return scores.softmax(-1)


def smoothed(weights: torch.Tensor) -> np.ndarray:
    return ((1 - SMOOTHING) * weights + SMOOTHING / weights.shape[-1]).numpy()


def entropy_form(weights: torch.Tensor) -> np.ndarray:
    """Plain numpy: one logarithm for every element of every pair of heads."""
    p = smoothed(weights)
    own = -(p * np.log(p)).sum((1, 2))
    found = np.zeros((len(p), len(p)))
    for i in range(len(p) - 1):
        middle = (p[i] + p[i + 1 :]) / 2
        found[i, i + 1 :] = -(middle * np.log(middle)).sum((1, 2)) - (own[i] + own[i + 1 :]) / 2
    return found + found.T


def two_kl_form(weights: torch.Tensor) -> np.ndarray:
    """½ KL(p‖m) + ½ KL(q‖m) for every ordered pair, as the definition is usually written."""
    p = smoothed(weights)
    found = np.zeros((len(p), len(p)))
    for i in range(len(p)):
        middle = (p[i] + p) / 2
        left = (p[i] * np.log(p[i] / middle)).sum((1, 2))
        right = (p * np.log(p / middle)).sum((1, 2))
        found[i] = (left + right) / 2
    return found


def by_torch(weights: torch.Tensor) -> np.ndarray:
    return divergence_of_sums(sum_middles(cut_blocks(weights, False, SMOOTHING))).numpy()


def seconds(run: Callable[[], object], repeats: int) -> float:
    run()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def compare_on_one_core(heads: int, tokens: int, repeats: int) -> None:
    torch.set_num_threads(1)
    weights = segment(heads, tokens)
    exact = two_kl_form(weights.double())
    implementation = choose_implementation(weights.device)
    kernel = "compiled kernel" if implementation == "numba" else "plain torch, no numba here"
    ways = {
        f"headscope ({kernel})": lambda: divergence(weights, causal=False).numpy(),
        "headscope (plain torch)": lambda: by_torch(weights),
        "numpy, entropy form": lambda: entropy_form(weights),
        "numpy, two-KL form": lambda: two_kl_form(weights),
    }
    times = {name: seconds(run, repeats) for name, run in ways.items()}
    ours = next(iter(times.values()))
    off = ~np.eye(heads, dtype=bool)
    print(f"{heads} heads × {tokens} tokens, one core, float32, best of {repeats}")
    for name, taken in times.items():
        error = (np.abs(ways[name]() - exact)[off] / exact[off]).max()
        print(f"{name:45} {1e3 * taken:9.1f} ms   {taken / ours:6.1f} ×   error {error:.0e}")


def print_map(heads: int) -> None:
    """Seconds of a map of many heads, with random places in eight dimensions as what they do."""
    points = np.random.default_rng(0).normal(size=(heads, 8))
    distances = cdist(points, points)
    distances /= distances.max()
    wall, cpu = time.perf_counter(), time.process_time()
    places = scale_to_plane(distances)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"map of {heads:,} heads: {wall:.1f} s, {cpu:.1f} s of a core, "
          f"stress {stress(places, distances):.3f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    compare_on_one_core(options.heads, options.tokens, options.repeats)
    print_map(1024)


if __name__ == "__main__":
    main()
