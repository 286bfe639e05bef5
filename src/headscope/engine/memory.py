"""How many tokens a batch may have: what fits, and half of it when the memory runs out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch

from headscope.errors import ModelError

if TYPE_CHECKING:
    from headscope.model.model import Model

log = logging.getLogger("headscope")
Found = TypeVar("Found")

CPU_TOKENS = 1024  # a layer's weights then stay in the cache of a CPU core
# On a GPU: with fewer tokens it waits for Python to launch the next operation, and seen on an H200
# also with 65,536. More than MOST would make the shards too large that batches are cut from.
LEAST, MOST = 1024, 131072
SENTENCE = 64  # tokens; the square of it is what a query's row costs at most in a usual corpus
SHARE = 0.25  # of the free memory; the rest is for the network's own activations and fragments

_lowered: dict[str, int] = {}  # by model: what has proved too much once is not tried again


@dataclass(frozen=True)
class Allowance:
    """A number of tokens per batch that is halved until the work fits into memory."""

    model: str
    tokens: int

    def use(self, work: Callable[[int], Found]) -> Found:
        """Do the work with as many tokens per batch as fit; from the start after each halving."""
        tokens = min(self.tokens, _lowered.get(self.model, self.tokens))
        while True:
            try:
                return work(tokens)
            except torch.OutOfMemoryError as error:
                if tokens <= 1:
                    raise ModelError(
                        f"{self.model} does not fit into the memory of the device even with one "
                        "input at a time; use a smaller model, a two-byte dtype or the CPU."
                    ) from error
                tokens //= 2
                _say_once(self.model, tokens)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def _say_once(model: str, tokens: int) -> None:
    if model not in _lowered:
        log.warning(
            "The memory of the device ran out: batches of %s are halved to %d tokens, and again if "
            "need be. Results do not change; --batch-tokens sets another number.",
            model,
            tokens,
        )
    _lowered[model] = tokens


def default_batch_tokens(model: "Model") -> int:
    """As many tokens per batch as the free memory of the device allows."""
    if model.device.type != "cuda":
        return CPU_TOKENS
    free, _ = torch.cuda.mem_get_info(model.device)
    return fitting_tokens(free, heads=model.heads, width=_width(model))


def fitting_tokens(free: int, *, heads: int, width: int) -> int:
    """A power of two of tokens whose activations and weights fit into a share of so many bytes.

    A token has a row of weights in every head, of which about ten copies live at once, and some
    thirty vectors of the network's width, all of four bytes.
    """
    each = 4 * (10 * heads * SENTENCE + 30 * width)
    tokens = max(LEAST, min(MOST, int(SHARE * free) // each))
    return 1 << (tokens.bit_length() - 1)


def _width(model: "Model") -> int:
    return model.network.config.get_text_config().hidden_size
