"""Examples of a head as they are shown: an input, and the pair of tokens that stands out in it.

A pair is of a kind that a head may be known for: attention to a tag, to a relation, over a
distance. The strongest pairs of a kind are a query on the weights that the run keeps of the head's
examples:

```
any              the inputs in which the head is surest, and their surest pair
tag DET          of the same inputs the surest pair whose key is a determiner
relation nsubj   … whose key is a subject
distance 2–3     … whose tokens are two or three apart
```
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.dataset import read_attribute
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    REMEDY,
    TOP_BAND,
    BandExample,
    KeptInput,
    Records,
)

ANY = "any"
TAG, RELATION, DISTANCE = "tag", "relation", "distance"
DISTANCES = ((1, 1), (2, 3), (4, 7), (8, 15), (16, None))  # tokens apart, both ends included
STRONGEST = 3  # pairs of a kind that are shown


@dataclass(frozen=True)
class Exemplar:
    """An input, and the weight between two of its tokens."""

    rank: int  # among the pairs of its kind
    weight: float
    query: int
    key: int
    input: KeptInput

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.input.tokens

    @property
    def text(self) -> str:
        return self.input.text


def marks_word_pieces(result: xr.Dataset) -> bool:
    """Whether the run's tokenizer leaves out spaces and marks what goes on with a word by "##"."""
    return result.attrs.get("word_pieces") == "##"


def tag_kind(tag: str) -> str:
    """The name of the pairs whose key has the tag."""
    return f"{TAG} {tag}"


def relation_kind(relation: str) -> str:
    """The name of the pairs whose key has the relation."""
    return f"{RELATION} {relation}"


def distance_kind(tokens: float) -> str:
    """The name of the pairs at about that distance in tokens."""
    apart = max(1, round(tokens))
    low, high = next(ends for ends in DISTANCES if ends[1] is None or apart <= ends[1])
    far = f"{low} or more" if high is None else str(low) if low == high else f"{low}–{high}"
    return f"{DISTANCE} {far}"


def has_bands(result: xr.Dataset) -> bool:
    """Whether a run keeps inputs of every band of the largest weight, not only the very top."""
    return "example_input" in result and result.sizes["band"] > 1


def counts_itself(result: xr.Dataset) -> bool:
    """Whether a token's attention to itself may be a pair of an exemplar."""
    return bool(read_attribute(result, "options").get("self_exemplars", False))


def exemplars_of(
    records: Records, head: Head, kind: str = ANY, *, with_self: bool = False
) -> list[Exemplar]:
    """The strongest pairs of a kind in the head's top inputs, the strongest first.

    Of any kind each input has one, and the pair is that of its largest weight.
    """
    examples = [example for example in records.examples(*head) if example.band == TOP_BAND]
    inputs = records.inputs(example.input for example in examples)
    pairs: list[tuple[float, int, int, KeptInput]] = []
    for example in examples:
        shown = inputs[example.input]
        _check_places(example, shown)
        pair = _surest(example) if kind == ANY else _of_kind(example, shown, kind, with_self)
        if pair is not None:
            pairs.append((*pair, shown))
    if kind != ANY:
        pairs = sorted(pairs, key=lambda pair: -pair[0])[:STRONGEST]
    return [Exemplar(rank, *pair) for rank, pair in enumerate(pairs)]


def _surest(example: BandExample) -> tuple[float, int, int] | None:
    if example.attending is None or example.attended is None:  # as in runs of older versions
        return None
    return example.peak, example.attending, example.attended


def _of_kind(
    example: BandExample, shown: KeptInput, kind: str, with_self: bool
) -> tuple[float, int, int] | None:
    """Weight, query and key of the strongest pair; of equal ones the first."""
    query, key = np.array(example.query, dtype=int), np.array(example.key, dtype=int)
    weight = np.array(example.weight)
    is_null = np.zeros(len(shown.tokens), dtype=bool)
    is_null[list(shown.null)] = True
    counts = ~is_null[query] & ~is_null[key] & (weight > 0)
    if not with_self:
        counts &= query != key
    what, _, name = kind.partition(" ")
    if what == DISTANCE:
        far = (q != k and distance_kind(abs(q - k)) == kind for q, k in _pairs(example))
        counts &= np.fromiter(far, dtype=bool)
    else:
        labels = shown.tags if what == TAG else shown.relations
        counts &= np.fromiter((bool(labels) and labels[k] == name for k in example.key), dtype=bool)
    if not counts.any():
        return None
    place = min(np.flatnonzero(counts).tolist(), key=lambda p: (-weight[p], query[p], key[p]))
    return float(weight[place]), int(query[place]), int(key[place])


def _pairs(example: BandExample) -> Iterator[tuple[int, int]]:
    return zip(example.query, example.key, strict=True)


def _check_places(example: BandExample, shown: KeptInput) -> None:
    """The two files may be of a stranger: what one names must be in the other."""
    marked = [place for place in (example.attending, example.attended) if place is not None]
    if max((*example.query, *example.key, *marked), default=0) >= len(shown.tokens):
        raise RunError(
            f"{EXAMPLES} cannot be read (a token of it is behind the end of the input); {REMEDY}."
        )
    if max(shown.null, default=0) >= len(shown.tokens):
        raise RunError(
            f"{INPUTS} cannot be read (a token of it is behind the end of the input); {REMEDY}."
        )
