"""The inputs of luger2026: documents of raw text, cut into consecutive inputs of equal length.

```
document    t0 t1 t2 … t1199                  a context of 512, no special tokens
inputs     [t0 … t511][t512 … t1023] t1024 …  the rest is left out and counted, or kept
BERT       [CLS] t0 … t509 [SEP] …            what the tokenizer puts around a text is around each
```

A document is what the corpus says it is: sentences of a paragraph are joined by a space, lines of
a text by as many line breaks as there were. One of very many lines is cut into passages first, so
that no shard has to hold more than one of them; an input never reaches from one into the next.
"""

import logging
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import groupby, islice, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.errors import RunError
from headscope.metrics.surface import CLS, SEP
from headscope.model.inputs.encode import encode_all, encode_ids, special_tokens
from headscope.model.inputs.frame import Frame, find_frame
from headscope.model.inputs.tokens import Tokens
from headscope.model.model import Model
from headscope.observe.batch import NO_LABEL, Columns, Example, Examples
from headscope.results.replicates import group_of
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import documents_of
from headscope.text.sentence import Sentence

CONTEXT = 512  # tokens of an input
DOCUMENTS_ASKED = 200  # by which their length is known
PASSAGE = 1024  # sentences after which even a document is cut; shards are cut at multiples of it
ORDINAL_BITS = 20  # of the number of an input: which one of its passage it is
SHORTEST = 2  # tokens of a text: a single one can only look at itself
EMPTY = "documents without a token"
RESTS = "end of a document, shorter than an input"

log = logging.getLogger("headscope")


@dataclass(frozen=True)
class Passage:
    """A document, or a part of one, as one text."""

    first: int  # number of its first sentence in the corpus
    text: str
    document: str


@dataclass(frozen=True)
class Window:
    """An input: which tokens of a passage it has."""

    passage: int  # its place among the passages at hand
    ordinal: int  # among the inputs of its passage
    start: int
    stop: int


