"""Why the induction heads of mini-gpt2 look where they do, on random tokens said twice.

python -m benchmarks.why        numbers with 95 % intervals over sequences, and seconds
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

import headscope as hs
from headscope.head import read_head
from headscope.model.attention import LayerAttention
from headscope.model.capture.changes import switch_off
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.model.why import SIDES, Reasons, Source, compose

INDUCTION = ("L5H5", "L6H5", "L7H6")
CONTROLS = ("", "L4H2", "L5H5", "L4H5")  # the last is a fixed head, for comparison
SHOWN = 4


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


def main() -> None:
    """Print lifts, the composition, heads switched off, and what all of it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--period", type=int, default=32)
    given = parser.parse_args()
    model = hs.load("mini-gpt2")
    batch = said_twice(model, given.sequences, given.period)
    weights: dict[int, Tensor] = {}
    start = time.process_time()
    model.forward(batch, lambda seen: weights.update({seen.layer: seen.weights.clone()}))
    plain = time.process_time() - start
    reasons = Reasons(model, batch)
    print("lift of the key above its row, where the head picks what followed the same token before")
    for name in INDUCTION:
        print_lifts(reasons, weights, name, given.period)
    print("share of the variance of scores over the keys of a row, second halves")
    second = torch.arange(2 * given.period).expand_as(batch.mask) >= given.period
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
        score = induction(model, batch, "L7H6", given.period, without)
        error = 1.96 * float(score.std()) / len(score) ** 0.5
        print(f"without {without or 'none':5} {float(score.mean()):.2f} ± {error:.2f}")
    print(f"composition: {seconds:.1f} CPU s, {seconds / plain:.0f} plain passes")


if __name__ == "__main__":
    main()
