"""The texts that portraits are made of: sentences and passages, in three parts of the documents.

```
documents by their hash   fit  score  fit  choose  fit  score  fit  fit | fit …
```

Weights are fitted on one part, facts are chosen on the second and scored on the third. No document
is in two parts. Where fewer than FEWEST documents have names, blocks of consecutive sentences take
their place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

from headscope.engine.setup import Setup
from headscope.model.inputs.encode import encode_all
from headscope.model.inputs.frame import Bos
from headscope.model.inputs.tokens import Tokens
from headscope.model.model import Model
from headscope.results.replicates import group_of
from headscope.text.alignment import NO_WORD, align
from headscope.text.corpus import Corpus
from headscope.text.segments import cut, cut_text, documents_of, join, places
from headscope.text.sentence import Sentence

PartName = Literal["fit", "choose", "score"]
PARTS: tuple[PartName, ...] = ("fit", "choose", "score")
# Which part each document is in, in the order of their hashes, again and again.
CYCLE: tuple[PartName, ...] = (
    "fit", "score", "fit", "choose", "fit", "score", "fit", "choose",
)  # fmt: skip
SENTENCES = {"fit": 240, "choose": 80, "score": 150}  # how many texts of each part are drawn
PASSAGES = {"fit": 48, "choose": 16, "score": 30}
RAW_PASSAGES = {"fit": 160, "choose": 50, "score": 100}  # of a corpus without words
FEWEST, BLOCK = len(CYCLE), 16  # documents; sentences of what takes their place
SHORTEST, LONGEST = 4, 48  # tokens of a sentence that is drawn
LONGEST_PASSAGE = 112
PER_DOCUMENT = 2  # passages at most


@dataclass(frozen=True)
class Text:
    """A sentence or a passage as the model reads it, with the word of every token."""

    part: PartName
    is_passage: bool
    document: str
    sentence: Sentence  # of a passage, its sentences joined
    tokens: Tokens
    word: Int[np.ndarray, "token"]  # NO_WORD for special tokens and for space between words
    is_causal: bool

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def group(self) -> int:
        """The group of its document."""
        return group_of(self.document)

    @property
    def null(self) -> Bool[np.ndarray, "token"]:
        """What the tokenizer adds; in a causal model the first token, be it BOS or text."""
        null = np.array(self.tokens.special, dtype=bool)
        if self.is_causal:
            null[:1] = True
        return null

    @property
    def null_names(self) -> tuple[str, ...]:
        """What the null tokens are called: as the tokenizer calls them, or the first token."""
        rows = zip(self.tokens.labels, self.null, self.tokens.special, strict=True)
        names = [label.strip() if is_special else "the first token"
                 for label, is_null, is_special in rows if is_null]  # fmt: skip
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Document:
    """Consecutive sentences of a corpus that belong together: start to stop (exclusive)."""

    name: str
    start: int
    stop: int


def draw_texts(setup: Setup, bos: Bos, *, raw: bool = False) -> list[Text]:
    """Sentences and passages of every part, drawn with the seed; none where documents are few.

    Raw text is read in passages alone, and without any annotation.
    """
    corpus, model = setup.corpus, setup.model
    documents = find_documents(corpus)
    parts = part_of_documents({document.name for document in documents})
    has_words = corpus.has("words") and not raw
    passages = PASSAGES if has_words else RAW_PASSAGES
    texts: list[Text] = []
    for part in PARTS:
        chosen = [document for document in documents if parts.get(document.name) == part]
        order = Random(f"{setup.seed} portraits {part}")
        if has_words:
            numbered = [(row, each.name) for each in chosen for row in range(each.start, each.stop)]
            order.shuffle(numbered)
            texts += _draw_sentences(model, corpus, part, numbered, bos)
        order.shuffle(chosen)
        texts += _draw_passages(model, corpus, part, chosen, passages[part], bos, raw=raw)
    return texts


def find_documents(corpus: Corpus) -> list[Document]:
    """The documents of a corpus, or blocks of sentences where too few have names."""
    names = [name for name, _ in places(corpus)]
    if len(set(names) - {""}) >= FEWEST and "" not in names:
        return [Document(names[start], start, stop) for start, stop in documents_of(corpus)]
    starts = range(0, len(names), BLOCK)
    return [
        Document(f"{corpus.fingerprint} {start}", start, min(start + BLOCK, len(names)))
        for start in starts
    ]


def part_of_documents(names: set[str]) -> dict[str, PartName]:
    """The part of every document; nothing where they are too few to be held out."""
    if len(names) < FEWEST:
        return {}
    ordered = sorted(
        names, key=lambda name: blake2b(name.encode("utf-8", "surrogatepass")).digest()
    )
    return {name: CYCLE[rank % len(CYCLE)] for rank, name in enumerate(ordered)}


def _draw_sentences(
    model: Model,
    corpus: Corpus,
    part: PartName,
    numbered: Sequence[tuple[int, str]],
    bos: Bos,
) -> list[Text]:
    """The first sentences of a random order that are neither short nor long."""
    wanted = SENTENCES[part]
    texts: list[Text] = []
    for start in range(0, len(numbered), wanted):
        rows = numbered[start : start + wanted]
        sentences = list(corpus.select([row for row, _ in rows]))
        named = [
            replace(sentence, document=name)
            for sentence, (_, name) in zip(sentences, rows, strict=True)
        ]
        for text in make_texts(model, named, part, is_passage=False, bos=bos):
            if SHORTEST <= len(text) <= _most(model, LONGEST) and len(texts) < wanted:
                texts.append(text)
        if len(texts) == wanted:
            break
    return texts


def _draw_passages(
    model: Model,
    corpus: Corpus,
    part: PartName,
    documents: Sequence[Document],
    wanted: int,
    bos: Bos,
    *,
    raw: bool,
) -> list[Text]:
    """Passages from the beginnings of documents in a random order."""
    passages: list[Sentence] = []
    for document in documents:
        if len(passages) >= wanted:
            break
        # No more sentences than tokens are needed.
        stop = min(document.stop, document.start + PER_DOCUMENT * LONGEST_PASSAGE)
        sentences = list(corpus.select(range(document.start, stop)))
        named = [replace(each, document=document.name) for each in sentences if each.text.strip()]
        if raw:
            named = [replace(each, words=(), mentions=()) for each in named]
        passages += list(_cut_passages(model, named))[:PER_DOCUMENT]
    texts = make_texts(model, passages[:wanted], part, is_passage=True, bos=bos)
    return [text for text in texts if SHORTEST <= len(text) <= _most(model, LONGEST_PASSAGE)]


def _cut_passages(model: Model, sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Consecutive sentences joined while they fit; then the beginnings of those that are longer."""
    room = _most(model, LONGEST_PASSAGE) - FRAME
    encodings = encode_all(model.tokenizer, [" " + each.text for each in sentences], special=False)
    windows, too_long = cut([len(encoding.ids) for encoding in encodings], room)
    for window in windows:
        yield join([sentences[row] for row in window])
    for row in too_long:
        yield _shorten(sentences[row], encodings[row].offsets[room - 1][1] - 1)


