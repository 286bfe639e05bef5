"""The parts of luger2026: texts and made inputs, what is measured on each, and what is left out.

Made inputs are texts with a needle in them, and members of series, each alone.

Texts can be made again, so that top tokens, examples and maps of every head are kept, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from headscope.engine.look_again import why_no_examples
from headscope.engine.part import Inputs, Part
from headscope.engine.setup import Setup
from headscope.metrics import positions, repeats
from headscope.metrics.examples import EACH, POINTS, HeadExamples, TokenSample
from headscope.metrics.metric import Metric
from headscope.metrics.repeats import DEPTH, NEEDLE, WANTED, retrieval
from headscope.metrics.successor import ITEM, Series, Successor
from headscope.metrics.top_tokens import TopTokens
from headscope.model.inputs.batch import vocabulary_size
from headscope.model.inputs.encode import encode_all
from headscope.model.inputs.frame import find_frame
from headscope.model.model import Model
from headscope.model.writes import why_no_writes
from headscope.observe.inputs import NO_LABEL, Columns, Example, Examples
from headscope.results.records import EXAMPLES, INPUTS, MAPS, TOP_TOKENS, WRITES
from headscope.results.replicates import group_of
from headscope.studies import additions
from headscope.studies.additions import with_importance
from headscope.studies.luger2026.inputs import text_inputs, text_room
from headscope.studies.option import NO_NEXT, Option
from headscope.studies.shared.delimiters import find_delimiters
from headscope.studies.shared.repeated import longest_period, ordinary_tokens, repeated_inputs
from headscope.studies.shared.words import settle_bos
from headscope.text.sentence import Sentence

Tokens = Int[np.ndarray, "token"]
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
SERIES = (
    (tuple(map(str, range(1, 21))), False),
    (WEEKDAYS, True),
    (MONTHS, True),
    (tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), False),
)
SHORTEST = 3  # members of a series
NEEDLE_TOKENS = 8
FEWEST = 4  # tokens of text around a needle
NO_COPY = "a bidirectional model generates nothing, so no position copies"
NO_DEPTHS = "left out as asked (depths=[])"
NO_ROOM = "the context is too short for a needle and a text around it"
NO_SUCCESSOR = "a bidirectional model predicts tokens in their own place, not the next one"
NO_SERIES = "the tokenizer writes no numbers, weekdays, months or letters as one token each"
NO_TARGET = "the study reads texts, so only the encoder has input"


@dataclass(frozen=True)
class Hidden:
    """A text with a needle in it and again at its end, between special tokens."""

    ids: Tokens
    successor: Tokens  # which token of the needle comes after this one
    needle: Tokens  # which token of the needle this one is, in the text


def needle_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """The first texts of the corpus, each with a needle at every depth; the first shard has all."""
    if first > 0:
        return Inputs(())
    texts, frame = _texts(setup, sentences), setup.frame
    hidden = [
        (number, depth, hide(text, _needle(setup, number), share, frame.before, frame.after))
        for number, text in enumerate(texts)
        for depth, share in enumerate(depths_of(setup))
    ]
    labels = {
        WANTED: [text.successor for _, _, text in hidden],
        NEEDLE: [text.needle for _, _, text in hidden],
        DEPTH: [np.full(len(text.ids), depth) for _, depth, text in hidden],
    }
    groups = [f"needle {number}" for number, _, _ in hidden]
    return _made_inputs([text.ids for _, _, text in hidden], groups, labels)


def depths_of(setup: Setup) -> list[float]:
    """Shares of a text before the needle, each once."""
    return [share / 100 for share in sorted(set(setup.options["depths"]))]


def hide(
    text: Tokens,
    needle: Tokens,
    depth: float,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
) -> Hidden:
    """The needle after a share of the text, and again behind it."""
    cut = round(depth * len(text))
    count = len(needle)
    parts = [before, text[:cut], needle, text[cut:], needle, after]
    ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
    successor, needle_token = np.full((2, len(ids)), NO_LABEL)
    start = len(before) + cut
    needle_token[start : start + count] = np.arange(count)
    copy = len(ids) - len(after) - count
    successor[copy : copy + count - 1] = np.arange(1, count)
    return Hidden(ids, successor, needle_token)


def needle_room(setup: Setup) -> int:
    """How many tokens of text an input with a needle has."""
    return text_room(setup, setup.frame) - 2 * NEEDLE_TOKENS


def _texts(setup: Setup, sentences: Sequence[Sentence]) -> list[Tokens]:
    """Tokens of the first inputs that are long enough, without their special ones."""
    columns = text_inputs(setup, sentences, 0).columns
    frame, room = setup.frame, needle_room(setup)
    if room < FEWEST:
        return []
    texts = []
    for start, length in zip(columns.starts.tolist(), columns.lengths.tolist(), strict=True):
        ids = columns.ids[start + len(frame.before) : start + length - len(frame.after)][:room]
        if len(ids) == room and len(texts) < setup.options["needles"]:
            texts.append(ids)
    return texts


def _needle(setup: Setup, number: int) -> Tokens:
    rng = np.random.default_rng([setup.seed, number])
    vocabulary = np.asarray(ordinary_tokens(setup))
    return rng.choice(vocabulary, size=NEEDLE_TOKENS, replace=len(vocabulary) < NEEDLE_TOKENS)


def _made_inputs(
    ids: Sequence[Tokens], groups: Sequence[str], labels: Mapping[str, Sequence[Tokens]]
) -> Inputs:
    """Inputs that stand for no text: their tokens, what each is grouped by, labels of tokens."""

    def flat(rows: Sequence[Tokens]) -> Tokens:
        return np.concatenate([np.zeros(0, dtype=np.int64), *rows])

    tokens = flat(ids)
    columns = Columns(
        numbers=np.arange(len(ids)),
        groups=np.array([group_of(group) for group in groups], dtype=np.int64),
        lengths=np.array([len(tokens) for tokens in ids], dtype=np.int64),
        ids=tokens,
        segments=np.zeros_like(tokens),
        null=np.zeros(len(tokens), dtype=bool),
        labels={name: flat(rows) for name, rows in labels.items()},
    )
    return Inputs(Examples(columns, _no_example))


def _no_example(row: int) -> Example:
    raise LookupError(f"made input {row} is never shown")


def find_series(model: Model) -> tuple[Series, ...]:
    """The series whose members the tokenizer writes as one token each, behind a space or not.

    Of one with longer members the longest stretch of single tokens is taken, as no week then.
    """
    series = []
    for words, is_cyclic in SERIES:
        tokens = [_single(model, word) for word in words]
        stretch = _longest_stretch(tokens)
        if len(stretch) >= SHORTEST:
            series.append(Series(stretch, is_cyclic and len(stretch) == len(words)))
    return tuple(series)


def _single(model: Model, word: str) -> int | None:
    for text in (f" {word}", word):
        (encoding,) = encode_all(model.tokenizer, [text], special=False)
        if len(encoding.ids) == 1:
            return encoding.ids[0]
    return None


def _longest_stretch(tokens: Sequence[int | None]) -> tuple[int, ...]:
    best: tuple[int, ...] = ()
    run: tuple[int, ...] = ()
    for token in tokens:
        run = () if token is None or token in run else (*run, token)
        best = max(best, run, key=len)
    return best


def series_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Every member that has a successor, alone; the first shard has them all."""
    if first > 0:
        return Inputs(())
    tokenizer = setup.model.tokenizer
    frame = find_frame(tokenizer, settle_bos(tokenizer, setup.bos))
    items = [token for series in find_series(setup.model) for token, _ in series.successors]
    ids = [np.array((*frame.before, token, *frame.after)) for token in items]
    before, after = [NO_LABEL] * len(frame.before), [NO_LABEL] * len(frame.after)
    labels = [np.array([*before, item, *after]) for item in range(len(items))]
    groups = [f"item {item}" for item in range(len(items))]
    return _made_inputs(ids, groups, {ITEM: labels})


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
    return missing | additions.left_out(setup) | records_left_out(setup)


