"""The inputs of clark2019: segments of two paragraphs, and repeated random sequences."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from headscope.errors import ModelError
from headscope.metrics.induction import repeated_sequences
from headscope.metrics.surface import CLS, PUNCT, SEP
from headscope.model.encode import Encoded
from headscope.observe.batch import PUNCTUATION
from headscope.observe.inputs import NO_LABEL, Example
from headscope.studies.clark2019.surface.delimiters import (
    embeddings,
    enclose,
    encode_segment,
    find_delimiters,
)
from headscope.studies.study import Inputs, Setup
from headscope.text.corpus import Corpus, Shard
from headscope.text.excerpt import Excerpt
from headscope.text.segments import Segment, Segments, segment_of
from headscope.text.sentence import Sentence

SHORTEST = 2  # tokens: a single one can only look at itself
EMPTY = "segments without text"
TOO_SHORT = "segments of fewer than two tokens"


@lru_cache(maxsize=4)
def segments_of(corpus: Corpus) -> Segments:
    """The segments of a corpus; their places are worked out once."""
    return Segments(corpus)


def draw_segments(corpus: Corpus, count: int, seed: int) -> Corpus:
    """A sample of `count` segments, or the corpus itself if it has no more."""
    segments = segments_of(corpus)
    return corpus if count >= len(segments) else segments.sample(count, seed)


def segment_reach(setup: Setup, shard: Shard) -> tuple[int, int]:
    """A segment may end in the next shard."""
    found = segments_of(setup.corpus).ranges_in(shard.start, shard.stop)
    return shard.start, found[-1].stop if found else shard.stop


def segment_inputs(setup: Setup, sentences: Excerpt, first: int) -> Inputs:
    """One example for every segment that begins among these sentences and is not too long."""
    segments = segments_of(setup.corpus)
    stop = first + len(sentences)
    longest = longest_segment(setup)
    skipped: Counter[str] = Counter()
    skipped[f"{segments.unit} without a second one to pair"] = segments.unpaired_in(first, stop)
    examples: list[Example] = []
    for segment, group in _segments(setup, segments, sentences, first):
        try:
            encoded = encode_segment(setup.model, segment, segment_ids=setup.options["segment_ids"])
        except ModelError:
            skipped[EMPTY] += 1
            continue
        if SHORTEST <= len(encoded) <= longest:
            examples.append(_example(setup, encoded, segment.number, group))
        else:
            reason = TOO_SHORT if len(encoded) < SHORTEST else f"segments over {longest} tokens"
            skipped[reason] += 1
    return Inputs(examples, +skipped)


def _segments(
    setup: Setup, segments: Segments, sentences: Excerpt, first: int
) -> Iterator[tuple[Segment, int]]:
    """The segments that begin among the sentences, each with its group of documents."""
    given = [*sentences, *sentences.after]
    for place in segments.ranges_in(first, first + len(sentences)):
        own = given[place.start - first : place.stop - first]
        yield segment_of(place, own), setup.group(own[0], place.start)


def repeated_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Random tokens said twice; they belong to no sentence, so the first shard has them all."""
    if first > 0:
        return Inputs(())
    sequences = repeated_sequences(
        _vocabulary(setup),
        count=setup.options["repeated_sequences"],
        period=longest_period(setup),
        seed=setup.seed,
    )
    examples = []
    for number, ids in enumerate(sequences.tolist()):
        encoded, _ = enclose(setup.model, tuple(ids))
        examples.append(Example(number, encoded, (False,) * len(encoded)))
    return Inputs(examples)


def longest_period(setup: Setup) -> int:
    """Tokens until a random sequence repeats: the option, or half of what the model can take."""
    asked, limit = setup.options["period"], setup.model.max_length
    if limit is None:
        return asked
    around = len(enclose(setup.model, ())[0])
    return max(1, min(asked, (limit - around) // 2))


def longest_segment(setup: Setup) -> int:
    """The most tokens of a segment: the option, or what the model has positions for."""
    limit = setup.model.max_length
    asked = setup.options["max_tokens"]
    return asked if limit is None else min(asked, limit)


def _example(setup: Setup, encoded: Encoded, number: int, group: int) -> Example:
    labels = {"special": special_labels(setup, encoded), "token": encoded.ids}
    return Example(number, encoded, (False,) * len(encoded), labels, group=group)


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


def _vocabulary(setup: Setup) -> list[int]:
    """All ids of the tokenizer that are ordinary tokens of the network."""
    special = set(setup.model.tokenizer.all_special_ids)
    size = min(len(setup.model.tokenizer), embeddings(setup.model))
    return [index for index in range(size) if index not in special]
