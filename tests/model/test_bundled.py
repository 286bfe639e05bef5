"""The bundled models: they load anywhere, they learned their text, and their heads do something."""

from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

import headscope as hs
from headscope.model.attention import LayerAttention

BUNDLED = Path(str(files("headscope"))) / "model" / "bundled"
SENTENCES = 160


@pytest.fixture(scope="module")
def gpt2() -> hs.Model:
    return hs.load("mini-gpt2")


@pytest.fixture(scope="module")
def bert() -> hs.Model:
    return hs.load("mini-bert")


def weights_of(model: hs.Model, ids: Tensor) -> Tensor:
    """(layer, batch, head, query, key) as `transformers` itself reports them."""
    with torch.no_grad():
        return torch.stack(model.network(ids, output_attentions=True).attentions)


def offset_share(weights: Tensor, offset: int) -> Tensor:
    """Mean weight of every head on the token at an offset: (layer, head)."""
    return weights.diagonal(offset, -2, -1).mean((1, -1))


@pytest.mark.parametrize("name", ["mini-gpt2", "mini-bert"])
def test_a_bundled_model_is_small_documented_and_plain_transformers(name: str) -> None:
    folder = BUNDLED / name
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 20_000_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "OpenStax" in card and "Held-out loss" in card and "Not good for" in card
    config = AutoModel.from_pretrained(folder).config
    assert (config.num_hidden_layers, config.num_attention_heads) == (8, 8)
    assert config.hidden_size == 256


def test_mini_gpt2_predicts_the_demo_corpus_as_well_as_stated(gpt2: hs.Model) -> None:
    total, count = 0.0, 0
    for sentence in hs.demo_corpus().sample(SENTENCES, seed=0):
        ids = torch.tensor([gpt2.encode(sentence.text).ids])
        with torch.no_grad():
            logits = gpt2.network(ids).logits
        total += float(cross_entropy(logits[0, :-1], ids[0, 1:], reduction="sum"))
        count += ids.shape[1] - 1
    assert 4.1 < total / count < 4.6


def test_mini_bert_fills_gaps_in_the_demo_corpus_as_well_as_stated(bert: hs.Model) -> None:
    generator = torch.Generator().manual_seed(0)
    total, count = 0.0, 0
    documents = [" ".join(s.text for s in d[:6]) for d in hs.demo_corpus().documents()]
    for text in documents[:40]:
        ids = torch.tensor([bert.encode(text).ids])
        masked = torch.rand(ids.shape, generator=generator) < 0.15
        masked[:, [0, -1]] = False
        hidden = ids.masked_fill(masked, bert.encode("[MASK]").ids[1])
        with torch.no_grad():
            logits = bert.network(hidden).logits[masked]
        total += float(cross_entropy(logits, ids[masked], reduction="sum"))
        count += int(masked.sum())
    assert 2.6 < total / count < 3.1


def test_mini_gpt2_has_a_previous_token_head(gpt2: hs.Model) -> None:
    texts = [" ".join(s.text for s in d[:5]) for d in hs.demo_corpus().documents()][:8]
    shares = [offset_share(weights_of(gpt2, torch.tensor([gpt2.encode(t).ids])), -1) for t in texts]
    assert torch.stack(shares).mean(0).max() >= 0.5


def test_mini_gpt2_has_an_induction_head(gpt2: hs.Model) -> None:
    generator = torch.Generator().manual_seed(0)
    half = torch.randint(300, 8000, (8, 64), generator=generator)
    weights = weights_of(gpt2, torch.cat([half, half], 1))
    assert offset_share(weights[..., 64:, :], 1).max() >= 0.25  # from 64 + i to i + 1


def test_mini_bert_has_previous_and_next_token_heads(bert: hs.Model) -> None:
    documents = [[s.text for s in d] for d in hs.demo_corpus().documents()][:8]
    pairs = [bert.encode(" ".join(d[:3]), " ".join(d[3:6])) for d in documents]
    previous, following = [], []
    for encoded in pairs:
        batch = bert.batch([encoded])
        seen: list[Tensor] = []
        bert.forward(batch, lambda layer, seen=seen: seen.append(layer.weights))
        weights = torch.stack(seen)
        previous.append(offset_share(weights, -1))
        following.append(offset_share(weights, 1))
    assert torch.stack(previous).mean(0).max() >= 0.8
    assert torch.stack(following).mean(0).max() >= 0.8


@pytest.mark.parametrize(
    ("name", "kind"), [("mini-gpt2", AutoModelForCausalLM), ("mini-bert", AutoModelForMaskedLM)]
)
def test_captured_rows_are_those_of_transformers(name: str, kind: type) -> None:
    model = hs.load(name)
    plain = kind.from_pretrained(BUNDLED / name, dtype=torch.float32, attn_implementation="eager")  # type: ignore[attr-defined]
    encoded = model.encode("The lamp in the window went out before the ship came home.")
    seen: list[LayerAttention] = []
    model.forward(model.batch([encoded]), seen.append)
    with torch.no_grad():
        reported = plain(torch.tensor([encoded.ids]), output_attentions=True).attentions
    assert [layer.layer for layer in seen] == list(range(8))
    for layer, expected in zip(seen, reported, strict=True):
        assert torch.allclose(layer.weights, expected, atol=1e-5)
    assert all(before.layer < after.layer for before, after in pairwise(seen))
