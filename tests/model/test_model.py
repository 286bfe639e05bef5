"""What a notebook prints of a model is a line or two; pickled, it is the same model again."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.errors import ModelError
from headscope.model.capture.rows import DeferredMask
from headscope.model.model import Model
from tests.references.tiny_families import tiny
from tests.references.tiny_models import MODELS

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
    found = [model, encoded, batch, model.plan, model.plan.slots, model.modes]
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
        "Trace('GPT-2', Tokens(13: 'Birds sing.'), "
        "[StackTrace('self', 2 layers × 4 heads, 13 × 13 tokens)])"
    )


def test_a_long_text_is_shortened() -> None:
    encoded = tiny("T5").encode("word " * 100)
    assert repr(encoded) == f"Tokens(502: '{'word ' * 7}word…')"
    assert repr(tiny("T5").encode("好" * 100)) == f"Tokens(302: '{'好' * 39}…')"


def test_other_values_say_their_size() -> None:
    assert repr(VALUES["Batch"]) == "Batch(2 texts × 46 tokens)"
    assert repr(VALUES["Plan"]) == "Plan(interface, self: 2 layers × 4 heads)"


def layers(model: Model) -> list[torch.Tensor]:
    found = []
    model.forward(
        model.batch([model.encode("the old cat")]), lambda seen: found.append(seen.weights)
    )
    return found


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_network_made_in_python_travels_with_its_numbers(make: Callable[[], Model]) -> None:
    model = make()
    layers(model)  # transformers puts hooks on what has run
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.name, copy.fingerprint) == (model.name, model.fingerprint)
    for ours, theirs in zip(layers(model), layers(copy), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_model_that_was_loaded_travels_by_its_name(tmp_path: Path) -> None:
    model = hs.load("mini-gpt2", device="cpu")
    content = pickle.dumps(model)
    assert len(content) < 1000
    assert pickle.loads(content).fingerprint == model.fingerprint
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    saved = hs.load(tmp_path, device="cpu")
    again = pickle.loads(pickle.dumps(saved))
    assert (again.name, again.fingerprint) == (str(tmp_path), saved.fingerprint)


def test_a_network_that_its_configuration_does_not_describe_is_refused() -> None:
    made = MODELS["causal"]()
    model = Model(made.network, made.tokenizer, name="extended")
    model.network.add_module("adapter", torch.nn.Linear(2, 2))
    try:
        with pytest.raises(ModelError, match="extended is not what its configuration says"):
            pickle.loads(pickle.dumps(model))
    finally:
        del model.network.adapter
