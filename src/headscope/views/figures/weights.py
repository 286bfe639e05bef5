"""Which weights a figure shows: raw, norm-weighted, or rollout."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import ViewError
from headscope.views.payload import checked_weights, no_rollout
from headscope.views.rollout import rollout

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace


def chosen_weights(
    stack: "StackTrace", kind: str, layer: int, heads: Sequence[int]
) -> tuple[list[int], np.ndarray]:
    """The heads to draw and their (head, query, key) weights; rollout counts as one head."""
    if kind == "rollout":
        return [0], _rollout(stack, layer)
    weights = checked_weights(stack, layer)
    if kind == "norm":
        weights = weights * _factors(stack, layer)[:, None, :]
    return list(heads), weights[[stack.heads.index(head) for head in heads]]


def reference(kind: str, weights: np.ndarray) -> float:
    """The weight that is drawn fully opaque: 1, or the largest where weights are norms."""
    return max(float(weights.max(initial=0.0)), 1e-12) if kind == "norm" else 1.0


def _rollout(stack: "StackTrace", layer: int) -> np.ndarray:
    reason = no_rollout(stack)
    if reason is not None:
        raise ViewError(reason)
    below = [number for number in stack.layers if number <= layer]
    return rollout([checked_weights(stack, number) for number in below])[-1][None]


def _factors(stack: "StackTrace", layer: int) -> np.ndarray:
    if stack.value_norms is None:
        raise ViewError(f"Norm-weighted attention is not available: {stack.no_norms}.")
    return stack.value_norms[layer].double().numpy()
