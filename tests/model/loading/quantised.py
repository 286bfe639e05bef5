"""A quantised linear layer of our own: eight bits, or four bits packed into bytes."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

Bits = Literal[8, 4]


class QuantisedLinear(nn.Linear):
    """Its weight is an integer tensor, and with four bits a column of bytes, as in bitsandbytes."""

    def __init__(self, original: nn.Linear, bits: Bits) -> None:
        super().__init__(original.in_features, original.out_features, original.bias is not None)
        self.bias = original.bias
        top = 2 ** (bits - 1) - 1
        self.scale = original.weight.detach().abs().max() / top
        numbers = (original.weight.detach() / self.scale).round().to(torch.int8)
        stored = numbers if bits == 8 else _pack(numbers)
        self.weight = nn.Parameter(stored, requires_grad=False)
        self.bits = bits

    def forward(self, input: Tensor) -> Tensor:
        shape = (self.out_features, self.in_features)
        numbers = self.weight if self.bits == 8 else _unpack(self.weight).reshape(shape)
        return linear(input, numbers.to(input.dtype) * self.scale, self.bias)


def quantise(network: PreTrainedModel, bits: Bits) -> PreTrainedModel:
    """Replace every linear layer but the head of the language model."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and name not in ("lm_head", "decoder"):
                setattr(module, name, QuantisedLinear(child, bits))
    return network


def _pack(numbers: Tensor) -> Tensor:
    flat = (numbers + 8).to(torch.uint8).reshape(-1)
    return (flat[0::2] * 16 + flat[1::2])[:, None]


def _unpack(packed: Tensor) -> Tensor:
    bytes_ = packed[:, 0].to(torch.int16)
    return torch.stack([bytes_ // 16, bytes_ % 16], 1).reshape(-1) - 8