def settle_context(model: Model, corpus: Corpus, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with a context: as asked, or CONTEXT, or what model and documents have.

    Where many documents are shorter than that, inputs are so long that three of four have one.
    """
    if options["context"] is not None:
        return dict(options)
    usual = CONTEXT if model.max_length is None else min(CONTEXT, model.max_length)
    texts = [join_lines(sentences) for sentences in islice(corpus.documents(), DOCUMENTS_ASKED)]
    frame = len(find_frame(model.tokenizer, options["bos"]))
    lengths = sorted(len(ids) + frame for ids, _ in encode_ids(model.tokenizer, texts))
    length = max(lengths[len(lengths) // 4], frame + SHORTEST) if lengths else usual
    if options["rest"] or length >= usual:
        return {**options, "context": usual}
    log.warning(
        "An input has %s tokens, for a quarter of the documents have no more; --context asks for "
        "another length.",
        length,
    )
    return {**options, "context": length}


def check_room(setup: Setup) -> None:
    """Refuse a context that special tokens fill."""
    frame = setup.frame
    if text_room(setup, frame) < SHORTEST:
        raise RunError(
            f"A context of {setup.context} leaves no room for text between the {len(frame)} "
            f"special tokens of {setup.model.name}; give --context {len(frame) + SHORTEST} or more."
        )


def text_room(setup: Setup, frame: Frame) -> int:
    """How many tokens of text an input has."""
    return int(setup.options["context"]) - len(frame)


def text_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """All inputs of the documents that these sentences are; the first has number `first`."""
    return _inputs(setup, list(_passages(sentences, first)), None)


def inputs_again(setup: Setup, numbers: Iterable[int]) -> Inputs:
    """The inputs that have these numbers, made once more, in the order of their numbers."""
    distinct = frozenset(numbers)
    passages = [
        _read_passage(setup, first) for first in sorted({split_number(n)[0] for n in distinct})
    ]
    return _inputs(setup, passages, distinct)


def start_of(example: Example) -> int:
    """The first token of an input in its document."""
    return 0 if example.sentence is None else int(example.sentence.id)


def number(first: int, ordinal: int) -> int:
    """The number of an input: the first sentence of its passage, and its ordinal there."""
    return first << ORDINAL_BITS | ordinal


def split_number(of: int) -> tuple[int, int]:
    """The first sentence of an input's passage, and the ordinal of the input there."""
    return of >> ORDINAL_BITS, of & ((1 << ORDINAL_BITS) - 1)


def _passages(sentences: Sequence[Sentence], first: int) -> Iterator[Passage]:
    numbered = enumerate(sentences, start=first)
    for document, run in groupby(numbered, key=lambda pair: pair[1].document):
        of_document = list(run)
        for start in range(0, len(of_document), PASSAGE):
            part = of_document[start : start + PASSAGE]
            yield Passage(part[0][0], join_lines([sentence for _, sentence in part]), document)


def _read_passage(setup: Setup, first: int) -> Passage:
    documents = documents_of(setup.corpus)
    _, end = documents[bisect_right(documents, first, key=itemgetter(0)) - 1]
    sentences = setup.corpus.read(Shard(0, first, min(end, first + PASSAGE)))
    return Passage(first, join_lines(sentences), sentences[0].document)


def join_lines(sentences: Sequence[Sentence]) -> str:
    """Join sentences into text: by a space within a paragraph, else by line breaks."""
    parts = [sentences[0].text] if sentences else []
    for before, after in pairwise(sentences):
        parts += ["\n" * max(0, after.paragraph - before.paragraph) or " ", after.text]
    return "".join(parts)


def _inputs(setup: Setup, passages: Sequence[Passage], numbers: frozenset[int] | None) -> Inputs:
    frame = setup.frame
    texts = [passage.text for passage in passages]
    encoded = encode_ids(setup.model.tokenizer, texts) if texts else []
    skipped: Counter[str] = Counter()
    windows = []
    for row, (passage, (ids, _)) in enumerate(zip(passages, encoded, strict=True)):
        for window in _cut(setup, row, len(ids), text_room(setup, frame), skipped):
            if numbers is None or number(passage.first, window.ordinal) in numbers:
                windows.append(window)
    made = _Made(setup, frame, passages, encoded, windows)
    return Inputs(Examples(made.columns, made.example), +skipped)


def _cut(setup: Setup, row: int, tokens: int, room: int, skipped: Counter[str]) -> Iterator[Window]:
    """The inputs of a passage, given its number of tokens; what is left out is counted."""
    full, remainder = divmod(tokens, room)
    for ordinal in range(full):
        yield Window(row, ordinal, ordinal * room, (ordinal + 1) * room)
    if setup.options["rest"] and remainder >= SHORTEST:
        yield Window(row, full, full * room, tokens)
    elif not tokens:
        skipped[EMPTY] += 1
    elif remainder:
        skipped[RESTS if full else f"document shorter than {setup.context} tokens"] += 1


@dataclass(frozen=True)
class _Made:
    """Passages, the ids and characters of their tokens, and the windows that become inputs."""

    setup: Setup
    frame: Frame
    passages: Sequence[Passage]
    encoded: Sequence[tuple[Int[np.ndarray, "token"], Int[np.ndarray, "token 2"]]]
    windows: Sequence[Window]
    tokens: dict[int, Tokens] = field(default_factory=dict)  # of passages, with their words

    @cached_property
    def columns(self) -> Columns:
        """All inputs as flat arrays."""
        ids = [passage_ids for passage_ids, _ in self.encoded]
        ends = [self._ends(row) for row in range(len(self.passages))]
        numbers = [
            number(self.passages[window.passage].first, window.ordinal) for window in self.windows
        ]
        tokens = self._laid_out(ids, self.frame.before, self.frame.after)
        before, after = (len(part) for part in (self.frame.before, self.frame.after))
        nothing = [np.full(len(passage_ids), NO_LABEL) for passage_ids in ids]
        return Columns(
            numbers=np.array(numbers, dtype=np.int64),
            groups=np.array(
                [self._group(window, of) for window, of in zip(self.windows, numbers, strict=True)],
                dtype=np.int64,
            ),
            lengths=np.array(
                [window.stop - window.start + len(self.frame) for window in self.windows],
                dtype=np.int64,
            ),
            ids=tokens,
            segments=np.zeros(len(tokens), dtype=np.int64),
            null=np.zeros(len(tokens), dtype=bool),
            labels={
                "token": tokens,
                "delimiter": self._laid_out(ends, (NO_LABEL,) * before, (NO_LABEL,) * after),
                "special": self._laid_out(nothing, (CLS,) * before, (SEP,) * after),
            },
            first_peak_token=1,
        )

    def example(self, row: int) -> Example:
        """One input with its tokens in words; made when it is shown."""
        window = self.windows[row]
        passage = self.passages[window.passage]
        sentence = Sentence(passage.text, document=passage.document, id=str(window.start))
        return self.columns.example(row, self._tokens(window), sentence)

    def _tokens(self, window: Window) -> Tokens:
        tokenizer = self.setup.model.tokenizer
        before = special_tokens(tokenizer, self.frame.before)
        after = special_tokens(tokenizer, self.frame.after)
        if window.passage not in self.tokens:
            text = self.passages[window.passage].text
            (self.tokens[window.passage],) = encode_all(tokenizer, [text], special=False)
        tokens = self.tokens[window.passage][window.start : window.stop]
        return before + replace(tokens, segments=(0,) * len(tokens)) + after

    def _laid_out(
        self,
        values: Sequence[Int[np.ndarray, "token"]],
        before: Sequence[int],
        after: Sequence[int],
    ) -> Int[np.ndarray, "all"]:
        """The values of every window between those of the special tokens, one after the other."""
        parts = [
            part
            for window in self.windows
            for part in (before, values[window.passage][window.start : window.stop], after)
        ]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    def _group(self, window: Window, of: int) -> int:
        """By its document, or by itself where there are too few documents to tell an error."""
        document = self.passages[window.passage].document
        has_documents = document and self.setup.has_documents
        return group_of(document if has_documents else f"{document} {of}")

    def _ends(self, row: int) -> Int[np.ndarray, "token"]:
        _, spans = self.encoded[row]
        return np.where(find_delimiters(self.passages[row].text, spans), 0, NO_LABEL)


def find_delimiters(text: str, spans: Int[np.ndarray, "token 2"]) -> Bool[np.ndarray, "token"]:
    """Tokens that are nothing but punctuation and line breaks, spaces around them aside.

    The pieces of a character that is written in several bytes all count as what the character is.
    """
    kinds = np.array([*map(_kind, text)], dtype=np.int64)
    marks, others = (np.concatenate([[0], np.cumsum(kinds == kind)]) for kind in (_MARK, _OTHER))
    start, end = spans[:, 0], spans[:, 1]
    return (marks[end] > marks[start]) & (others[end] == others[start])


_SPACE, _MARK, _OTHER = range(3)


@lru_cache(maxsize=4096)
def _kind(character: str) -> int:
    if character in "\n\r" or unicodedata.category(character).startswith("P"):
        return _MARK
    return _SPACE if character.isspace() else _OTHER
