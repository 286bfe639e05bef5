"""A trace of weights from elsewhere: arrays with the tokens that they belong to."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.attention import Stack
from headscope.model.inputs.tokens import unmark
from headscope.model.trace import Side, StackTrace, Trace

Weights = Tensor | np.ndarray | Sequence[Tensor | np.ndarray]

# Weights from elsewhere may have been rounded to two bytes.
_TOLERANCE = 0.02


def trace_of_weights(
    weights: Weights,
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None,
    segments: Sequence[int] | None,
    special: Sequence[bool] | None,
    model: str,
) -> Trace:
    """Check the weights against the tokens and make them one stack."""
    keys = _side(tokens, segments, special)
    queries = keys if target_tokens is None else _side(target_tokens, None, None)
    layers = _layers(weights)
    for number, layer in enumerate(layers):
        _check(layer, number, layers[0].shape[0], queries, keys)
    causal = target_tokens is None and all(not layer.triu(1).any() for layer in layers)
    name: Stack = "self" if target_tokens is None else "cross"
    stack = StackTrace(
        name=name,
        layers=tuple(range(len(layers))),
        heads=tuple(range(layers[0].shape[0])),
        weights=dict(enumerate(layers)),
        queries=queries,
        keys=keys,
    )
    return Trace(
        model=model,
        stacks={name: stack},
        is_causal=causal,
        no_neurons="the weights were given without queries and keys",
    )


def _layers(weights: Weights) -> list[Float[Tensor, "head query key"]]:
    if isinstance(weights, Tensor | np.ndarray):
        tensor = _tensor(weights)
        if tensor.ndim not in (2, 3, 4):
            raise CaptureError(
                f"Attention weights of shape {tuple(tensor.shape)} cannot be read: give query × "
                "key, head × query × key, layer × head × query × key, or a sequence with one "
                "entry per layer."
            )
        return list(tensor) if tensor.ndim == 4 else [_layer(tensor, 0)]
    layers = [_layer(_tensor(entry), number) for number, entry in enumerate(weights)]
    if not layers:
        raise CaptureError("There are no attention weights: give at least one layer.")
    return layers


def _tensor(weights: Tensor | np.ndarray) -> Tensor:
    tensor = torch.as_tensor(weights)
    return tensor.detach().to("cpu", torch.float32)


def _layer(weights: Tensor, number: int) -> Float[Tensor, "head query key"]:
    if weights.ndim == 2:
        return weights[None]
    if weights.ndim == 3:
        return weights
    if weights.ndim == 4 and weights.shape[0] == 1:
        return weights[0]
    raise CaptureError(
        f"Layer {number} has attention weights of shape {tuple(weights.shape)}: give head × query "
        "× key, with a batch axis of 1 at most."
    )


def _check(weights: Tensor, number: int, heads: int, queries: Side, keys: Side) -> None:
    expected = (heads, len(queries), len(keys))
    if tuple(weights.shape) != expected:
        raise CaptureError(
            f"Layer {number} has attention weights of shape {tuple(weights.shape)}, but {heads} "
            f"heads, {len(queries)} looking and {len(keys)} looked-at tokens need {expected}."
        )
    if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
        raise CaptureError(f"Layer {number} has attention weights that are negative or not finite.")
    largest = float(weights.sum(-1).max())
    if largest > 1 + _TOLERANCE:
        raise CaptureError(
            f"Layer {number} has an attention row that sums to {largest:.4g}: rows sum to at most "
            "1 after the softmax; give weights, not scores."
        )


def _side(
    tokens: Sequence[str], segments: Sequence[int] | None, special: Sequence[bool] | None
) -> Side:
    """Every token counts as a word, for nothing tells where words begin."""
    shown = tuple(unmark(token) for token in tokens)
    for given, what in ((segments, "segments"), (special, "special")):
        if given is not None and len(given) != len(shown):
            raise CaptureError(f"There are {len(shown)} tokens but {len(given)} {what}.")
    starts = np.cumsum([0, *(len(token) + 1 for token in shown)])
    return Side(
        text=" ".join(shown),
        tokens=shown,
        special=tuple(special) if special is not None else (False,) * len(shown),
        segments=tuple(segments) if segments is not None else (0,) * len(shown),
        offsets=tuple((int(s), int(s) + len(t)) for s, t in zip(starts, shown, strict=False)),
        word_of_token=tuple(range(len(shown))),
        words=shown,
    )
