"""What vig2019 asks of heads: tags, relations, arcs, and what attention is like without them."""

from functools import partial

from headscope.engine.look_again import why_no_examples
from headscope.engine.question import DECODER, InputKind, Question
from headscope.engine.setup import Setup
from headscope.metrics import dependencies, labels, spread
from headscope.metrics.example_map import ExampleMap
from headscope.metrics.examples import HeadExamples
from headscope.metrics.metric import Axis, Metric, by_norms
from headscope.metrics.variability import Variability
from headscope.model.generate import label_ids
from headscope.studies.additions import importance
from headscope.studies.option import NO_TREES
from headscope.studies.vig2019.inputs import exemplar_inputs, number_inputs, sentences_of_numbers

NO_TAGS = (
    "the corpus has no part-of-speech tags; "
    "make them with `headscope annotate INPUT --out CORPUS.parquet --spacy NAME`"
)
NO_NULL = "the tokenizer adds no delimiters, so no token is null"


def attention_metrics(setup: Setup) -> list[Metric]:
    """How far and how widely heads look, and how much that depends on the text."""
    tokens = partial(label_ids, setup.model.tokenizer)
    return [
        spread.distance(setup.grid),
        spread.entropy(setup.grid),
        Variability(setup.grid, setup.model.is_causal, setup.options["corner"]),
        ExampleMap(setup.grid, tokens, setup.options["example_tokens"]),
    ]


def why_no_null(setup: Setup) -> str | None:
    """Why no token is null."""
    return None if setup.model.is_causal or len(setup.frame) > 0 else NO_NULL


def null_metrics(setup: Setup) -> list[Metric]:
    """Attention to null tokens."""
    share = spread.null_share(setup.grid)
    metrics: list[Metric] = [share, spread.null_share_of_all_queries(setup.grid)]
    return [*metrics, by_norms(share)] if setup.reading == "both" else metrics


def why_no_tags(setup: Setup) -> str | None:
    """Why attention to parts of speech is not measured."""
    return None if "tag" in setup.labels else NO_TAGS


def tag_metrics(setup: Setup) -> list[Metric]:
    """Attention to and from every part of speech."""
    axis = Axis("tag", setup.labels["tag"])
    return [
        labels.label_to(labels.POS_TO, setup.grid, axis),
        labels.label_from(labels.POS_FROM, setup.grid, axis),
        labels.label_frequency(labels.TAG_FREQUENCY, axis),
    ]


def why_no_relations(setup: Setup) -> str | None:
    """Why attention to relations is not measured."""
    return None if "deprel" in setup.labels else NO_TREES


def relation_metrics(setup: Setup) -> list[Metric]:
    """Attention to the dependents of every relation."""
    axis = Axis("deprel", setup.labels["deprel"])
    return [
        labels.label_to(labels.DEPREL_TO, setup.grid, axis),
        labels.label_frequency(labels.DEPREL_FREQUENCY, axis),
    ]


def why_no_arcs(setup: Setup) -> str | None:
    """Why attention along arcs is not measured."""
    return None if setup.corpus.has("head") else NO_TREES


def arc_metrics(setup: Setup) -> list[Metric]:
    """Attention along dependency arcs, and what the arcs of the corpus are like."""
    alignment = dependencies.dependency_alignment(setup.grid)
    metrics: list[Metric] = [
        alignment,
        dependencies.dependency_baseline(),
        dependencies.dependency_baseline_without_self(),
        dependencies.dependency_expected(setup.grid),
        dependencies.DependencySpan(),
    ]
    return [*metrics, by_norms(alignment)] if setup.reading == "both" else metrics


def examples_of_numbers(setup: Setup) -> list[Metric]:
    """What chooses examples among the sentences of the numbers, if not among more."""
    return _examples(setup) if sentences_of_numbers(setup) is None else []


def examples_of_more(setup: Setup) -> list[Metric]:
    """What chooses examples among more sentences than those of the numbers."""
    return [] if sentences_of_numbers(setup) is None else _examples(setup)


def _examples(setup: Setup) -> list[Metric]:
    with_self, top = setup.options["self_exemplars"], setup.options["exemplars"]
    return [HeadExamples(setup.grid, setup.seed, top, with_self=with_self)]


EXAMPLES = ("example_peak",)
NUMBERS = InputKind(
    number_inputs,
    (
        Question(("distance", "entropy", "variability", "example_map"), attention_metrics),
        Question(("pos_to", "pos_from", "tag_frequency"), tag_metrics, unless=why_no_tags),
        Question(("deprel_to",), relation_metrics, unless=why_no_relations),
        Question(
            (
                "dependency_alignment",
                "dependency_baseline",
                "dependency_expected",
                "dependency_probability",
            ),
            arc_metrics,
            unless=why_no_arcs,
        ),
        Question(("null_share",), null_metrics, unless=why_no_null),
        Question(EXAMPLES, examples_of_numbers, unless=why_no_examples),
        DECODER,
        importance(number_inputs),
    ),
)
EXEMPLARS = InputKind(
    exemplar_inputs,
    (Question(EXAMPLES, examples_of_more, unless=why_no_examples),),
    of_corpus=False,
)
