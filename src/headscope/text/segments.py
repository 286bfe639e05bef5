"""Segments: consecutive paragraphs of a document in two halves, the inputs of Clark et al. 2019.

```
document   ¶0  ¶1  ¶2  ¶3  ¶4  ¶5    paragraphs are taken until they have enough words to fill an
segments  [ A   B   B ][ A   B ]      input, then split at random; one alone at the end is left over
```

No text counts twice. Words are counted, not tokens, so that segments are the same texts for every
model. A corpus without paragraphs is packed sentence by sentence instead.

Documents cut into windows of whole sentences, each window one text with one list of words.

Sentences of a shard together with those around it that its inputs reach over to.

```
documents     |  d0   |      d1      |   d2   |
shard              [ s2 s3 s4 s5 s6 ]
excerpt         [before  sentences   after]      an input that begins in the shard may end behind
                                                  it, or depend on where its document began
```
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count, groupby
from operator import attrgetter, itemgetter
from random import Random
from typing import Any, Literal
from unicodedata import category, east_asian_width, name

from headscope.text.corpus import Corpus, Shard, columns_of, draw
from headscope.text.sentence import ROOT, Mention, Sentence, Word

Unit = Literal["paragraphs", "sentences"]
Place = tuple[str, int]  # document and paragraph
GAP = " "  # between consecutive sentences, where the script has spaces
Bounds = tuple[int, int]  # first sentence, and the one after the last


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive paragraphs as two plain texts."""

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
    """The segments of a corpus, as ranges; `segment_of` makes the text of one."""

    corpus: Corpus
    words: int = 0  # a segment takes paragraphs, two at least, until it has this many

    @property
    def unit(self) -> Unit:
        """What is packed; sentences where the corpus marks no paragraphs."""
        return "paragraphs" if self.corpus.has("paragraphs") else "sentences"

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """The sentences of every segment, in corpus order."""
        return tuple(segment for segment in self._all if segment.stop > segment.middle)

    @cached_property
    def unpaired(self) -> tuple[Range, ...]:
        """Paragraphs left alone at the ends of documents, which are in no segment."""
        return tuple(single for single in self._all if single.stop == single.middle)

    def __len__(self) -> int:
        return len(self.ranges)

    def ranges_in(self, start: int, stop: int) -> Sequence[Range]:
        """The ranges of segments whose first sentence is one of start to stop (exclusive)."""
        return _starting_in(self.ranges, start, stop)

    def unpaired_in(self, start: int, stop: int) -> int:
        """How many such paragraphs have their first sentence from start to stop (exclusive)."""
        return len(_starting_in(self.unpaired, start, stop))

    @cached_property
    def _all(self) -> tuple[Range, ...]:
        units = _units(self.corpus, self.unit == "paragraphs")
        return tuple(_packed(units, self.words))

    def sample(self, n: int, seed: int) -> Corpus:
        """A corpus of n segments drawn without replacement: all their sentences, in order."""
        drawn = draw(n, len(self), f"{len(self):,} segments of {self.unit}", seed)
        sentences: list[int] = []
        for number in drawn:
            segment = self.ranges[number]
            sentences += range(segment.start, segment.stop)
        return self.corpus.select(sentences)


def segment_of(place: Range, sentences: Sequence[Sentence]) -> Segment:
    """The segment that the sentences of a range make."""
    texts = [sentence.text.strip() for sentence in sentences]
    middle = place.middle - place.start
    first = in_a_row(filter(None, texts[:middle]))
    second = in_a_row(filter(None, texts[middle:]))
    return Segment(place.start, first, second)


