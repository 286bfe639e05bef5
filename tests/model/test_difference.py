"""What changes without a head: weights, probabilities and losses against passes by hand."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from headscope.errors import ModelError
from headscope.head import Head
from headscope.model.capture.changes import switch_off
from headscope.model.difference import choose_control
from tests.references.tiny_models import bidirectional_model, causal_model

TEXT = "the old cat sees a quiet gardener ."


@pytest.mark.parametrize("replacement", ["zero", "mean"])
def test_every_weight_and_the_next_token_are_compared_with_the_text_with_all_heads(
    replacement: Any,
) -> None:
    model = causal_model()
    plain = model.trace(TEXT)
    off = model.trace(TEXT, without=["L1H0"], replacement=replacement)
    difference = off.difference()
    assert difference.without == (Head(1, 0),)
    assert difference.control == (Head(1, 1),)  # the only other head of the layer
    for layer in plain.layers:
        change = off.weights[layer] - plain.weights[layer]
        torch.testing.assert_close(difference.change[layer], change)
        for head in plain.heads:
            rows = [float(row.abs().sum()) / 2 for row in change[head]]
            assert difference.moved[layer, head] == pytest.approx(np.mean(rows), abs=1e-6)
    assert difference.most.layer == 2
    batch = model.batch([model.encode(TEXT)])
    losses, last = [], []
    for heads in ([], [Head(1, 0)], [Head(1, 1)]):
        with torch.no_grad():
            change = partial(switch_off, heads, replacement)
            probabilities = model.forward_changed(batch, change).logits[0].softmax(-1)
        following = enumerate(batch.ids[0, 1:].tolist())
        costs = [-math.log(float(probabilities[place, token])) for place, token in following]
        losses.append(np.mean(costs))
        last.append(probabilities[-1])
    likely = {*last[0].topk(5).indices.tolist(), *last[1].topk(5).indices.tolist()}
    expected = [[float(values[token]) for values in last] for token in likely]
    found = [[token.plain, token.without, token.control] for token in difference.next_tokens]
    np.testing.assert_allclose(found, sorted(expected, reverse=True), atol=1e-6)
    assert difference.losses is not None
    found = (difference.losses.plain, difference.losses.without, difference.losses.control)
    assert found == pytest.approx(losses, abs=1e-5)
    assert f"Without L1H0, {difference.most} gives " in difference.sentence
    assert "without L1H1, for comparison, " in difference.sentence
    assert f"costs {losses[1]:.2f} nats per token instead of {losses[0]:.2f}" in difference.sentence


def test_a_masked_model_has_no_next_token() -> None:
    difference = bidirectional_model().trace(TEXT, without=["L0H0"]).difference()
    assert difference.next_tokens == () and difference.losses is None
    assert difference.no_next_tokens == "this network predicts no next token"
    assert difference.sentence.endswith("%.")


def test_the_control_is_drawn_from_the_same_layers_and_is_none_where_there_is_no_other() -> None:
    removed = [Head(0, 1), Head(3, 0), Head(0, 2)]
    drawn = {choose_control(removed, 8, seed) for seed in range(20)}
    assert len(drawn) > 10
    for control in drawn:
        assert sorted(head.layer for head in control) == [0, 0, 3]
        assert not {*control} & {*removed} and len({*control}) == 3
    assert choose_control([Head(0, 0), Head(0, 1)], 3, 0) == ()
    both = causal_model().trace(TEXT, without=["L1H0", "L1H1"]).difference()
    assert both.control_change is None and "comparison" not in both.sentence
    assert all(token.control is None for token in both.next_tokens)


def test_only_a_trace_without_a_head_and_with_its_model_has_a_difference() -> None:
    with pytest.raises(ModelError, match="No head is switched off in this trace"):
        causal_model().trace(TEXT).difference()
    off = causal_model().trace(TEXT, without=["L0H0"])
    with pytest.raises(ModelError, match="without L0H0; trace the text with all heads"):
        off.why(0, 0, 1, 0)
