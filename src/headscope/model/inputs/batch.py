"""Batches of encoded texts: bucketed by length under a token budget, padded on either side.

```
  lengths   2 3 3 7 8        budget 16 tokens
  buckets  [2 3 3] [7 8]     each bucket: texts × longest ≤ budget
```

A batch becomes the arguments of a network's forward; whether padding changes a text's attention is
proved on the probe, not assumed.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headscope.errors import ModelError
from headscope.model.attention import LayerAttention, Packing, is_close
from headscope.model.inputs.tokens import Tokens

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Several encoded texts as one rectangle of ids."""

    ids: Int[Tensor, "batch token"]
    mask: Bool[Tensor, "batch token"]  # True for tokens, False for padding
    segments: Int[Tensor, "batch token"]
    rows: tuple[int, ...]  # where each text stands in the caller's list
    lengths: tuple[int, ...]
    side: Side = "right"
    target: "Batch | None" = None  # what the decoder of an encoder–decoder model reads
    packing: Packing | None = None  # where the tokens lie without padding, if that is known

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target!r}"
        return f"Batch({len(self)} texts × {self.ids.shape[1]} tokens{target})"

    @property
    def is_padded(self) -> bool:
        """Whether any text is shorter than the rectangle."""
        return min(self.lengths) < self.ids.shape[1]

    def find_packing(self) -> Packing:
        """Where the tokens lie without padding."""
        return Packing.of(self.mask) if self.packing is None else self.packing

    def part(self, texts: slice | Int[Tensor, "some"]) -> "Batch":
        """Some of its texts, in a rectangle as wide; a text may come more than once."""
        numbers = range(len(self))[texts] if isinstance(texts, slice) else texts.tolist()
        return replace(
            self, ids=self.ids[texts], mask=self.mask[texts], segments=self.segments[texts],
            rows=tuple(self.rows[number] for number in numbers),
            lengths=tuple(self.lengths[number] for number in numbers), packing=None,
        )  # fmt: skip

    def spans(self) -> list[slice]:
        """The columns of every text."""
        return [*map(self.span, range(len(self)))]

    def span(self, row: int) -> slice:
        """The columns of one text without its padding."""
        length, width = self.lengths[row], self.ids.shape[1]
        return slice(0, length) if self.side == "right" else slice(width - length, width)


def buckets(lengths: Sequence[int], budget: int, *, equal: bool = False) -> list[list[int]]:
    """Indices grouped by similar length, so that texts × longest stays within the budget.

    A text longer than the budget is alone in its bucket. The same lengths give the same buckets.
    `equal` puts only texts of the same length together, for networks that cannot be padded.
    """
    if budget < 1:
        raise ModelError(f"The token budget of a batch must be positive, not {budget}.")
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # Lengths ascend, so the newcomer is the longest of its bucket.
        fits = groups and (len(groups[-1]) + 1) * lengths[index] <= budget
        if fits and not (equal and lengths[groups[-1][0]] != lengths[index]):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def make_batch(
    texts: Sequence[Tokens],
    rows: Sequence[int],
    *,
    pad: int,
    side: Side = "right",
    device: torch.device | str = "cpu",
) -> Batch:
    """Pad the chosen texts to one rectangle."""
    chosen = [texts[row] for row in rows]
    if not chosen:
        raise ModelError("A batch needs at least one text.")
    lengths = tuple(len(text) for text in chosen)
    ids = _rectangle([text.ids for text in chosen], pad, side).to(device)
    mask = _rectangle([(1,) * length for length in lengths], 0, side).bool().to(device)
    segments = _rectangle([text.segments for text in chosen], 0, side).to(device)
    return Batch(ids, mask, segments, tuple(rows), lengths, side)


def first_tokens(batch: Batch, lengths: Sequence[int], pad: int) -> Batch:
    """The first tokens of the only text of a batch, as several texts of these lengths."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    mask = mask.to(batch.ids.device)
    ids = torch.where(mask, batch.ids[:, : max(lengths)], pad)
    return Batch(ids, mask, torch.zeros_like(ids), tuple(range(len(lengths))), tuple(lengths))


def _rectangle(rows: Sequence[Sequence[int]], fill: int, side: Side) -> Int[Tensor, "batch token"]:
    width = max(len(row) for row in rows)
    missing = [[fill] * (width - len(row)) for row in rows]
    parts = zip(rows, missing, strict=True) if side == "right" else zip(missing, rows, strict=True)
    return torch.tensor([[*first, *then] for first, then in parts], dtype=torch.long)


@dataclass(frozen=True, slots=True)
class Entry:
    """The arguments that a network understands, found from its signature and configuration."""

    accepts: frozenset[str]
    segments: bool  # token_type_ids mean sentence A and B
    counts_padding: bool  # positions are counted from the padding id, as in RoBERTa

    @property
    def takes_positions(self) -> bool:
        """Whether the position of every token can be said."""
        return "position_ids" in self.accepts and not self.counts_padding


def entry(network: nn.Module, config: PreTrainedConfig) -> Entry:
    """Look at a network's forward."""
    accepts = frozenset(inspect.signature(network.forward).parameters)
    # GPT-2 adds a word embedding for each token_type_id, so acceptance alone means nothing.
    kinds = getattr(config, "type_vocab_size", 0) or 0
    segments = "token_type_ids" in accepts and (kinds > 1 or config.model_type == "xlnet")
    return Entry(accepts, segments, padding_position(network) is not None)


