"""Every family passes the same tests: weights are the network's own, wherever the padding is."""

import json
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headscope.errors import CaptureError, ModelError
from headscope.model.attention import LayerAttention
from headscope.model.generate import EQUAL, Sampling, begin, continue_text
from headscope.model.inputs.batch import Batch, Side, arguments
from headscope.model.inputs.encode import decoder_start
from headscope.model.inputs.tokens import Tokens
from headscope.model.loading.network import quiet
from headscope.model.model import Model
from headscope.model.trace import StackTrace
from tests.contracts.families import FAMILIES, REFUSED, described, loaded
from tests.contracts.family import Family

TEXTS = ("Birds sing.", "To be", "A longer line")
TARGETS = ("Vögel", "Sein", "Zeile")
FIELDS = {
    "self": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}

# One parameter after the other, so that the network of a family is built once.
each_family = pytest.mark.parametrize("name", [family.name for family in FAMILIES], scope="module")
each_side = pytest.mark.parametrize("side", ["right", "left"])


def family(name: str) -> Family:
    return next(family for family in FAMILIES if family.name == name)


def batch(model: Model, rows: list[int], side: Side = "right") -> Batch:
    encoded = [model.encode(text) for text in TEXTS]
    if not model.is_encoder_decoder:
        return model.batch(encoded, rows, side=side)
    targets = [model.encode_target(text) for text in TARGETS]
    return model.batch(encoded, rows, target=targets, side=side)


def captured(model: Model, inputs: Batch) -> list[LayerAttention]:
    seen: list[LayerAttention] = []
    model.forward(inputs, seen.append)
    return seen


def own_attentions(model: Model, inputs: Batch) -> dict[tuple[str, int], Tensor]:
    """What the network reports when asked directly."""
    with torch.no_grad(), quiet():
        output = model.network(**arguments(model._entry, inputs), output_attentions=True)
    scores = family(model.name).scores
    return {
        (stack, place): matrix.softmax(-1) if stack in scores else matrix
        for stack, field in FIELDS.items()
        for place, matrix in enumerate(
            entry for entry in getattr(output, field, None) or () if entry is not None
        )
    }


def real(inputs: Batch, row: int, seen: LayerAttention) -> Tensor:
    """One text's weights without padding."""
    source = inputs.span(row)
    target = source if inputs.target is None else inputs.target.span(row)
    queries = target if seen.stack in ("decoder", "cross") else source
    keys = target if seen.stack == "decoder" else source
    return seen.weights[row, :, queries, keys]


@each_family
@each_side
def test_weights_equal_the_networks_own(name: str, side: Side) -> None:
    model = loaded(name)
    inputs = batch(model, [0, 1, 2] if side in family(name).pads else [0], side)
    own = own_attentions(model, inputs)
    seen = captured(model, inputs)
    place = {(s.name, n): i for s in model.stacks for i, n in enumerate(s.attending)}
    assert len(seen) == len(own)
    for layer in seen:
        expected = own[layer.stack, place[layer.stack, layer.layer]]
        for row in range(len(inputs)):
            mine = real(inputs, row, layer)
            theirs = replace(layer, weights=expected)
            torch.testing.assert_close(mine, real(inputs, row, theirs), rtol=0, atol=1e-5)


@each_family
@each_side
def test_a_text_does_not_depend_on_its_batch_mates(name: str, side: Side) -> None:
    model = loaded(name)
    if side not in family(name).pads:
        with pytest.raises(ModelError, match="Padding"):
            batch(model, [0, 1, 2], side)
        return
    together = batch(model, [0, 1, 2], side)
    mixed = captured(model, together)
    for row in range(len(TEXTS)):
        alone = batch(model, [row])
        for one, many in zip(captured(model, alone), mixed, strict=True):
            torch.testing.assert_close(
                real(together, row, many), real(alone, 0, one), rtol=0, atol=1e-5
            )


