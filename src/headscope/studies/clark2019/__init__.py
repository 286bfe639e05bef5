"""clark2019: "What Does BERT Look At? An Analysis of BERT's Attention"."""

from headscope.metrics.behaviour import Thresholds
from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.surface import SINK_THRESHOLD
from headscope.studies.clark2019 import words
from headscope.studies.clark2019.surface.figures import FIGURES
from headscope.studies.clark2019.surface.findings import FINDINGS
from headscope.studies.clark2019.surface.inputs import draw_segments
from headscope.studies.clark2019.surface.metrics import ALWAYS, derive, left_out, parts
from headscope.studies.clark2019.surface.tables import TABLES
from headscope.studies.study import Study

NOTES = (
    "Each segment is averaged over its rows first, [CLS], [SEP] and punctuation included, then all "
    "segments weigh the same; bars show two standard errors over segments. Punctuation is exactly "
    "“.” and “,”. Layers and heads count from 0; in brackets as the paper counts, from 1."
)

STUDY = Study(
    name="clark2019",
    title="What heads look at",
    citation="Clark et al. (2019), What Does BERT Look At? An Analysis of BERT's Attention",
    question="Which heads look at a fixed offset, at separators or everywhere, does it matter to "
    "the model, and which heads behave alike?",
    options={
        "max_tokens": 128,
        "segment_ids": True,
        "offsets": list(ALWAYS),
        "gradients": True,
        "masked_share": MASKED_SHARE,
        "thresholds": vars(Thresholds()),
        "sink_threshold": SINK_THRESHOLD,
        "repeated_sequences": 16,
        "period": 32,
        "example_tokens": 32,
        **words.OPTIONS,
    },
    labels=words.find_relations,
    left_out=lambda setup: left_out(setup) | words.left_out(setup),
    parts=lambda setup: (*parts(setup), *words.parts(setup)),
    derive=lambda result: words.derive(derive(result)),
    figures=(*FIGURES, *words.FIGURES),
    tables=(*words.TABLES, *TABLES),
    findings=(*FINDINGS, *words.FINDINGS),
    complete=words.complete,
    choices=lambda result: [],
    draw=draw_segments,
    notes=lambda result: NOTES,
    unit="segments",
)
