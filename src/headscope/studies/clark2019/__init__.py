"""clark2019: "What Does BERT Look At? An Analysis of BERT's Attention".

What is left out for a model, a corpus or an option, what follows from the variables alone (the name
of a head after what it does, Fig. 6; the sink rate; two lines), and the study declared with them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.engine.look_again import LookAgain
from headscope.engine.setup import Setup
from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.surface import SINK_RATE, SINK_THRESHOLD, sink_rate
from headscope.results.measure import Measure
from headscope.studies import additions
from headscope.studies.clark2019 import surface, words
from headscope.studies.clark2019.surface import (
    ALWAYS,
    OTHER,
    draw_segments,
    exhibits,
    find_delimiters,
    findings,
    why_no_gradients,
)
from headscope.studies.clark2019.words import (
    TREES,
    examples,
    has_trees,
    probing,
    why_no_probes,
)
from headscope.studies.clark2019.words import exhibits as word_exhibits
from headscope.studies.clark2019.words import findings as word_findings
from headscope.studies.clark2019.words.choices import COREFERENCE, name_linguistic
from headscope.studies.option import ALIGNMENT, BOS, DOCUMENTS, NO_TREES, Option, say_words
from headscope.studies.study import Study
from headscope.text.segments import Segments

NO_PARAGRAPHS = (
    "the corpus marks no paragraphs, so a segment is made of consecutive sentences of a document"
)
NO_TARGET = "the study reads segments, so only the encoder has input"
NO_MENTIONS = "the corpus marks no mentions of entities; use one with coreference, such as GUM"
NO_DELIMITER = {
    "cls": "neither [CLS] nor a token that begins a text",
    "sep": "neither [SEP] nor a token that ends a text",
}

OF_DELIMITER = {
    "cls": ("special_share cls", "entropy_from_cls"),
    "sep": ("special_share sep", "sep_to_sep", "other_to_sep"),
}
OF_TREES = (
    "relation_accuracy",
    "offset_accuracy",
    "relation_count",
    "tree_accuracy",
    "noop_applies",
    "noop_not",
)
OF_MENTIONS = ("coref_accuracy", "coref_baseline")
# Of metrics that may find nothing to count: the count, the variables made of it, and the reason.
COUNTED = (
    (
        "relation_count",
        ("relation_", "offset_accuracy", "tree_", "noop_"),
        "no sentence of the corpus is a tree whose words match the tokens",
    ),
    ("coref_count", ("coref_",), "no window of a document has a mention with an antecedent"),
)


def left_out(setup: Setup) -> dict[str, str]:
    """Variables that this model or corpus cannot support, with the reason."""
    missing: dict[str, str] = {}
    if Segments(setup.corpus).unit == "sentences":
        missing["paragraphs"] = NO_PARAGRAPHS
    for absent in find_delimiters(setup.model).absent:
        reason = f"the tokenizer of {setup.model.name} has {NO_DELIMITER[absent]}"
        missing |= dict.fromkeys(OF_DELIMITER[absent], reason)
    if (reason := why_no_gradients(setup)) is not None:
        missing |= dict.fromkeys(("gradient", "noop_gradient"), reason)
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    if not has_trees(setup):
        missing |= dict.fromkeys(OF_TREES, NO_TREES)
    if (reason := why_no_probes(setup)) is not None:
        missing["parsing_uas"] = reason
    if not setup.corpus.has("mentions"):
        missing |= dict.fromkeys(OF_MENTIONS, NO_MENTIONS)
    return missing | additions.left_out(setup)


def drop_uncounted(result: xr.Dataset) -> xr.Dataset:
    """The result without the variables of metrics that counted nothing, with the reasons."""
    missing = json.loads(result.attrs["left_out"])
    for counted, beginnings, reason in COUNTED:
        if counted in result and bool(result[counted].isnull().all()):
            names = [str(name) for name in result.data_vars if str(name).startswith(beginnings)]
            result = result.drop_vars(names)
            missing |= {counted.replace("count", "accuracy"): reason}
    return result.assign_attrs(left_out=json.dumps(missing))


BEHAVIOUR = Measure(
    "behaviour",
    title="Behaviour",
    meaning="A name for what the head mostly does.",
    formula="next or previous > 0.5, broad: entropy > 3.8, [CLS], [SEP] or punctuation > 0.6, else "
    "other; later ones win, and a relation or coreference that the head finds wins over all",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    range="names",
    cost="from the variables alone",
    with_errors=False,
    groups={
        "previous": "position",
        "next": "position",
        "broad": "even",
        "cls": "marks",
        "sep": "marks",
        "punct": "marks",
        COREFERENCE: "syntax",
        OTHER: "unnamed",
        "": "syntax",
    },
)
LINES = ("uniform_entropy", "entropy_even")

MEASURES = (BEHAVIOUR, SINK_RATE)


@dataclass(frozen=True)
class Thresholds:
    """What a head must exceed to be named; the defaults are those of the released notebook."""

    next: float = 0.5
    previous: float = 0.5
    broad: float = 3.8  # nats
    cls: float = 0.6
    sep: float = 0.6
    punct: float = 0.6


def behaviour(
    measured: Mapping[str, Float[np.ndarray, "layer head"]], thresholds: Thresholds
) -> np.ndarray:
    """The label of every head; of several that fit the last one in `Thresholds` wins.

    `measured` maps a label to its values; a label without values, or with NaN, names no head.
    """
    shape = next(iter(measured.values())).shape
    labels = np.full(shape, OTHER, dtype="<U16")
    for name, threshold in vars(thresholds).items():
        if name in measured:
            labels[measured[name] > threshold] = name
    return labels


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the label of every head, the sink rate, and what could not be laid out."""
    result = drop_uncounted(result)
    options = json.loads(result.attrs["options"])
    labels = behaviour(_measured(result), Thresholds(**options["thresholds"]))
    missing = json.loads(result.attrs["left_out"])
    if "no_map" in result["head_divergence"].attrs:
        missing["head_position"] = result["head_divergence"].attrs["no_map"]
    attributes = {
        "left_out": json.dumps(missing),
        "sink_rate": sink_rate(result["first_token_share"].values, options["sink_threshold"]),
    }
    lines = {name: result.attrs[name] for name in LINES if name in result.attrs}
    labelled = result.assign(behaviour=(("layer", "head"), labels), **lines)
    return name_linguistic(labelled.assign_attrs(attributes), options["few"])


