"""vig2019: "Analyzing the Structure of Attention in a Transformer Language Model".

Its metrics, what has to be left out for a model or a corpus, and the study declared with them.
"""

from functools import partial

import xarray as xr

from headscope.engine.look_again import LookAgain, why_no_examples
from headscope.engine.part import Part
from headscope.engine.setup import Setup
from headscope.metrics import dependencies, labels, spread
from headscope.metrics.example_map import ExampleMap
from headscope.metrics.examples import HeadExamples
from headscope.metrics.metric import Axis, Metric
from headscope.metrics.variability import Variability
from headscope.model.inputs.tokens import display_text
from headscope.studies import additions
from headscope.studies.additions import with_importance
from headscope.studies.option import (
    ALIGNMENT,
    ATTENTION,
    BOS,
    DOCUMENTS,
    NO_TREES,
    Option,
    say_words,
)
from headscope.studies.study import Study
from headscope.studies.vig2019 import depth
from headscope.studies.vig2019.exhibits import FIGURES, TABLES
from headscope.studies.vig2019.findings import FINDINGS, SYNTAX_FINDINGS, SYNTAX_TABLE
from headscope.studies.vig2019.inputs import (
    document_inputs,
    draw_corpus,
    exemplar_inputs,
    find_labels,
    inputs_again,
    number_inputs,
    sentence_inputs,
    sentences_of_numbers,
)
from headscope.studies.vig2019.specialised import choose_heads

NO_TAGS = (
    "the corpus has no part-of-speech tags; "
    "make them with `headscope annotate INPUT --out CORPUS.parquet --spacy NAME`"
)
NO_NULL = "the tokenizer adds no delimiters, so no token is null"
NO_TARGET = "the study reads single sentences, so only the encoder has input"

OF_TAGS = ("pos_to", "pos_from", "tag_frequency")
OF_ARCS = (
    "dependency_alignment",
    "dependency_baseline",
    "dependency_expected",
    "dependency_probability",
)


def left_out(setup: Setup) -> dict[str, str]:
    """Variables (or stacks) that this model or corpus cannot support, with the reason."""
    missing: dict[str, str] = {}
    if "tag" not in setup.labels:
        missing |= dict.fromkeys(OF_TAGS, NO_TAGS)
    if "deprel" not in setup.labels:
        missing["deprel_to"] = NO_TREES
    if not setup.corpus.has("head"):
        missing |= dict.fromkeys(OF_ARCS, NO_TREES)
    if not _has_null(setup):
        missing["null_share"] = NO_NULL
    if (reason := why_no_examples(setup)) is not None:
        missing["example_peak"] = reason
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    return missing | additions.left_out(setup)