def arguments(entry: Entry, batch: Batch, *, end_to_end: bool = False) -> dict[str, Any]:
    """The keyword arguments of one forward pass over a batch, or over its texts end to end."""
    packing = batch.find_packing() if end_to_end else None
    ids, mask, segments = (
        each if packing is None else packing.pack(each)[None]
        for each in (batch.ids, batch.mask, batch.segments)
    )
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": mask.long(), "return_dict": True}
    if entry.segments:
        given["token_type_ids"] = segments
    if packing is not None:
        given["position_ids"] = packing.positions[None]
    elif batch.side == "left" and entry.takes_positions:
        # Position 0 for the first token of each text, wherever the padding is.
        given["position_ids"] = (batch.mask.long().cumsum(-1) - 1).clamp(min=0)
    for off in ("use_cache", "use_mems"):
        if off in entry.accepts:
            given[off] = False
    if batch.target is not None:
        given["decoder_input_ids"] = batch.target.ids
        given["decoder_attention_mask"] = batch.target.mask.long()
    return given


def padding_position(network: nn.Module) -> tuple[int, int] | None:
    """Rows and padding id of the position table of RoBERTa and its kin, which skips that id."""
    for name, module in network.named_modules():
        padding, table = getattr(module, "padding_idx", None), getattr(module, "weight", None)
        if "position" in name.rsplit(".", 1)[-1] and padding is not None and table is not None:
            return table.shape[0], padding
    return None


def max_positions(network: PreTrainedModel) -> int | None:
    """How many tokens the network has positions for, or None where positions are unbounded."""
    table = padding_position(network)
    if table is not None:
        rows, padding = table
        return rows - padding - 1
    text = network.config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        limit = getattr(text, name, None)
        if isinstance(limit, int) and limit > 0 and not _is_relative(text):
            return limit
    return None


def _is_relative(config: PreTrainedConfig) -> bool:
    """T5's buckets and ALiBi reach any distance: what the configuration says is no limit."""
    has_buckets = hasattr(config, "relative_attention_num_buckets")
    return has_buckets or bool(getattr(config, "alibi", False))


def vocabulary_size(network: PreTrainedModel) -> int:
    """How many token ids the network has embeddings for."""
    table = network.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    return table.shape[0]


def probe_batch(network: PreTrainedModel, count: int, device: torch.device) -> Batch:
    """One text of ordinary ids from the middle of the vocabulary, nothing of it masked.

    Special ids may change positions or masks.
    """
    config = network.config.get_text_config()
    size = vocabulary_size(network)
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
    special = {getattr(config, name, None) for name in names}
    ordinary = [i for i in range(size // 3, size) if i not in special][:count] or [size - 1]
    ids = torch.tensor([list(islice(cycle(ordinary), count))], device=device)  # few come again
    mask, segments = torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids)
    return Batch(ids, mask, segments, rows=(0,), lengths=(count,))


_PADDING = 2
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}

Show = Callable[[Batch, Callable[[LayerAttention], None]], object]


def can_pad(show: Show, probe: Batch, pad: int, side: Side) -> bool:
    """Whether the probe gets the same attention with padding beside it as without."""
    alone = _weights(show, probe)
    padded = _weights(show, _padded(probe, pad, side))
    slack = _TOLERANCE.get(alone[0].dtype, 2e-2)
    return all(is_close(a, b, slack) for a, b in zip(alone, padded, strict=True))


def _weights(show: Show, batch: Batch) -> list[Tensor]:
    """The weights of every layer without the padded rows and columns."""
    layers: list[Tensor] = []
    text = batch.span(0)
    whole = slice(None)

    def keep(seen: LayerAttention) -> None:
        queries = whole if seen.stack in ("decoder", "cross") else text
        keys = whole if seen.stack == "decoder" else text
        layers.append(seen.weights[0, :, queries, keys].clone())

    show(batch, keep)
    return layers


def _padded(batch: Batch, pad: int, side: Side) -> Batch:
    def beside(tensor: Tensor, fill: int) -> Tensor:
        more = torch.full_like(tensor[:, :_PADDING], fill)
        return torch.cat([more, tensor] if side == "left" else [tensor, more], 1)

    ids, mask, segments = beside(batch.ids, pad), beside(batch.mask, 0), beside(batch.segments, 0)
    return replace(batch, ids=ids, mask=mask, segments=segments, side=side)
