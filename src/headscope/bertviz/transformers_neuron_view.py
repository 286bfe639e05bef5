"""The classes that BertViz's neuron view needs copies of; here they are those of transformers."""

from transformers import (
    BertModel,
    BertTokenizer,
    GPT2Model,
    GPT2Tokenizer,
    RobertaModel,
    RobertaTokenizer,
)

__all__ = [
    "BertModel",
    "BertTokenizer",
    "GPT2Model",
    "GPT2Tokenizer",
    "RobertaModel",
    "RobertaTokenizer",
]
