"""Open any corpus: the ending of the file says how it is read.

Everything but Parquet is converted once, into a directory of .parquet files named by what they were
made from.
"""

import os
import time
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
from headscope.files import checksum, find_place, is_local, write_text
from headscope.text.corpus import Corpus, Source
from headscope.text.readers import COMPRESSED, format_of, suffix_of
from headscope.text.readers.conll import Fused, read_conllu
from headscope.text.readers.lines import Layout, document_numbers, has_byte_order_mark
from headscope.text.readers.raw import TEXT, cut_documents, is_corpus
from headscope.text.sentence import Sentence
from headscope.text.sources import (
    DEMO,
    STANDARD_INPUT,
    Named,
    demo_file,
    find_files,
    names_of,
    open_stream,
    read_sentences,
    require_one,
    title_of,
)
from headscope.text.storage import FORMAT

CACHED, DAY = 500, 86_400  # converted corpora and checksums that are kept; seconds
READERS = 2  # raise when a reader gives other sentences for the same file


def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; small enough to be held in memory without a cache."""
    return _demo_corpus()


@cache  # a fifth of a second for its megabyte, in a program that asks more than once
def _demo_corpus() -> Corpus:
    try:
        corpus = Corpus.from_sentences(read_conllu(demo_file(), document_numbers()))
    except CorpusError as error:
        raise CorpusError(
            f"The bundled corpus is missing or damaged ({error}); repair the installation with "
            "`pip install --force-reinstall headscope`."
        ) from error
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
    `column` holds the text of a table; `documents` limits how many documents of raw text are read.
    `fused` is for .conllu, whose words written as one ("du" = de + le) are taken as one ("merge")
    or kept apart with one span ("keep").
    """
    _check_choice("fused", fused, get_args(Fused))
    if layout is not None:
        _check_choice("layout", layout, get_args(Layout))
    if documents is not None and documents < 1:
        raise CorpusError(f"documents={documents} leaves nothing to read; give 1 or more.")
    named = names_of(path)
    if named == [DEMO]:
        return demo_corpus()
    nothing = f"There is no sentence in {title_of(named)}; give one that has some."
    stream = open_stream(named, column)
    if stream is not None:
        sentences = cut_documents(stream, layout or "running")
        corpus = _store_stream(require_one(_first_documents(sentences, documents), nothing))
        kind = "text" if named == [STANDARD_INPUT] else "dataset of the hub"
        return replace(corpus, source=Source(title_of(named), str(named[0]), kind))
    files = find_files(named)
    is_parquet = len(files) == 1 and files[0].suffix == ".parquet"
    if is_parquet and documents is None and is_corpus(files[0]):
        return Corpus.open(files[0])
    counts: Counter[str] = Counter()
    sentences = read_sentences(
        files, document_numbers(), layout=layout, fused=fused, column=column, counts=counts
    )
    key = _cache_key(files, repr((layout, fused, column, documents)))
    corpus, remade = _from_cache(
        key, require_one(_first_documents(sentences, documents), nothing), counts
    )
    return replace(corpus, source=replace(_describe_source(named, files), remade=remade))


def cache_directory() -> Path:
    """$HEADSCOPE_CACHE, or headscope/ in the user's cache directory ($XDG_CACHE_HOME)."""
    directory = os.environ.get("HEADSCOPE_CACHE")
    if directory:
        return Path(directory)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headscope"


def _first_documents(sentences: Iterable[Sentence], documents: int | None) -> Iterator[Sentence]:
    """The sentences of the first `documents` documents, or of all; what follows is not read."""
    for _, run in islice(groupby(sentences, key=attrgetter("document")), documents):
        yield from run


def _from_cache(
    key: str, sentences: Iterable[Sentence], counts: Counter[str]
) -> tuple[Corpus, bool]:
    """The corpus from the cache if it is there and sound, else of the sentences; was it damaged?

    The checksum of the whole file lies beside it: Parquet's own cover neither the footer nor the
    headers of pages.
    """
    path = cache_directory() / "corpora" / f"{key}.parquet"
    beside = path.with_suffix(".sha256")
    is_known = path.exists() and beside.exists()
    if is_known:
        try:
            if beside.read_text(encoding="ascii") == checksum(path):
                return Corpus.open(path), False
        except (OSError, ValueError, CorpusError):
            pass  # damaged: written again below, from the files themselves
    _make_writable(path.parent)
    _clear_old(path.parent)
    corpus = Corpus.write(path, sentences, counts=counts)
    write_text(beside, checksum(path))
    return corpus, is_known


def _store_stream(sentences: Iterable[Sentence]) -> Corpus:
    """The corpus of what can be read only once, in the cache under the hash of its sentences."""
    folder = cache_directory() / "corpora"
    _make_writable(folder)
    _clear_old(folder)
    unnamed = folder / f"{uuid4().hex}.parquet"
    path = folder / f"{Corpus.write(unnamed, sentences).fingerprint}.parquet"
    unnamed.replace(path)
    write_text(path.with_suffix(".sha256"), checksum(path))
    return Corpus.open(path)


def _clear_old(folder: Path) -> None:
    """Keep the newest converted corpora; one of today may still be read."""
    files = [(file.stat().st_mtime, file) for file in folder.iterdir() if file.is_file()]
    for written, file in sorted(files, reverse=True)[CACHED:]:
        if written < time.time() - DAY:
            file.unlink(missing_ok=True)


def _make_writable(directory: Path) -> None:
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise CorpusError(
            f"The corpus cannot be converted into {directory}, which cannot be written to; "
            "set HEADSCOPE_CACHE to a directory that can."
        )


def _describe_source(named: Sequence[str | Path], files: Sequence[Path]) -> Source:
    place = find_place(named[0])
    path = str(place.absolute()) if is_local(place) else str(place)
    name = f"{Path(path).name} and {len(named) - 1} more" if len(named) > 1 else Path(path).name
    kinds = Counter(format_of(file).name for file in files)
    marked = sum(map(has_byte_order_mark, files))
    if len(files) == 1:
        return Source(name, path, next(iter(kinds)), marked=marked)
    formats = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return Source(name, path, formats, len(files), marked)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CorpusError(f"{name}={value!r} is unknown; choose {' or '.join(map(repr, choices))}.")


def _cache_key(paths: Sequence[Path], options: str) -> str:
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
