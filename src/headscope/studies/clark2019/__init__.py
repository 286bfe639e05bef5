"""clark2019: "What Does BERT Look At? An Analysis of BERT's Attention"."""

from headscope.metrics.behaviour import Thresholds
from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.sinks import SINK_THRESHOLD
from headscope.studies.clark2019 import words
from headscope.studies.clark2019.surface.figures import FIGURES
from headscope.studies.clark2019.surface.findings import FINDINGS
from headscope.studies.clark2019.surface.inputs import draw_segments
from headscope.studies.clark2019.surface.metrics import ALWAYS, derive, left_out, parts
from headscope.studies.clark2019.surface.tables import TABLES
from headscope.studies.option import Option
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
    options=(
        Option("max_tokens", int, 128, "longer segments are skipped", least=2),
        Option("segment_ids", bool, True, "whether the model is told which half a token is in"),
        Option("offsets", list[int], list(ALWAYS), "offsets measured besides -1, 0 and 1"),
        Option("gradients", bool, True, "whether gradients of the loss are computed"),
        Option("masked_share", float, MASKED_SHARE, "tokens masked for them", above=0, most=1),
        Option(
            "thresholds",
            dict[str, float],
            vars(Thresholds()),
            "what a head must exceed to be named after what it does",
            least=0,
            choices=tuple(vars(Thresholds())),
        ),
        Option(
            "sink_threshold",
            float,
            SINK_THRESHOLD,
            "share to the first token that makes a head a sink",
            least=0,
            most=1,
        ),
        Option("repeated_sequences", int, 16, "random sequences said twice", least=1),
        Option("period", int, 32, "tokens until such a sequence repeats", least=1),
        Option("example_tokens", int, 32, "most tokens of the segment that is drawn", least=2),
        *words.OPTIONS,
    ),
    labels=words.find_relations,
    left_out=lambda setup: left_out(setup) | words.left_out(setup),
    parts=lambda setup: (*parts(setup), *words.parts(setup)),
    derive=lambda result: words.derive(derive(result)),
    figures=(*FIGURES, *words.FIGURES),
    tables=(*words.TABLES, *TABLES),
    findings=(*FINDINGS, *words.FINDINGS),
    check=words.check_files,
    complete=words.complete,
    choices=lambda result: [],
    draw=draw_segments,
    notes=lambda result: NOTES,
    unit="segments",
)
