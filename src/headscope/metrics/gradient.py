"""How much the loss would change if a head attended differently (Clark et al. 2019, Fig. 3).

Every post-softmax weight is treated as a free variable: |∂L/∂a[i,j]| says how strongly the language
model's loss depends on it. Each layer's gradient is reduced to a few sums inside the backward pass
and dropped, so that no more is kept than a training step keeps anyway.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from headscope.errors import CaptureError
from headscope.metrics.metric import (
    Axis,
    Grid,
    Metric,
    Sums,
    Variables,
    add_terms,
    head_sums,
    head_variables,
    where_known,
)
from headscope.metrics.surface import CLS, PUNCT, SEP, has_label
from headscope.model.attention import LayerAttention
from headscope.model.inputs.batch import Batch
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Measure

if TYPE_CHECKING:
    from headscope.model.model import Model

TARGETS = ("sep", "punct", "unmasked")
MASKED_SHARE = 0.15
WEIGHTS_AT_ONCE = 2**27  # numbers; about ten times as much memory is used while they live

GRADIENT = Measure(
    "gradient",
    title="Gradient importance",
    meaning="Mean |∂L/∂a| of the language-model loss.",
    formula="mean |∂L/∂a[i, j]| over queries and the keys of a class; L summed over the tokens to "
    "be predicted",
    reference="Clark et al. 2019, Fig. 3",
    unit="",
    more="matters more to the loss",
    axes={"target": "To"},
)
GRADIENT_MEAN_LOSS = Measure(
    "gradient_mean_loss",
    title="Gradient of the mean loss",
    meaning="Mean |∂L/∂a|, L averaged over the predicted tokens.",
    formula="the one of gradient with L averaged over the tokens to be predicted",
    reference="Clark et al. 2019, Fig. 3; the paper does not say how L is reduced",
    unit="",
    more="matters more to the loss",
    axes={"target": "To"},
)


@dataclass(frozen=True)
class HeadGradient(Metric):
    """Mean |∂L/∂a| of every head to [SEP], punctuation and all unmasked tokens."""

    grid: Grid
    seed: int
    share: float = MASKED_SHARE
    name: str = "gradient"
    measures: tuple[Measure, ...] = (GRADIENT, GRADIENT_MEAN_LOSS)

    def zero(self) -> Sums:
        """Sums for every target with the summed loss, then with the mean loss."""
        items = len(self.measures) * len(TARGETS)
        return head_sums(self.grid, items, items)

    def see_model(
        self, sums: Sums, model: "Model", batch: Batch, annotated: AnnotatedBatch
    ) -> None:
        """Differentiate the loss of every input of a batch."""
        ordinary = annotated.mask & ~has_label(annotated, CLS) & ~has_label(annotated, SEP)
        predicted = choose_predicted(annotated, ordinary, seed=self.seed, share=self.share)
        keys, size = _keys(annotated, predicted), texts_at_once(model, batch.ids.shape[1])
        parts = [slice(start, start + size) for start in range(0, len(batch), size)]
        importance = torch.cat(
            [
                gradient_importance(model, batch.part(part), predicted[part], keys[part])
                for part in parts
            ],
            dim=1,
        )
        count = predicted[:, int(annotated.is_causal) :].sum(-1)[:, None, None]
        for index, layer in enumerate(importance.masked_fill(count == 0, torch.nan)):
            both = torch.cat([layer, layer / count], dim=-1)
            add_terms(sums, index, where_known(both), annotated.groups)

    def compute(self, sums: Sums) -> Variables:
        """gradient(layer, head, target) for the summed loss, gradient_mean_loss for the mean."""
        target = Axis("target", TARGETS)
        variables: Variables = {}
        for number, measure in enumerate(self.measures):
            items = slice(number * len(TARGETS), (number + 1) * len(TARGETS))
            of_loss = {name: values[..., items] for name, values in sums.items()}
            variables |= head_variables(measure.name, of_loss, self.grid, target, shared=False)
        return variables


def texts_at_once(model: "Model", tokens: int) -> int:
    """How many texts of so many tokens a backward pass takes, as it holds all layers' weights."""
    weights = len(model.stacks[0].attending) * model.heads * tokens**2
    return max(1, WEIGHTS_AT_ONCE // weights)


def _keys(
    batch: AnnotatedBatch, predicted: Bool[Tensor, "batch token"]
) -> Bool[Tensor, "batch key target"]:
    shown = batch.mask if batch.is_causal else batch.mask & ~predicted
    classes = [has_label(batch, SEP), has_label(batch, PUNCT), batch.mask]
    return torch.stack(classes, -1) & shown[..., None]


def why_no_gradient(model: "Model") -> str | None:
    """The reason why a model has no loss to differentiate, or None."""
    if model.is_encoder_decoder:
        return "the model is an encoder–decoder, whose encoder has no language-model loss"
    if model.network.get_output_embeddings() is None:
        return "the model has no language-model head, so there is no loss to differentiate"
    if not model.is_causal and model.tokenizer.mask_token_id is None:
        return "the tokenizer has no mask token"
    return None


def choose_predicted(
    batch: AnnotatedBatch, ordinary: Bool[Tensor, "batch token"], *, seed: int, share: float
) -> Bool[Tensor, "batch token"]:
    """Every token of a causal model's input; a seeded share of the others' ordinary tokens."""
    if batch.is_causal:
        return batch.mask
    predicted = choose_masked(
        ordinary.cpu().numpy(), batch.numbers.tolist(), seed=seed, share=share
    )
    return torch.from_numpy(predicted).to(batch.mask.device)


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
    masked = np.zeros_like(maskable)
    for row, number in enumerate(numbers):
        places = np.flatnonzero(maskable[row])
        count = min(len(places), max(1, round(share * len(places))))
        rng = np.random.default_rng([seed, number])
        masked[row, rng.choice(places, size=count, replace=False) if count else []] = True
    return masked


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
    visible = batch.mask[:, :, None] & batch.mask[:, None, :]
    visible = visible.tril() if model.is_causal else visible
    pairs = visible.float() @ keys.float()  # per query, how many keys of the class it sees
    means: dict[int, Float[Tensor, "batch head target"]] = {}

    def reduce(layer: int, gradient: Float[Tensor, "batch head query key"]) -> None:
        size = gradient.abs().masked_fill(~visible[:, None], 0.0).sum(2)
        means[layer] = (size @ keys.to(size.dtype)) / pairs.sum(1)[:, None]

    differentiate(model, batch, predicted, reduce)
    return torch.stack([means[layer] for layer in model.stacks[0].attending])


def differentiate(
    model: "Model",
    batch: Batch,
    predicted: Bool[Tensor, "batch token"],
    reduce: Callable[[int, Float[Tensor, "batch head query key"]], None],
) -> None:
    """Show ∂L/∂a of every layer, L summed over the predicted tokens; no gradient is kept.

    `reduce` gets the number of a layer and its gradient inside the backward pass, deepest first.
    """
    shown: set[int] = set()

    def show(layer: int, gradient: Tensor) -> None:
        shown.add(layer)
        reduce(layer, gradient)

    def observe(layer: LayerAttention) -> None:
        layer.weights.register_hook(partial(show, layer.layer))

    with outside_inference(batch, predicted) as (copy, predicted_copy):
        _backward(model, copy, predicted_copy, observe)
    for layer in set(model.stacks[0].attending) - shown:
        raise CaptureError(
            f"No gradient reaches the attention weights of layer {layer} of {model.name}: the "
            "network uses a copy of what it shows; run the study with gradients=False."
        )


@contextmanager
def outside_inference(
    batch: Batch, predicted: Bool[Tensor, "batch token"]
) -> Iterator[tuple[Batch, Bool[Tensor, "batch token"]]]:
    """Copies that autograd can use; tensors made in inference mode cannot enter a graph."""
    with torch.inference_mode(False):
        copies = {name: getattr(batch, name).clone() for name in ("ids", "mask", "segments")}
        yield replace(batch, **copies), predicted.clone()


def hide(model: "Model", batch: Batch, predicted: Bool[Tensor, "batch token"]) -> Batch:
    """The batch with predicted tokens masked; a causal model reads it unchanged."""
    if model.is_causal:
        return batch
    mask = torch.tensor(model.tokenizer.mask_token_id, device=batch.ids.device)
    return replace(batch, ids=torch.where(predicted, mask, batch.ids))


def _backward(
    model: "Model", batch: Batch, predicted: Tensor, observe: Callable[[LayerAttention], None]
) -> None:
    """Forward and backward; gradients flow to the embeddings only and no parameter gets one."""
    embedded: list[Tensor] = []

    def keep(_module: torch.nn.Module, _args: tuple, output: Tensor) -> Tensor:
        embedded.append(output if output.requires_grad else output.requires_grad_())
        return output

    handle = model.network.get_input_embeddings().register_forward_hook(keep)
    try:
        shown = hide(model, batch, predicted)
        logits = model.forward(shown, observe, validate="shape", gradients=True).logits
    finally:
        handle.remove()
    loss = losses(logits, batch.ids, predicted, causal=model.is_causal).sum()
    torch.autograd.grad(loss, embedded, allow_unused=True)


def losses(
    logits: Float[Tensor, "batch token vocabulary"], ids: Tensor, predicted: Tensor, *, causal: bool
) -> Float[Tensor, "batch"]:
    """Cross-entropy of the predicted tokens of every input, summed: inputs do not mix."""
    return token_losses(logits, ids, predicted, causal=causal).sum(-1)


def token_losses(
    logits: Float[Tensor, "batch token vocabulary"], ids: Tensor, predicted: Tensor, *, causal: bool
) -> Float[Tensor, "batch token"]:
    """Cross-entropy of every predicted token, 0 of the others; if causal, at the token before."""
    if causal:
        logits, ids, predicted = logits[:, :-1], ids[:, 1:], predicted[:, 1:]
    scores = logits[predicted].to(torch.promote_types(logits.dtype, torch.float32))
    surprise = functional.cross_entropy(scores, ids[predicted], reduction="none")
    return surprise.new_zeros(predicted.shape).masked_scatter(predicted, surprise)
