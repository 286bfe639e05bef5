"""A model that is pickled is the same model again, loaded or copied."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.errors import ModelError
from headscope.model.model import Model
from tests.references.tiny_models import MODELS


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
