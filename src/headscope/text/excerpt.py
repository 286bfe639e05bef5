"""Sentences of a shard together with those around it that its inputs reach over to.

```
documents     |  d0   |      d1      |   d2   |
shard              [ s2 s3 s4 s5 s6 ]
excerpt         [before  sentences   after]      an input that begins in the shard may end behind
                                                  it, or depend on where its document began
```
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import overload

from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import places
from headscope.text.sentence import Sentence

Bounds = tuple[int, int]  # first sentence, and the one after the last


@dataclass(frozen=True)
class Excerpt(Sequence[Sentence]):
    """A sequence of sentences that knows its neighbours."""

    sentences: Sequence[Sentence]
    before: Sequence[Sentence] = ()
    after: Sequence[Sentence] = ()

    def __len__(self) -> int:
        return len(self.sentences)

    @overload
    def __getitem__(self, place: int) -> Sentence: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Sentence]: ...

    def __getitem__(self, place: int | slice) -> Sentence | Sequence[Sentence]:
        return self.sentences[place]

    @property
    def whole(self) -> list[Sentence]:
        """The sentences between their neighbours."""
        return [*self.before, *self.sentences, *self.after]


def read_around(
    corpus: Corpus, shard: Shard, sentences: Sequence[Sentence], bounds: Bounds
) -> Excerpt:
    """The sentences of a shard with those around them within the bounds."""
    start, stop = min(bounds[0], shard.start), max(bounds[1], shard.stop)
    return Excerpt(
        sentences,
        before=corpus.read(Shard(0, start, shard.start)),
        after=corpus.read(Shard(0, shard.stop, stop)),
    )


@lru_cache(maxsize=4)
def documents_of(corpus: Corpus) -> tuple[Bounds, ...]:
    """The bounds of every document; only the names of documents are read, and once."""
    bounds: list[Bounds] = []
    for _, run in groupby(enumerate(places(corpus)), key=lambda item: item[1][0]):
        rows = list(map(itemgetter(0), run))
        bounds.append((rows[0], rows[-1] + 1))
    return tuple(bounds)


def documents_around(corpus: Corpus, shard: Shard) -> Bounds:
    """The bounds of the documents that a shard has a sentence of."""
    documents = documents_of(corpus)
    low = bisect_right(documents, shard.start, key=itemgetter(1))
    high = bisect_left(documents, shard.stop, key=itemgetter(0))
    touched = documents[low:high]
    return (touched[0][0], touched[-1][1]) if touched else (shard.start, shard.stop)