def parts(setup: Setup) -> tuple[Part, ...]:
    """All metrics read the same sentences, but for exemplars that are sought in more of them."""
    metrics = [*_of_attention(setup), *_of_labels(setup), *_of_arcs(setup)]
    examples = _examples(setup)
    if sentences_of_numbers(setup) is not None:
        numbers = with_importance(setup, Part(number_inputs, tuple(metrics)))
        return numbers, Part(exemplar_inputs, examples, of_corpus=False)
    inputs = sentence_inputs if setup.context is None else document_inputs
    return (with_importance(setup, Part(inputs, (*metrics, *examples))),)


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add what follows from the variables alone: the correlations over heads."""
    pairs = {"distance~entropy": (result["distance"], result["entropy"])}
    if "dependency_alignment" in result:
        either = result["dependency_alignment"].sel(form="either")
        pairs["distance~alignment"] = (result["distance"], either)
    return result.assign(spread.correlations(pairs))


def _of_attention(setup: Setup) -> list[Metric]:
    grid, options = setup.grid, setup.options
    metrics: list[Metric] = [
        spread.distance(grid),
        spread.entropy(grid),
        Variability(grid, setup.model.is_causal, options["corner"]),
        ExampleMap(grid, partial(display_text, setup.model.tokenizer), options["example_tokens"]),
    ]
    if _has_null(setup):
        metrics += [spread.null_share(grid), spread.null_share_of_all_queries(grid)]
        if setup.reading == "both":
            metrics.append(spread.null_share_norm(grid))
    return metrics


def _examples(setup: Setup) -> tuple[Metric, ...]:
    """What chooses the sentences that are looked at again."""
    if why_no_examples(setup) is not None:
        return ()
    with_self, top = setup.options["self_exemplars"], setup.options["exemplars"]
    return (HeadExamples(setup.grid, setup.seed, top, with_self=with_self),)


def _of_labels(setup: Setup) -> list[Metric]:
    found: list[Metric] = []
    if "tag" in setup.labels:
        axis = Axis("tag", setup.labels["tag"])
        found += [
            labels.label_to(labels.POS_TO, setup.grid, axis),
            labels.label_from(labels.POS_FROM, setup.grid, axis),
            labels.label_frequency(labels.TAG_FREQUENCY, axis),
        ]
    if "deprel" in setup.labels:
        axis = Axis("deprel", setup.labels["deprel"])
        found += [
            labels.label_to(labels.DEPREL_TO, setup.grid, axis),
            labels.label_frequency(labels.DEPREL_FREQUENCY, axis),
        ]
    return found


def _of_arcs(setup: Setup) -> list[Metric]:
    if not setup.corpus.has("head"):
        return []
    both = [dependencies.dependency_alignment_norm(setup.grid)] if setup.reading == "both" else []
    return [
        *both,
        dependencies.dependency_alignment(setup.grid),
        dependencies.dependency_baseline(),
        dependencies.dependency_baseline_without_self(),
        dependencies.dependency_expected(setup.grid),
        dependencies.DependencySpan(),
    ]


def _has_null(setup: Setup) -> bool:
    return setup.model.is_causal or len(setup.frame) > 0


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    null = (
        f"the first token of every sentence{_name_bos(result)}"
        if result.attrs["is_causal"]
        else "the delimiters, as rows and as columns"
    )
    said = (
        "Unless said otherwise, attention to null tokens is left out of every value, as in the "
        f"paper: {null}. Shares are ratios of sums over the whole corpus; bars show two standard "
        "errors over sentences. Layers and heads count from 0."
    )
    return f"{additions.note(result)}{said} {say_words(result)}".strip()


def _name_bos(result: xr.Dataset) -> str:
    bos = result.attrs.get("bos")
    return f", the BOS token {bos}" if bos else ""


SINK = additions.sink_finding("the null token", "null_share", {})
READINGS = additions.layer_table(
    {"null share": ("null_share", {}), "alignment": ("dependency_alignment", {"form": "either"})}
)

STUDY = Study(
    name="vig2019",
    title="The structure of attention",
    citation="Vig & Belinkov (2019), Analyzing the Structure of Attention in a Transformer "
    "Language Model",
    question="Where does each head look: at which parts of speech, along which relations, how far, "
    "how widely, and does it depend on what the sentence says?",
    options=(
        Option("exemplars", int, 5, "inputs kept per head", least=1),
        Option("self_exemplars", bool, False, "whether a token's attention to itself counts there"),
        ALIGNMENT,
        DOCUMENTS,
        Option(
            "exemplar_sentences",
            int,
            None,
            "sentences that exemplars are sought in, more than the sample for the numbers",
            least=1,
        ),
        Option("corner", int, 10, "first tokens of every input that variability compares", least=1),
        Option("example_tokens", int, 14, "most tokens of the input that is drawn", least=2),
        Option("context", int, None, "inputs are documents of up to this many tokens", least=2),
        ATTENTION,
        BOS,
        additions.WEIGHTS,
        additions.IMPORTANCE,
    ),
    labels=find_labels,
    left_out=left_out,
    parts=parts,
    later_stages=(LookAgain(inputs_again, lambda setup: setup.options["self_exemplars"]),),
    derive=derive,
    figures=FIGURES,
    tables=(*TABLES[:2], SYNTAX_TABLE, READINGS, additions.IMPORTANCE_TABLE, *TABLES[2:]),
    findings=(*FINDINGS, *depth.FINDINGS, *SYNTAX_FINDINGS, SINK),
    choices=choose_heads,
    draw=draw_corpus,
    notes=notes,
)

STUDY = additions.with_portrait(STUDY)
