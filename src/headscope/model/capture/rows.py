"""Attention in blocks of query rows: memory for block × keys instead of tokens × tokens.

Every body is independent from query to query, so the model's own function gives the same weights
and the same output whether it sees all queries at once or some of them.

Masks of eager attention that are made a few query rows at a time.

A network builds its mask once per forward pass, tokens × tokens, before any layer runs. While masks
are deferred it gets a recipe instead and hands that from layer to layer; the attention of a block
of rows then makes the rows it needs. Families that compute with their masks fail on a recipe, which
the proof of `headscope.model.capture.modes` notices.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import (
    AttentionMaskInterface,
    bidirectional_mask_function,
    causal_mask_function,
)

from headscope.model.attention import Forward, Kind, LayerAttention, Stack
from headscope.model.capture.backends import bind, run_with, setting
from headscope.model.capture.dense import Checks, Expectation, Observer, Progress, Validation
from headscope.model.capture.plan import Plan

_deferred: ContextVar[bool] = ContextVar("headscope_masks_deferred", default=False)
KEY_SIDE = {"key", "value"}


@dataclass(frozen=True, repr=False)
class DeferredMask:
    """How an additive mask is made, and of what."""

    make: Callable[..., Tensor]
    given: Mapping[str, Any]

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
    with setting(_deferred, True):
        yield


@cache
def _install() -> None:
    eager = unwrap(AttentionMaskInterface()["eager"])  # another thread may be doing the same
    AttentionMaskInterface.register("eager", _deferrable(eager))


def _deferrable(make: Callable[..., Tensor | None]) -> Callable[..., Any]:
    @wraps(make)
    def mask(*args: Any, **given: Any) -> Tensor | DeferredMask | None:
        if args or not _deferred.get():
            return make(*args, **given)
        deferred = DeferredMask(make, given)  # pyright: ignore[reportArgumentType]
        if deferred.kind == "causal":
            return deferred
        # One row tells whether there is anything to mask at all, but a GPU must be waited for.
        return None if make(**{**given, "q_length": 1}) is None else deferred

    return mask


def rows_of(mask: Any, start: int, stop: int) -> Tensor | None:
    """The rows of a mask, however it came; a mask with one row for all queries stays as it is."""
    if isinstance(mask, DeferredMask):
        return mask.rows(start, stop)
    if mask is None or mask.ndim < 4 or mask.shape[-2] == 1:
        return mask
    return mask[..., start:stop, :]


def capture_rows(
    forward: Forward,
    plan: Plan,
    observer: Observer,
    expected: Mapping[Stack, Expectation],
    block: int,
    validate: Validation = "full",
) -> Any:
    """Run the forward pass and show every layer `block` query rows at a time, in order."""
    progress, checks = Progress(plan, expected), Checks(validate)

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = bind(resolved, args, kwargs)
        slot, queries = progress.next(), given["query"].shape[2]
        home = next(iter(expected.values())).device

        def rows_of(start: int, stop: int) -> Tensor:
            return resolved(**cut(given, start, min(stop, queries)))[1].to(home)

        outputs: list[Tensor] = []
        for start in range(0, queries, block):
            stop = min(start + block, queries)
            output, weights = resolved(**cut(given, start, stop))[:2]
            outputs.append(output)
            if slot is None:
                continue
            weights = weights.to(home)  # a layer may be on a device of its own
            checks.see(weights, slot.layer, expected[slot.stack].of_rows(start, stop))
            checks.finish()
            observer(
                LayerAttention(
                    weights=weights,
                    stack=slot.stack,
                    layer=slot.layer,
                    query=given["query"][:, :, start:stop].to(home),
                    key=given["key"].to(home),
                    value=given["value"].to(home),
                    start=start,
                    rows_of=rows_of,
                    is_last=stop == queries,
                )
            )
        return torch.cat(outputs, dim=1), None

    output = run_with(forward, attend)
    progress.finish()
    return output


def cut(given: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    """The arguments of the attention function for some of the queries."""
    queries = given["query"].shape[2]
    return {name: _rows(name, value, queries, start, stop) for name, value in given.items()}


def _rows(name: str, value: Any, queries: int, start: int, stop: int) -> Any:
    if isinstance(value, DeferredMask):
        return value.rows(start, stop)
    by_query = isinstance(value, Tensor) and value.ndim == 4 and value.shape[2] == queries
    return rows_of(value, start, stop) if by_query and name not in KEY_SIDE else value
