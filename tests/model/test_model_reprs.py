"""What a notebook prints of our values is a line or two, never a tensor."""

import pytest

from headscope.model.capture.rows import DeferredMask
from headscope.model.loading.network import Copy
from tests.references.tiny_families import tiny

TEXT = "Birds sing all day, and at night they sleep."


def values() -> dict[str, object]:
    model, translator = tiny("Llama"), tiny("BART")
    encoded = model.encode(TEXT)
    batch = model.batch([encoded, model.encode("Birds")])
    layers: list[object] = []
    model.forward(batch, layers.append)
    model.forward(batch, layers.append, block=4)
    model.forward_fused(batch, layers.append)
    trace = translator.trace(TEXT, target=TEXT)
    sizes = {"q_length": 5, "kv_length": 7, "mask": batch.mask}
    masks = DeferredMask(lambda **_: batch.mask, sizes)
    found = [model, encoded, batch, model.plan, model.plan.slots, model.modes, Copy.of(model)]
    found += [trace, trace.default, trace.default.queries, masks, layers[0], layers[2], layers[-1]]
    found += [layers[-1].texts[0], *model._expectations(batch).values()]  # pyright: ignore[reportAttributeAccessIssue]
    return {type(value).__name__: value for value in found}


VALUES = values()


@pytest.mark.parametrize("name", VALUES)
def test_a_repr_is_a_line_or_two(name: str) -> None:
    lines = repr(VALUES[name]).splitlines()
    assert len(lines) <= 2
    assert max(map(len, lines)) <= 400
    assert not any("tensor(" in line for line in lines)


def test_a_trace_says_what_it_is_of() -> None:
    assert repr(tiny("GPT-2").trace("Birds sing.")) == (
        "Trace('GPT-2', Side(13 tokens: 'Birds sing.'), "
        "[StackTrace('self', 2 layers × 4 heads, 13 × 13 tokens)])"
    )


def test_a_long_text_is_shortened() -> None:
    encoded = tiny("T5").encode("word " * 100)
    assert repr(encoded) == f"Encoded(502 tokens: '{'word ' * 7}word…')"
    assert repr(tiny("T5").encode("好" * 100)) == f"Encoded(302 tokens: '{'好' * 39}…')"


def test_other_values_say_their_size() -> None:
    assert repr(VALUES["Batch"]) == "Batch(2 texts × 46 tokens)"
    assert repr(VALUES["Plan"]) == "Plan(interface, self: 2 layers × 4 heads)"
    assert repr(VALUES["Copy"]) == "Copy('Llama', LlamaForCausalLM)"
