"""What shows a portrait: bars and matrices as plain loops over pairs, examples, surprises."""

import json
from functools import cache

import numpy as np
import pytest
import torch

from headscope.head import Head
from headscope.portrait.evidence import Shown, windows_of
from headscope.portrait.pairs import Attention, Pairs
from headscope.results.describe import Description, Fact
from headscope.results.evidence import PLACES, SIDE
from tests.references.portrait_sample import sample

MODELS = ("mini-gpt2", "mini-bert")


@cache
def shown(name: str) -> Shown:
    """Random weights of one head on ten sentences and a passage."""
    texts = sample(name).texts["score"]
    chosen = [*texts[:10], next(text for text in texts if text.is_passage)]
    pairs = Pairs.of(chosen, sample(name).vocabulary, every_row=True)
    random = torch.Generator().manual_seed(0)
    null = torch.rand(len(pairs), 1, generator=random)
    weights = torch.rand(len(pairs.key), 1, generator=random)
    row = pairs.design.row_of_pair
    rest = weights / pairs.design.row_sums(weights)[row] * (1 - null)[row]
    first = null if chosen[0].is_causal else null * torch.rand(null.shape, generator=random)
    return Shown(pairs, Attention(rest, null, first), np.full(rest.shape, 0.01, np.float32))


@pytest.mark.parametrize("name", MODELS)
def test_bars_are_mean_weights_by_offset_parted_by_what_the_name_says(name: str) -> None:
    text = shown(name)
    named = text.marked("-1")
    bars = text.profile(0, named)
    for offset in range(-8, 9):
        weights = [
            float(weight)
            for weight, at in zip(text.weight[:, 0], text.offset.tolist(), strict=True)
            if at == offset
        ]
        ink = 1 if offset == -1 else 2
        mean = sum(weights) / len(weights) if weights else 0.0
        place = PLACES.index(f"{offset:+d}" if offset else "0")
        assert bars[ink, place] == pytest.approx(mean, abs=1e-6)
        assert bars[3 - ink, place] == 0
    assert bars[0, 0] == pytest.approx(text.first.mean(), abs=1e-6)
    assert bars[0, -1] == pytest.approx((text.null - text.first).mean(), abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_matrix_is_the_mean_over_texts_that_are_long_enough(name: str) -> None:
    text = shown(name)
    long = [n for n, each in enumerate(text.pairs.texts) if len(each) >= SIDE]
    total = np.zeros((SIDE, SIDE))
    for number in long:
        each = text.pairs.texts[number]
        first = range(SIDE) if each.is_causal else [*range(8), *range(len(each) - 8, len(each))]
        place = {token: at for at, token in enumerate(first)}
        for pair in np.flatnonzero(text.text == number):
            query, key = int(text.query[pair]), int(text.pairs.key[pair])
            if query in place and key in place:
                total[place[query], place[key]] += text.weight[pair, 0]
    matrix = text.matrix(0, text.marked("-1"))
    np.testing.assert_allclose(matrix[1:].sum(0), total / len(long), atol=1e-6)
    assert matrix[0].sum() > 0 and matrix[0][:, 1:-1].sum() == 0


def test_examples_show_what_the_name_says_and_surprises_what_was_not_expected() -> None:
    text = shown("mini-gpt2")
    fact = Fact("-1", "the previous token", 0.9, group="position")
    description = Description(Head(0, 0), (fact,), "previous token", "", "position")
    _, matrix, stored = text.of_head(0, description)
    evidence = json.loads(stored)
    assert matrix.dtype == np.uint8
    assert 1 <= len(evidence["examples"]) <= 3
    for example in evidence["examples"]:
        for query, key, _, ink in example["arcs"]:
            assert ink == (0 if key in example["null"] else 1 if key == query - 1 else 2)
    assert evidence["surprises"]
    for surprise in evidence["surprises"]:
        assert surprise["weight"] >= 0.2 and surprise["expected"] == 0.01
    assert all(window.stop - window.start <= 15 for window in windows_of(text.pairs.texts))
