"""Cross-entropies, slopes and fits, held against plain loops and known answers."""

import math

import numpy as np
import torch

from headscope.portrait.fit import PENALTY, Design, Problem, fit, log_portrait

# Two rows of three and two pairs; entries 0 … 3, the last of which no pair has.
ENTRIES = ((0, 1), (1,), (), (0,), (0, 2))
ROWS = (3, 2)
WEIGHTS = torch.tensor([[0.5, 0.1], [0.2, 0.2], [0.1, 0.3], [0.7, 0.2], [0.1, 0.3]])


def design() -> Design:
    flat = np.array([entry for entries in ENTRIES for entry in entries])
    counts = np.array([len(entries) for entries in ENTRIES])
    return Design.of(flat, counts, np.array(ROWS), 4)


def plain_value(place: list[float], head: int) -> float:
    """The cross-entropy to the weights of a head and the penalty, in nats a row."""
    value, start, total = 0.0, 0, 0.0
    for pairs in ROWS:
        logits = [sum(place[entry] for entry in ENTRIES[start + each]) for each in range(pairs)]
        logarithm = math.log(sum(math.exp(logit) for logit in logits))
        for each in range(pairs):
            weight = float(WEIGHTS[start + each, head])
            value -= weight * (logits[each] - logarithm)
            total += weight
        start += pairs
    value += PENALTY * sum(weight**2 for weight in place)
    return value / max(total, 1.0)


def test_value_and_slope_are_those_of_plain_loops() -> None:
    problem = Problem.of(design(), WEIGHTS, None)
    place = torch.tensor([[0.3, -0.2], [1.0, 0.4], [-0.5, 0.1], [0.2, 0.7]])
    value, slope, _ = problem.look(place)
    for head in range(2):
        own = place[:, head].tolist()
        assert math.isclose(float(value[head]), plain_value(own, head), rel_tol=1e-5)
        for entry in range(4):
            higher, lower = list(own), list(own)
            higher[entry] += 1e-4
            lower[entry] -= 1e-4
            expected = (plain_value(higher, head) - plain_value(lower, head)) / 2e-4
            assert math.isclose(float(slope[entry, head]), expected, abs_tol=2e-4)


def test_a_row_of_a_portrait_sums_to_one() -> None:
    weights = torch.tensor([[50.0, -3.0], [1.0, 0.4], [-90.0, 0.1], [0.2, 0.7]])
    likely = log_portrait(design(), weights, None).exp()
    sums = design().row_sums(likely)
    assert torch.allclose(sums, torch.ones(2, 2), atol=1e-6)


def test_fitting_finds_the_slope_zero_and_heads_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(0)
    pairs_of_row = np.full(200, 6)
    entries = rng.integers(0, 5, 1200)
    many = Design.of(entries, np.ones(1200, dtype=np.int64), pairs_of_row, 5)
    true = torch.tensor([[2.0, 0.0], [0.0, -1.0], [-1.0, 0.5], [0.5, 1.5], [0.0, 0.0]])
    weights = log_portrait(many, true, None).exp()
    both = fit(many, weights, torch.zeros(5, 2))
    _, slope, _ = Problem.of(many, weights, None).look(both)
    assert float(slope.abs().max()) < 2e-3
    assert torch.allclose(both - both.mean(0), true - true.mean(0), atol=0.1)
    alone = fit(many, weights[:, 1:], torch.zeros(5, 1))
    assert torch.allclose(alone[:, 0], both[:, 1], atol=5e-3)


def test_entries_that_are_left_out_change_nothing() -> None:
    kept = design().keep(torch.tensor([True, False, True, True]))
    weights = torch.tensor([[0.5], [9.0], [1.0], [0.0]])
    assert kept.logits(weights)[:, 0].tolist() == [0.5, 0.0, 0.0, 0.5, 1.5]
    assert kept.entry_sums(torch.ones(5, 1))[:, 0].tolist() == [3.0, 0.0, 1.0, 0.0]
