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

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.metrics.gradient import MASKED_SHARE, choose_predicted, differentiate
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
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.studies.clark2019.probes.relations import SUMS, scored_words
from headscope.studies.clark2019.probes.trees import Classes, GoldTrees, make_gold
from headscope.studies.shared.words import From, Units, units_in

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
class PaidToNull(Metric):
    """What words pay to null tokens, where each relation applies and where it does not."""

    grid: Grid
    classes: Classes
    is_causal: bool
    row: From = "mean"

    def zero(self) -> Sums:
        """What words pay, summed where each relation applies and over all words; and the words."""
        classes = len(self.classes)
        return {
            "applies": group_zeros(*self.grid.shape, len(SIDES), classes),
            "total": group_zeros(*self.grid.shape),
            "words_applying": group_zeros(len(SIDES), classes),
            "words": group_zeros(),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        applying = self.applying(batch)
        add_by_group(sums["words_applying"], applying.applies.sum(2), batch.groups)
        add_by_group(sums["words"], applying.words.sum(1), batch.groups)

    def compute(self, sums: Sums) -> Variables:
        """NAME_applies and NAME_not, of dependents and of governors, with errors and sums."""
        variables: Variables = {}
        relation = Axis("relation", self.classes.names)
        for direction, side in enumerate(SIDES):
            paid = sums["applies"][..., direction, :]
            words = sums["words_applying"][:, direction]
            other_paid = sums["total"][..., None] - paid
            other_words = sums["words"][:, None] - words
            for end, x, y in (("applies", paid, words), ("not", other_paid, other_words)):
                x = torch.where(y[:, None, None] > 0, x, 0.0)  # of no words only rounding is left
                numerator = label(x, GROUP, *self.grid.axes, relation)
                denominator = label(y, GROUP, relation)
                variables |= ratio_variables(f"{self.name}_{end}{side}", numerator, denominator)
        return variables

    def applying(self, batch: AnnotatedBatch) -> Applying:
        """The words of a batch, made once for all layers."""

        def make() -> Applying:
            gold = make_gold(batch.sentences, self.classes, device=batch.mask.device)
            units = units_in(batch, self.row)
            return find_applying(gold, units, batch.null, is_causal=self.is_causal)

        return batch.once(f"noop {self.row}", make)


@dataclass(frozen=True)
class Noop(PaidToNull):
    """Attention of words to null tokens."""

    name: str = "noop"
    measures: tuple[Measure, ...] = (NOOP_APPLIES, NOOP_NOT)

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        add_layer(sums, layer.index, layer.to_null, self.applying(layer.batch), layer.batch.groups)


@dataclass(frozen=True)
class NoopGradient(PaidToNull):
    """|∂L/∂a| of the weights on null tokens, of the same words."""

    seed: int = 0
    share: float = MASKED_SHARE
    name: str = "noop_gradient"
    measures: tuple[Measure, ...] = (NOOP_GRADIENT_APPLIES, NOOP_GRADIENT_NOT)

    def see_model(
        self, sums: Sums, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Differentiate the loss of every input of a batch."""
        applying, pairs = self.applying(annotated), pairs_to_null(annotated)
        places = {layer: index for index, layer in enumerate(self.grid.layers)}

        def reduce(layer: int, gradient: Float[Tensor, "batch head query key"]) -> None:
            paid = mean_gradient(gradient, pairs)
            add_layer(sums, places[layer], paid, applying, annotated.groups)

        differentiate(model, batch, self.predicted(annotated), reduce)

    def predicted(self, batch: AnnotatedBatch) -> Bool[Tensor, "batch token"]:
        """The tokens whose loss is differentiated."""
        return choose_predicted(batch, batch.content, seed=self.seed, share=self.share)


def add_layer(
    sums: Sums,
    index: int,
    paid: Float[Tensor, "batch head token"],
    applying: Applying,
    groups: Int[Tensor, "batch"],
) -> None:
    """Add what the tokens of a batch pay in one layer; padding pays nothing."""
    of_words = paid @ applying.pieces.to(paid.dtype).mT  # batch head word
    applies = torch.einsum("bhw,bdwc->bhdc", of_words, applying.applies.to(paid.dtype))
    total = torch.einsum("bhw,bw->bh", of_words, applying.words.to(paid.dtype))
    add_by_group(sums["applies"][:, index], applies, groups)
    add_by_group(sums["total"][:, index], total, groups)


def pairs_to_null(batch: AnnotatedBatch) -> Bool[Tensor, "batch query key"]:
    """Pairs of a token, null or not, and a null token that it sees."""
    pairs = batch.mask[:, :, None] & (batch.null & batch.mask)[:, None, :]
    return pairs.tril() if batch.is_causal else pairs


def mean_gradient(
    gradient: Float[Tensor, "batch head query key"], pairs: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Mean |∂L/∂a[i, j]| of every query i over its pairs; zero where it has none.

    Rows of padding may hold anything, NaN included.
    """
    total = torch.where(pairs[:, None], gradient.abs(), 0.0).sum(-1)
    return total / pairs.sum(-1).clamp(min=1)[:, None]


def find_applying(
    gold: GoldTrees, units: Units, null: Bool[Tensor, "batch token"], *, is_causal: bool
) -> Applying:
    """Words that are not null, and to which of them each relation applies."""
    width = units.width
    is_null = (null[:, None].to(units.keys.dtype) @ units.keys)[:, 0, :width] > 0
    words = gold.words & ~is_null
    scored = scored_words(gold.heads, gold.words, is_causal=is_causal).float()[..., None]
    of_dependents = gold.by_itself * scored[0]
    # Where the next word, a clitic, is judged instead of the possessor, it is the one that attends.
    of_dependents += pad(gold.by_next * scored[0], (0, 0, 1, 0))[:, :-1]
    places = torch.arange(width, device=null.device)
    governs = (gold.heads[:, None, :] == places[:, None]).float()
    of_governors = governs @ (gold.classes * scored[1])
    applies = torch.stack([of_dependents, of_governors], dim=1).clamp(max=1)
    return Applying(units.queries[:, :width], words.float(), applies * words[:, None, :, None])
