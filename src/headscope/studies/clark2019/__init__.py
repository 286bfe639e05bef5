"""clark2019: "What Does BERT Look At? An Analysis of BERT's Attention"."""

from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.where.surface import SINK_THRESHOLD
from headscope.studies import importance, norms
from headscope.studies.clark2019 import derived
from headscope.studies.clark2019.derived import Thresholds
from headscope.studies.clark2019.left_out import left_out
from headscope.studies.clark2019.surface import exhibits, findings
from headscope.studies.clark2019.surface import parts as surface
from headscope.studies.clark2019.surface.parts import ALWAYS, draw_segments
from headscope.studies.clark2019.words import examples, noop, probing
from headscope.studies.clark2019.words import exhibits as word_exhibits
from headscope.studies.clark2019.words import findings as word_findings
from headscope.studies.clark2019.words import parts as words
from headscope.studies.clark2019.words.parts import TREES
from headscope.studies.option import Option
from headscope.studies.reading import ALIGNMENT, DOCUMENTS, say_words
from headscope.studies.study import Study

NOTES = (
    "Each segment is averaged over its rows first, [CLS], [SEP] and punctuation included, then all "
    "segments weigh the same; bars show two standard errors over segments. Punctuation is exactly "
    "“.” and “,”. Layers and heads count from 0; in brackets as the paper counts, from 1."
)

SINKS = tuple(
    norms.sink_finding(name, "special_share", {"special": label})
    for name, label in (("[SEP]", "sep"), ("[CLS]", "cls"))
)
READINGS = norms.layer_table(
    {name: ("special_share", {"special": label}) for label, name in
     (("sep", "[SEP]"), ("cls", "[CLS]"), ("punct", "punctuation"))}
)  # fmt: skip

STUDY = Study(
    name="clark2019",
    title="What heads look at",
    citation="Clark et al. (2019), What Does BERT Look At? An Analysis of BERT's Attention",
    question="Which heads look at a fixed offset, at separators or everywhere, does it matter to "
    "the model, and which heads behave alike?",
    options=(
        Option("max_tokens", int, 128, "segments are filled and cut to this length", least=8),
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
        ALIGNMENT,
        DOCUMENTS,
        norms.OPTION,
        importance.OPTION,
        *words.OPTIONS,
    ),
    labels=words.find_relations,
    left_out=left_out,
    parts=lambda setup: (*surface.parts(setup), *words.parts(setup)),
    stages=(examples.ExampleStage(), probing.ProbeStage()),
    derive=derived.derive,
    measures=(*derived.MEASURES, *examples.MEASURES, *probing.MEASURES),
    figures=(*exhibits.FIGURES, *word_exhibits.FIGURES),
    tables=(*word_exhibits.TABLES, noop.TABLE, READINGS, importance.TABLE, *exhibits.TABLES),
    findings=(*findings.FINDINGS, *SINKS, *word_findings.FINDINGS, *noop.FINDINGS),
    check=words.check_files,
    choices=lambda result: [],
    draw=draw_segments,
    notes=lambda result: f"{norms.note(result)}{NOTES} {say_words(result, TREES)}".strip(),
    unit="segments",
)
