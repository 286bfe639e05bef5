"""Open any corpus: the ending of the file says how it is read.

Everything but Parquet is converted once, into a directory of .parquet files named by what they were
made from.

The bundled corpus: short articles with tags, trees and coreference.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import blake2b, file_digest
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import get_args
from uuid import uuid4

from headscope.errors import CorpusError
from headscope.files import checksum, is_local, write_text
from headscope.text.corpus import Corpus, Source
from headscope.text.readers import COMPRESSED, format_of, suffix_of
from headscope.text.readers.conll import Fused
from headscope.text.readers.lines import Layout, document_numbers
from headscope.text.readers.raw import TEXT, is_corpus, to_sentences
from headscope.text.sentence import Sentence
from headscope.text.sources import (
    DEMO,
    Named,
    Reading,
    Sources,
    demo_sentences,
    find_sources,
    read_sentences,
    some,
)
from headscope.text.storage import FORMAT
from headscope.wording import counted

READERS = 2  # raise when a reader gives other sentences for the same file


def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; small enough to be held in memory without a cache."""
    return _demo_corpus()


@cache  # a fifth of a second for its megabyte, in a program that asks more than once
def _demo_corpus() -> Corpus:
    corpus = Corpus.from_sentences(demo_sentences())
    return replace(corpus, source=Source("demo", "demo", "CoNLL-U"))


def read_corpus(
    path: Named,
    *,
    layout: Layout | None = None,
    fused: Fused = "merge",
    column: str = TEXT,
    documents: int | None = None,
) -> Corpus:
    """Open a corpus: a file, several, all in a directory, or text from elsewhere.

    An annotated .parquet is opened as it is, "demo" is the bundled corpus. Anything else is
    converted once into the cache (see docs/corpora.md). Raw text (.txt, .jsonl without words, a
    column of Parquet or Arrow, a dataset, "-" for standard input) becomes sentences as `layout`
    says: "sentences" (one per line, the default of .txt and .jsonl), "running" (cut by rules, the
    default of everything else), "paragraphs" (lines kept whole) or "documents" (texts kept whole).
    `column` holds the text of a table; `documents` reads only so many of raw text. `fused` is for
    .conllu, whose words written as one ("du" = de + le) are taken as one ("merge") or kept apart
    with one span ("keep").
    """
    _check_choice("fused", fused, get_args(Fused))
    if layout is not None:
        _check_choice("layout", layout, get_args(Layout))
    if documents is not None and documents < 1:
        raise CorpusError(f"documents={documents} leaves nothing to read; give 1 or more.")
    if path == DEMO:
        return demo_corpus()
    how = Reading(layout, fused, column)
    found = find_sources(path)
    if not found.files:
        return _keep(found, how, documents)
    first, *others = found.files
    if not others and first.suffix == ".parquet" and documents is None and is_corpus(first):
        return Corpus.open(first)
    corpus, remade = _convert(found, how, documents)
    return replace(corpus, source=replace(_source(found), remade=remade))


def cache_directory() -> Path:
    """$HEADSCOPE_CACHE, or headscope/ in the user's cache directory ($XDG_CACHE_HOME)."""
    chosen = os.environ.get("HEADSCOPE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headscope"


def _source(found: Sources) -> Source:
    place, *more = found.asked
    path = str(place.absolute()) if is_local(place) else str(place)
    name = f"{Path(path).name} and {len(more)} more" if more else Path(path).name
    kinds = Counter(format_of(file).name for file in found.files)
    if len(found.files) == 1:
        return Source(name, path, next(iter(kinds)))
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return Source(name, path, listed, len(found.files))


def _convert(found: Sources, how: Reading, documents: int | None) -> tuple[Corpus, bool]:
    """The corpus of these files, from the cache if it is there and sound; was it damaged?

    The checksum of the whole file lies beside it: Parquet's own cover neither the footer nor the
    headers of pages.
    """
    key = _key(found.files, repr((how.layout, how.fused, how.column, documents)))
    place = cache_directory() / "corpora" / f"{key}.parquet"
    beside = place.with_suffix(".sha256")
    is_known = place.exists() and beside.exists()
    if is_known:
        try:
            if beside.read_text(encoding="ascii") == checksum(place):
                return Corpus.open(place), False
        except (OSError, ValueError, CorpusError):
            pass  # damaged: written again below, from the files themselves
    _make_writable(place.parent)
    nothing = f"There is no sentence in {_name(found.files)}; give one that has some."
    names = document_numbers()
    read = (each for file in found.files for each in read_sentences(file, names, how))
    sentences = some(_first(read, documents), nothing)
    corpus = Corpus.write(place, sentences, counts=how.counts)
    write_text(beside, checksum(place))
    return corpus, is_known


def _keep(found: Sources, how: Reading, documents: int | None) -> Corpus:
    """The corpus of what can be read only once, in the cache under the hash of its sentences."""
    folder = cache_directory() / "corpora"
    _make_writable(folder)
    rows = to_sentences(found.stream(how.column), document_numbers(), how.layout or "running")
    written = folder / f"{uuid4().hex}.parquet"
    nothing = f"There is no sentence in {found.said}; give one that has some."
    corpus = Corpus.write(written, some(_first(rows, documents), nothing))
    place = folder / f"{corpus.fingerprint}.parquet"
    written.replace(place)
    write_text(place.with_suffix(".sha256"), checksum(place))
    kind = "text" if found.dataset is None else "dataset of the hub"
    return replace(Corpus.open(place), source=Source(found.said, found.name, kind))


def _first(sentences: Iterable[Sentence], documents: int | None) -> Iterator[Sentence]:
    """The sentences of so many documents; what follows is not read."""
    runs = groupby(sentences, key=attrgetter("document"))
    return (sentence for _, run in islice(runs, documents) for sentence in run)


def _name(files: Sequence[Path]) -> str:
    if len(files) == 1:
        return str(files[0])
    return f"these {counted(len(files), 'files')} ({files[0]}, …)"


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CorpusError(f"{name}={value!r} is unknown; choose {' or '.join(map(repr, choices))}.")


def _make_writable(directory: Path) -> None:
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise CorpusError(
            f"The corpus cannot be converted into {directory}, which cannot be written to; "
            "set HEADSCOPE_CACHE to a directory that can."
        )


def _key(paths: Sequence[Path], options: str) -> str:
    """A hash of the files' bytes and of everything that decides how they are read."""
    key = blake2b(repr((FORMAT, READERS, options)).encode(), digest_size=16)
    for path in paths:
        key.update(_digest(path))
    return key.hexdigest()


def _digest(path: Path) -> bytes:
    ending = suffix_of(path) + path.suffix if path.suffix in COMPRESSED else path.suffix
    content = blake2b(ending.encode(), digest_size=16)
    try:
        with path.open("rb") as file:
            return file_digest(file, lambda: content).digest()
    except OSError as error:
        raise CorpusError(f"Cannot read {path} ({error.strerror}); check the path.") from error
