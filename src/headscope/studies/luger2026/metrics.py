"""What luger2026 asks of heads in texts, in inputs made for detectors, and what it records.

Texts can be made again, so that top tokens, examples and maps of every head are kept, too.
"""

from headscope.engine.look_again import why_no_examples
from headscope.engine.question import DECODER, InputKind, Question
from headscope.engine.setup import Setup
from headscope.metrics import positions, repeats
from headscope.metrics.composition import COMPOSITION
from headscope.metrics.examples import EACH, POINTS, HeadExamples, TokenSample
from headscope.metrics.metric import Metric
from headscope.metrics.repeats import retrieval
from headscope.metrics.successor import Successor
from headscope.metrics.top_tokens import TopTokens
from headscope.model.inputs.batch import vocabulary_size
from headscope.model.writes import why_no_writes
from headscope.results.records import EXAMPLES, INPUTS, MAPS, TOP_TOKENS, WRITES
from headscope.studies.additions import importance
from headscope.studies.luger2026.composition import why_no_composition
from headscope.studies.luger2026.inputs import text_inputs
from headscope.studies.luger2026.made_inputs import (
    FEWEST,
    depths_of,
    find_series,
    needle_inputs,
    needle_room,
    series_inputs,
)
from headscope.studies.option import NO_NEXT, Option
from headscope.studies.shared.repeated import REPEATED

NO_COPY = "a bidirectional model generates nothing, so no position copies"
NO_DEPTHS = "left out as asked (depths=[])"
NO_ROOM = "the context is too short for a needle and a text around it"
NO_SUCCESSOR = "a bidirectional model predicts tokens in their own place, not the next one"
NO_SERIES = "the tokenizer writes no numbers, weekdays, months or letters as one token each"
AS_ASKED = "left out as asked"
MOST_POINTS = 100_000
NO_VECTORS = "this family computes attention outside the attention interface"
RECORD_OPTIONS = (
    Option("records", bool, True, "whether top tokens, examples and maps are kept"),
    Option(
        "points",
        int,
        POINTS,
        "tokens whose queries, keys, values and outputs are kept",
        least=0,
        most=MOST_POINTS,
    ),
)


def text_metrics(setup: Setup) -> list[Metric]:
    """Where attention goes in text, how far and how widely."""
    grid, is_causal = setup.grid, setup.model.is_causal
    return [
        *positions.shares(grid, is_causal=is_causal),
        positions.entropy(grid),
        positions.distance(grid),
        positions.DistanceSpread(grid),
        positions.distance_histogram(grid, setup.options["context"]),
        *repeats.repeats(grid),
        positions.peak_histogram(grid),
    ]


def why_no_next(setup: Setup) -> str | None:
    """Why attention to the next token is not measured."""
    return NO_NEXT if setup.model.is_causal else None


def recorders(setup: Setup) -> list[Metric]:
    """The metrics that choose what is kept of single inputs."""
    return [
        TopTokens(setup.grid, vocabulary_size(setup.model.network)),
        HeadExamples(setup.grid, setup.seed, per_band=EACH, is_rounded=True),
        TokenSample(setup.seed, setup.options["points"]),
    ]


def why_no_records(setup: Setup) -> str | None:
    """Why nothing is kept of single inputs."""
    return why_no_examples(setup) if setup.options["records"] else AS_ASKED


def why_no_maps(setup: Setup) -> str | None:
    """Why no maps of queries, keys, values and outputs are kept."""
    reason = why_no_records(setup)
    if reason is None and setup.options["points"] == 0:
        reason = AS_ASKED
    if reason is None and setup.model.plan.backend.name != "interface":
        reason = NO_VECTORS
    return reason


def why_no_written_tokens(setup: Setup) -> str | None:
    """Why it is not kept which tokens heads write."""
    reason = why_no_records(setup)
    if reason is None and setup.options["points"] == 0:
        reason = AS_ASKED
    return why_no_writes(setup.model) if reason is None else reason


def retrieval_metrics(setup: Setup) -> list[Metric]:
    """What heads copy from a needle, at every depth."""
    return [*retrieval(setup.grid, depths_of(setup))]


def why_no_retrieval(setup: Setup) -> str | None:
    """Why no needle is sought."""
    if not setup.model.is_causal:
        return NO_COPY
    if not setup.options["depths"]:
        return NO_DEPTHS
    return NO_ROOM if needle_room(setup) < FEWEST else None


def successor_metrics(setup: Setup) -> list[Metric]:
    """What heads write after members of series."""
    return [Successor(setup.grid, find_series(setup.model))]


def why_no_successor(setup: Setup) -> str | None:
    """Why it is not measured what heads write after members of series."""
    if not setup.model.is_causal:
        return NO_SUCCESSOR
    if not find_series(setup.model):
        return NO_SERIES
    return why_no_writes(setup.model)


TEXTS = InputKind(
    text_inputs,
    (
        Question(("first_share", "entropy", "distance", "induction"), text_metrics),
        Question(("next_share",), unless=why_no_next),
        Question((TOP_TOKENS, EXAMPLES, INPUTS), recorders, unless=why_no_records),
        Question((MAPS,), unless=why_no_maps),
        Question((WRITES,), unless=why_no_written_tokens),
        DECODER,
        Question((COMPOSITION.name,), unless=why_no_composition),
        importance(text_inputs),
    ),
)
NEEDLES = InputKind(
    needle_inputs,
    (Question(("retrieval", "retrieval_at"), retrieval_metrics, unless=why_no_retrieval),),
    of_corpus=False,
)
ITEMS = InputKind(
    series_inputs,
    (Question(("successor",), successor_metrics, unless=why_no_successor),),
    of_corpus=False,
)
KINDS_OF_INPUT = (TEXTS, REPEATED, NEEDLES, ITEMS)
