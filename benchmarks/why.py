"""Why the induction heads of mini-gpt2 look where they do, on random tokens said twice.

python -m benchmarks.why        numbers with 95 % intervals over sequences, and seconds
python -m benchmarks.why --device cuda --shape llama-8b --tokens 512 --dtype bfloat16
                                seconds of one weight of a random network, taken apart

The second is to take two seconds on a GPU. `--shape tiny --device cpu` shows that it works.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

import headscope as hs
from benchmarks.studies import GPU_INPUTS, make_model
from headscope.head import Head, read_head
from headscope.model.attention import LayerAttention
from headscope.model.capture.changes import switch_off
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.model.why import SIDES, Reasons, Source, compose, explain

INDUCTION = ("L5H5", "L6H5", "L7H6")
CONTROLS = ("", "L4H2", "L5H5", "L4H5")  # the last is a fixed head, for comparison
SHOWN = 4
WEIGHT_SECONDS = 2  # of one weight at Llama-8B's shape, on a GPU
Result = TypeVar("Result")


def said_twice(model: Model, sequences: int, period: int) -> Batch:
    """Random tokens of which each sequence says the same twice."""
    ids = np.random.default_rng(0).integers(500, 8000, (sequences, period))
    twice = torch.from_numpy(np.concatenate([ids, ids], axis=1))
    ones = torch.ones_like(twice, dtype=torch.bool)
    rows, lengths = tuple(range(sequences)), (2 * period,) * sequences
    return Batch(twice, ones, torch.zeros_like(twice), rows, lengths)


def share(parts: Tensor) -> str:
    """The share of a sum over sequences, ± half of its interval by the jackknife."""
    total, count = parts.double(), parts.shape[-1]
    left_out = (total.sum(-1, keepdim=True) - total).numpy()
    shares = left_out[0] / left_out[1]
    error = np.sqrt((count - 1) / count * ((shares - shares.mean()) ** 2).sum())
    return f"{float(total[0].sum() / total[1].sum()):5.1%} ± {1.96 * error:.1%}"


def print_lifts(reasons: Reasons, weights: Mapping[int, Tensor], name: str, period: int) -> None:
    """What lifts the key above its row, where a head picks what followed the same token before."""
    head = read_head(name)
    of_head = weights[head.layer][:, head.head]
    above_row = torch.zeros_like(of_head)
    for query in range(period, 2 * period):
        followed = query - period + 1  # what came after the same token before
        picks = (of_head[:, query].argmax(-1) == followed).float()
        above_row[:, query, : query + 1] = -picks[:, None] / (query + 1)
        above_row[:, query, followed] += picks
    for side in SIDES:
        _, parts = reasons.parts(head, side, above_row)
        print(f"{name} {side:6} {named(reasons.sources, parts, parts.sum(0))}")


def named(sources: Sequence[Source], parts: Tensor, total: Tensor) -> str:
    """The largest parts with their shares of a total, each by sequence."""
    order = parts.sum(1).argsort(descending=True)[:SHOWN].tolist()
    return ", ".join(f"{sources[n]} {share(torch.stack([parts[n], total]))}" for n in order)


def induction(model: Model, batch: Batch, name: str, period: int, without: str) -> Tensor:
    """The mean weight on what followed the same token, by sequence."""
    head, seen = read_head(name), {}
    removed = [read_head(without)] if without else []

    def keep(layer: LayerAttention) -> None:
        if layer.layer == head.layer:
            seen[0] = layer.weights[:, head.head]

    model.forward_changed(batch, partial(switch_off, removed, "zero"), keep, logits=False)
    return seen[0].diagonal(1 - period, 1, 2)[:, 1:].mean(-1)


def print_one_weight(shape: str, device: str, dtype: torch.dtype, tokens: int) -> None:
    """Seconds of one weight of the last layer of a random network, and of a plain pass."""
    model = make_model(shape, device, dtype)
    ids = torch.randint(10, 4000, (1, tokens), device=device)
    ones = torch.ones_like(ids, dtype=torch.bool)
    batch = Batch(ids, ones, torch.zeros_like(ids), (0,), (tokens,))
    labels = tuple(map(str, range(tokens)))
    head = Head(model.layers - 1, model.heads // 2)
    weight = partial(explain, model, batch, (labels, labels), head, tokens - 1, tokens // 2)
    proof, reason = wall_seconds(lambda: model.why_no_reasons, device)
    if reason is not None:
        raise SystemExit(f"{shape} cannot be taken apart: {reason}.")
    print(f"{shape}, {model.layers} × {model.heads} heads, {dtype}, {tokens} tokens, {device}")
    print(f"proof on the probe, once {proof:8.2f} s")
    plain = [wall_seconds(lambda: model.forward(batch, logits=False), device)[0] for _ in range(3)]
    print(f"a plain pass             {min(plain):8.2f} s")
    print(f"two frozen passes        {wall_seconds(lambda: model.freeze(batch), device)[0]:8.2f} s")
    first, why = wall_seconds(weight, device)
    again = [wall_seconds(weight, device)[0] for _ in range(3)]
    print(f"one weight, first        {first:8.2f} s")
    print(f"one weight, best of 3    {min(again):8.2f} s   (aim on a GPU: {WEIGHT_SECONDS} s)")
    parts, size = float(why.parts.sum()), float(np.abs(why.parts).sum())
    print(f"score {why.score:.4f}, its parts {parts:.4f}, of {size:.4f} without their signs")
    if device.startswith("cuda"):
        print(f"memory {torch.cuda.max_memory_allocated() / 1e9:.1f} GB with the weights")


def wall_seconds(run: Callable[[], Result], device: str) -> tuple[float, Result]:
    """What a call takes until the device has finished, and what it gives."""
    start = time.perf_counter()
    result = run()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def print_bundled(sequences: int, period: int) -> None:
    """Lifts, the composition, heads of mini-gpt2 switched off, and what all of it takes."""
    model = hs.load("mini-gpt2")
    batch = said_twice(model, sequences, period)
    weights: dict[int, Tensor] = {}
    start = time.process_time()
    model.forward(batch, lambda seen: weights.update({seen.layer: seen.weights.clone()}))
    plain = time.process_time() - start
    reasons = Reasons(model, batch)
    print("lift of the key above its row, where the head picks what followed the same token before")
    for name in INDUCTION:
        print_lifts(reasons, weights, name, period)
    print("share of the variance of scores over the keys of a row, second halves")
    second = torch.arange(2 * period).expand_as(batch.mask) >= period
    start = time.process_time()
    composition = compose(model, batch, second)
    seconds = time.process_time() - start
    for name in INDUCTION:
        head = read_head(name)
        variance = composition.variance[:, head.layer, head.head]
        parts = composition.covariance[:, head.layer, head.head, SIDES.index("key")].T
        print(f"{name} key    {named(composition.sources, parts, variance)}")
    print("induction score of L7H6")
    for without in CONTROLS:
        score = induction(model, batch, "L7H6", period, without)
        error = 1.96 * float(score.std()) / len(score) ** 0.5
        print(f"without {without or 'none':5} {float(score.mean()):.2f} ± {error:.2f}")
    print(f"composition: {seconds:.1f} CPU s, {seconds / plain:.0f} plain passes")


def main() -> None:
    """Print one weight's seconds, or lifts, compositions, heads switched off, and seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--period", type=int, default=32)
    parser.add_argument("--shape", choices=GPU_INPUTS, help="one weight of a random network")
    parser.add_argument("--device", default="cpu", help="with --shape")
    parser.add_argument("--tokens", type=int, default=512, help="with --shape")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    given = parser.parse_args()
    if given.shape:
        print_one_weight(given.shape, given.device, getattr(torch, given.dtype), given.tokens)
    else:
        print_bundled(given.sequences, given.period)


if __name__ == "__main__":
    main()
