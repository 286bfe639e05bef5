"""Which tags and which relations attention goes to and comes from (Vig & Belinkov 2019, Eq. 3).

A tag belongs to a word and is copied to each of its pieces. Each share stands next to how often the
label occurs among the tokens, and to what a head would give it that spread its attention evenly.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import Axis, Grid
from headscope.metrics.ratio import HeadRatio, Terms, TextRatio, TextTerms
from headscope.observe.batch import (
    AnnotatedBatch,
    pairs_of_keys,
    pairs_of_queries,
    sum_by_label,
)
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Published, Role

EVEN = "even attention"
TAG_NAMES = {
    "ADJ": "adjectives",
    "ADP": "prepositions",
    "ADV": "adverbs",
    "AUX": "auxiliaries",
    "CCONJ": "coordinating conjunctions",
    "DET": "determiners",
    "INTJ": "interjections",
    "NOUN": "nouns",
    "NUM": "numerals",
    "PART": "particles",
    "PRON": "pronouns",
    "PROPN": "proper names",
    "PUNCT": "punctuation",
    "SCONJ": "subordinating conjunctions",
    "SYM": "symbols",
    "VERB": "verbs",
}
TAG_AXIS, DEPREL_AXIS = {"tag": "Tag"}, {"deprel": "Relation"}

POS_TO = Measure(
    "pos_to",
    title="Attention to a tag",
    meaning="Share of attention that words of this tag receive.",
    formula="Σ a[i, j]·[tag(j) = l] / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 3, Fig. 6",
    range="0 to 1; sums to 1 over the tags if every token has one",
    cost="n·tags, from the column sums that other metrics share",
    more="attends more to words of this tag",
    axes=TAG_AXIS,
    baselines=(Baseline("pos_to_even", EVEN), Baseline("tag_frequency", "frequency of the tag")),
    role=Role("tag", "words tagged {tag}", TAG_NAMES, of="rest"),
    published=(
        Published(
            "mean over heads; 0.43 in L9H0",
            "GPT-2 small, Vig & Belinkov 2019",
            0.21,
            {"tag": "NOUN"},
        ),
    ),
)
POS_FROM = Measure(
    "pos_from",
    title="Attention from a tag",
    meaning="Share of attention that words of this tag pay.",
    formula="Σ a[i, j]·[tag(i) = l] / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 3, Fig. 7",
    cost="n·tags, from the row sums that other metrics share",
    more="has more of its attention paid by words of this tag",
    axes=TAG_AXIS,
    baselines=(Baseline("pos_from_even", EVEN), Baseline("tag_frequency", "frequency of the tag")),
)
DEPREL_TO = Measure(
    "deprel_to",
    title="Attention to a relation",
    meaning="Share of attention that words with this relation receive.",
    formula="Σ a[i, j]·[relation(j) = l] / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 3, Fig. 9",
    range="0 to 1; sums to 1 over the relations if every token has one",
    cost="n·relations, from the column sums that other metrics share",
    more="attends more to words with this relation",
    axes=DEPREL_AXIS,
    baselines=(
        Baseline("deprel_to_even", EVEN),
        Baseline("deprel_frequency", "frequency of the relation"),
    ),
    role=Role("relation", "words that are {deprel}", of="rest"),
)
TAG_FREQUENCY = Measure(
    "tag_frequency",
    title="Frequency of a tag",
    meaning="Share of the tokens that belong to words of this tag.",
    formula="tokens with the tag / tokens that are not null",
    reference="Vig & Belinkov 2019, beside Figs. 6 and 7",
    cost="n, once for all heads",
    axes=TAG_AXIS,
)
DEPREL_FREQUENCY = Measure(
    "deprel_frequency",
    title="Frequency of a relation",
    meaning="Share of the tokens that belong to words with this relation.",
    formula="tokens with the relation / tokens that are not null",
    reference="Vig & Belinkov 2019, beside Fig. 9",
    cost="n, once for all heads",
    axes=DEPREL_AXIS,
)
POS_TO_EVEN = Measure(
    "pos_to_even",
    title="Even attention to a tag",
    meaning="What words of this tag receive from a head that spreads its attention evenly.",
    formula="the one of pos_to with a := 1 over the same pairs",
    reference="Vig & Belinkov 2019, Fig. 8, its baseline applied to Eq. 3",
    cost="n·tags, once for all heads",
    axes=TAG_AXIS,
)
POS_FROM_EVEN = Measure(
    "pos_from_even",
    title="Even attention from a tag",
    meaning="What words of this tag pay in a head that spreads its attention evenly.",
    formula="the one of pos_from with a := 1 over the same pairs",
    reference="Vig & Belinkov 2019, Fig. 8, its baseline applied to Eq. 3",
    cost="n·tags, once for all heads",
    axes=TAG_AXIS,
)
DEPREL_TO_EVEN = Measure(
    "deprel_to_even",
    title="Even attention to a relation",
    meaning="What words with this relation receive from a head that spreads its attention evenly.",
    formula="the one of deprel_to with a := 1 over the same pairs",
    reference="Vig & Belinkov 2019, Fig. 8, its baseline applied to Eq. 3",
    cost="n·relations, once for all heads",
    axes=DEPREL_AXIS,
)


def label_to(measure: Measure, grid: Grid, axis: Axis) -> HeadRatio:
    """Share of attention that each label l receives: Σ a[i,j]·[label(j) = l] / Σ a[i,j]."""

    def terms(layer: Layer) -> Terms:
        return layer.columns @ layer.batch.one_hot(axis.name, len(axis)), layer.total[..., None]

    return HeadRatio(measure, grid, terms, axis)


def label_from(measure: Measure, grid: Grid, axis: Axis) -> HeadRatio:
    """Share of attention that each label l pays: Σ a[i,j]·[label(i) = l] / Σ a[i,j]."""

    def terms(layer: Layer) -> Terms:
        return layer.rows @ layer.batch.one_hot(axis.name, len(axis)), layer.total[..., None]

    return HeadRatio(measure, grid, terms, axis)


def label_frequency(measure: Measure, axis: Axis) -> TextRatio:
    """Share of the content tokens that carry each label."""
    return _of_tokens(measure, axis, lambda batch: batch.content.double())


def even_to(measure: Measure, axis: Axis) -> TextRatio:
    """`label_to` with every weight 1 over the same pairs: attention that is spread evenly."""
    return _of_tokens(measure, axis, pairs_of_keys)


def even_from(measure: Measure, axis: Axis) -> TextRatio:
    """`label_from` with every weight 1 over the same pairs."""
    return _of_tokens(measure, axis, pairs_of_queries)


def _of_tokens(
    measure: Measure, axis: Axis, weigh: Callable[[AnnotatedBatch], Float[Tensor, "batch token"]]
) -> TextRatio:
    """What the tokens that carry each label weigh, of what all tokens do."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        weight = weigh(batch)
        return sum_by_label(batch, axis.name, len(axis), weight), weight.sum(1, keepdim=True)

    return TextRatio(measure, terms, axis)