@each_family
def test_stacks_and_layers_are_labelled_as_the_configuration_says(name: str) -> None:
    model, expected = loaded(name), family(name)
    seen = captured(model, batch(model, [0]))
    assert {s.name: s.attending for s in model.stacks} == expected.attending
    for stack, layers in expected.attending.items():
        assert [layer.layer for layer in seen if layer.stack == stack] == list(layers)
    assert model.is_causal == expected.is_causal
    assert all(layer.weights.shape[1] == 4 for layer in seen if expected.name != "ConvBERT")


@each_family
def test_no_layer_outlives_the_next_one(name: str) -> None:
    model = loaded(name)
    alive: list[weakref.ref[Tensor]] = []
    most = 0

    def observe(seen: LayerAttention) -> None:
        nonlocal most
        alive.append(weakref.ref(seen.weights))
        most = max(most, sum(ref() is not None for ref in alive))

    model.forward(batch(model, [0]), observe)
    # A decoder layer holds its own weights while its cross-attention runs.
    streams = model.stacks[0].backend != "outputs"
    assert most <= 2 if streams else most == len(alive)


@each_family
def test_leaving_out_the_head_changes_no_weight(name: str) -> None:
    model = loaded(name)
    body: list[LayerAttention] = []
    model.forward(batch(model, [0]), body.append, logits=False)
    for one, other in zip(body, captured(model, batch(model, [0])), strict=True):
        assert (one.stack, one.layer) == (other.stack, other.layer)
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [family.name for family in FAMILIES if family.kind == "seq2seq"])
def test_an_encoder_alone_has_the_same_weights_as_with_its_decoder(name: str) -> None:
    model = loaded(name)
    whole = [seen for seen in captured(model, batch(model, [0])) if seen.stack == "encoder"]
    alone = captured(model, model.batch([model.encode(TEXTS[0])]))
    assert [seen.layer for seen in alone] == [seen.layer for seen in whole]
    for one, other in zip(alone, whole, strict=True):
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-6)


def traced(name: str) -> Iterator[StackTrace]:
    model = loaded(name)
    target = "Vögel" if model.is_encoder_decoder else None
    yield from model.trace("Birds sing.", target=target).stacks.values()


@each_family
def test_queries_and_keys_rebuild_the_weights(name: str) -> None:
    for stack, plan in zip(traced(name), loaded(name).stacks, strict=True):
        if plan.no_neurons is not None:
            assert stack.query is None and plan.backend != "interface"
            continue
        for layer in stack.layers:
            torch.testing.assert_close(
                rebuilt(stack, layer), stack.weights[layer], rtol=0, atol=1e-5
            )
        assert plan.plain == (stack.softcap is None and stack.sink is None)


def rebuilt(stack: StackTrace, layer: int) -> Tensor:
    """softmax(scaling·q·k + bias) of every head, written out."""
    assert stack.query is not None and stack.key is not None and stack.scaling is not None
    heads: list[Tensor] = []
    for i in range(len(stack.heads)):
        key = stack.key[layer][stack.key_head_of[i]]
        scores = stack.scaling[layer] * stack.query[layer][i] @ key.T
        if stack.softcap is not None:
            scores = (scores / stack.softcap).tanh() * stack.softcap
        if stack.bias is not None and layer in stack.bias:
            added = stack.bias[layer]
            scores = scores + added[i if added.shape[0] > 1 else 0]
        total = scores.exp().sum(-1, keepdim=True)
        if stack.sink is not None:
            total = total + stack.sink[layer][i].exp()
        heads.append(scores.exp() / total)
    return torch.stack(heads)