def _starting_in(ranges: Sequence[Range], start: int, stop: int) -> Sequence[Range]:
    low = bisect_left(ranges, start, key=attrgetter("start"))
    high = bisect_left(ranges, stop, key=attrgetter("start"))
    return ranges[low:high]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A paragraph, or a sentence: which sentences it has, and how many words."""

    document: str
    start: int
    stop: int
    words: int


def _packed(units: Iterable[_Unit], words: int) -> Iterator[Range]:
    """Segments of every document; what is left alone at its end has no second half."""
    for _, document in groupby(units, key=attrgetter("document")):
        chunk: list[_Unit] = []
        for unit in document:
            chunk.append(unit)
            if len(chunk) > 1 and sum(unit.words for unit in chunk) >= words:
                yield _halved(chunk)
                chunk = []
        if chunk:
            yield _halved(chunk)


def _halved(chunk: Sequence[_Unit]) -> Range:
    """A segment split after any unit but the last, at random as in the paper's released code.

    The draw depends on the segment alone, so that a sample of segments is split as the whole.
    """
    sizes = [unit.words for unit in chunk]
    last = Random(f"{chunk[0].document} {sizes}").randint(1, max(len(chunk) - 1, 1))
    return Range(chunk[0].start, chunk[last - 1].stop, chunk[-1].stop)


def _units(corpus: Corpus, by_paragraph: bool) -> Iterator[_Unit]:
    """The paragraphs, or the sentences, that have a word."""
    rows = zip(count(), places(corpus), _word_counts(corpus))
    key = itemgetter(1) if by_paragraph else itemgetter(0)
    for _, run in groupby(rows, key=key):
        sentences = list(run)
        words = sum(number for _, _, number in sentences)
        if words:
            document = sentences[0][1][0]
            yield _Unit(document, sentences[0][0], sentences[-1][0] + 1, words)


def _word_counts(corpus: Corpus) -> Iterator[int]:
    """Words of every sentence: those of the corpus, or what spaces separate where that is more."""
    for forms, text in _columns(corpus, "form", "text"):
        yield max(len(forms), len(text.split()))


def places(corpus: Corpus) -> Iterator[Place]:
    """Document and paragraph of every sentence; no other column is decoded."""
    return _columns(corpus, "document", "paragraph")


def _columns(corpus: Corpus, *names: str) -> Iterator[tuple[Any, ...]]:
    for table in columns_of(corpus, *names):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def join(sentences: Sequence[Sentence]) -> Sentence:
    """Consecutive sentences as one: spans, governors and mentions are moved along.

    Every sentence keeps its own root, so the result has as many roots as sentences.
    """
    words: list[Word] = []
    mentions: list[Mention] = []
    text = ""
    for sentence in sentences:
        text += gap_after(text)
        mentions += [_move_mention(mention, len(words)) for mention in sentence.mentions]
        words += [_move_word(word, len(text), len(words)) for word in sentence.words]
        text += sentence.text
    first = sentences[0]
    return replace(first, text=text, words=tuple(words), mentions=tuple(mentions))


def joined(sentences: Iterable[Sentence]) -> str:
    """The text of consecutive sentences of a document, a line per paragraph."""
    lines: list[str] = []
    for _, paragraph in groupby(sentences, key=attrgetter("paragraph")):
        lines.append(in_a_row(sentence.text for sentence in paragraph))
    return "\n".join(lines)


def in_a_row(texts: Iterable[str]) -> str:
    """Consecutive sentences as one text."""
    parts: list[str] = []
    for text in texts:
        parts += [gap_after(parts[-1] if parts else ""), text]
    return "".join(parts)


def gap_after(text: str) -> str:
    """What stands before the next sentence: nothing in Chinese and Japanese, else a space."""
    if not text:
        return ""
    last = text[-1]
    is_letter = category(last)[0] in "LP" and not name(last, "").startswith("HANGUL")
    return "" if is_letter and east_asian_width(last) in "WF" else GAP


def indented(sentence: Sentence) -> Sentence:
    """The sentence with a space before it, as it stands inside a window."""
    words = tuple(_move_word(word, len(GAP), 0) for word in sentence.words)
    return replace(sentence, text=GAP + sentence.text, words=words)


def cut_text(sentence: Sentence, end: int) -> Sentence:
    """The words that end before a character; one whose governor is cut off becomes a root."""
    words = [word for word in sentence.words if word.end <= end]
    total = len(words)
    text = sentence.text[: words[-1].end] if words else ""
    for index, word in enumerate(words):
        if word.head is not None and word.head >= total:
            words[index] = replace(word, head=ROOT)
    mentions: list[Mention] = []
    for mention in sentence.mentions:
        if all(stop <= total for _, stop in mention.spans):
            mentions.append(mention)
    return replace(sentence, text=text, words=tuple(words), mentions=tuple(mentions))


def cut(lengths: Iterable[int], size: int) -> tuple[list[list[int]], list[int]]:
    """Pack sentences of these lengths, in order, into windows of at most `size` tokens.

    Returns the windows and the sentences that are too long for any window. A window never reaches
    over a sentence that was left out: what precedes it is no context of what follows.
    """
    windows: list[list[int]] = [[]]
    too_long: list[int] = []
    used = 0
    for index, length in enumerate(lengths):
        if length > size:
            too_long.append(index)
            windows.append([])
            used = 0
            continue
        if used + length > size:
            windows.append([])
            used = 0
        windows[-1].append(index)
        used += length
    return [window for window in windows if window], too_long


def _move_word(word: Word, characters: int, words: int) -> Word:
    head = word.head + words if word.head is not None and word.head >= 0 else word.head
    return replace(word, start=word.start + characters, end=word.end + characters, head=head)


def _move_mention(mention: Mention, words: int) -> Mention:
    spans = tuple((start + words, end + words) for start, end in mention.spans)
    return replace(mention, spans=spans)


class Excerpt(list[Sentence]):
    """Sentences of a corpus, which know their neighbours."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        before: Sequence[Sentence] = (),
        after: Sequence[Sentence] = (),
    ) -> None:
        super().__init__(sentences)
        self.before = before
        self.after = after

    @property
    def whole(self) -> list[Sentence]:
        """The sentences between their neighbours."""
        return [*self.before, *self, *self.after]


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
    start = 0
    for _, run in groupby(places(corpus), key=itemgetter(0)):
        stop = start + sum(1 for _ in run)
        bounds.append((start, stop))
        start = stop
    return tuple(bounds)


def documents_around(corpus: Corpus, shard: Shard) -> Bounds:
    """The bounds of the documents that a shard has a sentence of."""
    documents = documents_of(corpus)
    low = bisect_right(documents, shard.start, key=itemgetter(1))
    high = bisect_left(documents, shard.stop, key=itemgetter(0))
    touched = documents[low:high]
    return (touched[0][0], touched[-1][1]) if touched else (shard.start, shard.stop)
