"""Every measure of raw text, held against a plain loop over tokens."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from headscope.metrics import Grid, Metric, Variables, positions, repeats
from headscope.observe import NO_LABEL, AnnotatedBatch
from tests.references.random_attention import (
    HEADS,
    LAYERS,
    Input,
    make_batch,
    make_layer_of,
    random_input,
)

GRID = Grid((0,), HEADS)
LONGEST = 40  # no input has more tokens
LEAST = 0.01


@dataclass(frozen=True)
class Text:
    """One input as a slow reader sees it."""

    given: Input
    tokens: list[int]
    delimiters: list[bool]

    @property
    def n(self) -> int:
        return self.given.length

    def seen(self, i: int) -> range:
        return range(i + 1) if self.given.is_causal else range(self.n)

    def even(self) -> np.ndarray:
        return np.array(
            [[1 / len(self.seen(i)) if j in self.seen(i) else 0.0 for j in range(self.n)]
             for i in range(self.n)]
        )  # fmt: skip


def random_texts(seed: int, is_causal: bool, count: int = 4) -> list[Text]:
    rng = np.random.default_rng(seed)
    texts = []
    while len(texts) < count:
        text = random_input(rng, is_causal)
        if text.length > 1:
            plain = replace(text, null=[False] * text.length)
            codes, marks = rng.integers(0, 4, text.length), rng.random(text.length) < 0.3
            texts.append(Text(plain, codes.tolist(), marks.tolist()))
    return texts


def batch_of(texts: list[Text]) -> AnnotatedBatch:
    """The texts padded to the longest, without null tokens."""
    batch = make_batch([text.given for text in texts])
    size = batch.mask.shape[1]
    labels = {
        "token": [text.tokens + [NO_LABEL] * (size - text.n) for text in texts],
        "delimiter": [
            [0 if mark else NO_LABEL for mark in text.delimiters] + [NO_LABEL] * (size - text.n)
            for text in texts
        ],
    }
    labels = {name: torch.tensor(codes) for name, codes in labels.items()}
    return replace(batch, labels=labels, arcs=None, first_peak_token=1)


# What each measure adds up of one text with weights `a`: pairs of numerator and denominator.
Added = Iterator[tuple[float, float]]


def self_share(text: Text, a: np.ndarray) -> Added:
    for i in range(text.n):
        yield a[i, i], 1


def previous_share(text: Text, a: np.ndarray) -> Added:
    for i in range(1, text.n):
        yield a[i, i - 1], 1


def next_share(text: Text, a: np.ndarray) -> Added:
    for i in range(text.n - 1):
        yield a[i, i + 1], 1


def first_share(text: Text, a: np.ndarray) -> Added:
    for i in range(1, text.n):
        yield a[i, 0], 1


def delimiter_share(text: Text, a: np.ndarray) -> Added:
    for i in range(text.n):
        yield sum(a[i, j] for j in range(text.n) if text.delimiters[j]), 1


def entropy(text: Text, a: np.ndarray) -> Added:
    for i in range(text.n):
        yield -sum(a[i, j] * math.log(a[i, j]) for j in range(text.n) if a[i, j] > 0), 1


def distance(text: Text, a: np.ndarray) -> Added:
    for i in range(text.n):
        for j in range(text.n):
            yield a[i, j] * abs(i - j), a[i, j]


def induction(text: Text, a: np.ndarray, least: float = LEAST) -> Added:
    for i in range(text.n):
        keys = [j for j in range(1, i) if text.tokens[j - 1] == text.tokens[i]]
        if keys:
            yield sum(a[i, j] for j in keys if a[i, j] >= least), 1


def duplicate(text: Text, a: np.ndarray, least: float = LEAST) -> Added:
    for i in range(text.n):
        keys = [j for j in range(i) if text.tokens[j] == text.tokens[i]]
        if keys:
            yield sum(a[i, j] for j in keys if a[i, j] >= least), 1


PLAIN: dict[str, Callable[..., Added]] = {
    "self_share": self_share,
    "previous_share": previous_share,
    "next_share": next_share,
    "first_share": first_share,
    "delimiter_share": delimiter_share,
    "entropy": entropy,
    "distance": distance,
    "induction": induction,
    "duplicate": duplicate,
}


def metrics_of(is_causal: bool) -> dict[str, Metric]:
    found: list[Metric] = [
        *positions.shares(GRID, is_causal=is_causal),
        positions.entropy(GRID),
        positions.distance(GRID),
        positions.DistanceSpread(GRID),
        positions.distance_histogram(GRID, LONGEST),
        *repeats.repeats(GRID),
        positions.peak_histogram(GRID),
    ]
    return {metric.name: metric for metric in found}


def measure_all(name: str, texts: list[Text], kind: str) -> Variables:
    """The variables of a metric after one batch of the texts."""
    metric, batch = metrics_of(texts[0].given.is_causal)[name], batch_of(texts)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer_of(kind, [text.given for text in texts], batch))
    return metric.compute(sums)


def measure(name: str, texts: list[Text], kind: str) -> np.ndarray:
    """The value of every head of the first layer."""
    return measure_all(name, texts, kind)[name].values[0]


def measure_even(name: str, texts: list[Text]) -> np.ndarray:
    """The value of even attention."""
    return measure_all(name, texts, "matrix")[f"{name}_even"].values


def ratio(pairs: list[tuple[float, float]]) -> float:
    return sum(x for x, _ in pairs) / sum(y for _, y in pairs)


CASES = [
    (name, is_causal)
    for name in PLAIN
    for is_causal in (True, False)
    if not (is_causal and name == "next_share")
]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(("name", "is_causal"), CASES)
def test_measures_equal_a_plain_loop(name: str, is_causal: bool, kind: str) -> None:
    for seed in range(6):
        texts = random_texts(seed, is_causal)
        found = measure(name, texts, kind)
        for head in range(HEADS):
            pairs = [
                pair
                for text in texts
                for pair in PLAIN[name](text, text.given.weights[0, head].astype(float))
            ]
            assert found[head] == pytest.approx(ratio(pairs), rel=2e-6, abs=1e-6)


@pytest.mark.parametrize(("name", "is_causal"), CASES)
def test_baselines_are_the_measures_of_even_attention(name: str, is_causal: bool) -> None:
    least = {"least": 0.0} if name in ("induction", "duplicate") else {}
    for seed in range(6):
        texts = random_texts(seed, is_causal, count=6)
        pairs = [pair for text in texts for pair in PLAIN[name](text, text.even(), **least)]
        assert measure_even(name, texts) == pytest.approx(ratio(pairs), rel=1e-6)


def by_separation(texts: list[Text], weights: list[np.ndarray]) -> dict[int, float]:
    """Weight by |i − j|, and altogether at -1."""
    found = {-1: 0.0}
    for text, a in zip(texts, weights, strict=True):
        for i in range(text.n):
            for j in range(text.n):
                found[abs(i - j)] = found.get(abs(i - j), 0.0) + a[i, j]
                found[-1] += a[i, j]
    return found


def histogram(found: dict[int, float]) -> list[float]:
    edges = [0, 1, 2, 4, 8, 16, 32, 64]
    return [
        sum(w for d, w in found.items() if low <= d < high) / found[-1]
        for low, high in pairwise(edges)
    ]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("is_causal", [True, False])
def test_histogram_and_spread_of_distances_equal_a_plain_loop(is_causal: bool, kind: str) -> None:
    for seed in range(6):
        texts = random_texts(seed, is_causal)
        shares_found = measure("distance_histogram", texts, kind)
        spread_found = measure("distance_spread", texts, kind)
        for head in range(HEADS):
            weights = [text.given.weights[0, head].astype(float) for text in texts]
            found = by_separation(texts, weights)
            np.testing.assert_allclose(shares_found[head], histogram(found), atol=1e-6)
            total = found.pop(-1)
            mean = sum(d * w for d, w in found.items()) / total
            variance = sum((d - mean) ** 2 * w for d, w in found.items()) / total
            assert spread_found[head] == pytest.approx(math.sqrt(variance), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("is_causal", [True, False])
def test_histogram_of_even_attention_equals_a_plain_loop(is_causal: bool) -> None:
    texts = random_texts(5, is_causal, count=6)
    expected = histogram(by_separation(texts, [text.even() for text in texts]))
    np.testing.assert_allclose(measure_even("distance_histogram", texts), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("is_causal", [True, False])
def test_largest_weights_leave_the_first_token_out(is_causal: bool, kind: str) -> None:
    texts = random_texts(1, is_causal, count=12)
    found = measure("peak_histogram", texts, kind)
    for head in range(HEADS):
        expected = [0.0] * positions.BINS
        for text in texts:
            a = text.given.weights[0, head]
            best = max(a[i, j] for i in range(1, text.n) for j in range(1, text.n))
            expected[min(int(best * positions.BINS), positions.BINS - 1)] += 1 / len(texts)
        np.testing.assert_allclose(found[head], expected, atol=1e-12)


def test_errors_of_the_spread_are_those_of_leaving_out_one_group() -> None:
    texts = random_texts(8, True, count=12)
    computed = measure_all("distance_spread", texts, "matrix")
    without = []
    for out in range(len(texts)):
        rest = [text for place, text in enumerate(texts) if place != out]
        without.append(measure("distance_spread", rest, "matrix"))
    k = len(texts)
    spread = np.array(without) - np.mean(without, axis=0)
    expected = np.sqrt((k - 1) / k * (spread**2).sum(0))
    np.testing.assert_allclose(computed["distance_spread_se"].values[0], expected, rtol=1e-4)
