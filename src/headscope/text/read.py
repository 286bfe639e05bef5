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
from importlib.resources import files
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import TypeVar, get_args
from uuid import uuid4

from headscope.errors import CorpusError
from headscope.files import checksum, find_place, is_local, write_text
from headscope.text.corpus import Corpus, Source
from headscope.text.readers import COMPRESSED, SUFFIXES, format_of, suffix_of
from headscope.text.readers.conll import Fused, read_conll2012, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, document_numbers, has_byte_order_mark
from headscope.text.readers.raw import (
    HUB_NAME,
    INPUT_NAME,
    TEXT,
    Document,
    cut_documents,
    is_corpus,
    is_raw,
    numbered,
    read_hub,
    read_plain,
    read_raw,
    read_standard_input,
    saved_files,
)
from headscope.text.sentence import Sentence
from headscope.text.storage import FORMAT

Named = str | Path | Iterable[str | Path]
Item = TypeVar("Item")
DEMO = "demo"
STANDARD_INPUT = "-"
CACHED, DAY = 500, 86_400  # converted corpora and checksums that are kept; seconds
READERS = 2  # raise when a reader gives other sentences for the same file


@cache  # a fifth of a second for its megabyte, in a program that asks more than once
def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; small enough to be held in memory without a cache."""
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


def names_of(named: Named) -> list[str | Path]:
    """One name or several as a list of names."""
    names = [named] if isinstance(named, str | Path) else list(named)
    if not names:
        raise CorpusError("No corpus file was given; name at least one.")
    return names


def find_files(named: Sequence[str | Path]) -> list[Path]:
    """The files that were named, those of a directory in the order of their names."""
    paths: list[Path] = []
    for name in named:
        if isinstance(name, str) and not name.strip():
            raise CorpusError(
                'The path of the corpus is empty; give a file, a directory or "demo".'
            )
        paths += _files_at(find_place(name))
    for path in paths:
        format_of(path)  # refuses an ending that no reader knows
    return paths


def _files_at(path: Path) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    readable = (file for file in path.rglob("*") if suffix_of(file) in SUFFIXES)
    paths = saved_files(path) or sorted(readable)
    if not paths:
        raise CorpusError(
            f"No file in {path} ends in {', '.join(SUFFIXES)}; give another directory."
        )
    return paths


def open_stream(named: Sequence[str | Path], column: str) -> Iterator[Document] | None:
    """The documents of standard input or of a dataset of the hub, which are read only once.

    None if what was named can only be files.
    """
    if list(named) == [STANDARD_INPUT]:
        return numbered(read_standard_input(column), document_numbers(), INPUT_NAME)
    name = named[0]
    if len(named) > 1 or not isinstance(name, str) or not HUB_NAME.fullmatch(name):
        return None
    is_file = suffix_of(Path(name)) in SUFFIXES or Path(name).exists()
    return None if is_file else numbered(read_hub(name, column), document_numbers(), name)


def title_of(named: Sequence[str | Path]) -> str:
    """What messages call that which was named."""
    if list(named) == [STANDARD_INPUT]:
        return INPUT_NAME
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return f"{named[0]}{more}"


def read_sentences(
    files: Iterable[Path],
    names: Iterator[str],
    *,
    layout: Layout | None = None,
    fused: Fused = "merge",
    column: str = TEXT,
    counts: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """Stream the sentences of files; `names` are for the documents that have none.

    What `counts` holds in the end is stored with the corpus.
    """
    in_lines = layout in (None, "sentences")
    for path in files:
        match format_of(path).name:
            case "CoNLL-U":
                yield from read_conllu(path, names, fused=fused, counts=counts)
            case "CoNLL-2012":
                yield from read_conll2012(path, names)
            case "Parquet" if is_corpus(path):
                yield from Corpus.open(path)
            case "JSONL" if (in_lines and column == TEXT) or not is_raw(path):
                yield from read_jsonl(path, names)
            case "text" if in_lines or layout == "paragraphs":
                yield from read_plain(path, names, layout=layout or "sentences")
            case kind:
                usual = "sentences" if kind == "JSONL" else "running"
                documents = numbered(read_raw(path, column), names, path)
                yield from cut_documents(documents, layout or usual)


def demo_file() -> Path:
    """The corpus that comes with Headscope."""
    return Path(str(files("headscope.text") / "bundled" / "demo.conllu"))


def require_one(items: Iterable[Item], nothing: str) -> Iterator[Item]:
    """The items, of which there must be one; `nothing` says what is wrong otherwise."""
    is_empty = True
    for item in items:
        is_empty = False
        yield item
    if is_empty:
        raise CorpusError(nothing)


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
    _prepare(path.parent)
    corpus = Corpus.write(path, sentences, counts=counts)
    write_text(beside, checksum(path))
    return corpus, is_known


def _store_stream(sentences: Iterable[Sentence]) -> Corpus:
    """The corpus of what can be read only once, in the cache under the hash of its sentences."""
    folder = cache_directory() / "corpora"
    _prepare(folder)
    unnamed = folder / f"{uuid4().hex}.parquet"
    path = folder / f"{Corpus.write(unnamed, sentences).fingerprint}.parquet"
    unnamed.replace(path)
    write_text(path.with_suffix(".sha256"), checksum(path))
    return Corpus.open(path)


def _prepare(folder: Path) -> None:
    """Make room in the folder of converted corpora; one of today may still be read."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CorpusError(
            f"The corpus cannot be converted into {folder}, which cannot be written to; "
            "set HEADSCOPE_CACHE to a directory that can."
        )
    files = [(file.stat().st_mtime, file) for file in folder.iterdir() if file.is_file()]
    for written, file in sorted(files, reverse=True)[CACHED:]:
        if written < time.time() - DAY:
            file.unlink(missing_ok=True)


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
