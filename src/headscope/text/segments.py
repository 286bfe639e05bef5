"""Segments: two consecutive paragraphs of a document, the inputs of Clark et al. 2019.

```
document   ¶0  ¶1  ¶2  ¶3  ¶4        paragraphs are paired two by two, so that no text
segments  [ A   B ][ A   B ]          counts twice; the odd one at the end is left over
```

A corpus without paragraphs is paired sentence by sentence instead.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, zip_longest
from operator import attrgetter
from random import Random
from typing import Literal

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus, Shard
from headscope.text.sentence import Sentence

Unit = Literal["paragraphs", "sentences"]
Place = tuple[str, int]  # document and paragraph


@dataclass(frozen=True, slots=True)
class Segment:
    """Two consecutive paragraphs as plain texts."""

    number: int  # of its first sentence in the corpus
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Range:
    """The sentences of a segment: start to middle are A, middle to stop are B."""

    start: int
    middle: int
    stop: int


@dataclass(frozen=True)
class Segments:
    """The segments of a corpus; only their ranges are held, texts are read when asked for."""

    corpus: Corpus

    @property
    def unit(self) -> Unit:
        """What is paired; sentences where the corpus marks no paragraphs."""
        return "paragraphs" if self.corpus.has("paragraphs") else "sentences"

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """The sentences of every segment, in corpus order."""
        return tuple(each for each in self._all if each.stop > each.middle)

    @cached_property
    def unpaired(self) -> tuple[Range, ...]:
        """The odd paragraphs at the ends of documents, which are in no segment."""
        return tuple(each for each in self._all if each.stop == each.middle)

    def __len__(self) -> int:
        return len(self.ranges)

    def starting_in(self, start: int, stop: int) -> list[Segment]:
        """Segments whose first sentence is one of start to stop (exclusive)."""
        return [self._read(each) for each in self.ranges_in(start, stop)]

    def ranges_in(self, start: int, stop: int) -> Sequence[Range]:
        """The ranges of segments whose first sentence is one of start to stop (exclusive)."""
        return _starting_in(self.ranges, start, stop)

    def unpaired_in(self, start: int, stop: int) -> int:
        """How many odd paragraphs have their first sentence from start to stop (exclusive)."""
        return len(_starting_in(self.unpaired, start, stop))

    @cached_property
    def _all(self) -> tuple[Range, ...]:
        return tuple(_pairs(places(self.corpus), self.unit == "paragraphs"))

    def sample(self, n: int, seed: int) -> Corpus:
        """A corpus of n segments drawn without replacement: all their sentences, in order."""
        if not 0 < n <= len(self):
            raise CorpusError(
                f"Cannot draw {n:,} of {len(self):,} segments of two {self.unit}; "
                f"ask for 1 to {len(self):,}."
            )
        ranges = [self.ranges[i] for i in sorted(Random(seed).sample(range(len(self)), n))]
        return self.corpus.select([i for each in ranges for i in range(each.start, each.stop)])

    def _read(self, place: Range) -> Segment:
        return segment_of(place, self.corpus.read(Shard(0, place.start, place.stop)))


def segment_of(place: Range, sentences: Sequence[Sentence]) -> Segment:
    """The segment that the sentences of a range make."""
    texts = [sentence.text.strip() for sentence in sentences]
    middle = place.middle - place.start
    return Segment(place.start, " ".join(texts[:middle]), " ".join(texts[middle:]))


def _starting_in(ranges: Sequence[Range], start: int, stop: int) -> Sequence[Range]:
    low, high = (bisect_left(ranges, at, key=attrgetter("start")) for at in (start, stop))
    return ranges[low:high]


def _pairs(places: Iterator[Place], by_paragraph: bool) -> Iterator[Range]:
    """Ranges of consecutive units of one document, two by two; an odd one has no second half."""
    for _, document in groupby(enumerate(places), key=lambda item: item[1][0]):
        units = _units(document, by_paragraph)
        for (start, middle), second in zip_longest(units[::2], units[1::2]):
            yield Range(start, middle, middle if second is None else second[1])


def _units(document: Iterator[tuple[int, Place]], by_paragraph: bool) -> list[tuple[int, int]]:
    """The paragraphs, or the sentences, of a document as ranges of sentences."""
    if not by_paragraph:
        return [(index, index + 1) for index, _ in document]
    paragraphs = groupby(document, key=lambda item: item[1][1])
    runs = [[index for index, _ in run] for _, run in paragraphs]
    return [(run[0], run[-1] + 1) for run in runs]


def places(corpus: Corpus) -> Iterator[Place]:
    """Document and paragraph of every sentence; no other column is decoded."""
    size = corpus.storage.facts.group_rows
    for group, rows in groupby(corpus.rows, key=lambda row: row // size):
        table = corpus.storage.group(group).select(["document", "paragraph"])
        chosen = table.take([row - group * size for row in rows])
        yield from zip(*(column.to_pylist() for column in chosen.columns), strict=True)
