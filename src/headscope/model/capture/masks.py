"""Masks of eager attention that are made a few query rows at a time.

A network builds its mask once per forward pass, tokens × tokens, before any layer runs. While masks
are deferred it gets a recipe instead and hands that from layer to layer; the attention of a block
of rows then makes the rows it needs. Families that compute with their masks fail on a recipe, which
the proof of `headscope.model.capture.modes` notices.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Any, Literal

from torch import Tensor
from transformers.masking_utils import (
    AttentionMaskInterface,
    bidirectional_mask_function,
    causal_mask_function,
)

Kind = Literal["causal", "full"]

_deferred: ContextVar[bool] = ContextVar("headscope_masks_deferred", default=False)
_installed: set[type[AttentionMaskInterface]] = set()
_install_lock = Lock()


@dataclass(frozen=True)
class DeferredMask:
    """How an additive mask is made, and of what."""

    make: Callable[..., Tensor]
    given: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"DeferredMask({self.given['q_length']} × {self.given['kv_length']}, {self.kind})"

    @property
    def kind(self) -> Kind | None:
        """What the mask is besides padding; None for a pattern such as a sliding window."""
        kinds: dict[Any, Kind] = {
            causal_mask_function: "causal",
            bidirectional_mask_function: "full",
        }
        square = self.given["q_length"] == self.given["kv_length"]
        return kinds.get(self.given.get("mask_function")) if square else None

    def rows(self, start: int, stop: int) -> Tensor:
        """The mask of some queries: batch × 1 × query × key, zero where they may look."""
        offset = self.given.get("q_offset", 0) + start
        return self.make(**{**self.given, "q_length": stop - start, "q_offset": offset})


@contextmanager
def deferring() -> Iterator[None]:
    """Hand out recipes instead of masks in this context."""
    _install()
    token = _deferred.set(True)
    try:
        yield
    finally:
        _deferred.reset(token)


def _install() -> None:
    with _install_lock:
        if AttentionMaskInterface not in _installed:
            eager = AttentionMaskInterface()["eager"]
            AttentionMaskInterface.register("eager", _deferrable(eager))
            _installed.add(AttentionMaskInterface)


def _deferrable(make: Callable[..., Tensor | None]) -> Callable[..., Any]:
    @wraps(make)
    def mask(*args: Any, **given: Any) -> Tensor | DeferredMask | None:
        if args or not _deferred.get():
            return make(*args, **given)
        # One row tells whether there is anything to mask at all.
        some = make(**{**given, "q_length": 1})
        return None if some is None else DeferredMask(make, given)  # pyright: ignore[reportArgumentType]

    return mask


def rows_of(mask: Any, start: int, stop: int) -> Tensor | None:
    """The rows of a mask, however it came; a mask with one row for all queries stays as it is."""
    if isinstance(mask, DeferredMask):
        return mask.rows(start, stop)
    if mask is None or mask.ndim < 4 or mask.shape[-2] == 1:
        return mask
    return mask[..., start:stop, :]
