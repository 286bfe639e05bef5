"""Blocks of rows, however many, give what the whole matrix gives; null filter and padding too."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from tests.metrics.inputs import in_rows, make_batch, make_layer, random_input


def sums_of(layer: Layer) -> dict[str, Tensor]:
    return {
        "rows": layer.rows,
        "columns": layer.columns,
        "total": layer.total,
        "own": layer.self_weight,
        "to_null": layer.to_null,
        "everything": layer.row_total,
        "counted": layer.counted,
        "nats": layer.entropy_sum,
        "on_arcs": layer.on_arcs,
        "distance": layer.distance,
        "spans": layer.spans.weight,
        "squares": layer.spans.squares,
        "on_pairs": layer.on_pairs(some_pairs(layer.batch), 0.3),
    }


def some_pairs(batch: AnnotatedBatch) -> Tensor:
    """Every third pair that counts, in the order of the inputs."""
    return batch.pairs.nonzero()[::3]


def seek_from(batch: AnnotatedBatch, seed: int) -> AnnotatedBatch:
    """The batch, or the same with its first token left out where largest weights are sought."""
    return replace(batch, sought_from=min(seed % 2, batch.mask.shape[1] - 1))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 5), st.integers(1, 30))
@settings(max_examples=60)
def test_the_size_of_a_block_changes_nothing(
    seed: int, is_causal: bool, texts: int, block: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal) for _ in range(texts)]
    batch = seek_from(make_batch(inputs), seed)
    whole = make_layer(inputs, batch)
    found = in_rows(whole, block)
    wanted = sums_of(whole)
    for name, values in sums_of(found).items():
        one, other = values.double(), wanted[name].double()
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6, msg=name)
    for offset in (-40, -2, -1, 0, 1, 3):
        torch.testing.assert_close(
            found.on_offset(offset), whole.on_offset(offset), rtol=1e-6, atol=1e-6
        )
    for longest in (2, 50):
        mine, theirs = found.by_offset(longest), whole.by_offset(longest)
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)
    for with_self in (True, False):
        mine, theirs = found.peaks(with_self), whole.peaks(with_self)
        torch.testing.assert_close(mine.weight, theirs.weight, rtol=0, atol=0)
        row, head = torch.meshgrid(*map(torch.arange, mine.weight.shape), indexing="ij")
        query, key = mine.locate(row, head)
        assert torch.equal(whole.kept[row, head, query, key], theirs.weight)
        some = theirs.weight > 0
        assert (torch.minimum(query, key) >= batch.sought_from)[some].all()
        if not with_self:
            assert (query != key)[some].all()
