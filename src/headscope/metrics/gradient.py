"""How much the loss would change if a head attended differently (Clark et al. 2019, Fig. 3).

Every post-softmax weight is treated as a free variable: |∂L/∂a[i,j]| says how strongly the language
model's loss depends on it. Each layer's gradient is reduced to a few sums inside the backward pass
and dropped, so that no more is kept than a training step keeps anyway.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from headscope.errors import CaptureError
from headscope.model.attention import LayerAttention
from headscope.model.batch import Batch

if TYPE_CHECKING:
    from headscope.model.model import Model

TARGETS = ("sep", "punct", "unmasked")
MASKED_SHARE = 0.15


def why_no_gradient(model: "Model") -> str | None:
    """The reason why a model has no loss to differentiate, or None."""
    if model.is_encoder_decoder:
        return f"{model.name} is an encoder–decoder, whose encoder has no language-model loss"
    if model.network.get_output_embeddings() is None:
        return f"{model.name} has no language-model head, so there is no loss to differentiate"
    if not model.is_causal and model.tokenizer.mask_token_id is None:
        return f"the tokenizer of {model.name} has no mask token"
    return None


def choose_masked(
    maskable: Bool[np.ndarray, "batch token"],
    numbers: Sequence[int],
    *,
    seed: int,
    share: float = MASKED_SHARE,
) -> Bool[np.ndarray, "batch token"]:
    """A share of the maskable tokens of every input, at least one; inputs without any get none.

    The draw depends on the seed and the number of the input alone, not on batch or padding.
    """
    chosen = np.zeros_like(maskable)
    for row, number in enumerate(numbers):
        places = np.flatnonzero(maskable[row])
        count = min(len(places), max(1, round(share * len(places))))
        rng = np.random.default_rng([seed, number])
        chosen[row, rng.choice(places, size=count, replace=False) if count else []] = True
    return chosen


def gradient_importance(
    model: "Model",
    batch: Batch,
    predicted: Bool[Tensor, "batch token"],
    keys: Bool[Tensor, "batch key target"],
) -> Float[Tensor, "layer batch head target"]:
    """Mean |∂L/∂a[i,j]| over the queries of each input and its keys of every class.

    L is the sum over the predicted tokens: hidden behind the mask token in a bidirectional model,
    read off the token before in a causal one. Divide by their number for the mean loss. Pairs that
    a causal model hides are left out. An input without keys of a class has NaN there.
    """
    visible = _visible(batch.mask, model.is_causal)
    pairs = visible.float() @ keys.float()  # per query, how many keys of the class it sees
    found: dict[int, Float[Tensor, "batch head target"]] = {}

    def reduce(layer: int, gradient: Float[Tensor, "batch head query key"]) -> None:
        size = gradient.abs().masked_fill(~visible[:, None], 0.0).sum(2)
        found[layer] = (size @ keys.to(size.dtype)) / pairs.sum(1)[:, None]

    def observe(layer: LayerAttention) -> None:
        layer.weights.register_hook(partial(reduce, layer.layer))

    _backward(model, batch, predicted, observe)
    return torch.stack([_found(found, layer, model) for layer in model.stacks[0].attending])


def _backward(
    model: "Model", batch: Batch, predicted: Tensor, observe: Callable[[LayerAttention], None]
) -> None:
    """Forward and backward; gradients flow to the embeddings only and no parameter gets one."""
    shown = batch
    if not model.is_causal:
        mask = torch.tensor(model.tokenizer.mask_token_id, device=batch.ids.device)
        shown = replace(batch, ids=torch.where(predicted, mask, batch.ids))
    embedded: list[Tensor] = []

    def keep(_module: torch.nn.Module, _args: tuple, output: Tensor) -> Tensor:
        embedded.append(output if output.requires_grad else output.requires_grad_())
        return output

    handle = model.network.get_input_embeddings().register_forward_hook(keep)
    try:
        logits = model.forward(shown, observe, validate="shape", gradients=True).logits
    finally:
        handle.remove()
    loss = _loss(logits, batch.ids, predicted, causal=model.is_causal)
    torch.autograd.grad(loss, embedded, allow_unused=True)


def _loss(
    logits: Float[Tensor, "batch token vocabulary"], ids: Tensor, predicted: Tensor, *, causal: bool
) -> Float[Tensor, ""]:
    """Cross-entropy of the predicted tokens, summed, so that inputs of a batch do not mix."""
    if causal:
        logits, ids, predicted = logits[:, :-1], ids[:, 1:], predicted[:, 1:]
    scores = logits[predicted].to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(scores, ids[predicted], reduction="sum")


def _visible(mask: Bool[Tensor, "batch token"], causal: bool) -> Bool[Tensor, "batch query key"]:
    pairs = mask[:, :, None] & mask[:, None, :]
    return pairs.tril() if causal else pairs


def _found(found: dict[int, Tensor], layer: int, model: "Model") -> Tensor:
    if layer not in found:
        raise CaptureError(
            f"No gradient reaches the attention weights of layer {layer} of {model.name}: the "
            "network uses a copy of what it shows; run the study with gradients=False."
        )
    return found[layer]
