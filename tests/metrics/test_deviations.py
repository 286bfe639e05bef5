"""Sums of distances from a mean that is known later, beside sums over all inputs."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import ratio
from headscope.metrics.metric import Grid, State
from headscope.metrics.where.variability import FEW, Deviations, Variability, keep_deviations
from headscope.results.replicates import GROUPS

CELLS, HEADS = 45, 2
kinds = st.sampled_from(["smooth", "narrow", "skewed", "equal", "two", "repeated"])


def weights_of(rng: np.random.Generator, kind: str, inputs: int) -> np.ndarray:
    """Weights of every input in every cell, (input, layer, head, cell)."""
    shape = (inputs, 1, HEADS, CELLS)
    made = {
        "smooth": lambda: rng.beta(2, 5, shape),
        "narrow": lambda: 0.9 + 1e-4 * rng.random(shape),  # a head that looks at positions
        "skewed": lambda: rng.beta(0.2, 4, shape),
        "equal": lambda: np.broadcast_to(rng.random(shape[1:]), shape),
        "two": lambda: np.where(rng.random(shape) < 0.3, 0.75, 0.25),
        "repeated": lambda: np.where(rng.random(shape) < 0.05, 0.3, rng.beta(2, 5, shape)),
    }[kind]()
    return np.ascontiguousarray(made, dtype=np.float32)


def valid_of(rng: np.random.Generator, inputs: int) -> np.ndarray:
    return np.arange(CELLS) < rng.integers(CELLS // 2, CELLS + 1, (inputs, 1))


def plain_sum(weights: np.ndarray, valid: np.ndarray, centre: np.ndarray) -> np.ndarray:
    off = np.abs(weights.astype(float) - centre)
    return (off * valid[:, None, None]).sum(0)


@given(kinds, st.integers(0, 2**32 - 1), st.integers(1, 400), st.floats(-200, 200))
@settings(max_examples=60)
def test_the_sum_around_any_centre_is_within_its_bound(
    kind: str, seed: int, inputs: int, away: float
) -> None:
    rng = np.random.default_rng(seed)
    weights, valid = weights_of(rng, kind, inputs), valid_of(rng, inputs)
    weights *= valid[:, None, None]
    tensors = keep_deviations(torch.from_numpy(weights), torch.from_numpy(valid))
    kept = Deviations.unpack({name: tensor.numpy() for name, tensor in tensors.items()})
    centre = kept.middle + away * kept.error
    found, bound = kept.at(centre)
    wanted = plain_sum(weights, valid, centre)
    assert (np.abs(found - wanted) <= bound + 1e-12 * (1 + wanted)).all()


@given(st.sampled_from(["smooth", "narrow", "skewed", "repeated"]), st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_large_shards_keep_variability_to_a_millionth(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shards = [(weights_of(rng, kind, 4096), valid_of(rng, 4096)) for _ in range(3)]
    found, wanted = (variability(shards, condense=each) for each in (True, False))
    np.testing.assert_allclose(found["value"], wanted["value"], rtol=1e-6)
    np.testing.assert_allclose(found["error"], wanted["error"], rtol=2e-2)


def test_texts_that_change_along_the_corpus_cost_little_exactness() -> None:
    rng = np.random.default_rng(0)
    shards = [
        (weights_of(rng, "smooth", 4096) * np.float32(0.8 + 0.1 * n), valid_of(rng, 4096))
        for n in range(4)
    ]
    found, wanted = (variability(shards, condense=each) for each in (True, False))
    np.testing.assert_allclose(found["value"], wanted["value"], rtol=1e-5)


def test_what_a_large_shard_keeps_does_not_grow_with_its_inputs() -> None:
    rng = np.random.default_rng(0)
    sizes = []
    for inputs in (FEW, FEW + 1, 2 * FEW):
        state = state_of(weights_of(rng, "smooth", inputs), valid_of(rng, inputs), condense=True)
        sizes.append(sum(values.nbytes for values in state.records.values()))
    assert sizes[1] == sizes[2] < sizes[0]


def state_of(weights: np.ndarray, valid: np.ndarray, *, condense: bool) -> State:
    """The state after a shard whose corners are given."""
    weights = weights * valid[:, None, None]
    metric = Variability(Grid((0,), HEADS), is_causal=True)
    state = metric.zero(len(weights))
    state.records["corners"][:] = weights
    state.records["valid"][:] = valid
    state.records["group"][:, 0] = np.arange(len(weights)) % GROUPS
    state.sums["weight"][:] = weights.sum(0, dtype=float)
    state.sums["count"][:] = valid.sum(0)
    if condense:
        metric.condense(state)
    return state


def variability(
    shards: list[tuple[np.ndarray, np.ndarray]], *, condense: bool
) -> dict[str, np.ndarray]:
    """Value and error over shards, condensed or not."""
    metric = Variability(Grid((0,), HEADS), is_causal=True)
    states = [state_of(weights, valid, condense=condense) for weights, valid in shards]
    sums = metric.zero(0).sums
    for state in states:
        sums = metric.merge(sums, state.sums)
    made = metric.compute(sums, lambda: iter([state.records for state in states]))
    assert made[f"variability_{ratio.NUMERATOR}"].shape[0] == GROUPS
    return {"value": made["variability"].values, "error": made["variability_se"].values}
