"""The inputs of clark2019: segments of two halves, for what heads do on the surface (§3).

A segment is put between the delimiters of the model (`headscope.studies.shared.delimiters`).

```
BERT          [CLS] A [SEP] B [SEP]       the tokenizer's own pair, as the model was trained
Llama, GPT-2  BOS A EOS B EOS             the nearest equivalent, put there by us
T5            A EOS B EOS                 what does not exist is left away, and its measures too
```
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any

from headscope.engine.part import Inputs
from headscope.engine.setup import Setup
from headscope.errors import ModelError
from headscope.metrics.surface import CLS, PUNCT, SEP
from headscope.model.inputs.encode import Encoded, encode, select
from headscope.model.model import Model
from headscope.observe.batch import PUNCTUATION
from headscope.observe.inputs import NO_LABEL, Example
from headscope.studies.shared.delimiters import Delimiters, encode_bare, find_delimiters
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import Excerpt, Segment, Segments, segment_of

SHORTEST = 2  # tokens: a single one can only look at itself
EMPTY = "segments without text"
TOO_SHORT = "segments of fewer than two tokens"


def encode_segment(model: Model, segment: Segment, *, segment_ids: bool) -> Encoded:
    """A and B between the delimiters; `segment_ids` false makes all of it segment 0."""
    delimiters = find_delimiters(model)
    if delimiters.own_pair:
        encoded = encode(model.tokenizer, segment.first, segment.second)
    else:
        encoded = _assemble(model, segment, delimiters)
    return encoded if segment_ids else replace(encoded, segments=(0,) * len(encoded))


def _assemble(model: Model, segment: Segment, delimiters: Delimiters) -> Encoded:
    first = encode(model.tokenizer, segment.first, special=False)
    second = encode(model.tokenizer, segment.second, special=False)
    begin = _delimiter(model, delimiters.cls, 0)
    middle, end = (_delimiter(model, delimiters.sep, part) for part in (0, 1))
    second = replace(second, segments=(1,) * len(second), sequence=(1,) * len(second))
    pieces = [piece for piece in (begin, first, middle, second, end) if piece is not None]
    names = ("ids", "tokens", "offsets", "segments", "special", "sequence")
    joined: dict[str, Any] = {n: sum((getattr(each, n) for each in pieces), ()) for n in names}
    return Encoded(text=segment.first, pair=segment.second, **joined)


def _delimiter(model: Model, index: int | None, segment: int) -> Encoded | None:
    if index is None:
        return None
    return replace(encode_bare(model, (index,), (True,)), segments=(segment,))


@lru_cache(maxsize=4)
def segments_of(corpus: Corpus, words: int) -> Segments:
    """The segments of a corpus; their places are worked out once."""
    return Segments(corpus, words)


def draw_segments(
    corpus: Corpus, count: int | None, seed: int, options: Mapping[str, Any]
) -> Corpus:
    """A sample of so many segments, or the corpus itself if it has no more."""
    if count is None:
        return corpus
    segments = segments_of(corpus, options["max_tokens"])
    return corpus if count >= len(segments) else segments.sample(count, seed)


def segment_reach(setup: Setup, shard: Shard) -> tuple[int, int]:
    """A segment may end in the next shard."""
    found = _segments_of(setup).ranges_in(shard.start, shard.stop)
    return shard.start, found[-1].stop if found else shard.stop


def segment_inputs(setup: Setup, sentences: Excerpt, first: int) -> Inputs:
    """One example for every segment that begins among these sentences, cut to the longest."""
    segments = _segments_of(setup)
    stop = first + len(sentences)
    longest = longest_segment(setup)
    skipped: Counter[str] = Counter()
    skipped[f"{segments.unit.removesuffix('s')} without a second one to pair"] = (
        segments.unpaired_in(first, stop)
    )
    examples: list[Example] = []
    for segment, group in _segments(setup, segments, sentences, first):
        try:
            encoded = encode_segment(setup.model, segment, segment_ids=setup.options["segment_ids"])
        except ModelError:
            skipped[EMPTY] += 1
            continue
        if len(encoded) < SHORTEST:
            skipped[TOO_SHORT] += 1
            continue
        fitting = cut_segment(encoded, longest, Random(f"{setup.seed} {segment.number}"))
        labels = {"special": special_labels(setup, fitting), "token": fitting.ids}
        null = (False,) * len(fitting)
        examples.append(Example(segment.number, fitting, null, labels, group=group))
    return Inputs(examples, +skipped)


def cut_segment(encoded: Encoded, longest: int, coin: Random) -> Encoded:
    """At most so many tokens, as the paper's released code cuts.

    One token after the other is taken from the longer half, the second where both are equal: the
    first or the last one, as the coin falls. Delimiters stay.
    """
    room = longest - encoded.sequence.count(None)
    front, back = [0, 0], [0, 0]
    length = [encoded.sequence.count(half) for half in (0, 1)]
    while sum(length) > max(room, 2):
        half = 0 if length[0] > length[1] else 1
        (front if coin.random() < 0.5 else back)[half] += 1
        length[half] -= 1
    kept, seen = [], [0, 0]
    for half in encoded.sequence:
        if half is None:
            kept.append(True)
        else:
            kept.append(front[half] <= seen[half] < front[half] + length[half])
            seen[half] += 1
    return select(encoded, kept)


def _segments_of(setup: Setup) -> Segments:
    return segments_of(setup.corpus, setup.options["max_tokens"])


def _segments(
    setup: Setup, segments: Segments, sentences: Excerpt, first: int
) -> Iterator[tuple[Segment, int]]:
    """The segments that begin among the sentences, each with its group of documents."""
    given = [*sentences, *sentences.after]
    for place in segments.ranges_in(first, first + len(sentences)):
        own = given[place.start - first : place.stop - first]
        yield segment_of(place, own), setup.group(own[0], place.start)


def longest_segment(setup: Setup) -> int:
    """The most tokens of a segment: the option, or what the model has positions for."""
    limit = setup.model.max_length
    asked = setup.options["max_tokens"]
    return asked if limit is None else min(asked, limit)


def special_labels(setup: Setup, encoded: Encoded) -> list[int]:
    """[CLS], [SEP], punctuation or none of them, for every token.

    Where one token begins and ends texts (GPT-2), the first of an input is [CLS].
    """
    delimiters = find_delimiters(setup.model)
    labels = []
    for place, index in enumerate(encoded.ids):
        if encoded.special[place]:
            is_cls = index == delimiters.cls and (place == 0 or index != delimiters.sep)
            labels.append(CLS if is_cls else SEP if index == delimiters.sep else NO_LABEL)
        else:
            labels.append(PUNCT if _surface(encoded, place) in PUNCTUATION else NO_LABEL)
    return labels


def _surface(encoded: Encoded, place: int) -> str:
    """What a token stands for in its text."""
    start, end = encoded.offsets[place]
    text = encoded.pair if encoded.sequence[place] == 1 else encoded.text
    return (text or "")[start:end].strip()