@each_family
def test_heads_projected_one_by_one_add_up_to_the_layers_output(name: str) -> None:
    model = loaded(name)
    slots = [slot for slot in model.plan.slots if slot is not None]
    if any(slot.projection is None for slot in slots):
        assert any(stack.no_norms is not None for stack in model.stacks)
        return
    outputs: list[tuple[Any, Tensor]] = []

    def keep(module: Any, _: Any, output: Any) -> None:
        outputs.append((module, output))

    seen: list[LayerAttention] = []
    handles = [
        module.register_forward_hook(keep)
        for module in {slot.projection for slot in slots if slot.projection is not None}
    ]
    model.forward(batch(model, [0]), seen.append)
    for handle in handles:
        handle.remove()
    for layer, (projection, output) in zip(seen, outputs, strict=True):
        torch.testing.assert_close(summed_heads(layer, projection), output[0], rtol=1e-4, atol=1e-4)


def summed_heads(layer: LayerAttention, projection: Any) -> Tensor:
    """Σ over heads and keys of a · v · W_O, plus the projection's own bias."""
    assert layer.value is not None
    groups = layer.weights.shape[1] // layer.value.shape[1]
    width = layer.value.shape[-1]
    matrix = projection.weight if hasattr(projection, "nf") else projection.weight.T
    total = torch.zeros(layer.weights.shape[2], matrix.shape[1])
    for head in range(layer.weights.shape[1]):
        written = layer.value[0, head // groups] @ matrix[head * width : (head + 1) * width]
        total = total + layer.weights[0, head] @ written
    return total if projection.bias is None else total + projection.bias


WRITERS = [family.name for family in FAMILIES if family.kind != "masked" and family.name != "XLNet"]


@pytest.mark.parametrize("name", WRITERS, scope="module")
def test_an_answer_is_the_most_probable_one_and_traced_as_a_plain_pass_over_it(name: str) -> None:
    model = loaded(name)
    source = model.encode(TEXTS[0])
    greedy = Sampling(temperature=0)
    text, notes = continue_text(model, source, begin(model, source, None), 4, greedy)
    assert list(text.ids) == greedily_written(model, source, 4)
    assert notes == (EQUAL,)
    trace = model.trace(TEXTS[0], generate=4, temperature=0)
    if model.is_encoder_decoder:
        inputs = model.batch([source], target=[text])
        assert trace.stack("decoder").queries.labels == text.labels
    else:
        inputs = model.batch([text])
        assert trace.tokens == text.labels
    own = own_attentions(model, inputs)
    for plan in model.stacks:
        for place, layer in enumerate(plan.attending):
            traced = trace.stack(plan.name).weights[layer]
            expected = own[plan.name, place][0, :, : traced.shape[1]]
            torch.testing.assert_close(traced, expected, rtol=0, atol=1e-5)


def greedily_written(model: Model, source: Tokens, steps: int) -> list[int]:
    """The most probable token after each pass over everything, without a cache."""
    written = [decoder_start(model.network)] if model.is_encoder_decoder else list(source.ids)
    for _ in range(steps):
        given = {"input_ids": written}
        if model.is_encoder_decoder:
            given = {"input_ids": source.ids, "decoder_input_ids": written}
        off = {"use_cache": False} if "use_cache" in model._entry.accepts else {}
        with torch.no_grad(), quiet():
            tensors = {name: torch.tensor([ids]) for name, ids in given.items()}
            scores = model.network(**tensors, **off).logits
        written.append(int(scores[0, -1].argmax()))
        if written[-1] == model.network.generation_config.eos_token_id:
            break
    return written


@pytest.mark.parametrize(
    ("refused", "reason"), REFUSED, ids=lambda value: getattr(value, "name", "")
)
def test_a_refused_family_says_why(refused: Family, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        refused.model()


def test_the_matrix_has_at_least_36_families() -> None:
    assert len({family.name for family in FAMILIES}) >= 36


def test_the_table_for_programs_is_current() -> None:
    file = Path(__file__).parents[2] / "docs" / "families.json"
    remedy = "run `python -m tests.contracts.families > docs/families.json`"
    assert json.loads(file.read_text(encoding="utf-8")) == described(), remedy
