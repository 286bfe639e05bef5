"""What clark2019 asks of heads: surface patterns (§3, §6), and trees and coreference (§4)."""

from functools import partial

from headscope.engine.question import DECODER, InputKind, Question
from headscope.engine.setup import Setup
from headscope.metrics import surface
from headscope.metrics.divergence import HeadDivergence
from headscope.metrics.example_map import ExampleMap
from headscope.metrics.examples import HeadExamples
from headscope.metrics.gradient import HeadGradient, why_no_gradient
from headscope.metrics.metric import Grid, Metric, by_norms
from headscope.model.generate import label_ids
from headscope.studies.additions import importance
from headscope.studies.clark2019.inputs import segment_inputs, segment_reach
from headscope.studies.clark2019.probes.coreference import CorefAccuracy
from headscope.studies.clark2019.probes.inputs import (
    has_trees,
    plain_inputs,
    tree_inputs,
    why_no_probes,
    window_inputs,
    window_reach,
)
from headscope.studies.clark2019.probes.noop import Noop, NoopGradient
from headscope.studies.clark2019.probes.relations import RelationAccuracy
from headscope.studies.clark2019.probes.trees import Classes
from headscope.studies.option import NO_TREES
from headscope.studies.shared.delimiters import find_delimiters
from headscope.studies.shared.repeated import REPEATED
from headscope.studies.shared.words import From
from headscope.text.segments import Segments

ALWAYS = (-1, 0, 1)  # offsets of the paper
NO_PARAGRAPHS = (
    "the corpus marks no paragraphs, so a segment is made of consecutive sentences of a document"
)
NO_MENTIONS = "the corpus marks no mentions of entities; use one with coreference, such as GUM"
NO_GRADIENTS = "left out as asked (gradients=False)"
NO_CLS = "neither [CLS] nor a token that begins a text"
NO_SEP = "neither [SEP] nor a token that ends a text"


def why_no_paragraphs(setup: Setup) -> str | None:
    """Why segments are not made of paragraphs."""
    return NO_PARAGRAPHS if Segments(setup.corpus).unit == "sentences" else None


def why_no_cls(setup: Setup) -> str | None:
    """Why nothing is measured of [CLS]."""
    return _lacks(setup, "cls", NO_CLS)


def why_no_sep(setup: Setup) -> str | None:
    """Why nothing is measured of [SEP]."""
    return _lacks(setup, "sep", NO_SEP)


def _lacks(setup: Setup, delimiter: str, what: str) -> str | None:
    if delimiter in find_delimiters(setup.model).absent:
        return f"the tokenizer of {setup.model.name} has {what}"
    return None


def why_no_gradients(setup: Setup) -> str | None:
    """Why no gradients are measured."""
    return why_no_gradient(setup.model) if setup.options["gradients"] else NO_GRADIENTS


def surface_metrics(setup: Setup) -> list[Metric]:
    """Positions, special tokens, entropy, the largest weights; and which heads are alike."""
    grid, absent = setup.grid, find_delimiters(setup.model).absent
    tokens = partial(label_ids, setup.model.tokenizer)
    special_shares = surface.special_shares(grid, absent)
    metrics: list[Metric] = [
        surface.offset_shares(grid, tuple(sorted({*ALWAYS, *setup.options["offsets"]}))),
        special_shares,
        surface.sep_to_sep(grid),
        surface.other_to_sep(grid),
        surface.entropies(grid),
        surface.entropies_from_cls(grid),
        surface.confidences(grid),
        surface.first_token_shares(grid),
        surface.sink_texts(grid, setup.options["sink_threshold"]),
        surface.uniform_entropy(),
    ]
    if setup.reading == "both":
        metrics.append(by_norms(special_shares))
    return [
        *metrics,
        HeadDivergence(grid),
        ExampleMap(grid, tokens, setup.options["example_tokens"]),
    ]


def gradient_metrics(setup: Setup) -> list[Metric]:
    """How much the loss depends on attention."""
    return [HeadGradient(setup.grid, setup.seed, setup.options["masked_share"])]


def why_no_trees(setup: Setup) -> str | None:
    """Why heads are not scored as parsers."""
    return None if has_trees(setup) else NO_TREES


def tree_metrics(setup: Setup) -> list[Metric]:
    """Heads as parsers, and what words pay to delimiters."""
    is_clamped = setup.options["offsets_in_paper"]
    return [RelationAccuracy(*_of_words(setup), is_clamped), Noop(*_of_words(setup))]


def noop_gradient_metrics(setup: Setup) -> list[Metric]:
    """How the loss depends on what words pay to delimiters."""
    if not has_trees(setup):
        return []
    seed, share = setup.seed, setup.options["masked_share"]
    return [NoopGradient(*_of_words(setup), seed=seed, share=share)]


def _of_words(setup: Setup) -> tuple[Grid, Classes, bool, From]:
    classes = Classes.of(setup.labels["relation"], clitics=setup.options["clitics"])
    return setup.grid, classes, setup.model.is_causal, setup.options["row"]


def examples_of_trees(setup: Setup) -> list[Metric]:
    """What chooses examples among sentences with trees."""
    return _examples(setup) if has_trees(setup) else []


def examples_of_sentences(setup: Setup) -> list[Metric]:
    """What chooses examples where the corpus has no trees."""
    return [] if has_trees(setup) else _examples(setup)


def _examples(setup: Setup) -> list[Metric]:
    return [HeadExamples(setup.grid, setup.seed, setup.options["exemplars"], with_self=False)]


def why_no_mentions(setup: Setup) -> str | None:
    """Why heads are not scored as resolvers of coreference."""
    return None if setup.corpus.has("mentions") else NO_MENTIONS


def mention_metrics(setup: Setup) -> list[Metric]:
    """Heads as resolvers of coreference."""
    return [CorefAccuracy(setup.grid, setup.model.is_causal, setup.options["row"])]


SEGMENTS = InputKind(
    segment_inputs,
    (
        Question(("paragraphs",), unless=why_no_paragraphs),
        Question(("special_share cls", "entropy_from_cls"), unless=why_no_cls),
        Question(("special_share sep", "sep_to_sep", "other_to_sep"), unless=why_no_sep),
        Question(("offset_share", "special_share", "entropy", "head_divergence"), surface_metrics),
        Question(("gradient",), gradient_metrics, unless=why_no_gradients),
        importance(segment_inputs, segment_reach),
        DECODER,
    ),
    reach=segment_reach,
)
TREES = InputKind(
    tree_inputs,
    (
        Question(
            (
                "relation_accuracy",
                "offset_accuracy",
                "relation_count",
                "tree_accuracy",
                "noop_applies",
                "noop_not",
            ),
            tree_metrics,
            unless=why_no_trees,
        ),
        Question(("noop_gradient",), noop_gradient_metrics, unless=why_no_gradients),
        Question(("parsing_uas",), unless=why_no_probes),  # by the stage that trains them
        Question(("example_peak",), examples_of_trees),
    ),
    of_corpus=False,
)
SENTENCES = InputKind(
    plain_inputs, (Question(("example_peak",), examples_of_sentences),), of_corpus=False
)
WINDOWS = InputKind(
    window_inputs,
    (Question(("coref_accuracy", "coref_baseline"), mention_metrics, unless=why_no_mentions),),
    of_corpus=False,
    reach=window_reach,
)
INPUTS = (SEGMENTS, REPEATED, TREES, SENTENCES, WINDOWS)
