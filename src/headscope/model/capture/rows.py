"""Attention in blocks of query rows: memory for block × keys instead of tokens × tokens.

Every body is independent from query to query, so the model's own function gives the same weights
and the same output whether it sees all queries at once or some of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from headscope.model.attention import RowAttention, Stack
from headscope.model.capture.call import Forward
from headscope.model.capture.dense import Progress
from headscope.model.capture.interface import bind, run_with
from headscope.model.capture.masks import DeferredMask, rows_of
from headscope.model.capture.plan import Plan
from headscope.model.capture.validate import Expectation, Validation, check

RowObserver = Callable[[RowAttention], None]
KEY_SIDE = {"key", "value"}


def capture_rows(
    forward: Forward,
    plan: Plan,
    observer: RowObserver,
    expected: Mapping[Stack, Expectation],
    block: int,
    validate: Validation = "full",
) -> Any:
    """Run the forward pass and show every layer `block` query rows at a time, in order."""
    progress = Progress(plan, expected)

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = bind(resolved, args, kwargs)
        slot, queries = progress.next(), given["query"].shape[2]

        def look(start: int, stop: int) -> Tensor:
            return resolved(**cut(given, start, min(stop, queries)))[1]

        outputs: list[Tensor] = []
        for start in range(0, queries, block):
            stop = min(start + block, queries)
            output, weights = resolved(**cut(given, start, stop))[:2]
            outputs.append(output)
            if slot is not None:
                check(weights, slot.layer, expected[slot.stack].of_rows(start, stop), validate)
                observer(RowAttention(slot.stack, slot.layer, start, queries, weights, look))
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