FRAME = 4  # special tokens around a text, at most


def _shorten(sentence: Sentence, end: int) -> Sentence:
    """The text up to a character, with the words that end before it."""
    if sentence.words:
        return cut_text(sentence, end)
    return replace(sentence, text=sentence.text[:end].rstrip(), mentions=())


def _most(model: Model, tokens: int) -> int:
    return tokens if model.max_length is None else min(tokens, model.max_length)


def make_texts(
    model: Model, sentences: Sequence[Sentence], part: PartName, *, is_passage: bool, bos: Bos
) -> list[Text]:
    """The texts of sentences; those whose words are not in the text are left out."""
    if not sentences:
        return []
    tokens_of = encode_all(model.tokenizer, [sentence.text for sentence in sentences], bos=bos)
    alignment = align(
        sentences,
        [tokens.offsets for tokens in tokens_of],
        [tokens.special for tokens in tokens_of],
    )
    texts: list[Text] = []
    start = 0
    for row, (sentence, tokens) in enumerate(zip(sentences, tokens_of, strict=True)):
        stop = start + len(tokens)
        word = alignment.owner[start:stop]
        start = stop
        if row in alignment.refused or not len(tokens):
            continue
        if not sentence.words:
            word = np.array(tokens.word_of_token)
            word = np.where(word < 0, NO_WORD, word)
        texts.append(
            Text(part, is_passage, sentence.document, sentence, tokens, word, model.is_causal)
        )
    return texts
