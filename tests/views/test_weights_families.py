"""The views of real model families: what is captured is what the neuron view takes apart."""

import numpy as np
import pytest

from headscope.errors import ViewError
from headscope.views import head_view, model_view, neuron_view
from headscope.views.weights import neurons_of, take_apart
from tests.contracts.families import FAMILIES
from tests.references.tiny_families import family, tiny

# Plain, rotary with grouped keys, soft-capped, with a sink, with position bias, three stacks.
TAKEN_APART = ("BERT", "GPT-2", "Llama", "Gemma 2", "gpt-oss", "T5", "BART", "ModernBERT", "Qwen 3")


@pytest.mark.parametrize("name", TAKEN_APART)
def test_query_and_key_make_the_weights_in_every_stack(name: str) -> None:
    target = "Birds fly." if family(name).kind == "seq2seq" else None
    trace = tiny(name).trace("Birds sing loudly.", target=target)
    neuron_view(trace).html()
    for stack in trace.stacks.values():
        for layer in stack.layers:
            for head in stack.heads:
                neurons = neurons_of(stack, layer, head)
                for query in range(len(stack.queries)):
                    weights = take_apart(neurons, query).weights
                    recorded = stack.weights[layer][stack.heads.index(head)][query]
                    np.testing.assert_allclose(weights, recorded, atol=2e-5)


@pytest.mark.parametrize("name", ["DeBERTa", "BLOOM", "GPT-J"])
def test_families_without_query_and_key_have_the_other_views_and_say_why(name: str) -> None:
    trace = tiny(name).trace("Birds sing loudly.")
    assert head_view(trace).html() and model_view(trace).html()
    with pytest.raises(ViewError, match="The neuron view needs query and key vectors: "):
        neuron_view(trace)


def test_generated_text_has_its_boundary() -> None:
    trace = tiny("GPT-2").trace("Birds sing", generate=3)
    header = head_view(trace).payload.header
    assert header["prompt"] == trace.prompt_length
    assert trace.prompt_length is not None and trace.prompt_length < len(trace.tokens)


def test_the_names_above_are_families() -> None:
    assert set(TAKEN_APART) <= {family.name for family in FAMILIES}
