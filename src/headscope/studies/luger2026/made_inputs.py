"""Inputs that are made for a detector: texts with a needle in them, members of series alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.metrics.repeats import DEPTH, NEEDLE, WANTED
from headscope.metrics.successor import ITEM, Series
from headscope.model.inputs.encode import encode_all
from headscope.model.inputs.frame import find_frame
from headscope.model.model import Model
from headscope.observe.batch import NO_LABEL, Columns, Example, Examples
from headscope.results.replicates import group_of
from headscope.studies.luger2026.inputs import text_inputs, text_room
from headscope.studies.shared.repeated import ordinary_tokens
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
        (tokens,) = encode_all(model.tokenizer, [text], special=False)
        if len(tokens) == 1:
            return tokens.ids[0]
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
