"""Whether heads look at delimiters when what they are for does not apply (Clark et al. 2019, §3.2).

A head that finds direct objects has nothing to do for most words. The paper reads attention to
[SEP] as that: doing nothing. If so, words with the relation pay little to the delimiters and all
other words pay much, and the loss hardly depends on the weights that go there.

dependent → head: the relation applies to the words that have it. Head → dependent (`_governor`): to
the words that govern one with it. In a causal model it applies where the head could see the other
word. All other words are those to which it does not apply.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.metrics.gradient import MASKED_SHARE, choose_predicted, differentiate
from headscope.metrics.metric import GROUP, Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.metrics.ratio import ratio_variables, sum_by_group
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.probes.relations import SUMS, scored_words
from headscope.probes.trees import Classes, GoldTrees, make_gold
from headscope.probes.words import From, Units, units_in
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

SIDES = ("", "_governor")  # of the two directions
CLARK = "Clark et al. 2019, §3.2"


def _declare(name: str, title: str, meaning: str, formula: str, unit: str, cost: str) -> Measure:
    return Measure(
        name=name,
        title=title,
        meaning=meaning,
        formula=formula,
        reference=CLARK,
        unit="share" if unit else "",
        range="0 to 1" if unit else "from 0",
        cost=cost,
        axes={"relation": "Relation"},
        with_errors=False,
        also=(f"{name}_governor", *(f"{name}{side}{end}" for side in SIDES for end in SUMS)),
    )


NOOP_APPLIES = _declare(
    "noop_applies",
    "Attention to delimiters where a relation applies",
    "Share that words with the relation pay to delimiters or the null token; `_governor`: words "
    "that govern one.",
    "Σ a[i, null] over the words i to which the relation applies / number of such words",
    "share",
    "n, from the weight on null tokens that other metrics share",
)
NOOP_NOT = _declare(
    "noop_not",
    "Attention to delimiters where a relation does not apply",
    "The same of all other words.",
    "Σ a[i, null] over all other words i / number of such words",
    "share",
    "none beyond noop_applies",
)
NOOP_GRADIENT_APPLIES = _declare(
    "noop_gradient_applies",
    "Gradient to delimiters where a relation applies",
    "Mean |∂L/∂a| of the weights on delimiters or the null token, of words with the relation; "
    "`_governor`: words that govern one.",
    "mean |∂L/∂a[i, null]| over the words i to which the relation applies; L summed over the "
    "tokens to be predicted",
    "",
    "one more forward and one backward pass",
)
NOOP_GRADIENT_NOT = _declare(
    "noop_gradient_not",
    "Gradient to delimiters where a relation does not apply",
    "The same of all other words.",
    "mean |∂L/∂a[i, null]| over all other words i",
    "",
    "none beyond noop_gradient_applies",
)


@dataclass(frozen=True)
class Applying:
    """The words of a batch, and to which of them each relation applies, in both directions."""

    pieces: Float[Tensor, "batch word token"]  # the share of the token in the word's row
    words: Float[Tensor, "batch word"]  # 1 for words that are not null themselves
    applies: Float[Tensor, "batch direction word class"]


@dataclass(frozen=True)
class NoopSums:
    """What words pay, summed where each relation applies and over all words."""

    grid: Grid
    classes: Classes
    prefix: str

    def zero(self) -> State:
        """Empty sums."""
        classes = len(self.classes)
        return State(
            {
                "applies": np.zeros((GROUPS, *self.grid.shape, 2, classes)),
                "total": np.zeros((GROUPS, *self.grid.shape)),
                "words_applying": np.zeros((GROUPS, 2, classes)),
                "words": np.zeros(GROUPS),
            }
        )

    def count(self, state: State, batch: AnnotatedBatch, known: Applying) -> None:
        """Count the words of a batch."""
        counts = {"words_applying": known.applies.sum(2), "words": known.words.sum(1)}
        for name, values in counts.items():
            state.add(name, sum_by_group(values, batch.groups))

    def add(
        self,
        state: State,
        index: int,
        batch: AnnotatedBatch,
        known: Applying,
        paid: Float[Tensor, "batch head token"],
    ) -> None:
        """Add what the tokens of one layer pay."""
        of_words = paid @ known.pieces.to(paid.dtype).transpose(1, 2)  # batch head word
        applies = torch.einsum("bhw,bdwc->bhdc", of_words, known.applies.to(paid.dtype))
        total = torch.einsum("bhw,bw->bh", of_words, known.words.to(paid.dtype))
        for name, values in (("applies", applies), ("total", total)):
            state.add(name, sum_by_group(values, batch.groups), (slice(None), index))

    def compute(self, sums: Sums) -> Variables:
        """PREFIX_applies and PREFIX_not, of dependents and of governors, with errors and sums."""
        found: Variables = {}
        axis = Axis("relation", self.classes.names)
        for direction, side in enumerate(SIDES):
            applies, words = (
                sums["applies"][..., direction, :],
                sums["words_applying"][:, direction],
            )
            parts = {
                "applies": (applies, words),
                "not": (sums["total"][..., None] - applies, sums["words"][:, None] - words),
            }
            for name, (x, y) in parts.items():
                x = np.where(y[:, None, None] > 0, x, 0.0)  # what is left of no words is rounding
                above, below = label(x, GROUP, *self.grid.axes, axis), label(y, GROUP, axis)
                found |= ratio_variables(f"{self.prefix}_{name}{side}", above, below)
        return found


@dataclass(frozen=True)
class Noop:
    """Attention of words to null tokens, where each relation applies and where it does not."""

    grid: Grid
    classes: Classes
    is_causal: bool
    row: From = "mean"
    name: str = "noop"
    measures: tuple[Measure, ...] = (NOOP_APPLIES, NOOP_NOT)
    merge = staticmethod(add)

    @property
    def sums(self) -> NoopSums:
        """The numbers that are added up."""
        return NoopSums(self.grid, self.classes, self.name)

    def zero(self, inputs: int) -> State:
        return self.sums.zero()

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count the words."""
        self.sums.count(state, batch, self._known(batch))

    def update_layer(self, state: State, layer: Layer) -> None:
        """Add what the words pay to null tokens."""
        batch = layer.batch
        self.sums.add(state, layer.index, batch, self._known(batch), layer.to_null)

    def compute(self, sums: Sums, records: Records) -> Variables:
        return self.sums.compute(sums)

    def _known(self, batch: AnnotatedBatch) -> Applying:
        return applying_in(batch, self.classes, self.row, is_causal=self.is_causal)


