"""How much the model needs each head: its loss without it, and how the loss depends on it.

removal            the loss with the head's output set to zero, less the loss        Michel 2019
mean_replacement   the same with its output set to its mean over the corpus          Voita 2019
gate_importance    mean over inputs of |∂L/∂gate|, a gate of 1 on the output         Michel 2019

Every head takes two forward passes over the corpus, so none of it is computed unless asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.metrics.gradient import (
    MASKED_SHARE,
    choose_predicted,
    hide,
    losses,
    outside_inference,
    why_no_gradient,
)
from headscope.metrics.metric import (
    GROUP,
    Grid,
    Metric,
    Sums,
    Variables,
    add_by_group,
    group_zeros,
    label,
    ratio_variables,
)
from headscope.metrics.surface import CLS, SEP
from headscope.model.capture.changes import repeat, why_no_change
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Measure

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

    Means = Mapping[int, Float[Tensor, "head width"]]  # of the outputs of heads, by layer

ENDS = ("_se", "_numerator", "_denominator")
REPLACED = ("removal", "mean_replacement")
ROOM = (4096, 32768)  # tokens of a batch of copies, on a CPU and on a GPU


def _declare(
    name: str, title: str, meaning: str, formula: str, reference: str, cost: str
) -> Measure:
    return Measure(
        name=name,
        title=title,
        meaning=meaning,
        formula=formula,
        reference=reference,
        unit="nats",
        more="matters more to the loss",
        with_errors=False,
        also=tuple(f"{name}{end}" for end in ENDS),
    )


REMOVAL = _declare(
    "removal",
    "Loss without the head",
    "How much the loss per predicted token rises when the head says nothing.",
    "(L with the output of the head set to zero − L) / predicted tokens",
    "Michel et al. 2019; Voita et al. 2019",
    "a forward pass for every head",
)
MEAN_REPLACEMENT = _declare(
    "mean_replacement",
    "Loss with the head's mean",
    "How much the loss per predicted token rises when the head says the same everywhere.",
    "(L with the output of the head set to its mean over the tokens of the corpus − L) / predicted "
    "tokens",
    "after Voita et al. 2019",
    "a forward pass for every head",
)
GATE_IMPORTANCE = _declare(
    "gate_importance",
    "Gate importance",
    "How strongly the loss of an input depends on how loudly the head speaks.",
    "mean over inputs of |∂L/∂g|, g = 1 a factor of the head's output, L averaged over the "
    "predicted tokens",
    "Michel et al. 2019, before they divide by the norm of a layer",
    "one more forward and one backward pass",
)
MEASURES = (REMOVAL, MEAN_REPLACEMENT, GATE_IMPORTANCE)


@dataclass(frozen=True)
class HeadImportance(Metric):
    """Loss changes and gate gradients of every head."""

    grid: Grid
    means: "Callable[[], Means]"  # of all heads over the corpus; asked for once
    seed: int = 0
    share: float = MASKED_SHARE
    name: str = "importance"
    measures: tuple[Measure, ...] = MEASURES

    def zero(self) -> Sums:
        of_heads = {measure.name: group_zeros(*self.grid.shape) for measure in MEASURES}
        return of_heads | {"tokens": group_zeros(), "inputs": group_zeros()}

    def see_model(
        self, sums: Sums, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Run the batch without each head in turn."""
        predicted = predicted_tokens(annotated, self.seed, self.share)
        # Nothing predicts the first token of a causal model.
        counts = predicted[:, int(annotated.is_causal) :].sum(-1).double()
        with torch.no_grad():
            terms = loss_changes(model, batch, predicted, self.grid, self.means())
        gates = gate_gradients(model, batch, predicted, self.grid)
        terms["gate_importance"] = gates.abs() / counts.clamp(min=1)[:, None, None]
        terms |= {"tokens": counts, "inputs": (counts > 0).double()}
        for name, values in terms.items():
            add_by_group(sums[name], values, annotated.groups)

    def compute(self, sums: Sums) -> Variables:
        """removal, mean_replacement and gate_importance(layer, head), with errors and sums."""
        variables: Variables = {}
        for measure in MEASURES:
            weight = sums["inputs" if measure is GATE_IMPORTANCE else "tokens"]
            x = label(sums[measure.name], GROUP, *self.grid.axes)
            variables |= ratio_variables(measure.name, x, label(weight, GROUP))
        return variables


def why_no_importance(model: "Model") -> str | None:
    """Why heads cannot be removed and judged by a loss, or None."""
    if (reason := why_no_gradient(model)) is not None:
        return reason
    reason = why_no_change(model.plan)
    return None if reason is None else f"the heads of {model.name} cannot be removed: {reason}"


