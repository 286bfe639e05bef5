"""Which tags and which relations attention goes to and comes from (Vig & Belinkov 2019, Eq. 3).

A tag belongs to a word and is copied to each of its pieces. Each share stands next to how often the
label occurs among the tokens, and to what a head would give it that spread its attention evenly.
"""

from headscope.metrics.metric import EVEN, Axis, Grid, Ratio, Terms, TextRatio, TextTerms
from headscope.observe.batch import AnnotatedBatch, sum_by_label
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure

TAG_AXIS, DEPREL_AXIS = {"tag": "Tag"}, {"deprel": "Relation"}

POS_TO = Measure(
    "pos_to",
    title="Attention to a tag",
    meaning="Share of attention that words of this tag receive.",
    formula="Σ a[i, j]·[tag(j) = l] / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 3, Fig. 6",
    more="attends more to words of this tag",
    axes=TAG_AXIS,
    baselines=(Baseline("pos_to_even", EVEN), Baseline("tag_frequency", "frequency of the tag")),
)
POS_FROM = Measure(
    "pos_from",
    title="Attention from a tag",
    meaning="Share of attention that words of this tag pay.",
    formula="Σ a[i, j]·[tag(i) = l] / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 3, Fig. 7",
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
    more="attends more to words with this relation",
    axes=DEPREL_AXIS,
    baselines=(
        Baseline("deprel_to_even", EVEN),
        Baseline("deprel_frequency", "frequency of the relation"),
    ),
)
TAG_FREQUENCY = Measure(
    "tag_frequency",
    title="Frequency of a tag",
    meaning="Share of the tokens that belong to words of this tag.",
    formula="tokens with the tag / tokens that are not null",
    reference="Vig & Belinkov 2019, beside Figs. 6 and 7",
    axes=TAG_AXIS,
)
DEPREL_FREQUENCY = Measure(
    "deprel_frequency",
    title="Frequency of a relation",
    meaning="Share of the tokens that belong to words with this relation.",
    formula="tokens with the relation / tokens that are not null",
    reference="Vig & Belinkov 2019, beside Fig. 9",
    axes=DEPREL_AXIS,
)


def label_to(measure: Measure, grid: Grid, axis: Axis) -> Ratio:
    """Share of attention that each label l receives: Σ a[i,j]·[label(j) = l] / Σ a[i,j]."""

    def terms(layer: Layer) -> Terms:
        return layer.columns @ layer.batch.one_hot(axis.name, len(axis)), layer.total[..., None]

    return Ratio(measure, grid, terms, axis)


def label_from(measure: Measure, grid: Grid, axis: Axis) -> Ratio:
    """Share of attention that each label l pays: Σ a[i,j]·[label(i) = l] / Σ a[i,j]."""

    def terms(layer: Layer) -> Terms:
        return layer.rows @ layer.batch.one_hot(axis.name, len(axis)), layer.total[..., None]

    return Ratio(measure, grid, terms, axis)


def label_frequency(measure: Measure, axis: Axis) -> TextRatio:
    """Share of the content tokens that carry each label."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        content = batch.content.double()
        labelled = sum_by_label(batch, axis.name, len(axis), content)
        return labelled, content.sum(1, keepdim=True)

    return TextRatio(measure, terms, axis)
