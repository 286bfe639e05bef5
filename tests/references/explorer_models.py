"""A model small enough to trace at once: random weights, the bundled tokenizer."""

from functools import cache
from importlib.resources import files
from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

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


@cache
def tiny_translator() -> Model:
    """An encoder–decoder: 2 layers × 4 heads on either side, word pieces."""
    path = files("headscope.model").joinpath("bundled", "mini-bert", "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(path), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )
    sizes: dict[str, Any] = {
        "num_layers": 2,
        "num_heads": HEADS,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
    }
    ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": tokenizer.sep_token_id}
    config = T5Config(vocab_size=len(tokenizer), **sizes, **ends)
    torch.manual_seed(0)
    return Model(T5ForConditionalGeneration(config), tokenizer, name="tiny-t5")
