"""Norms as formulas: gain ⊙ centred(x) / s(x) + bias, found from what a module does, not its class.

A LayerNorm centres, an RMSNorm does not. With the size s(x) held at what it is, a norm is linear.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.model.attention import widen

FIT = 1e-3  # how far a norm may be from its formula, of its largest value, besides rounding
_TINY = (1e-5, 1e-6, 1e-8, 1e-12)  # what networks add under the root, if they do not say
_LARGEST_TINY = 1e-2


@dataclass(frozen=True)
class Norm:
    """gain ⊙ centred(x) / s(x) + bias, s(x)² = mean of the squares + tiny."""

    module: nn.Module
    gain: Float[Tensor, "width"]
    bias: Float[Tensor, "width"]
    is_centred: bool
    tiny: float

    def size(self, values: Float[Tensor, "*token width"]) -> Float[Tensor, "*token 1"]:
        """What the values are divided by."""
        squares = centre(values, self.is_centred).square().mean(-1, keepdim=True)
        return (squares + self.tiny).sqrt()

    def shift(
        self, residual: Float[Tensor, "*token width"], written: Float[Tensor, "*token width"]
    ) -> Float[Tensor, "*token width"]:
        """What the written vectors are in its output, the size of the residual held."""
        return self.gain * centre(written, self.is_centred) / self.size(residual)


def find_norm(
    module: nn.Module, given: Float[Tensor, "*token width"], gave: Float[Tensor, "*token width"]
) -> Norm | None:
    """The gain and bias of a module that is a norm, as it showed with these tensors; else None.

    Where the mean of what it is given is small, rounding of two bytes would let a LayerNorm pass
    for an RMSNorm and the other way round: the one that fits better counts.
    """
    values, expected = widen(given.flatten(0, -2)), widen(gave.flatten(0, -2))
    with torch.no_grad():
        bias = widen(module(torch.zeros_like(given))).flatten(0, -2)[0]
    best, norm = torch.inf, None
    slack = (FIT + torch.finfo(gave.dtype).eps) * expected.abs().max()
    for is_centred in (True, False):
        centred = centre(values, is_centred)
        for tiny in _tiny_numbers(module):
            unit = centred / (centred.square().mean(-1, keepdim=True) + tiny).sqrt()
            gain = ((expected - bias) * unit).sum(0) / unit.square().sum(0).clamp(min=1e-12)
            errors = gain * unit + bias - expected
            error = float(errors.square().sum())
            if errors.abs().max() <= slack and error < best:
                best, norm = error, Norm(module, gain, bias, is_centred, tiny)
    return norm


def centre(values: Float[Tensor, "*token width"], is_centred: bool) -> Tensor:
    """The values less their mean, if the norm takes it away."""
    return values - values.mean(-1, keepdim=True) if is_centred else values


def _tiny_numbers(module: nn.Module) -> tuple[float, ...]:
    """What may be added under the root; every family has another name for it."""
    numbers = (value for value in vars(module).values() if isinstance(value, float))
    return tuple(number for number in numbers if 0 < number < _LARGEST_TINY) or _TINY
