"""The inputs of vig2019: sentences, or documents cut into windows; labels copied to word pieces.

```
document   s0 s1 s2 s3 s4        context 100 tokens, sentences of 40, 30, 20, 60, 30
inputs    [s0 s1 s2][s3 s4]      tags and arcs are those of the sentences, nulls those of an input
```
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Encoding

from headscope.errors import AlignmentError
from headscope.model.encode import encode_all, encoded_of
from headscope.observe.inputs import NO_LABEL, Columns, Example, Examples
from headscope.studies.study import Inputs, Setup
from headscope.text.alignment import (
    NO_WORD,
    FlatTokens,
    FlatWords,
    align,
    align_flat,
    related_tokens,
)
from headscope.text.segments import GAP, cut, join
from headscope.text.sentence import Sentence, Word

if TYPE_CHECKING:
    from headscope.text.corpus import Corpus

TAG_FIELDS = ("upos", "xpos")  # the first that the corpus has is the tag set
TOO_LONG = "too long"
EMPTY = "empty"
Numbered = tuple[int, Sentence]  # a text and where it (or its first sentence) is in the corpus


def tag_field(corpus: "Corpus") -> str | None:
    """The annotation that serves as tags, or None."""
    return next((field for field in TAG_FIELDS if corpus.has(field)), None)


def find_labels(corpus: "Corpus") -> dict[str, tuple[str, ...]]:
    """Every tag and relation that occurs, sorted; any tag set is taken as it is."""
    from headscope.text.corpus import values_of

    fields = {"tag": tag_field(corpus), "deprel": "deprel" if corpus.has("deprel") else None}
    known: dict[str, Any] = {name: field for name, field in fields.items() if field is not None}
    return {name: tuple(sorted(values_of(corpus, field))) for name, field in known.items()}


def sentence_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that fits the model and whose words match its tokens."""
    return _make_inputs(setup, list(enumerate(sentences, start=first)), Counter())


def document_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Inputs of at most the context's tokens; sentences that cannot be used are left out."""
    skipped: Counter[str] = Counter()
    read, _ = _read_usable(setup, list(enumerate(sentences, start=first)), skipped)
    return _make_inputs(setup, list(_windows(setup, read, skipped)), skipped)


def _make_inputs(setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]) -> Inputs:
    """One example for every text that can be used; the others are counted by reason."""
    return _inputs(setup, *_read_usable(setup, numbered, skipped), skipped)


def _read_usable(
    setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]
) -> tuple["Read", Int[np.ndarray, "token"] | None]:
    """Texts that fit and whose words match their tokens, with the word of every token."""
    read = _read(setup, numbered, skipped)
    if not setup.labels:
        return read, None
    word = _align(read, skipped)
    usable = np.array([sentence is not None for sentence in word], dtype=bool)
    words = [each for each in word if each is not None]
    return read.keep(usable), np.concatenate(words) if words else np.zeros(0, int)


@dataclass(frozen=True)
class Read:
    """Sentences, where they stand in the corpus, and their tokens."""

    numbers: list[int]
    sentences: list[Sentence]
    encodings: list[Encoding]

    def keep(self, usable: Iterable[bool]) -> "Read":
        """Some of the sentences."""
        rows = [row for row, is_usable in enumerate(usable) if is_usable]
        return self if len(rows) == len(self.numbers) else Read(
            [self.numbers[row] for row in rows],
            [self.sentences[row] for row in rows],
            [self.encodings[row] for row in rows],
        )  # fmt: skip

    @cached_property
    def tokens(self) -> FlatTokens:
        """Spans of all tokens in their texts."""
        spans = chain.from_iterable(encoding.offsets for encoding in self.encodings)
        flat = _flat(spans).reshape(-1, 2)
        special = _flat(encoding.special_tokens_mask for encoding in self.encodings)
        return FlatTokens(self.lengths, flat[:, 0], flat[:, 1], special.astype(bool))

    @cached_property
    def lengths(self) -> Int[np.ndarray, "sentence"]:
        """Tokens of every sentence."""
        return np.array([len(encoding) for encoding in self.encodings], dtype=np.int64)

    @cached_property
    def words(self) -> list[Word]:
        """The words of all sentences."""
        return [word for sentence in self.sentences for word in sentence.words]

    @cached_property
    def first_words(self) -> Int[np.ndarray, "sentence"]:
        """Place of the first word of every sentence among all words."""
        counts = np.array([len(sentence.words) for sentence in self.sentences], dtype=np.int64)
        return np.cumsum(counts) - counts


