"""The GPU kernels of packed batches beside their plain twins, on random texts.

python -m tests.tools.check_packed_kernels          on a GPU
TRITON_INTERPRET=1 python -m tests.tools.check_packed_kernels --device cpu
"""

import argparse
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from triton.runtime import interpreter  # pyright: ignore[reportMissingImports]

from headscope.model.attention import PackedAttention, Packing
from headscope.model.capture.gpu.packed import attend_plainly
from headscope.model.capture.gpu.packed_kernel import attend_on_gpu
from headscope.observe import (
    sum_keys_plainly,
    sum_offsets_plainly,
    sum_segments,
    weigh_pairs,
)
from headscope.observe.packed_kernel import (
    sum_keys_on_gpu,
    sum_offsets_on_gpu,
    sum_segments_on_gpu,
    weigh_pairs_on_gpu,
)


class _Numbers(type):
    """`int` for Triton's interpreter: numpy no longer makes a number of an array of one."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, int)

    def __call__(cls, value: Any) -> int:
        return int(value.item() if isinstance(value, np.ndarray) else value)


class _Int(metaclass=_Numbers):
    pass


LENGTHS = ((1,), (5, 1, 9), (40, 33, 2), (70, 64, 3, 1, 20), (300,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    torch.set_float32_matmul_precision("highest")
    interpreter.int = _Int
    worst: dict[str, float] = {}
    for lengths, groups, width, is_causal in product(LENGTHS, (1, 3), (8, 24), (True, False)):
        for name, error in compare(lengths, groups, width, is_causal, device).items():
            worst[name] = max(worst.get(name, 0.0), error)
    for name, error in worst.items():
        print(f"{name:12s} differs by at most {error:.1e}")
    if max(worst.values()) > 1e-5:
        raise SystemExit("too far apart")


def compare(
    lengths: tuple[int, ...], groups: int, width: int, is_causal: bool, device: str
) -> dict[str, float]:
    """How far every kernel is from its twin, relative to the largest value."""
    generator = torch.Generator().manual_seed(sum(lengths) + width)
    mask = torch.arange(max(lengths) + 1) < torch.tensor(lengths)[:, None]
    packing = Packing.of(mask.flip(1) if width == 8 else mask)
    packing = packing.to(torch.device(device))
    tokens = sum(lengths)

    def draw(heads: int) -> Tensor:
        """Side by side with other numbers, as where one product gives queries, keys and values."""
        return torch.randn(tokens, heads + 3, width, generator=generator).to(device)[:, 1:-2]

    query, key, value = draw(2 * groups) * 2, draw(2), draw(2)
    kind = "causal" if is_causal else "full"
    given = (query, key, value, 0.3, kind, packing)
    output, lse = attend_plainly(*given)
    found_output, found_lse = attend_on_gpu(*given)
    attention = PackedAttention("self", 0, query, key, 0.3, lse, kind, packing)
    content = (torch.rand(tokens, generator=generator) > 0.2).to(device)
    row_weights = torch.rand(2 * groups, tokens, generator=generator).to(device)
    queries = torch.randint(0, tokens, (100,), generator=generator).int().to(device)
    keys = torch.randint(-1, tokens, (100,), generator=generator).int().to(device)
    first_peak_token = groups // 2  # 0 or 1
    counting = replace(attention, lse=lse.masked_fill(~content, torch.inf))
    sums = sum_keys_plainly(counting, content, row_weights, first_peak_token)
    found = sum_keys_on_gpu(counting, content, row_weights, first_peak_token)
    errors = {
        "output": _apart(found_output, output),
        "lse": _apart(found_lse, lse),
        "pairs": _apart(
            weigh_pairs_on_gpu(attention, queries, keys), weigh_pairs(attention, queries, keys)
        ),
    }
    offsets = range(0 if is_causal else -40, 41)
    errors["offsets"] = _apart(
        sum_offsets_on_gpu(counting, content, offsets),
        sum_offsets_plainly(counting, content, offsets),
    )
    for name in ("columns", "scores", "distance", "peak"):
        errors[name] = _apart(getattr(found, name), getattr(sums, name))
    firsts, weights = packing.firsts.long(), row_weights
    segments = sum_segments_on_gpu(weights, firsts)
    errors["segments"] = _apart(segments, sum_segments(weights.cpu(), firsts.cpu()).to(device))
    return errors


def _apart(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6))


if __name__ == "__main__":
    main()
