"""Finding a spaCy pipeline, and the sentences it makes of a text."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.text.documents import Paragraph
from headscope.text.sentence import ROOT, Sentence, Word

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

BATCH = 64  # paragraphs handed to a process at once: small, so that progress is steady


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


def sentences_of(doc: "Doc", source: Paragraph) -> Iterator[Sentence]:
    """The sentences of an annotated paragraph; tokens of nothing but space are no words."""
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
            words = tuple(_words(tokens, has_tree))
            text = doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1])]
            yield Sentence(text, words, (), source.document, source.number, name)


def _words(tokens: "list[Token]", has_tree: bool) -> Iterator[Word]:
    base = tokens[0].idx
    place = {token.i: index for index, token in enumerate(tokens)}
    for token in tokens:
        start = token.idx - base
        head = _head(token) if has_tree else None
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


def _head(token: "Token") -> "Token | None":
    """The nearest ancestor that is a word, None for the root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return token
    return None