def _windows(setup: Setup, read: Read, skipped: Counter[str]) -> Iterator[Numbered]:
    """The sentences of every input as one, numbered by the first of them."""
    delimiters = sum(read.encodings[0].special_tokens_mask) if read.encodings else 0
    lengths = _lengths(setup, read) - delimiters
    rows = range(len(read.sentences))
    for _, run in groupby(rows, key=lambda row: read.sentences[row].document):
        document = list(run)
        room = setup.options["context"] - delimiters
        windows, too_long = cut(lengths[document].tolist(), room)
        skipped[TOO_LONG] += len(too_long)
        for window in windows:
            chosen = [document[place] for place in window]
            yield read.numbers[chosen[0]], join([read.sentences[row] for row in chosen])


def _lengths(setup: Setup, read: Read) -> np.ndarray:
    """Tokens of every sentence; a tokenizer may need one more or less after a space."""
    model = setup.model
    texts = [GAP + sentence.text for sentence in read.sentences]
    spaced = encode_all(model.tokenizer, texts, special=not model.is_causal) if texts else []
    lengths = [len(encoding) for encoding in spaced]
    return np.maximum(read.lengths, np.array(lengths, dtype=np.int64))


def _read(setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]) -> Read:
    """No BOS for a causal model: the first token of the text is the sink, as in the paper."""
    model = setup.model
    filled = [(number, each) for number, each in numbered if each.text.strip()]
    texts = [sentence.text for _, sentence in filled]
    encodings = encode_all(model.tokenizer, texts, special=not model.is_causal) if texts else []
    read = Read([n for n, _ in filled], [each for _, each in filled], encodings)
    skipped[EMPTY] += len(numbered) - len(texts) + int((read.lengths == 0).sum())
    limit = model.max_length
    fits = np.full(len(texts), True) if limit is None else read.lengths <= limit
    skipped[TOO_LONG] += int((~fits).sum())
    return read.keep(fits & (read.lengths > 0))


def _align(read: Read, skipped: Counter[str]) -> list[Int[np.ndarray, "token"] | None]:
    """The word of every token of each sentence, counted within it; None where words do not fit."""
    sizes = np.array([len(sentence.text) for sentence in read.sentences], dtype=np.int64)
    flat, doubtful = align_flat(sizes, FlatWords.of(read.sentences), read.tokens)
    within = np.where(flat == NO_WORD, NO_WORD, flat - np.repeat(read.first_words, read.lengths))
    found: list[np.ndarray | None] = list(np.split(within, np.cumsum(read.lengths)[:-1]))
    for row in np.flatnonzero(doubtful).tolist():
        sentence, encoding = read.sentences[row], read.encodings[row]
        special = [bool(flag) for flag in encoding.special_tokens_mask]
        try:
            aligned = align(sentence.words, sentence.text, encoding.offsets, special)
            found[row] = np.array(aligned.word_of_token, dtype=np.int64)
        except AlignmentError as error:
            skipped[f"alignment: {error.reason}"] += 1
            found[row] = None
    return found if read.numbers else []