def predicted_tokens(batch: AnnotatedBatch, seed: int, share: float) -> Bool[Tensor, "batch token"]:
    """Tokens that have a loss; [CLS] and [SEP], if a study marks them, are not ordinary tokens."""
    special = batch.labels.get("special", torch.full_like(batch.mask, -1, dtype=torch.long))
    ordinary = batch.content & (special != CLS) & (special != SEP)
    return choose_predicted(batch, ordinary, seed=seed, share=share)


def loss_changes(
    model: "Model",
    batch: "Batch",
    predicted: Bool[Tensor, "batch token"],
    grid: Grid,
    means: "Means",
) -> dict[str, Float[Tensor, "batch layer head"]]:
    """How much the summed loss of every input rises without each head, and with its mean.

    Both of several heads of a layer at once, as many as fit into a batch.
    """
    device, shape = batch.ids.device, (len(batch.ids), *grid.shape)
    rises = {name: torch.zeros(shape, dtype=torch.float64, device=device) for name in REPLACED}
    most = max(1, ROOM[device.type != "cpu"] // batch.ids.shape[1])
    for rows in torch.arange(len(batch.ids), device=device).split(most):
        part, part_predicted = batch.part(rows), predicted[rows]
        changes = _changes_of(model, part, part_predicted, grid, means)
        for name, values in zip(REPLACED, changes, strict=True):
            rises[name][rows] = values
    return rises


def _changes_of(
    model: "Model",
    batch: "Batch",
    predicted: Tensor,
    grid: Grid,
    means: "Means",
) -> Float[Tensor, "kind batch layer head"]:
    """The changes of the loss of a few inputs."""
    shown = hide(model, batch, predicted)
    logits = model.forward(shown).logits
    before = losses(logits, batch.ids, predicted, causal=model.is_causal).double()
    rises = before.new_zeros(len(REPLACED), len(before), *grid.shape)
    most = max(1, ROOM[batch.ids.device.type != "cpu"] // (len(REPLACED) * batch.ids.numel()))
    for index, layer in enumerate(grid.layers):
        for heads in torch.arange(grid.heads).split(most):
            change = partial(_replace_each, layer, heads.tolist(), means[layer])
            copies = len(REPLACED) * len(heads)
            logits = model.forward_changed(repeat(shown, copies), change).logits
            after = losses(
                logits,
                batch.ids.repeat(copies, 1),
                predicted.repeat(copies, 1),
                causal=model.is_causal,
            )
            rise = after.double().unflatten(0, (len(REPLACED), len(heads), -1)) - before
            rises[:, :, index, heads] = rise.transpose(1, 2)
    return rises


def _replace_each(
    at: int, heads: Sequence[int], mean: Float[Tensor, "head width"], layer: int, output: Tensor
) -> Tensor:
    """In each copy of the batch another head: first each set to zero, then each to its mean."""
    if layer != at:
        return output
    changed = output.clone().unflatten(0, (len(REPLACED), len(heads), -1))
    for copy, head in enumerate(heads):
        changed[0, copy, :, :, head] = 0
        changed[1, copy, :, :, head] = mean[head].to(output.dtype)
    return changed.flatten(0, 2)


def gate_gradients(
    model: "Model", batch: "Batch", predicted: Bool[Tensor, "batch token"], grid: Grid
) -> Float[Tensor, "batch layer head"]:
    """∂L/∂gate of every input and head, L summed over the predicted tokens."""
    with outside_inference(batch, predicted) as (copy, predicted_copy), torch.enable_grad():
        width = torch.promote_types(model.network.dtype, torch.float32)
        gates = torch.ones(
            len(copy.ids), len(grid.layers), grid.heads, dtype=width, device=copy.ids.device
        ).requires_grad_()
        places = {layer: index for index, layer in enumerate(grid.layers)}

        def gate(layer: int, output: Tensor) -> Tensor:
            return output * gates[:, places[layer], None, :, None].to(output.dtype)

        shown = hide(model, copy, predicted_copy)
        logits = model.forward_changed(shown, gate, gradients=True).logits
        loss = losses(logits, copy.ids, predicted_copy, causal=model.is_causal).sum()
        (gradient,) = torch.autograd.grad(loss, gates)
    return gradient.double()


def mean_outputs(
    model: "Model", batches: "Iterable[tuple[Batch, AnnotatedBatch]]", seed: int, share: float
) -> "Means":
    """The mean output of every head over all tokens of some batches, as their loss is computed."""
    sums: dict[int, Tensor] = {}
    tokens = 0.0
    for batch, annotated in batches:
        mask = batch.mask[:, :, None, None]

        def keep(layer: int, output: Tensor, mask: Tensor = mask) -> Tensor:
            total = torch.where(mask, output, 0).sum((0, 1), dtype=torch.float64)
            sums[layer] = sums.get(layer, 0) + total
            return output

        predicted = predicted_tokens(annotated, seed, share)
        with torch.no_grad():
            model.forward_changed(hide(model, batch, predicted), keep, logits=False)
        tokens += float(batch.mask.sum())
    return {layer: total / max(tokens, 1.0) for layer, total in sums.items()}
