"""Every family says why a head looks there, or says why it cannot: parts that sum to the score."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from headscope.errors import ModelError
from headscope.model.model import Model
from headscope.model.trace import StackTrace, Trace
from headscope.model.why import Why
from tests.contracts.families import FAMILIES, loaded
from tests.contracts.family import tokenizer

NAMES = [family.name for family in FAMILIES]

each_family = pytest.mark.parametrize("name", NAMES, scope="module")


def traced(model: Model) -> Trace:
    return model.trace("Birds sing.", target="Vögel" if model.is_encoder_decoder else None)


def reasons(trace: Trace) -> Iterator[tuple[StackTrace, Why]]:
    """Why the last head of the last layer of every stack looks at the token before the last."""
    for name, stack in trace.stacks.items():
        places = len(stack.queries) - 1, len(stack.keys) - 2
        yield stack, trace.why(stack.layers[-1], stack.heads[-1], *places, stack=name)


def row_of_scores(stack: StackTrace, why: Why) -> torch.Tensor:
    """The captured scores of the row, before bias and soft-cap."""
    assert stack.query is not None and stack.key is not None and stack.scaling is not None
    query = stack.query[why.head.layer][why.head.head, why.query]
    key = stack.key[why.head.layer][stack.key_head_of[why.head.head]]
    return stack.scaling[why.head.layer] * key @ query


@each_family
def test_the_parts_sum_to_the_captured_score_or_the_family_says_why_not(name: str) -> None:
    model = loaded(name)
    refusals = [stack.no_neurons for stack in model.stacks if stack.no_neurons]
    refusal = refusals[0] if refusals else None
    assert model.why_no_reasons == refusal
    if refusal is not None:
        with pytest.raises(ModelError, match=refusal):
            traced(model).why(model.stacks[0].attending[0], 0, 0, 0)
        return
    for stack, why in reasons(traced(model)):
        scores = row_of_scores(stack, why)
        slack = 1e-5 * max(1.0, float(abs(why.parts).sum()))
        assert why.score == pytest.approx(float(scores[why.key]), abs=slack)
        assert why.parts.sum() == pytest.approx(why.score, abs=slack)
        bias = None if stack.bias is None else stack.bias.get(why.head.layer)
        seen = torch.ones_like(scores, dtype=torch.bool)
        if bias is not None:
            seen = bias[0, min(why.query, bias.shape[1] - 1)].isfinite()
        above_row = float(scores[why.key] - scores[seen].mean())
        assert why.lift.sum() == pytest.approx(above_row, abs=slack)
        assert len(why.lift_shares) == len(why.sources)  # every part has a name of its own


@each_family
def test_in_bfloat16_the_parts_sum_up_to_rounding(name: str) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    network: Any = family.network()
    model = Model(network.to(torch.bfloat16), tokenizer(), name=name)
    assert model.why_no_reasons == loaded(name).why_no_reasons
    if model.why_no_reasons is not None:
        return
    for stack, why in reasons(traced(model)):
        assert stack.query is not None and stack.key is not None and stack.scaling is not None
        query = stack.query[why.head.layer][why.head.head, why.query]
        key = stack.key[why.head.layer][stack.key_head_of[why.head.head], why.key]
        largest = stack.scaling[why.head.layer] * float(query.norm() * key.norm())
        assert why.parts.sum() == pytest.approx(why.score, abs=2**-6 * largest)
