"""A batch of inputs with everything that metrics know about its tokens besides attention.

The pairs that stay after the null filter:

pairs, causal (token 0 is null)      pairs, bidirectional ([CLS] … [SEP] are null)

  key  0 1 2 3                         key  0 1 2 3
q 0    · · · ·                       q 0    · · · ·
  1    · x · ·                         1    · x x ·
  2    · x x ·                         2    · x x ·
  3    · x x x                         3    · · · ·

Inputs are made one by one as examples; those of a shard are flat arrays, from which a batch is cut
without a loop:

lengths  3 1 2        ids  a b c | d | e f         rows 0 and 2 as a rectangle   a b c
                                                                                 e f ·
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.model.attention import Packing, send
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.tokens import Tokens
from headscope.results.replicates import group_of
from headscope.text.sentence import Sentence

Made = TypeVar("Made")
FORMS = ("attender_is_parent", "receiver_is_parent", "either")
# The classes of keys of Clark et al. 2019, Fig. 2; a token's label "special" is its place here.
SPECIAL = ("cls", "sep", "punct")
PUNCTUATION = frozenset({".", ","})  # exactly these two, as in the paper


@dataclass(frozen=True)
class AnnotatedBatch:
    """Tokens of a batch: which are real, which are null, their labels, and the dependency arcs.

    A label is the place of a token's tag in the study's list of tags, -1 where it has none. An arc
    is a row (place in the batch, token of the parent, token of the dependent), one for every pair
    of their word pieces; None where the corpus has no trees.
    """

    numbers: Int[np.ndarray, "batch"]  # of every input in the corpus
    rows: Int[np.ndarray, "batch"]  # of every input among the inputs of its shard
    groups: Int[Tensor, "batch"]  # of the document of every input; see `results.replicates`
    mask: Bool[Tensor, "batch token"]
    null: Bool[Tensor, "batch token"]
    is_causal: bool
    labels: Mapping[str, Int[Tensor, "batch token"]] = field(default_factory=dict)
    arcs: Int[Tensor, "arc 3"] | None = None
    sentences: tuple[Sentence, ...] = ()  # of every input, where a study needs whole sentences
    first_peak_token: int = 0  # the first token that may be part of the largest weight of its input
    host: "AnnotatedBatch | None" = None  # the same in the memory of the host, if it is elsewhere

    @cached_property
    def content(self) -> Bool[Tensor, "batch token"]:
        """Tokens that are neither padding nor null."""
        return self.mask & ~self.null

    @cached_property
    def has_null(self) -> bool:
        """Whether any token is null."""
        return bool(self.null.any())

    @cached_property
    def null_is_first(self) -> bool:
        """Whether the first column of every input is its only null token."""
        first = torch.zeros_like(self.null)
        first[:, 0] = True
        return torch.equal(self.null, first)

    @cached_property
    def pairs(self) -> Bool[Tensor, "batch query key"]:
        """Pairs that stay after the null filter (Vig & Belinkov 2019, §5.2.3)."""
        return self.pairs_of(0, self.mask.shape[1])

    def pairs_of(self, start: int, stop: int) -> Bool[Tensor, "batch query key"]:
        """The rows of `pairs` that belong to some queries."""
        pairs = self.content[:, start:stop, None] & self.content[:, None, :]
        return pairs.tril(start) if self.is_causal else pairs

    def one_hot(self, label: str, size: int) -> Float[Tensor, "batch token label"]:
        """The label of every content token as a row of zeros and a one; computed once."""

        def make() -> Tensor:
            codes = self.labels[label].masked_fill(~self.content, -1)
            return (codes[..., None] == torch.arange(size, device=codes.device)).float()

        return self.once(f"{size} classes of {label}", make)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Compute a value for all layers on first use, and return it from then on."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def once_on_host(self, name: str, make: Callable[["AnnotatedBatch"], Made]) -> Made:
        """The same for values that the host computes; tensors are sent to the device of the batch.

        A number that the host asks of a GPU makes it wait until all work so far is done.
        """
        if self.host is None:
            return self.once(name, lambda: make(self))
        made = self.host.once_on_host(name, make)
        return self.once(name, lambda: _send(made, self.mask.device))

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}


def _send(made: Made, device: torch.device) -> Made:
    """Tensors, or tuples with tensors among them, on a device."""
    if isinstance(made, Tensor):
        return send(made, device)
    if not isinstance(made, tuple):
        return made
    parts = [_send(part, device) for part in made]
    return type(made)(*parts) if hasattr(made, "_fields") else type(made)(parts)


def packing_of(batch: AnnotatedBatch) -> Packing:
    """Where the tokens of a batch lie without padding."""
    return batch.once("packing", lambda: Packing.of(batch.mask))


# Counts of pairs, in time and memory linear in the length; the same as counts over `pairs`.


def pairs_of_queries(batch: AnnotatedBatch) -> Float[Tensor, "batch query"]:
    """How many pairs every query is part of; in a causal model it sees only earlier keys."""
    content = batch.content.double()
    visible = content.cumsum(1) if batch.is_causal else content.sum(1, keepdim=True)
    return content * visible


def sum_by_label(
    batch: AnnotatedBatch, label: str, size: int, values: Float[Tensor, "batch token"]
) -> Float[Tensor, "batch label"]:
    """The values of the content tokens of every input, added up by their label."""
    codes = batch.labels[label].masked_fill(~batch.content, -1)
    labelled = codes >= 0
    cells = torch.arange(len(codes), device=codes.device)[:, None] * size + codes
    sums = torch.bincount(cells[labelled], values[labelled], minlength=len(codes) * size)
    return sums.view(-1, size)


def related_pairs(batch: AnnotatedBatch) -> tuple[Int[Tensor, "pair 3"], Int[Tensor, "pair 3"]]:
    """Pairs (input, query, key) of the two directed forms of Eq. 4 that count."""
    return batch.once_on_host("related_pairs", _related_pairs)


def _related_pairs(batch: AnnotatedBatch) -> tuple[Tensor, Tensor]:
    if batch.arcs is None:
        none = torch.zeros(0, 3, dtype=torch.long, device=batch.mask.device)
        return none, none
    size = batch.mask.shape[1]
    arcs, content = each_once(batch.arcs, size), batch.content.flatten()
    row, parent, dependent = arcs.unbind(-1)
    count = content[row * size + parent] & content[row * size + dependent]
    turned = torch.stack([row, dependent, parent], dim=-1)
    if not batch.is_causal:
        return arcs[count], turned[count]
    return arcs[count & (dependent <= parent)], turned[count & (parent <= dependent)]


def each_once(arcs: Int[Tensor, "arc 3"], size: int) -> Int[Tensor, "some 3"]:
    """Every arc once, in order; compared as single numbers, far faster than row by row."""
    row, parent, dependent = arcs.unbind(-1)
    code = (row * size + parent) * size + dependent
    if bool((code[1:] > code[:-1]).all()):  # as those of one study already are
        return arcs
    code = code.unique()
    return torch.stack([code // size**2, code // size % size, code % size], dim=-1)


def count_related(batch: AnnotatedBatch) -> Float[Tensor, "batch form"]:
    """How many pairs of every input are related, in the two directed forms."""
    counts = [
        torch.bincount(pairs[:, 0], minlength=len(batch.rows)) for pairs in related_pairs(batch)
    ]
    return torch.stack(counts, dim=-1).double()


def count_by_separation(batch: AnnotatedBatch, longest: int) -> Float[Tensor, "batch separation"]:
    """How many pairs of two tokens of every input lie 0, 1 … `longest` apart, each pair once."""
    return batch.once(f"up to {longest} apart", partial(_count_by_separation, batch, longest))


def _count_by_separation(batch: AnnotatedBatch, longest: int) -> Tensor:
    """The correlation of the places of tokens with themselves: whole numbers, so exact."""
    content = batch.content.double()
    far = min(longest, content.shape[1] - 1)
    size = content.shape[1] + far
    counts = torch.fft.irfft(torch.fft.rfft(content, size).abs().square(), size)[:, : far + 1]
    counts = counts.round()
    counts[:, 0] = 0
    return pad(counts, (0, longest - far))


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
