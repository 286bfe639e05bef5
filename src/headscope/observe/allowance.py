"""How many tokens a batch may have: half as many each time that the memory runs out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from headscope.errors import ModelError
from headscope.model.loading.memory import is_out_of_memory

log = logging.getLogger("headscope")
Result = TypeVar("Result")

_lowered: dict[str, int] = {}  # by model: what has proved too much once is not tried again


@dataclass(frozen=True)
class Allowance:
    """A number of tokens per batch that is halved until the work fits into memory."""

    model: str
    tokens: int

    def use(self, work: Callable[[int], Result]) -> Result:
        """Do the work with as many tokens per batch as fit; from the start after each halving."""
        tokens = min(self.tokens, _lowered.get(self.model, self.tokens))
        while True:
            try:
                return work(tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if tokens <= 1:
                    raise ModelError(
                        f"{self.model} does not fit into the memory of the device even with one "
                        "input at a time; use a smaller model, fewer bits "
                        "(--dtype, --quantization), several devices (--device-map) or the CPU."
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
