"""Batches that fit: sized to the free memory, halved when it runs out, said once."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import headscope as hs
from headscope.engine import Allowance, fitting_tokens, forward
from headscope.errors import ModelError
from headscope.metrics.divergence import HeadDivergence
from headscope.metrics.metric import Sums
from headscope.model.model import Model
from headscope.observe.batch import AnnotatedBatch
from tests.references.tiny_models import causal_model, treebank


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    forward._lowered.clear()
    yield
    forward._lowered.clear()


def fits(limit: int, tried: list[int]):  # noqa: ANN201
    def work(tokens: int) -> int:
        tried.append(tokens)
        if tokens > limit:
            raise torch.OutOfMemoryError("no memory left")
        return tokens

    return work


def test_a_batch_is_halved_until_it_fits_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[int] = []
    with caplog.at_level(logging.WARNING, logger="headscope"):
        assert Allowance("m", 1000).use(fits(300, tried)) == 250
        assert Allowance("m", 1000).use(fits(300, tried)) == 250
        assert Allowance("m", 1000).use(fits(200, tried)) == 125
    assert tried == [1000, 500, 250, 250, 250, 125]
    assert len(caplog.records) == 1
    assert "halved to 500 tokens" in caplog.text


def test_a_model_that_does_not_fit_at_all_is_refused_in_plain_words() -> None:
    with pytest.raises(ModelError, match="even with one input at a time"):
        Allowance("m", 8).use(fits(0, []))


def test_running_out_of_memory_in_the_middle_does_not_change_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = hs.study("vig2019", causal_model(), treebank(40), batch_tokens=400)
    forward = Model.forward

    def tight(self: Model, batch, *given, **options):  # noqa: ANN001, ANN002, ANN003, ANN202
        if batch.ids.numel() > 150 and len(batch) > 1:
            raise torch.OutOfMemoryError("no memory left")
        return forward(self, batch, *given, **options)

    monkeypatch.setattr(Model, "forward", tight)
    halved = hs.study("vig2019", causal_model(), treebank(40), batch_tokens=400)
    for name in ("distance", "entropy", "null_share", "pos_to", "variability"):
        np.testing.assert_allclose(halved[name], whole[name], atol=1e-6, err_msg=name)


def test_a_gpu_with_more_free_memory_gets_larger_batches_within_bounds() -> None:
    sizes = [fitting_tokens(free * 2**30, heads=12, width=768, row=4) for free in (0, 4, 16, 140)]
    assert sizes == sorted(sizes)
    assert sizes[0] == forward.LEAST and sizes[-1] == forward.MOST // 2
    small = fitting_tokens(140 * 2**30, heads=12, width=768, row=4, size=2)
    assert small == forward.MOST  # numbers of two bytes leave room for twice as many
    assert all(size & (size - 1) == 0 for size in sizes)


def test_metrics_that_hold_the_matrices_of_all_layers_see_smaller_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {
        "batch_tokens": 10**6,
        "probes": False,
        "portrait": False,
        "untrained": False,
    }
    whole = hs.study("clark2019", causal_model(), treebank(40), **options)
    most, held = 2**17, list[int]()
    monkeypatch.setattr(forward, "MATRICES", most)
    compare = HeadDivergence._compare

    def note(self: HeadDivergence, sums: Sums, batch: AnnotatedBatch, layers: list[Tensor]) -> None:
        held.append(sum(layer.nbytes for layer in layers))
        compare(self, sums, batch, layers)

    monkeypatch.setattr(HeadDivergence, "_compare", note)
    parts = hs.study("clark2019", causal_model(), treebank(40), **options)
    assert len(held) > 1 and max(held) <= most
    for name in ("head_divergence", "entropy", "relation_accuracy"):
        np.testing.assert_allclose(parts[name], whole[name], atol=1e-5, err_msg=name)
