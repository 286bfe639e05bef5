"""The inputs of a study: one by one as examples, and all of a shard as flat arrays.

A batch is cut out of the arrays without a loop:

lengths  3 1 2        ids  a b c | d | e f         rows 0 and 2 as a rectangle   a b c
                                                                                 e f ·
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.model.attention import send
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.tokens import Tokens
from headscope.observe.batch import AnnotatedBatch, packing_of
from headscope.results.replicates import group_of
from headscope.text.sentence import Sentence

NO_LABEL = -1
Arcs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Example:
    """One input: its tokens, which of them are null, their labels, and arcs between tokens."""

    number: int  # of the sentence in the corpus (the first one, if an input has several)
    tokens: Tokens
    null: Sequence[bool]
    labels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    arcs: Arcs | None = None  # (token of the parent, token of the dependent)
    sentence: Sentence | None = None  # where a metric needs all of it
    group: int | None = None  # of its document; by its number where it has none


@dataclass(frozen=True)
class Columns:
    """Tokens, labels and arcs of all inputs, one input after the other."""

    numbers: Int[np.ndarray, "input"]
    groups: Int[np.ndarray, "input"]
    lengths: Int[np.ndarray, "input"]
    ids: Int[np.ndarray, "token"]
    segments: Int[np.ndarray, "token"]
    null: Bool[np.ndarray, "token"]
    labels: Mapping[str, Int[np.ndarray, "token"]] = field(default_factory=dict)
    arcs: Int[np.ndarray, "arc 3"] | None = None  # input, token of the parent, of the dependent
    sentences: tuple[Sentence, ...] = ()
    first_peak_token: int = 0  # the first token of an input that may be part of its largest weight

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Columns":
        """Lay out some examples; the first one says which labels there are."""
        names = examples[0].labels if examples else {}
        with_arcs = bool(examples) and examples[0].arcs is not None
        return cls(
            numbers=np.array([example.number for example in examples], dtype=np.int64),
            groups=np.array([_group(example) for example in examples], dtype=np.int64),
            lengths=np.array([len(example.tokens) for example in examples], dtype=np.int64),
            ids=_flat([example.tokens.ids for example in examples]),
            segments=_flat([example.tokens.segments for example in examples]),
            null=_flat([example.null for example in examples]).astype(bool),
            labels={name: _flat([example.labels[name] for example in examples]) for name in names},
            arcs=_flat_arcs(examples) if with_arcs else None,
            sentences=tuple(
                example.sentence for example in examples if example.sentence is not None
            ),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Int[np.ndarray, "input"]:
        """Position of the first token of every input in the flat arrays."""
        return np.cumsum(self.lengths) - self.lengths

    def example(self, row: int, tokens: Tokens, sentence: Sentence) -> Example:
        """One input with its tokens in words."""
        start = int(self.starts[row])
        span, arcs = slice(start, start + int(self.lengths[row])), None
        if self.arcs is not None:
            arcs = [(parent, child) for _, parent, child in self._arcs_of(np.array([row])).tolist()]
        return Example(
            number=int(self.numbers[row]),
            tokens=tokens,
            null=self.null[span].tolist(),
            labels={name: codes[span].tolist() for name, codes in self.labels.items()},
            arcs=arcs,
            sentence=sentence,
            group=int(self.groups[row]),
        )

    def cut(self, rows: Sequence[int], *, pad: int, is_causal: bool) -> "Cut":
        """Make a batch of some inputs, padded on the right."""
        indices = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[indices]
        column = np.arange(lengths.max())
        mask = column < lengths[:, None]
        positions = np.where(mask, self.starts[indices][:, None] + column, 0)

        def rectangle(values: np.ndarray, fill: int) -> Tensor:
            return torch.from_numpy(np.where(mask, values[positions], fill))

        is_token = torch.from_numpy(mask)
        batch = Batch(
            ids=rectangle(self.ids, pad),
            mask=is_token,
            segments=rectangle(self.segments, 0),
            rows=tuple(rows),
            lengths=tuple(lengths.tolist()),
        )
        annotated = AnnotatedBatch(
            numbers=self.numbers[indices],
            rows=indices,
            groups=torch.from_numpy(self.groups[indices]),
            mask=is_token,
            null=rectangle(self.null, 0).bool(),
            is_causal=is_causal,
            labels={name: rectangle(codes, NO_LABEL) for name, codes in self.labels.items()},
            arcs=None if self.arcs is None else torch.from_numpy(self._arcs_of(indices)),
            sentences=tuple(self.sentences[row] for row in rows) if self.sentences else (),
            first_peak_token=self.first_peak_token,
        )
        return Cut(batch, annotated)

    @cached_property
    def _arc_starts(self) -> Int[np.ndarray, "input+1"]:
        assert self.arcs is not None
        return np.searchsorted(self.arcs[:, 0], np.arange(len(self) + 1))

    def _arcs_of(self, rows: Int[np.ndarray, "batch"]) -> Int[np.ndarray, "arc 3"]:
        """The arcs of some inputs, each with the row of its input in the batch."""
        assert self.arcs is not None
        first, counts = self._arc_starts[rows], np.diff(self._arc_starts)[rows]
        row = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = self.arcs[first[row] + within, 1:]
        return np.concatenate([row[:, None], pairs], axis=1)


@dataclass(frozen=True)
class Cut:
    """Some inputs as a batch, and what metrics know about its tokens."""

    batch: Batch
    annotated: AnnotatedBatch

    def to(self, device: torch.device) -> "Cut":
        """Copy both to a device."""
        if device.type == "cpu":
            return self
        batch, annotated = self.batch, self.annotated
        mask, arcs = send(batch.mask, device), annotated.arcs
        return Cut(
            replace(
                batch,
                ids=send(batch.ids, device),
                mask=mask,
                segments=send(batch.segments, device),
                packing=packing_of(annotated).to(device),
            ),
            replace(
                annotated,
                groups=send(annotated.groups, device),
                mask=mask,
                null=send(annotated.null, device),
                labels={name: send(codes, device) for name, codes in annotated.labels.items()},
                arcs=None if arcs is None else send(arcs, device),
                host=annotated,
            ),
        )


class Examples(Sequence[Example]):
    """Examples that are made on access; the columns hold all inputs."""

    def __init__(self, columns: Columns, make: Callable[[int], Example]) -> None:
        self.columns = columns
        self._make = make

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> list[Example]: ...

    def __getitem__(self, row: int | slice) -> Example | list[Example]:
        """Make the example of a row, or the examples of a slice."""
        if isinstance(row, slice):
            return [*map(self._make, range(len(self))[row])]
        return self._make(range(len(self))[row])


def _group(example: Example) -> int:
    return group_of(str(example.number)) if example.group is None else example.group


def _flat(rows: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> Int[np.ndarray, "token"]:
    if not rows:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])


def _flat_arcs(examples: Sequence[Example]) -> Int[np.ndarray, "arc 3"]:
    arcs = list(_arcs(examples))
    return np.array(arcs, dtype=np.int64).reshape(-1, 3)


def _arcs(examples: Sequence[Example]) -> Iterator[tuple[int, int, int]]:
    for row, example in enumerate(examples):
        for parent, dependent in example.arcs or ():
            yield row, parent, dependent
