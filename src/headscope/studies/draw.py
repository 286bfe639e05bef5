"""Samples of a corpus: sentences, or whole documents where these are the inputs."""

from collections.abc import Mapping
from random import Random
from typing import Any

from headscope.text.corpus import Corpus, columns_of
from headscope.text.segments import documents_of

LONG = 40  # characters of a sentence that is hardly written twice


def draw_sentences(
    corpus: Corpus, sentences: int | None, seed: int, options: Mapping[str, Any]
) -> Corpus:
    """A sample of that many sentences, or the corpus itself if it has no more.

    With a context inputs are documents, of which whole ones are drawn.
    """
    if sentences is None:
        return corpus
    if options.get("context") is not None:
        return draw_documents(corpus, sentences, seed)
    return corpus if sentences >= len(corpus) else corpus.sample(sentences, seed)


def draw_documents(corpus: Corpus, sentences: int, seed: int) -> Corpus:
    """Documents drawn until they have that many sentences, in corpus order."""
    documents = documents_of(corpus)
    drawn: list[tuple[int, int]] = []
    for document in Random(seed).sample(documents, len(documents)):
        if sum(stop - start for start, stop in drawn) >= sentences:
            break
        drawn.append(document)
    return _select(corpus, drawn)


def pick_documents(corpus: Corpus, count: int, seed: int) -> Corpus:
    """So many documents drawn with the seed, in corpus order; all of them if there are no more."""
    documents = documents_of(corpus)
    if count >= len(documents):
        return corpus
    return _select(corpus, Random(seed).sample(documents, count))


def count_copies(corpus: Corpus) -> dict[str, int]:
    """Sentences, and documents that have a name, that repeat an earlier one word for word.

    Short sentences are left out: any language writes them twice.
    """
    sentences: set[int] = set()
    documents: dict[str, int] = {}  # by name, a hash of all texts
    long = 0
    for table in columns_of(corpus, "document", "text"):
        names, texts = table["document"].to_pylist(), table["text"].to_pylist()
        for name, text in zip(names, texts, strict=True):
            if name:
                documents[name] = hash((documents.get(name), text))
            if len(text) >= LONG:
                sentences.add(hash(text))
                long += 1
    return {
        "sentences": long - len(sentences),
        "documents": len(documents) - len(set(documents.values())),
    }


def _select(corpus: Corpus, documents: list[tuple[int, int]]) -> Corpus:
    rows: list[int] = []
    for start, stop in sorted(documents):
        rows.extend(range(start, stop))
    return corpus.select(rows)
