"""A model small enough to trace at once: random weights, the bundled tokenizer."""

from functools import cache
from importlib.resources import files

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from headscope.model.model import Model

LAYERS, HEADS = 4, 4


@cache
def tiny_model() -> Model:
    """4 layers × 4 heads, 64 positions, causal."""
    path = files("headscope.model").joinpath("bundled", "mini-gpt2", "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path))
    config = GPT2Config(
        vocab_size=len(tokenizer), n_layer=LAYERS, n_head=HEADS, n_embd=32, n_positions=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return Model(GPT2LMHeadModel(config), tokenizer, name="tiny-gpt2")
