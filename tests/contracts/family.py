"""One tiny random network: how a model family is built for the tests, and what it must show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from headscope.model.inputs.batch import Side
from headscope.model.loading.network import quiet
from headscope.model.model import Model

Kind = Literal["causal", "masked", "seq2seq"]

CLASSES: dict[Kind, Any] = {
    "causal": AutoModelForCausalLM,
    "masked": AutoModelForMaskedLM,
    "seq2seq": AutoModelForSeq2SeqLM,
}
SPECIAL = ("[UNK]", "[PAD]", "[CLS]", "[SEP]")
VOCABULARY = 300
IDS: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
COMMON: dict[str, Any] = {
    **IDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}


@dataclass(frozen=True)
class Family:
    """A model family, how to build a tiny one, and what the capture must find in it."""

    name: str
    model_type: str
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    common: bool = True  # whether the family understands the common option names
    layers: tuple[int, ...] = (0, 1)  # the layers with attention, where there is one stack
    causal: bool | None = None  # None: as its kind says
    pads: tuple[Side, ...] = ("right", "left")  # where padding leaves the attention alone
    spread: float = 0.2  # standard deviation of the random weights
    scores: tuple[str, ...] = ()  # stacks whose reported attention is before the softmax

    @property
    def attending(self) -> dict[str, tuple[int, ...]]:
        """The layers with attention, by stack."""
        if self.kind == "seq2seq":
            return {"encoder": (0, 1, 2), "decoder": (0, 1), "cross": (0, 1)}
        return {"self": self.layers}

    @property
    def is_causal(self) -> bool:
        """Whether the first stack must not look ahead."""
        return self.kind == "causal" if self.causal is None else self.causal

    def network(self, seed: int = 0) -> PreTrainedModel:
        """A random network whose attention is far from uniform, so that mistakes show."""
        torch.manual_seed(seed)
        options = {**(COMMON if self.common else {}), **self.options}
        with quiet():
            config = AutoConfig.for_model(self.model_type, **options)
            network = CLASSES[self.kind].from_config(config, attn_implementation="eager")
        for parameter in network.parameters():
            if parameter.ndim > 1 and parameter.requires_grad:
                nn.init.normal_(parameter, std=self.spread)
        return network.eval()

    def model(self) -> Model:
        """The network with the tokenizer that all families share."""
        return Model(self.network(), tokenizer(), name=self.name)


@lru_cache(maxsize=1)
def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes as tokens between [CLS] and [SEP]: every text fits every family."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
    built = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
    )
