"""The metrics of luger2026, and what has to be left out for a model."""

from headscope.metrics.metric import Metric
from headscope.metrics.what import repeats
from headscope.metrics.what.repeats import retrieval
from headscope.metrics.what.successor import Successor
from headscope.metrics.where import separation, shares
from headscope.model.writes import why_no_writes
from headscope.studies import importance, records
from headscope.studies.clark2019.surface.parts import (
    find_delimiters,
    longest_period,
    repeated_inputs,
)
from headscope.studies.importance import with_importance
from headscope.studies.luger2026.inputs import inputs_again, text_inputs
from headscope.studies.luger2026.made import (
    FEWEST,
    depths_of,
    find_series,
    needle_inputs,
    needle_room,
    series_inputs,
)
from headscope.studies.records import with_records
from headscope.studies.study import Part, Setup

NO_COPY = "a bidirectional model generates nothing, so no position copies"
NO_DEPTHS = "left out as asked (depths=[])"
NO_ROOM = "the context is too short for a needle and a text around it"
NO_SUCCESSOR = "a bidirectional model predicts tokens in their own place, not the next one"
NO_SERIES = "the tokenizer writes no numbers, weekdays, months or letters as one token each"
NO_NEXT = "a causal model cannot see the next token"
NO_TARGET = "the study reads texts, so only the encoder has input"


def left_out(setup: Setup) -> dict[str, str]:
    """Variables (or stacks) that this model cannot have, with the reason."""
    missing: dict[str, str] = {}
    if setup.model.is_causal:
        missing["next_share"] = NO_NEXT
    if (reason := why_no_retrieval(setup)) is not None:
        missing |= dict.fromkeys(("retrieval", "retrieval_at"), reason)
    if (reason := why_no_successor(setup)) is not None:
        missing["successor"] = reason
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    return missing | importance.left_out(setup) | records.left_out(setup)


def parts(setup: Setup) -> tuple[Part, ...]:
    """Texts for everything but the detectors, which have inputs that are made for them."""
    start = int(find_delimiters(setup.model).cls is not None)
    scores = repeats.repetitions(setup.grid, longest_period(setup), start)
    made = [Part(repeated_inputs, scores, of_corpus=False)]
    if why_no_retrieval(setup) is None:
        found = tuple(retrieval(setup.grid, depths_of(setup)))
        made.append(Part(needle_inputs, found, of_corpus=False))
    if why_no_successor(setup) is None:
        metric = Successor(setup.grid, find_series(setup.model))
        made.append(Part(series_inputs, (metric,), of_corpus=False))
    texts = Part(text_inputs, tuple(_of_texts(setup)), again=inputs_again)
    return with_importance(setup, with_records(setup, texts)), *made


def why_no_successor(setup: Setup) -> str | None:
    """Why it is not measured what heads make of series; None if it is."""
    if not setup.model.is_causal:
        return NO_SUCCESSOR
    if not find_series(setup.model):
        return NO_SERIES
    return why_no_writes(setup.model)


def why_no_retrieval(setup: Setup) -> str | None:
    """Why no needle is sought; None if it is."""
    if not setup.model.is_causal:
        return NO_COPY
    if not setup.options["depths"]:
        return NO_DEPTHS
    return NO_ROOM if needle_room(setup) < FEWEST else None


def _of_texts(setup: Setup) -> list[Metric]:
    grid, is_causal = setup.grid, setup.model.is_causal
    return [
        *shares.shares(grid, is_causal=is_causal),
        separation.entropy(grid),
        separation.distance(grid),
        separation.DistanceSpread(grid),
        separation.distance_histogram(grid, setup.options["context"]),
        *separation.even_lines(setup.options["context"]),
        *repeats.repeats(grid),
        separation.peak_histogram(grid),
    ]
