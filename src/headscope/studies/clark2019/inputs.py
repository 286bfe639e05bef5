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

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.errors import ModelError
from headscope.metrics.surface import CLS, PUNCT, SEP
from headscope.model.inputs.encode import encode, special_tokens
from headscope.model.inputs.tokens import Tokens
from headscope.model.model import Model
from headscope.observe.batch import NO_LABEL, PUNCTUATION, Example
from headscope.studies.shared.delimiters import find_delimiters
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import Excerpt, Segment, Segments, segment_of

SHORTEST = 2  # tokens: a single one can only look at itself
EMPTY = "segments without text"
TOO_SHORT = "segments of fewer than two tokens"


def encode_segment(model: Model, segment: Segment, *, segment_ids: bool) -> Tokens:
    """A and B between the delimiters; `segment_ids` false makes all of it segment 0."""
    delimiters = find_delimiters(model)
    if delimiters.own_pair:
        tokens = encode(model.tokenizer, segment.first, segment.second)
    else:
        first = encode(model.tokenizer, segment.first, special=False)
        second = encode(model.tokenizer, segment.second, special=False)
        second = replace(second, segments=(1,) * len(second))
        tokens = _delimiter(model, delimiters.cls, 0) + first
        tokens += _delimiter(model, delimiters.sep, 0) + second
        tokens += _delimiter(model, delimiters.sep, 1)
    return tokens if segment_ids else replace(tokens, segments=(0,) * len(tokens))


def _delimiter(model: Model, index: int | None, segment: int) -> Tokens:
    return special_tokens(model.tokenizer, () if index is None else (index,), segment)


@lru_cache(maxsize=4)
def segments_of(corpus: Corpus, words: int) -> Segments:
    """The segments of a corpus; their places are worked out once."""
    return Segments(corpus, words)


def draw_segments(
    corpus: Corpus, count: int | None, seed: int, options: Mapping[str, Any]
) -> Corpus:
    """A sample of that many segments, or the corpus itself if it has no more."""
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
            tokens = encode_segment(setup.model, segment, segment_ids=setup.options["segment_ids"])
        except ModelError:
            skipped[EMPTY] += 1
            continue
        if len(tokens) < SHORTEST:
            skipped[TOO_SHORT] += 1
            continue
        fitting = cut_segment(tokens, longest, Random(f"{setup.seed} {segment.number}"))
        labels = {"special": special_labels(setup, fitting), "token": fitting.ids}
        null = (False,) * len(fitting)
        examples.append(Example(segment.number, fitting, null, labels, group=group))
    return Inputs(examples, +skipped)


def cut_segment(tokens: Tokens, longest: int, coin: Random) -> Tokens:
    """At most that many tokens, as the paper's released code cuts.

    One token after the other is taken from the longer half, the second where both are equal: the
    first or the last one, as the coin falls. Delimiters stay.
    """
    halves = [None if place is None else place.text for place in tokens.places]
    room = longest - halves.count(None)
    front, back = [0, 0], [0, 0]
    length = [halves.count(half) for half in (0, 1)]
    while sum(length) > max(room, 2):
        half = 0 if length[0] > length[1] else 1
        (front if coin.random() < 0.5 else back)[half] += 1
        length[half] -= 1
    kept, seen = [], [0, 0]
    for half in halves:
        if half is None:
            kept.append(True)
        else:
            kept.append(front[half] <= seen[half] < front[half] + length[half])
            seen[half] += 1
    return tokens.select(kept)


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


def special_labels(setup: Setup, tokens: Tokens) -> list[int]:
    """[CLS], [SEP], punctuation or none of them, for every token.

    Where one token begins and ends texts (GPT-2), the first of an input is [CLS].
    """
    delimiters = find_delimiters(setup.model)
    labels = []
    for position, index in enumerate(tokens.ids):
        if tokens.special[position]:
            is_cls = index == delimiters.cls and (position == 0 or index != delimiters.sep)
            labels.append(CLS if is_cls else SEP if index == delimiters.sep else NO_LABEL)
        else:
            surface = tokens.text[slice(*tokens.offsets[position])].strip()
            labels.append(PUNCT if surface in PUNCTUATION else NO_LABEL)
    return labels
