"""The control network keeps its embeddings and forgets the rest."""

from typing import Any

import pytest
import torch
from transformers import T5Config, T5EncoderModel

from headscope.model.model import Model
from headscope.studies.clark2019.probes.training import is_embedding, randomise
from headscope.studies.clark2019.probes.vectors import InputEmbeddings
from headscope.studies.shared.words import WordTokens, encode_words
from tests.references.tiny_models import MODELS, make_sentences


def embedding_table(model: Model) -> torch.Tensor:
    embedding: Any = model.network.get_input_embeddings()
    return embedding.weight


@pytest.mark.parametrize("kind", list(MODELS))
def test_embeddings_are_kept_and_everything_else_that_was_random_is_new(kind: str) -> None:
    model = MODELS[kind]()
    fresh = randomise(model, seed=3)
    before, after = model.network.state_dict(), fresh.network.state_dict()
    assert before.keys() == after.keys()
    kept = [name for name in before if is_embedding(model.network, name)]
    matrices = [name for name in before if before[name].ndim == 2 and name not in kept]
    shared = embedding_table(model).data_ptr()
    untied = [name for name in matrices if before[name].data_ptr() != shared]
    assert kept and untied
    assert all(torch.equal(before[name], after[name]) for name in kept)
    assert not any(torch.equal(before[name], after[name]) for name in untied)


def test_the_same_seed_gives_the_same_network_and_leaves_the_generator_alone() -> None:
    model = MODELS["bidirectional"]()
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    first, second = (randomise(model, seed=1).network.state_dict() for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_position_bias_inside_attention_is_no_embedding_of_the_input() -> None:
    config = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=10)
    network = T5EncoderModel(config)
    kept = [name for name in network.state_dict() if is_embedding(network, name)]
    assert any("shared" in name for name in kept)
    assert not any("relative_attention_bias" in name for name in kept)


def test_own_vectors_are_the_mean_of_the_pieces_and_say_so() -> None:
    model = MODELS["bidirectional"]()
    vectors = InputEmbeddings.of_model(model)
    (tokens,) = encode_words(model, make_sentences(1))
    assert isinstance(tokens, WordTokens)
    found = vectors.of(tokens)
    table = embedding_table(model).detach()
    for word, pieces in enumerate(tokens.tokens_of_word):
        expected = sum(table[tokens.encoded.ids[t]] for t in pieces) / len(pieces)
        torch.testing.assert_close(found[word], expected)
    assert vectors.source == "input embeddings of tiny-bidirectional (12-d)"
