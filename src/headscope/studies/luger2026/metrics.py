"""The metrics of luger2026, and what has to be left out for a model."""

from headscope.metrics import shares, spread
from headscope.metrics.metric import Metric
from headscope.studies import importance, records
from headscope.studies.importance import with_importance
from headscope.studies.luger2026.inputs import inputs_again, text_inputs
from headscope.studies.records import with_records
from headscope.studies.study import Part, Setup

NO_NEXT = "a causal model cannot see the next token"
NO_TARGET = "the study reads texts, so only the encoder has input"


def left_out(setup: Setup) -> dict[str, str]:
    """Variables (or stacks) that this model cannot have, with the reason."""
    missing: dict[str, str] = {}
    if setup.model.is_causal:
        missing["next_share"] = NO_NEXT
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    return missing | importance.left_out(setup) | records.left_out(setup)


def parts(setup: Setup) -> tuple[Part, ...]:
    """Texts for everything but the detectors, which have inputs that are made for them."""
    texts = Part(text_inputs, tuple(_of_texts(setup)), again=inputs_again)
    return (with_importance(setup, with_records(setup, texts)),)


def _of_texts(setup: Setup) -> list[Metric]:
    grid, is_causal = setup.grid, setup.model.is_causal
    return [
        *shares.shares(grid, is_causal=is_causal),
        spread.entropy(grid),
        spread.distance(grid),
    ]
