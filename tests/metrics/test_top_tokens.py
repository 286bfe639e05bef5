"""Top tokens equal a loop over all pairs; merging equals one pass, also of shards that are cut."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.metrics import Grid, Sums, TopTokens, largest
from headscope.model.attention import PackedAttention, Packing
from headscope.observe import AnnotatedBatch, pack_layer
from tests.references.random_attention import (
    HEADS,
    LAYERS,
    Input,
    make_batch,
    make_layer_of,
    plain_batch,
    random_input,
)

VOCABULARY = 7
GRID = Grid((0,), HEADS)


def with_tokens(inputs: list[Input], rng: np.random.Generator) -> tuple[list, AnnotatedBatch]:
    """The inputs without null tokens, each token one of a small vocabulary."""
    ids = [rng.integers(0, VOCABULARY, each.length).tolist() for each in inputs]
    inputs = [replace(each, null=[False] * each.length) for each in inputs]
    batch = make_batch(inputs)
    width = batch.mask.shape[1]
    padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in ids])
    return ids, replace(batch, labels={"token": padded})


def plain_masses(inputs: list[Input], ids: list) -> tuple[dict, dict]:
    """Mass by side, head and token, and counts by token, pair by pair."""
    mass: dict = defaultdict(float)
    count: dict = defaultdict(int)
    for each, tokens in zip(inputs, ids, strict=True):
        for j in range(1, each.length):
            count[tokens[j]] += 1
        for head in range(HEADS):
            for i in range(each.length):
                for j in range(1, each.length):
                    mass["key", head, tokens[j]] += each.weights[0, head, i, j]
                    if i > 0:
                        mass["query", head, tokens[i]] += each.weights[0, head, i, j]
    return mass, count


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("kind", LAYERS)
def test_masses_shares_and_lifts_equal_a_loop_over_pairs(kind: str, is_causal: bool) -> None:
    rng = np.random.default_rng(0)
    inputs = [random_input(rng, is_causal) for _ in range(5)]
    ids, batch = with_tokens(inputs, rng)
    metric = TopTokens(GRID, VOCABULARY, ranks=VOCABULARY, least=2)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer_of(kind, inputs, batch))
    found = metric.compute(metric.merge(metric.zero(), metric.shrink(sums)))
    mass, count = plain_masses(inputs, ids)
    for side in ("query", "key"):
        for head in range(HEADS):
            own = {token: mass[side, head, token] for token in count}
            total = sum(own.values())
            share = {token: value / total for token, value in own.items() if value > 0}
            lift = {t: s / (count[t] / sum(count.values())) for t, s in share.items()}
            orders = {"mass": share, "lift": {t: v for t, v in lift.items() if count[t] >= 2}}
            for by, values in orders.items():
                at = {"layer": 0, "head": head, "side": side, "by": by}
                best = sorted(values, key=lambda token: -values[token])
                ranked = found["top_token"].sel(at).values
                assert ranked[ranked >= 0].tolist() == best
                for rank, token in enumerate(best):
                    place = at | {"top": rank}
                    assert float(found["top_token_share"].sel(place)) == pytest.approx(
                        share[token], rel=1e-5
                    )
                    assert float(found["top_token_lift"].sel(place)) == pytest.approx(
                        lift[token], rel=1e-5
                    )
                    assert int(found["top_token_count"].sel(place)) == count[token]


def shard(metric: TopTokens, seed: int) -> Sums:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, True) for _ in range(4)]
    _, batch = with_tokens(inputs, rng)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer_of("matrix", inputs, batch))
    return metric.shrink(sums)


def test_what_a_shard_leaves_out_is_in_the_total_and_not_in_the_lift() -> None:
    whole = TopTokens(GRID, VOCABULARY, ranks=3, least=1)
    cut = replace(whole, table=4 * 16 * HEADS)  # four tokens
    full, part = (
        {name: values.numpy() for name, values in shard(metric, 1).items()}
        for metric in (whole, cut)
    )
    assert len(part["id"]) == 4 < len(full["id"])
    rarest = sorted(full["count"])[:-4]
    assert part["count"].min() >= max(rarest)
    np.testing.assert_array_equal(part["total"], full["total"])
    for token, mass in zip(part["id"], np.moveaxis(part["mass"], -1, 0), strict=True):
        np.testing.assert_array_equal(mass, full["mass"][..., full["id"] == token][..., 0])
    both = [metric.merge(shard(metric, 1), shard(metric, 2)) for metric in (whole, cut)]
    assert both[1]["tokens"] == both[0]["tokens"]


def test_the_first_of_equal_values_is_the_first() -> None:
    assert largest(np.array([0.0, 2.0, 1.0, 2.0, 1.0]), 3).tolist() == [1, 3, 2]
    assert largest(np.array([0.0, 0.5]), 5).tolist() == [1]
    assert largest(np.array([0.3, 0.3 + 1e-7, 0.3 + 1e-3]), 3).tolist() == [2, 0, 1]


def test_weight_to_the_first_token_is_the_same_for_packed_texts() -> None:
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    query, key = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 5, 6)
    scores = query @ key.repeat_interleave(2, 1).mT * 0.4
    scores.masked_fill_(~mask[:, None, None, :], -torch.inf)
    packing = Packing.of(mask)
    lse = packing.pack(scores.logsumexp(-1).transpose(1, 2)).T
    parts = [packing.pack(part.transpose(1, 2)) for part in (query, key)]
    packed = PackedAttention("self", 0, parts[0], parts[1], 0.4, lse, "full", packing)
    layer = pack_layer(0, packed, replace(plain_batch(mask), arcs=torch.zeros(0, 3).long()))
    wanted = scores.softmax(-1)[..., 0].masked_fill(~mask[:, None], 0.0)
    torch.testing.assert_close(layer.to_first, wanted, rtol=1e-5, atol=1e-6)