def parts(setup: Setup) -> tuple[Part, ...]:
    """Texts for everything but the detectors, which have inputs that are made for them."""
    start = int(find_delimiters(setup.model).cls is not None)
    scores = repeats.repetitions(setup.grid, longest_period(setup), start)
    made = [Part(repeated_inputs, scores, of_corpus=False)]
    if why_no_retrieval(setup) is None:
        metrics = tuple(retrieval(setup.grid, depths_of(setup)))
        made.append(Part(needle_inputs, metrics, of_corpus=False))
    if why_no_successor(setup) is None:
        metric = Successor(setup.grid, find_series(setup.model))
        made.append(Part(series_inputs, (metric,), of_corpus=False))
    texts = Part(text_inputs, tuple(_of_texts(setup)))
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
        *positions.shares(grid, is_causal=is_causal),
        positions.entropy(grid),
        positions.distance(grid),
        positions.DistanceSpread(grid),
        positions.distance_histogram(grid, setup.options["context"]),
        *repeats.repeats(grid),
        positions.peak_histogram(grid),
    ]


RECORD_OPTIONS = (
    Option("records", bool, True, "whether top tokens, examples and maps are kept"),
    Option(
        "points", int, POINTS, "tokens whose queries, keys, values and outputs are kept", least=0
    ),
)
FILES = (TOP_TOKENS, EXAMPLES, INPUTS, MAPS, WRITES)
AS_ASKED = "left out as asked"
NO_VECTORS = "this family computes attention outside the attention interface"


def records_left_out(setup: Setup) -> dict[str, str]:
    """The files that a run will lack, and why."""
    if not setup.options["records"]:
        return dict.fromkeys(FILES, AS_ASKED)
    if (reason := why_no_examples(setup)) is not None:
        return dict.fromkeys(FILES, reason)
    missing: dict[str, str] = {}
    if setup.model.plan.backend.name != "interface":
        missing[MAPS] = NO_VECTORS
    if (reason := why_no_writes(setup.model)) is not None:
        missing[WRITES] = reason
    if setup.options["points"] == 0:
        missing |= dict.fromkeys((MAPS, WRITES), AS_ASKED)
    return missing


def with_records(setup: Setup, part: Part) -> Part:
    """The part with the metrics that choose what is kept, unless they were not asked for."""
    if not setup.options["records"] or why_no_examples(setup) is not None:
        return part
    recorders = (
        TopTokens(setup.grid, vocabulary_size(setup.model.network)),
        HeadExamples(setup.grid, setup.seed, per_band=EACH, is_rounded=True),
        TokenSample(setup.seed, setup.options["points"]),
    )
    return replace(part, metrics=(*part.metrics, *recorders))
