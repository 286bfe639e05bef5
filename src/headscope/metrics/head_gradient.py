"""Gradient importance of every head over a corpus, for both ways to reduce the loss."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.metrics.document_mean import known
from headscope.metrics.gradient import MASKED_SHARE, TARGETS, choose_masked, gradient_importance
from headscope.metrics.head_ratio import HeadRatio
from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.metrics.surface import CLS, PUNCT, SEP, has_label
from headscope.model.batch import Batch
from headscope.model.model import Model
from headscope.observe.batch import AnnotatedBatch

REDUCTIONS = {"sum": "gradient", "mean": "gradient_mean_loss"}  # how the loss is reduced → variable


@dataclass(frozen=True)
class HeadGradient:
    """Mean |∂L/∂a| to [SEP], punctuation and all unmasked tokens (Clark et al. 2019, Fig. 3).

    Variables: gradient, gradient_*
    Formula: mean |∂L/∂a[i, j]| over queries and the keys of a class; L summed over the tokens to
        be predicted
    Reference: Clark et al. 2019, Fig. 3
    Range: from 0
    Cost: one more forward and one backward pass

    Variables: gradient_mean_loss, gradient_mean_loss_*
    Formula: the same with L averaged over the tokens to be predicted
    Reference: Clark et al. 2019, Fig. 3; the paper does not say how L is reduced
    Range: from 0
    Cost: none beyond gradient
    """

    grid: Grid
    seed: int
    share: float = MASKED_SHARE
    name: str = "gradient"

    def zero(self, inputs: int) -> State:
        """No segment yet."""
        return self._means.zero(inputs)

    def update_model(
        self, state: State, model: Model, batch: Batch, annotated: AnnotatedBatch
    ) -> None:
        """Differentiate the loss of every input of a batch."""
        # What was made in inference mode cannot enter a graph; a copy can.
        with torch.inference_mode(False):
            batch = replace(
                batch,
                ids=batch.ids.clone(),
                mask=batch.mask.clone(),
                segments=batch.segments.clone(),
            )
            predicted, keys = self._predicted(annotated).clone(), self._keys(annotated).clone()
            sums = gradient_importance(model, batch, predicted, keys)
        count = predicted[:, int(annotated.is_causal) :].sum(-1)[:, None, None]
        for place, layer in enumerate(sums.masked_fill(count == 0, torch.nan)):
            self._means.add(state, place, *known(torch.cat([layer, layer / count], dim=-1)))

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Sums add."""
        return self._means.merge(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """gradient(layer, head, target) for the summed loss, gradient_mean_loss for the mean."""
        both = self._means.compute(sums, records)
        return {
            name.replace("gradient", variable): values.sel(
                item=[f"{reduction} {t}" for t in TARGETS]
            )
            .rename(item="target")
            .assign_coords(target=list(TARGETS))
            for reduction, variable in REDUCTIONS.items()
            for name, values in both.items()
        }

    @property
    def _means(self) -> HeadRatio:
        items = tuple(f"{reduction} {target}" for reduction in REDUCTIONS for target in TARGETS)
        return HeadRatio("gradient", self.grid, _no_terms, Axis("item", items), shared=False)

    def _predicted(self, batch: AnnotatedBatch) -> Bool[Tensor, "batch token"]:
        """Every token of a causal model's input; a seeded share of the others' ordinary tokens."""
        if batch.is_causal:
            return batch.mask
        ordinary = batch.mask & ~has_label(batch, CLS) & ~has_label(batch, SEP)
        numbers = batch.numbers.tolist()
        chosen = choose_masked(ordinary.cpu().numpy(), numbers, seed=self.seed, share=self.share)
        return torch.from_numpy(chosen).to(batch.mask.device)

    def _keys(self, batch: AnnotatedBatch) -> Bool[Tensor, "batch key target"]:
        hidden = torch.zeros_like(batch.mask) if batch.is_causal else self._predicted(batch)
        shown = batch.mask & ~hidden
        return (
            torch.stack([has_label(batch, SEP), has_label(batch, PUNCT), batch.mask], -1)
            & shown[..., None]
        )


def _no_terms(_layer: object) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    raise NotImplementedError("gradients are added batch by batch, not layer by layer")
