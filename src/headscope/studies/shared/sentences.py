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
from itertools import chain, groupby, repeat, takewhile
from operator import attrgetter
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.model.inputs.encode import encode_all
from headscope.model.inputs.tokens import Tokens
from headscope.observe.batch import NO_LABEL, Columns, Example, Examples
from headscope.studies.shared.words import encode_sentences
from headscope.text.alignment import (
    BARE,
    NO_WORD,
    SEVERAL,
    SPLIT,
    WORDS,
    align,
    related_tokens,
)
from headscope.text.corpus import Corpus, Shard, values_of
from headscope.text.segments import cut, indented, join
from headscope.text.sentence import Sentence, Word

TAG_FIELDS = ("upos", "xpos")  # the first that the corpus has is the tag set
TOO_LONG = "too long"
EMPTY = "empty"
Numbered = tuple[int, Sentence]  # a text and where it (or its first sentence) is in the corpus


def tag_field(corpus: Corpus) -> str | None:
    """The annotation that serves as tags, or None."""
    return next((field for field in TAG_FIELDS if corpus.has(field)), None)


def find_labels(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Every tag and relation that occurs, sorted; any tag set is taken as it is."""
    fields = {"tag": tag_field(corpus), "deprel": "deprel" if corpus.has("deprel") else None}
    known: dict[str, Any] = {name: field for name, field in fields.items() if field is not None}
    return {name: tuple(sorted(values_of(corpus, field))) for name, field in known.items()}


def sentence_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that fits the model."""
    return make_inputs(setup, list(enumerate(sentences, start=first)), Counter())


def document_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Inputs of at most the context's tokens; sentences that cannot be used are left out."""
    skipped: Counter[str] = Counter()
    usable = _read_usable(setup, list(enumerate(sentences, start=first)), skipped)
    return make_inputs(setup, list(_windows(setup, usable.read, skipped)), skipped)


def inputs_again(setup: Setup, numbers: Sequence[int]) -> Inputs:
    """The inputs that have these numbers, made once more."""
    numbered = list(zip(numbers, setup.corpus.select(numbers), strict=True))
    if setup.context is None:
        return make_inputs(setup, numbered, Counter())
    examples: list[Example] = []
    for number, sentence in numbered:
        following = [sentence, *_rest_of_document(setup, number)]
        examples.append(document_inputs(setup, following, number).examples[0])
    return Inputs(examples)


def _rest_of_document(setup: Setup, number: int) -> list[Sentence]:
    """The sentences after one that may belong to the same input."""
    stop = min(number + setup.options["context"], len(setup.corpus))
    first, *following = setup.corpus.read(Shard(0, number, stop))
    return list(takewhile(lambda each: each.document == first.document, following))


def make_inputs(setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]) -> Inputs:
    """One example for every text that can be used; the others are counted by reason."""
    return _inputs(setup, _read_usable(setup, numbered, skipped), skipped)


def _read_usable(setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]) -> "Usable":
    """Texts that fit and can be aligned, with the word of every token."""
    read = _read(setup, numbered, skipped)
    if not setup.labels:
        return Usable(read)
    alignment = align(
        read.sentences,
        [tokens.offsets for tokens in read.tokens],
        [tokens.special for tokens in read.tokens],
        strict=setup.sharing == "strict",
    )
    for reason in alignment.refused.values():
        skipped[f"alignment: {reason}"] += 1
    is_usable = np.ones(len(read.numbers), dtype=bool)
    is_usable[list(alignment.refused)] = False
    word = alignment.owner[np.repeat(is_usable, read.lengths)]
    return Usable(read.keep(is_usable), word, alignment.several)


@dataclass(frozen=True)
class Read:
    """Sentences, where they stand in the corpus, and their tokens."""

    numbers: list[int]
    sentences: list[Sentence]
    tokens: list[Tokens]

    def keep(self, usable: Iterable[bool]) -> "Read":
        """Some of the sentences."""
        rows = [row for row, is_usable in enumerate(usable) if is_usable]
        return self if len(rows) == len(self.numbers) else Read(
            [self.numbers[row] for row in rows],
            [self.sentences[row] for row in rows],
            [self.tokens[row] for row in rows],
        )  # fmt: skip

    @cached_property
    def lengths(self) -> Int[np.ndarray, "sentence"]:
        """Tokens of every sentence."""
        return np.array([len(tokens) for tokens in self.tokens], dtype=np.int64)

    @cached_property
    def words(self) -> list[Word]:
        """The words of all sentences."""
        return [word for sentence in self.sentences for word in sentence.words]

    @cached_property
    def first_words(self) -> Int[np.ndarray, "sentence"]:
        """Place of the first word of every sentence among all words."""
        counts = np.array([len(sentence.words) for sentence in self.sentences], dtype=np.int64)
        return np.cumsum(counts) - counts