def _inputs(
    setup: Setup, read: Read, word: Int[np.ndarray, "token"] | None, skipped: Counter[str]
) -> Inputs:
    """The inputs of sentences whose tokens have these words, each counted within its sentence."""
    ids = _flat(encoding.ids for encoding in read.encodings)
    labels = {"token": ids, "special": np.full(len(ids), NO_LABEL)}
    arcs = None
    if word is not None:
        flat = np.where(word == NO_WORD, NO_WORD, word + np.repeat(read.first_words, read.lengths))
        labels |= _labels(setup, read, flat)
        arcs = _arcs(read, flat) if setup.corpus.has("head") else None
    columns = Columns(
        numbers=np.array(read.numbers, dtype=np.int64),
        groups=np.array([*map(setup.group, read.sentences, read.numbers)], dtype=np.int64),
        lengths=read.lengths,
        ids=ids,
        segments=_segments(setup, read, len(ids)),
        null=_null(setup, read),
        labels=labels,
        arcs=arcs,
    )
    return Inputs(Examples(columns, _Maker(setup, read, columns)), +skipped)


@dataclass(frozen=True)
class _Maker:
    """Makes single examples of what was read."""

    setup: Setup
    read: Read
    columns: Columns

    def __call__(self, row: int) -> Example:
        encoding, sentence = self.read.encodings[row], self.read.sentences[row]
        start = int(self.columns.starts[row])
        here = slice(start, start + len(encoding))
        arcs = self.columns.arcs
        return Example(
            number=self.read.numbers[row],
            encoded=encoded_of(self.setup.model.tokenizer, sentence.text, encoding),
            null=self.columns.null[here].tolist(),
            labels={name: codes[here].tolist() for name, codes in self.columns.labels.items()},
            arcs=None if arcs is None else [(p, d) for r, p, d in arcs.tolist() if r == row],
            sentence=sentence,
            group=int(self.columns.groups[row]),
        )


def _null(setup: Setup, read: Read) -> Bool[np.ndarray, "token"]:
    """The first token of a causal model, the delimiters of a bidirectional one."""
    if not setup.model.is_causal:
        return read.tokens.special
    null = np.zeros(int(read.lengths.sum()), dtype=bool)
    null[np.cumsum(read.lengths) - read.lengths] = True
    return null


def _segments(setup: Setup, read: Read, tokens: int) -> Int[np.ndarray, "token"]:
    """Only a bidirectional model has sentences A and B."""
    if setup.model.is_causal:
        return np.zeros(tokens, dtype=np.int64)
    return _flat(encoding.type_ids for encoding in read.encodings)


def _labels(
    setup: Setup, read: Read, word: Int[np.ndarray, "token"]
) -> dict[str, Int[np.ndarray, "token"]]:
    """The tag and the relation of every token's word."""
    fields = {"tag": tag_field(setup.corpus) or "", "deprel": "deprel"}
    found = {}
    for name, known in setup.labels.items():
        codes = {label: code for code, label in enumerate(known)}
        of_words = map(codes.get, map(attrgetter(fields[name]), read.words), repeat(NO_LABEL))
        # The last place is for tokens of no word, whose index is -1.
        found[name] = np.array([*of_words, NO_LABEL], dtype=np.int64)[word]
    return found


def _arcs(read: Read, word: Int[np.ndarray, "token"]) -> Int[np.ndarray, "arc 3"]:
    """A relation between two words holds between all their pieces."""
    heads = np.array([NO_WORD if (h := w.head) is None else h for w in read.words], dtype=np.int64)
    counts = [len(sentence.words) for sentence in read.sentences]
    parent = heads + np.repeat(read.first_words, counts)
    parent[(heads < 0) | (parent == np.arange(len(parent)))] = NO_WORD
    above, below = related_tokens(word, parent)
    row = np.repeat(np.arange(len(read.lengths)), read.lengths)[below]
    start = (np.cumsum(read.lengths) - read.lengths)[row]
    return np.stack([row, above - start, below - start], axis=1)


def _flat(rows: Iterable[Sequence[int]]) -> Int[np.ndarray, "token"]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
