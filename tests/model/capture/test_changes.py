"""Heads are changed where they are, in every copy of a batch in its own way."""

import pytest
import torch
from torch import Tensor
from transformers import AlbertConfig, AlbertForMaskedLM

from headscope.model.capture.changes import repeat
from headscope.model.model import Model
from tests.references.tiny_models import MODELS, bidirectional_model, llama

TEXTS = ("the old cat sees a dog .", "a quiet gardener .")


def albert() -> Model:
    """One module serves as every layer: only the order of the calls tells layers apart."""
    torch.manual_seed(0)
    tokenizer = bidirectional_model().tokenizer
    config = AlbertConfig(
        vocab_size=len(tokenizer), embedding_size=8, hidden_size=12, num_hidden_layers=2,
        num_attention_heads=3, intermediate_size=24, max_position_embeddings=64, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    return Model(AlbertForMaskedLM(config), tokenizer, name="tiny-albert")


FAMILIES = {**MODELS, "llama": llama, "albert": albert}


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_change_of_one_copy_leaves_the_others_as_they_are(kind: str) -> None:
    model = FAMILIES[kind]()
    batch = model.batch([model.encode(text) for text in TEXTS])
    with torch.no_grad():
        plain = model.forward(batch).logits
        for first in model.stacks[0].attending:

            def louder(layer: int, output: Tensor, first: int = first) -> Tensor:
                output = output.clone()
                output[-len(batch) :, :, layer % 2] *= 1.5 if layer == first else 1.0
                return output

            together = model.forward_changed(repeat(batch, 2), louder).logits
            alone = model.forward_changed(batch, louder).logits
            torch.testing.assert_close(together[:2], plain, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(together[2:], alone, rtol=1e-4, atol=1e-4)
            assert not torch.allclose(alone, plain, atol=1e-3)
    assert torch.equal(model.forward(batch).logits, plain), "nothing of a change is left"


def test_rows_of_a_batch_are_its_texts() -> None:
    model = llama()
    encoded = [model.encode(text) for text in (*TEXTS, TEXTS[0])]
    batch = model.batch(encoded)
    some = batch.part(torch.tensor([2, 0]))
    assert some.rows == (2, 0) and some.lengths == (len(encoded[2]), len(encoded[0]))
    assert torch.equal(some.ids, batch.ids[[2, 0]]) and torch.equal(some.mask, batch.mask[[2, 0]])
    assert repeat(batch, 2).rows == (0, 1, 2, 0, 1, 2)
