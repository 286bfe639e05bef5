"""Pairwise divergence of all heads on one segment on a GPU: Triton kernel and plain torch.

python -m benchmarks.gpu_divergence                          144 heads × 128 tokens on CUDA
TRITON_INTERPRET=1 python -m benchmarks.gpu_divergence --device cpu --heads 20 --tokens 24

Times are medians over segments with other random weights, smoothing and cutting included, the
result left on the device as in a study. Errors are against the definition in float64.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from headscope.metrics import divergence_kernel
from headscope.metrics.divergence import SMOOTHING, cut_blocks, divergence_of_sums, sum_middles

SEGMENTS = 8


def segments(heads: int, tokens: int, device: str, causal: bool) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.ones(tokens, tokens).triu(1).bool() if causal else torch.zeros(1).bool()
    return [
        (torch.randn(heads, tokens, tokens, generator=generator) * 2)
        .masked_fill(hidden, -torch.inf)
        .softmax(-1)
        .to(device)
        for _ in range(SEGMENTS)
    ]


def plain(weights: Tensor) -> Tensor:
    """The entropy form in float64, one head against all others."""
    p = (1 - SMOOTHING) * weights.double() + SMOOTHING / weights.shape[-1]
    own = (p * p.log()).sum((1, 2))
    rows = []
    for i in range(len(p)):
        middle = (p[i] + p) / 2
        rows.append((own[i] + own) / 2 - (middle * middle.log()).sum((1, 2)))
    return torch.stack(rows)


def by_triton(weights: Tensor, causal: bool) -> Tensor:
    blocks = cut_blocks(weights, causal, SMOOTHING)
    return divergence_of_sums(divergence_kernel.sum_middles(blocks))


def by_torch(weights: Tensor, causal: bool) -> Tensor:
    return divergence_of_sums(sum_middles(cut_blocks(weights, causal, SMOOTHING)))


def milliseconds(run: Callable[[Tensor], Tensor], given: list[Tensor], repeats: int) -> float:
    taken = []
    for turn in range(repeats + 3):
        _wait(given[0])
        start = time.perf_counter()
        for weights in given:
            run(weights)
        _wait(given[0])
        if turn >= 3:
            taken.append((time.perf_counter() - start) / len(given))
    return 1e3 * statistics.median(taken)


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(f"{options.heads} heads × {options.tokens} tokens on {name}, torch {torch.__version__}")
    for causal in (False, True):
        given = segments(options.heads, options.tokens, options.device, causal)
        exact = plain(given[0])
        off = ~torch.eye(options.heads, dtype=torch.bool, device=exact.device)
        for way, run in (("Triton kernel", by_triton), ("plain torch", by_torch)):
            found = run(given[0], causal).to(exact.device)
            error = ((found - exact).abs()[off] / exact[off]).max()
            taken = milliseconds(partial(run, causal=causal), given, options.repeats)
            kind = "causal" if causal else "full"
            print(f"{kind:8s}{way:18s}{taken:9.3f} ms a segment   error {error:.0e}")


if __name__ == "__main__":
    main()