@dataclass(frozen=True)
class Usable:
    """Sentences that can be used, with the word of every token counted within its sentence."""

    read: Read
    word: Int[np.ndarray, "token"] | None = None  # None where the corpus says nothing of words
    several: int = 0  # tokens with characters of several words


def _windows(setup: Setup, read: Read, skipped: Counter[str]) -> Iterator[Numbered]:
    """The sentences of every input as one, numbered by the first of them."""
    delimiters = sum(read.tokens[0].special) if read.tokens else 0
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
    spaced = [indented(sentence) for sentence in read.sentences]
    lengths = [len(tokens) for tokens in _encode(setup, spaced)]
    return np.maximum(read.lengths, np.array(lengths, dtype=np.int64))


def _read(setup: Setup, numbered: Sequence[Numbered], skipped: Counter[str]) -> Read:
    """The texts that have tokens, and not too many of them."""
    filled = [(number, each) for number, each in numbered if each.text.strip()]
    sentences = [sentence for _, sentence in filled]
    read = Read([n for n, _ in filled], sentences, _encode(setup, sentences))
    skipped[EMPTY] += len(numbered) - len(filled) + int((read.lengths == 0).sum())
    limit = setup.model.max_length
    fits = np.full(len(filled), True) if limit is None else read.lengths <= limit
    skipped[TOO_LONG] += int((~fits).sum())
    return read.keep(fits & (read.lengths > 0))


def _encode(setup: Setup, sentences: Sequence[Sentence]) -> list[Tokens]:
    tokenizer = setup.model.tokenizer
    if not sentences:
        return []
    if setup.sharing == "words":
        return encode_sentences(tokenizer, sentences, setup.frame, apart=True)
    return encode_all(tokenizer, [sentence.text for sentence in sentences], bos=setup.bos)


def _inputs(setup: Setup, usable: Usable, skipped: Counter[str]) -> Inputs:
    """The inputs of sentences that can be used."""
    read, word = usable.read, usable.word
    ids = _flat(tokens.ids for tokens in read.tokens)
    halves = (tokens.segments for tokens in read.tokens)  # of a bidirectional model: A and B
    labels = {"token": ids, "special": np.full(len(ids), NO_LABEL)}
    arcs, counts = None, {}
    if word is not None:
        flat = np.where(word == NO_WORD, NO_WORD, word + np.repeat(read.first_words, read.lengths))
        labels |= _labels(setup, read, flat)
        arcs = _arcs(read, flat) if setup.corpus.has("head") else None
        counts = _count(read, flat, usable.several)
    columns = Columns(
        numbers=np.array(read.numbers, dtype=np.int64),
        groups=np.array([*map(setup.group, read.sentences, read.numbers)], dtype=np.int64),
        lengths=read.lengths,
        ids=ids,
        segments=np.zeros_like(ids) if setup.model.is_causal else _flat(halves),
        null=_null(setup, read),
        labels=labels,
        arcs=arcs,
    )

    def example(row: int) -> Example:
        return columns.example(row, read.tokens[row], read.sentences[row])

    return Inputs(Examples(columns, example), +skipped, counts)


def _count(read: Read, word: Int[np.ndarray, "token"], several: int) -> dict[str, int]:
    """How words and tokens meet."""
    pieces = np.bincount(word[word != NO_WORD], minlength=len(read.words))
    split, bare = int((pieces > 1).sum()), int((pieces == 0).sum())
    return {WORDS: len(pieces), SPLIT: split, SEVERAL: several, BARE: bare}


def _null(setup: Setup, read: Read) -> Bool[np.ndarray, "token"]:
    """What the tokenizer adds, and the first token of a causal model, be it BOS or text."""
    null = _flat(tokens.special for tokens in read.tokens).astype(bool)
    if setup.model.is_causal:
        null[np.cumsum(read.lengths) - read.lengths] = True
    return null


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
    order = np.lexsort((below, above))  # that of the inputs, then of parents and dependents
    return np.stack([row, above - start, below - start], axis=1)[order]


def _flat(rows: Iterable[Sequence[int]]) -> Int[np.ndarray, "token"]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