def _measured(result: xr.Dataset) -> dict[str, np.ndarray]:
    offset, special = result["offset_share"], result["special_share"]
    found = {"next": offset.sel(offset=1), "previous": offset.sel(offset=-1)}
    found |= {"broad": result["entropy"]}
    found |= {name: special.sel(special=name) for name in special["special"].values.tolist()}
    return {name: values.transpose("layer", "head").values for name, values in found.items()}


NOTES = (
    "Each segment is averaged over its rows first, [CLS], [SEP] and punctuation included, then all "
    "segments weigh the same; bars show two standard errors over segments. Punctuation is exactly "
    "“.” and “,”. Layers and heads count from 0; in brackets as the paper counts, from 1."
)

SINKS = tuple(
    additions.sink_finding(name, "special_share", {"special": label})
    for name, label in (("[SEP]", "sep"), ("[CLS]", "cls"))
)
READINGS = additions.layer_table(
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
        replace(
            BOS,
            meaning="whether trees and windows begin with the BOS token, segments have their own "
            "delimiters; auto: as the tokenizer adds it, always where it adds nothing",
        ),
        DOCUMENTS,
        additions.WEIGHTS,
        additions.IMPORTANCE,
        *words.OPTIONS,
    ),
    labels=words.find_relations,
    left_out=left_out,
    parts=lambda setup: (*surface.parts(setup), *words.parts(setup)),
    later_stages=(
        examples.ExampleStage(),
        probing.ProbeStage(),
        LookAgain(words.inputs_again, with_self=lambda setup: False),
    ),
    derive=derive,
    measures=(*MEASURES, *examples.MEASURES, *probing.MEASURES),
    figures=(*exhibits.FIGURES, *word_exhibits.FIGURES),
    tables=(
        *word_exhibits.TABLES,
        READINGS,
        additions.IMPORTANCE_TABLE,
        *exhibits.TABLES,
    ),
    findings=(*findings.FINDINGS, *SINKS, *word_findings.FINDINGS, *word_findings.NOOP_FINDINGS),
    check=words.check_files,
    bos=words.bos_of_inputs,
    choices=lambda result: [],
    draw=draw_segments,
    notes=lambda result: f"{additions.note(result)}{NOTES} {say_words(result, TREES)}".strip(),
    unit="segments",
)

STUDY = additions.with_portrait(STUDY)