@dataclass(frozen=True)
class NoopGradient:
    """|∂L/∂a| of the weights on null tokens, of the same words."""

    grid: Grid
    classes: Classes
    is_causal: bool
    row: From = "mean"
    seed: int = 0
    share: float = MASKED_SHARE
    name: str = "noop_gradient"
    measures: tuple[Measure, ...] = (NOOP_GRADIENT_APPLIES, NOOP_GRADIENT_NOT)
    merge = staticmethod(add)

    @property
    def sums(self) -> NoopSums:
        """The numbers that are added up."""
        return NoopSums(self.grid, self.classes, self.name)

    def zero(self, inputs: int) -> State:
        return self.sums.zero()

    def update_model(
        self, state: State, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Differentiate the loss of every input of a batch."""
        known = applying_in(annotated, self.classes, self.row, is_causal=self.is_causal)
        predicted, null = self._predicted(annotated), annotated.null & annotated.mask
        places = {layer: place for place, layer in enumerate(self.grid.layers)}
        self.sums.count(state, annotated, known)

        def reduce(layer: int, gradient: Float[Tensor, "batch head query key"]) -> None:
            mean = gradient_to(gradient, null, is_causal=self.is_causal)
            self.sums.add(state, places[layer], annotated, known, mean)

        differentiate(model, batch, predicted, reduce)

    def compute(self, sums: Sums, records: Records) -> Variables:
        return self.sums.compute(sums)

    def _predicted(self, batch: AnnotatedBatch) -> Bool[Tensor, "batch token"]:
        return choose_predicted(batch, batch.content, seed=self.seed, share=self.share)


def gradient_to(
    gradient: Float[Tensor, "batch head query key"],
    keys: Bool[Tensor, "batch key"],
    *,
    is_causal: bool,
) -> Float[Tensor, "batch head query"]:
    """Mean |∂L/∂a[i, j]| of every query over those keys j that it sees; zero where it sees none."""
    seen = keys[:, None, :].expand(-1, keys.shape[1], -1)
    seen = (seen.tril() if is_causal else seen).to(gradient.dtype)
    total = (gradient.abs() * seen[:, None]).sum(-1)
    return total / seen.sum(-1).clamp(min=1)[:, None]


def applying_in(batch: AnnotatedBatch, classes: Classes, row: From, *, is_causal: bool) -> Applying:
    """The words of a batch, found once for all layers."""

    def make() -> Applying:
        gold = make_gold(batch.sentences, classes, device=batch.mask.device)
        return find_applying(gold, units_in(batch, row), batch.null, is_causal=is_causal)

    return batch.once(f"noop {row}", make)


def find_applying(
    gold: GoldTrees, units: Units, null: Bool[Tensor, "batch token"], *, is_causal: bool
) -> Applying:
    """Words that are not null, and to which of them each relation applies."""
    width = units.width
    is_null = (null[:, None].to(units.keys.dtype) @ units.keys)[:, 0, :width] > 0
    words = gold.words & ~is_null
    scored = scored_words(gold.heads, gold.words, is_causal=is_causal).to(gold.own.dtype)
    of_dependents = gold.own * scored[0, ..., None]
    # Where the clitic's attention counts instead of the possessor's, it is the clitic's.
    of_dependents += pad(gold.following * scored[0, ..., None], (0, 0, 1, 0))[:, :-1]
    of_governors = _of_governors(gold, gold.classes * scored[1, ..., None])
    applies = torch.stack([of_dependents, of_governors], dim=1).clamp(max=1)
    return Applying(
        units.queries[:, :width], words.to(gold.own.dtype), applies * words[:, None, :, None]
    )


def _of_governors(
    gold: GoldTrees, classes: Float[Tensor, "batch word class"]
) -> Float[Tensor, "batch word class"]:
    """1 for words that govern one of the class."""
    governs = (
        gold.heads[:, None, :]
        == torch.arange(gold.heads.shape[1], device=gold.heads.device)[:, None]
    )
    return (governs.to(classes.dtype) @ classes).clamp(max=1)
