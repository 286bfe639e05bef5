"""Random networks of two layers and two heads in float64, with the bundled tokenizers."""

from importlib.resources import files

import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from headscope.model.model import Model


def tiny_bert(network_class: type[PreTrainedModel] = BertForMaskedLM) -> Model:
    tokenizer = _tokenizer("mini-bert")
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=160,
    )
    return Model(_random(network_class(config)), tokenizer, name="tiny-bert")


def tiny_gpt2() -> Model:
    tokenizer = _tokenizer("mini-gpt2")
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=2, n_head=2, n_positions=160)
    return Model(_random(GPT2LMHeadModel(config)), tokenizer, name="tiny-gpt2")


def _random(network: PreTrainedModel) -> PreTrainedModel:
    """Large weights: attention far from uniform, gradients far from zero."""
    torch.manual_seed(0)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network.double()


def _tokenizer(name: str) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(str(files("headscope") / "model" / "bundled" / name))
