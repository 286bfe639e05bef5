"""clark2019: "What Does BERT Look At? An Analysis of BERT's Attention".

What follows from the variables alone (the name
of a head after what it does, Fig. 6; the sink rate; two lines), and the study declared with them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.engine.look_again import LookAgain
from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.surface import SINK_RATE, SINK_THRESHOLD, sink_rate
from headscope.results.measure import Measure
from headscope.studies import additions
from headscope.studies.clark2019 import figures, tables
from headscope.studies.clark2019.best_heads import COREFERENCE, name_linguistic
from headscope.studies.clark2019.claims import CLAIMS
from headscope.studies.clark2019.inputs import draw_segments
from headscope.studies.clark2019.metrics import ALWAYS, INPUTS
from headscope.studies.clark2019.probes import examples, probing
from headscope.studies.clark2019.probes import figures as word_figures
from headscope.studies.clark2019.probes import inputs as words
from headscope.studies.clark2019.probes import tables as word_tables
from headscope.studies.clark2019.probes.inputs import TREES
from headscope.studies.clark2019.published import BROAD_ENTROPY, OF_MEASURES
from headscope.studies.option import ALIGNMENT, BOS, DOCUMENTS, Option, say_errors, say_words
from headscope.studies.study import Study
from headscope.studies.untrained import UNTRAINED

OTHER = "other"  # the behaviour of a head without a clear one
# Of metrics that may find nothing to count: the count, the variables made of it, and the reason.
COUNTED = (
    (
        "relation_count",
        ("relation_", "offset_accuracy", "tree_", "noop_"),
        "no sentence of the corpus is a tree whose words match the tokens",
    ),
    ("coref_count", ("coref_",), "no window of a document has a mention with an antecedent"),
)


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
    formula=f"next or previous > 0.5, broad: entropy > {BROAD_ENTROPY}, [CLS], [SEP] or "
    "punctuation > 0.6, else other; later ones win, and a relation or coreference that the head "
    "finds wins over all",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
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


# What a head must exceed to be named, as in the released notebook; of several the last counts.
THRESHOLDS = {
    "next": 0.5,
    "previous": 0.5,
    "broad": BROAD_ENTROPY,
    "cls": 0.6,
    "sep": 0.6,
    "punct": 0.6,
}


def behaviour(
    measured: Mapping[str, Float[np.ndarray, "layer head"]], thresholds: Mapping[str, float]
) -> np.ndarray:
    """The label of every head; of several that fit the last one of the thresholds wins.

    `measured` maps a label to its values; a label without values, or with NaN, names no head.
    """
    shape = next(iter(measured.values())).shape
    labels = np.full(shape, OTHER, dtype="<U16")
    for name, threshold in thresholds.items():
        if name in measured:
            labels[measured[name] > threshold] = name
    return labels


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the sink rate, what could not be laid out, and labels of heads without portraits."""
    result = drop_uncounted(result)
    options = json.loads(result.attrs["options"])
    missing = json.loads(result.attrs["left_out"])
    if "no_map" in result["head_divergence"].attrs:
        missing["head_position"] = result["head_divergence"].attrs["no_map"]
    attributes = {
        "left_out": json.dumps(missing),
        "sink_rate": sink_rate(result["first_token_share"].values, options["sink_threshold"]),
    }
    lines = {name: result.attrs[name] for name in LINES if name in result.attrs}
    result = result.assign(lines).assign_attrs(attributes)
    if "behaviour" in result:
        return result
    labels = behaviour(_measured(result), THRESHOLDS | options["thresholds"])
    return name_linguistic(result.assign(behaviour=(("layer", "head"), labels)), options["few"])


def _measured(result: xr.Dataset) -> dict[str, np.ndarray]:
    offset, special = result["offset_share"], result["special_share"]
    found = {"next": offset.sel(offset=1), "previous": offset.sel(offset=-1)}
    found |= {"broad": result["entropy"]}
    found |= {name: special.sel(special=name) for name in special["special"].values.tolist()}
    return {name: values.transpose("layer", "head").values for name, values in found.items()}


NOTES = (
    "Each segment is averaged over its rows first, those of [CLS], [SEP] and punctuation included; "
    "then all segments weigh the same. Bars show two standard errors. Punctuation is exactly "
    "“.” and “,”. Layers and heads count from 0; in brackets as the paper counts, from 1."
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
            THRESHOLDS,
            "what a head must exceed to be named after what it does",
            least=0,
            choices=tuple(THRESHOLDS),
        ),
        Option(
            "sink_threshold",
            float,
            SINK_THRESHOLD,
            "share to the first token that makes a head a sink",
            least=0,
            most=1,
        ),
        Option(
            "repeated_sequences", int, 16, "sequences of random tokens that occur twice", least=1
        ),
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
        UNTRAINED,
        *words.OPTIONS,
    ),
    labels=words.find_relations,
    inputs=INPUTS,
    later_stages=(
        examples.ExampleStage(),
        probing.ProbeStage(),
        LookAgain(words.inputs_again, with_self=lambda setup: False),
    ),
    derive=derive,
    shown_first=("special_share", "entropy"),
    measures=(*MEASURES, *examples.MEASURES, *probing.MEASURES),
    figures=(*figures.FIGURES, *word_figures.FIGURES),
    tables=(
        *word_tables.TABLES,
        READINGS,
        additions.IMPORTANCE_TABLE,
        *tables.TABLES,
    ),
    claims=CLAIMS,
    published=OF_MEASURES,
    check=words.check_files,
    bos=words.bos_of_inputs,
    draw=draw_segments,
    notes=lambda result: " ".join(
        (f"{additions.note(result)}{NOTES}", say_errors(result), say_words(result, TREES))
    ).strip(),
    unit="segments",
    drawn="segments",
    demo={
        "mini-gpt2": {"sentences": 12, "probe_seeds": 1},
        "mini-bert": {"sentences": 12, "probe_seeds": 1},
    },
)

STUDY = additions.with_portrait(STUDY)
