"""What feeds a head: the share that every earlier part of the network makes of its choice.

A score is a sum over what was written before (`headscope.model.why`). What is the same for all keys
of a row moves no weight, so a part is measured by its covariance with the score over the keys of a
row; covariances add to the variance of the score, and shares to 1.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.metrics.gradient import outside_inference
from headscope.metrics.metric import (
    GROUP,
    Axis,
    Grid,
    Metric,
    Sums,
    Variables,
    add_by_group,
    group_zeros,
    label,
    ratio_variables,
)
from headscope.model.why import SIDES, compose
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Measure

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

AT_ONCE = 4096  # tokens whose graph is held in memory
COMPOSITION = Measure(
    "composition",
    title="Composition",
    meaning="Share of a head's choice among keys that an earlier part of the network makes.",
    formula="Σ cov(part of the score, score) / Σ var(score), over the visible keys of each row; on "
    "the side of the query or of the key",
    reference="Elhage et al. 2021, as texts use it",
    unit="",
    more="is fed more by the part",
    axes={"side": "Side", "source": "Part"},
)


@dataclass(frozen=True)
class HeadComposition(Metric):
    """Covariances of every part with the scores of every head."""

    grid: Grid
    sources: tuple[str, ...]  # parts of the network, in the order in which they write
    name: str = "composition"
    measures: tuple[Measure, ...] = (COMPOSITION,)

    def zero(self) -> Sums:
        shape = (*self.grid.shape, len(SIDES), len(self.sources))
        return {"covariance": group_zeros(*shape), "variance": group_zeros(*self.grid.shape)}

    def see_model(
        self, sums: Sums, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Take the scores of a few texts at a time apart."""
        most = max(1, AT_ONCE // batch.ids.shape[1])
        for start in range(0, len(batch), most):
            texts = slice(start, start + most)
            part = batch.part(texts)
            with outside_inference(part, part.mask) as (copy, _):
                composition = compose(model, copy)
            groups = annotated.groups[texts]
            add_by_group(sums["covariance"], composition.covariance.detach(), groups)
            add_by_group(sums["variance"], composition.variance, groups)

    def compute(self, sums: Sums) -> Variables:
        """composition(layer, head, side, source), with errors and sums."""
        sides, sources = Axis("side", SIDES), Axis("source", self.sources)
        covariance = label(sums["covariance"], GROUP, *self.grid.axes, sides, sources)
        return ratio_variables(
            self.name, covariance, label(sums["variance"], GROUP, *self.grid.axes)
        )
