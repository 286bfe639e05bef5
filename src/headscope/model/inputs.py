"""What a network's forward takes, and how a batch becomes its arguments."""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headscope.model.batch import Batch


@dataclass(frozen=True, slots=True)
class Entry:
    """The arguments that a network understands, found from its signature and configuration."""

    accepts: frozenset[str]
    segments: bool  # token_type_ids mean sentence A and B
    counts_padding: bool  # positions are counted from the padding id, as in RoBERTa


def entry(network: nn.Module, config: PreTrainedConfig) -> Entry:
    """Look at a network's forward."""
    accepts = frozenset(inspect.signature(network.forward).parameters)
    return Entry(accepts, _has_segments(accepts, config), padding_position(network) is not None)


def arguments(entry: Entry, batch: Batch) -> dict[str, Any]:
    """The keyword arguments of one forward pass over a batch."""
    given: dict[str, Any] = {
        "input_ids": batch.ids,
        "attention_mask": batch.mask.long(),
        "return_dict": True,
    }
    if entry.segments:
        given["token_type_ids"] = batch.segments
    if batch.side == "left" and "position_ids" in entry.accepts and not entry.counts_padding:
        given["position_ids"] = positions(batch.mask)
    for off in ("use_cache", "use_mems"):
        if off in entry.accepts:
            given[off] = False
    if batch.target is not None:
        given["decoder_input_ids"] = batch.target.ids
        given["decoder_attention_mask"] = batch.target.mask.long()
    return given


def positions(mask: Bool[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
    """Position 0 for the first token of each text, wherever the padding is."""
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


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
    return hasattr(config, "relative_attention_num_buckets") or bool(
        getattr(config, "alibi", False)
    )


def _has_segments(accepts: frozenset[str], config: PreTrainedConfig) -> bool:
    """GPT-2 adds a word embedding for each token_type_id, so acceptance alone means nothing."""
    kinds = getattr(config, "type_vocab_size", 0) or 0
    return "token_type_ids" in accepts and (kinds > 1 or config.model_type == "xlnet")


def vocabulary_size(network: PreTrainedModel) -> int:
    """How many token ids the network has embeddings for."""
    table = network.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    return table.shape[0]


def probe_ids(network: PreTrainedModel, count: int) -> Int[Tensor, "1 token"]:
    """Ordinary ids from the middle of the vocabulary; special ids may change positions or masks."""
    config = network.config.get_text_config()
    size = vocabulary_size(network)
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
    special = {getattr(config, name, None) for name in names}
    ordinary = (i for i in range(size // 3, size) if i not in special)
    return torch.tensor([[next(ordinary) for _ in range(count)]])
