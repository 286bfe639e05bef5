"""A corpus: sentences on disk, read a few at a time, with a fingerprint of what they say."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from headscope.errors import CorpusError
from headscope.files import find_place, is_local
from headscope.text.sentence import Sentence
from headscope.text.storage import Storage, hold_in_memory, write_parquet
from headscope.text.table import derive
from headscope.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

Field = Literal["words", "upos", "xpos", "feats", "head", "deprel", "mentions", "paragraphs"]


@dataclass(frozen=True, slots=True)
class Shard:
    """Sentences start to stop (exclusive) of a corpus: the unit of work that can be resumed."""

    index: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Source:
    """Where the sentences of a corpus come from; samples and selections keep it."""

    name: str = "memory"  # of the file or directory; "demo" for the bundled corpus
    path: str = ""  # absolute, or a URL
    format: str = "memory"  # the names of `headscope.text.readers.FORMATS`
    files: int = 1
    marked: int = 0  # files that begin with a byte order mark
    remade: bool = False  # its copy in the cache was damaged and was made again


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences in a fixed order, read lazily; memory does not grow with their number.

    Make one with Corpus.open, Corpus.write or Corpus.from_sentences, or headscope.read_corpus.
    """

    storage: Storage
    rows: Sequence[int]  # the rows of the storage that belong to this corpus, in order
    fingerprint: str  # 32 hexadecimal digits: equal sentences, equal fingerprint
    source: Source = Source()

    @classmethod
    def open(cls, path: str | Path) -> "Corpus":
        """Open a .parquet that Corpus.write or `headscope annotate` made."""
        place = find_place(path)
        absolute = place.absolute() if is_local(place) else place
        return cls._of(Storage(place), Source(place.name, str(absolute), "Parquet"))

    @classmethod
    def write(
        cls,
        path: str | Path,
        sentences: Iterable[Sentence],
        *,
        counts: Mapping[str, int] | None = None,
    ) -> "Corpus":
        """Write sentences to a .parquet as they come and open it."""
        write_parquet(find_place(path), sentences, counts=counts)
        return cls.open(path)

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> "Corpus":
        """A corpus in memory."""
        return cls._of(hold_in_memory(sentences), Source())

    @classmethod
    def _of(cls, storage: Storage, source: Source) -> "Corpus":
        return cls(storage, range(storage.facts.rows), storage.facts.fingerprint, source)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Sentence]:
        return self.storage.sentences(self.rows)

    def __getitem__(self, index: int) -> Sentence:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of a corpus of {len(self)}")
        return next(self.storage.sentences([self.rows[index]]))

    def __repr__(self) -> str:
        count = counted(len(self), "sentences")
        return f"<Corpus {self.source.name} of {count}, {self.fingerprint[:8]}>"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know of how the corpus was read, a sentence each."""
        return tuple(_remarks(self.source, self.storage.facts.merged))

    def has(self, field: Field) -> bool:
        """Whether any sentence carries the annotation; a selection answers for its source."""
        if field not in get_args(Field):
            raise CorpusError(
                f"A corpus has no field {field!r}; ask for {', '.join(get_args(Field))}."
            )
        return field in self.storage.facts.fields

    def select(self, indices: Sequence[int]) -> "Corpus":
        """The sentences at these indices, in this order, as a view."""
        rows = [self.rows[index] for index in indices]
        return replace(self, rows=rows, fingerprint=derive(self.fingerprint, "select", *indices))

    def sample(self, n: int, seed: int) -> "Corpus":
        """A view of n sentences drawn without replacement, in corpus order."""
        drawn = draw(n, len(self), counted(len(self), "sentences"), seed)
        rows = [self.rows[index] for index in drawn]
        return replace(self, rows=rows, fingerprint=derive(self.fingerprint, "sample", n, seed))

    def shards(self, size: int) -> list[Shard]:
        """The corpus cut into pieces of a fixed size; the last one may be shorter."""
        if size < 1:
            raise CorpusError(
                f"A shard needs at least one sentence, not {size}; give a larger size."
            )
        starts = range(0, len(self), size)
        return [
            Shard(index, start, min(start + size, len(self))) for index, start in enumerate(starts)
        ]

    def read(self, shard: Shard) -> list[Sentence]:
        """The sentences of one shard; only the row groups they lie in are read."""
        return list(self.storage.sentences(self.rows[shard.start : shard.stop]))

    def documents(self) -> Iterator[list[Sentence]]:
        """Runs of consecutive sentences with the same document id."""
        return (list(run) for _, run in groupby(self, key=attrgetter("document")))


def draw(n: int, among: int, things: str, seed: int) -> list[int]:
    """Numbers of n things drawn without replacement, in order; `things` counts and names them."""
    if not 0 < n <= among:
        raise CorpusError(f"Cannot draw {n:,} of {things}; ask for 1 to {among:,}.")
    # random.sample, unlike numpy's generators, promises the same draw in every version.
    return sorted(random.Random(seed).sample(range(among), n))


def columns_of(corpus: Corpus, *names: str) -> "Iterator[pa.Table]":
    """Some columns of the sentences, a row group at a time; no other is decoded."""
    for _, table in corpus.storage.tables(corpus.rows):
        yield table.select(list(names))


def values_of(corpus: Corpus, field: Field) -> set[str]:
    """All tags or relations that occur; only columns are read."""
    values: set[str | None] = set()
    for table in columns_of(corpus, field):
        values.update(table.column(0).combine_chunks().flatten().unique().to_pylist())
    return {value for value in values if value is not None}


def count_documents(corpus: Corpus, most: float = math.inf) -> int:
    """How many documents have a name, counted up to `most`; only their column is read."""
    names: set[str] = set()
    for table in columns_of(corpus, "document"):
        names.update(table.column(0).unique().to_pylist())
        names.discard("")
        if len(names) >= most:
            return int(most)
    return len(names)


def _remarks(source: Source, merged: int) -> Iterator[str]:
    if source.files > 1:
        yield f"{source.name}: {counted(source.files, 'files')} ({source.format})."
    if source.marked:
        of_files = "" if source.files == 1 else f" of {counted(source.marked, 'files')}"
        yield f"{source.name}: the byte order mark at the beginning{of_files} was left out."
    if source.remade:
        yield f"{source.name}: its copy in the cache was damaged and was made again."
    if merged:
        taken = "was taken as one word" if merged == 1 else "were taken as one word each"
        yield f"{source.name}: {counted(merged, 'multiword tokens')} {taken} (docs/corpora.md)."
