"""A spaCy pipeline: finding one, what it reads, and the sentences made of what it returns.

A paragraph is split into sentences. A sentence of a corpus stays one sentence of the same words,
and only what it lacks is taken from the pipeline.
"""

from collections.abc import Container, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.text.documents import Paragraph
from headscope.text.sentence import ROOT, Sentence, Word

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

Item = Paragraph | Sentence
_TAGS = ("upos", "xpos", "feats")
_TREE = ("head", "deprel")


def load_pipeline(name: str) -> "Language":
    """A pipeline by the name of its package, installed or importable, or by its directory."""
    try:
        import spacy
    except ImportError as error:
        raise CorpusError(
            "spaCy is not installed; install it with `pip install 'headscope[parse]'`."
        ) from error
    try:
        return spacy.load(name)
    except OSError as error:
        if name.isidentifier() and find_spec(name) is not None:
            return import_module(name).load()
        raise CorpusError(
            f"The spaCy pipeline {name!r} is not installed; "
            f"install it with `python -m spacy download {name}`."
        ) from error


def input_of(item: Item, pipeline: "Language") -> "str | Doc":
    """What the pipeline reads: the text of a paragraph, or the words of a sentence as one."""
    if isinstance(item, Paragraph):
        return item.text
    doc = _doc_of_words(item, pipeline) if item.words else pipeline.make_doc(item.text)
    for token in doc:
        token.is_sent_start = token.i == 0  # a parser splits no sentence that has been marked
    return doc


def output_of(doc: "Doc", item: Item) -> list[Sentence]:
    """The sentences of an annotated paragraph, or the completed sentence."""
    if isinstance(item, Paragraph):
        return list(_split(doc, item))
    return [_complete(item, doc)]


def missing_fields(sentence: Sentence) -> list[str]:
    """What no word of the sentence has; heads and relations are one tree, given or not."""
    fields = [name for name in (*_TAGS, *_TREE) if _lacks(sentence, name)]
    has_tree = not all(name in fields for name in _TREE)
    return [name for name in fields if not (has_tree and name in _TREE)]


def _lacks(sentence: Sentence, name: str) -> bool:
    return all(getattr(word, name) is None for word in sentence.words)


def _doc_of_words(sentence: Sentence, pipeline: "Language") -> "Doc":
    """One token per word, however the tokenizer of the pipeline would split the text."""
    from spacy.tokens import Doc

    words = sentence.words
    follows = [later.start > word.end for word, later in pairwise(words)]
    return Doc(pipeline.vocab, words=[word.text for word in words], spaces=[*follows, False])


def _split(doc: "Doc", source: Paragraph) -> Iterator[Sentence]:
    """Sentences; tokens of nothing but space are no words."""
    if not doc.has_annotation("SENT_START"):
        raise CorpusError(
            "The spaCy pipeline does not split sentences; "
            "use one with a parser, a senter or a sentencizer."
        )
    has_tree = doc.has_annotation("DEP")
    for number, span in enumerate(doc.sents, start=1):
        tokens = [token for token in span if not token.is_space]
        if tokens:
            name = f"{source.document}-{source.number + 1}-{number}"
            words = tuple(_words(tokens, tokens[0].idx, has_tree))
            text = doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1])]
            yield Sentence(text, words, (), source.document, source.number, name)


def _complete(sentence: Sentence, doc: "Doc") -> Sentence:
    has_tree = doc.has_annotation("DEP")
    if not sentence.words:
        tokens = [token for token in doc if not token.is_space]
        return replace(sentence, words=tuple(_words(tokens, 0, has_tree)))
    fields = missing_fields(sentence)
    parsed = _words(list(doc), 0, has_tree)
    words = (
        replace(word, **{name: getattr(found, name) for name in fields})
        for word, found in zip(sentence.words, parsed, strict=True)
    )
    return replace(sentence, words=tuple(words))


def _words(tokens: "list[Token]", base: int, has_tree: bool) -> Iterator[Word]:
    place = {token.i: index for index, token in enumerate(tokens)}
    for token in tokens:
        start = token.idx - base
        head = _head(token, place) if has_tree else None
        is_root = has_tree and head is None
        yield Word(
            token.text,
            start,
            start + len(token),
            upos=token.pos_ or None,
            xpos=token.tag_ or None,
            feats=str(token.morph) or None,
            head=ROOT if is_root else None if head is None else place[head.i],
            deprel="root" if is_root else token.dep_.lower() or None,
        )


def _head(token: "Token", words: Container[int]) -> "Token | None":
    """The nearest ancestor that is a word, None for the root."""
    while token.head.i != token.i:
        token = token.head
        if token.i in words:
            return token
    return None
