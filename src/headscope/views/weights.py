"""The weights that a view shows: raw, norm-weighted or rolled out; and scores to order heads.

The neuron view takes one weight apart: query × key, summed, scaled, capped, biased, through the
softmax.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import ViewError
from headscope.views import window
from headscope.views.state import parse_pin

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace
    from headscope.views.state import ViewState


def checked_weights(stack: "StackTrace", layer: int) -> np.ndarray:
    """One layer's weights as numbers that can be drawn, or an error that says where they cannot."""
    weights = array_of(stack.weights, layer)
    expected = (len(stack.heads), len(stack.queries.labels), len(stack.keys.labels))
    if weights.shape != expected:
        raise ViewError(
            f"Layer {layer} has weights of shape {times(weights.shape)}, but its heads, query "
            f"tokens and key tokens make {times(expected)}; give the tokens of these weights."
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        head, query, key = (int(places[0]) for places in np.nonzero(wrong))
        raise ViewError(
            f"Layer {layer} head {stack.heads[head]} has the weight {weights[head, query, key]} "
            f"from token {query} to token {key}; attention weights are finite and not negative."
        )
    return weights


def array_of(parts: Mapping[int, Any], layer: int) -> np.ndarray:
    """One layer of a trace as a float32 array; a stored trace has it without torch."""
    read = getattr(parts, "array", None)
    return parts[layer].detach().cpu().float().numpy() if read is None else read(layer)


def times(shape: Iterable[int]) -> str:
    """A shape as people write it: 2 × 3."""
    return " × ".join(map(str, shape))


def chosen_weights(
    stack: "StackTrace", kind: str, layer: int, heads: Sequence[int]
) -> tuple[list[int], np.ndarray]:
    """The heads to draw and their (head, query, key) weights; rollout counts as one head."""
    if kind == "rollout":
        return [0], _rollout(stack, layer)
    weights = checked_weights(stack, layer)
    if kind == "norm":
        weights = weights * norm_factors(stack, layer)[:, None, :]
    return list(heads), weights[[stack.heads.index(head) for head in heads]]


def shown_weights(
    stack: "StackTrace", state: "ViewState", heads: Sequence[int]
) -> tuple[list[int], np.ndarray]:
    """What one picture shows: some heads of a layer, or the summary of the chosen ones as one."""
    if state.summary == "each" or state.weights == "rollout":
        return chosen_weights(stack, state.weights, state.layer, heads)
    parts = (chosen_weights(stack, state.weights, layer, state.heads)[1] for layer in state.layers)
    if state.summary == "max":
        return [0], functools.reduce(np.maximum, (part.max(0, initial=0.0) for part in parts))[None]
    total = functools.reduce(np.add, (part.sum(0, dtype=float) for part in parts))
    return [0], (total / max(1, len(state.layers) * len(state.heads)))[None]


def reference(kind: str, weights: np.ndarray) -> float:
    """The weight that is drawn fully opaque: 1, or the largest where weights are norms."""
    return max(float(weights.max(initial=0.0)), 1e-12) if kind == "norm" else 1.0


def no_rollout(stack: "StackTrace") -> str | None:
    """Why rollout cannot be computed, or None where it can."""
    if stack.name == "cross":
        return "Rollout follows one sequence through its layers; cross-attention joins two."
    if list(stack.layers) != list(range(len(stack.layers))):
        return "Rollout multiplies every layer from the first on; some were not captured."
    if window.is_long(stack):
        most = window.SPAN * window.TILE
        return f"Rollout multiplies whole layers; it is left out for more than {most} tokens."
    return None


def rollout(layers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Π ½(A + I) over the layers up to each one, heads averaged (Abnar & Zuidema 2020, Eq. 1–2).

    Rows are normalised first, so that mass a model gave to a learned sink does not leak away.
    """
    flow = np.eye(layers[0].shape[-1]) if layers else np.eye(0)
    flows = []
    for weights in layers:  # head query key
        flow = _mixed(weights.mean(0)) @ flow
        flows.append(flow)
    return flows


def head_scores(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of one layer's heads for this one text, from (head, query, key) weights."""
    return {
        "entropy": _entropy(weights),
        "distance": _distance(weights),
        "largest weight": weights.max((1, 2), initial=0.0),
        "first token": weights[:, :, 0].mean(1),
        "previous token": _diagonal(weights, -1),
        "same token": _diagonal(weights, 0),
        "next token": _diagonal(weights, 1),
    }


def _rollout(stack: "StackTrace", layer: int) -> np.ndarray:
    reason = no_rollout(stack)
    if reason is not None:
        raise ViewError(reason)
    below = [number for number in stack.layers if number <= layer]
    return rollout([checked_weights(stack, number) for number in below])[-1][None]


def norm_factors(stack: "StackTrace", layer: int) -> np.ndarray:
    """‖v_j W_O‖ of every head and key, by which a weight becomes a norm."""
    if stack.value_norms is None:
        raise ViewError(f"Norm-weighted attention is not available: {stack.no_norms}.")
    return array_of(stack.value_norms, layer).astype(np.float64)


def _mixed(average: np.ndarray) -> np.ndarray:
    totals = average.sum(-1, keepdims=True)
    rows = np.divide(average, totals, out=np.zeros_like(average), where=totals > 0)
    return 0.5 * rows + 0.5 * np.eye(len(average))


def _entropy(weights: np.ndarray) -> np.ndarray:
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(-1).mean(-1)


def _distance(weights: np.ndarray) -> np.ndarray:
    """Mean |query − key| weighted by attention (Vig & Belinkov 2019, Eq. 6)."""
    _, queries, keys = weights.shape
    gap = np.abs(np.arange(queries)[:, None] - np.arange(keys)[None, :])
    total = weights.sum((1, 2))
    return np.divide((weights * gap).sum((1, 2)), total, out=np.zeros_like(total), where=total > 0)


def _diagonal(weights: np.ndarray, offset: int) -> np.ndarray:
    diagonal = np.diagonal(weights, offset, axis1=1, axis2=2)
    return diagonal.sum(-1) / weights.shape[1]


@dataclass(frozen=True, slots=True)
class Neurons:
    """What one head of one layer computes its weights from."""

    query: np.ndarray  # query dim
    key: np.ndarray  # key dim
    scaling: float
    softcap: float | None
    bias: np.ndarray | None  # query key, −inf where masked
    sink: float | None


@dataclass(frozen=True, slots=True)
class Parts:
    """The way from one query token to its row of weights, step by step."""

    products: np.ndarray  # key dim
    dots: np.ndarray  # key: products summed
    scaled: np.ndarray  # key: times the scaling
    capped: np.ndarray  # key: after the soft-cap, where there is one
    scores: np.ndarray  # key: with mask and position bias, −inf where masked
    weights: np.ndarray  # key: after the softmax
    sink: float  # weight of the learned sink; 0 where the model has none


def require_neurons(trace: "Trace") -> None:
    """Refuse the neuron view where the model shows no query and key vectors."""
    if trace.no_neurons is not None:
        raise ViewError(f"The neuron view needs query and key vectors: {trace.no_neurons}")


def take_apart(neurons: Neurons, query: int) -> Parts:
    """Every step for one query token, in the order models apply them."""
    products = neurons.query[query] * neurons.key
    dots = products.sum(-1)
    scaled = dots * neurons.scaling
    capped = (
        scaled if neurons.softcap is None else neurons.softcap * np.tanh(scaled / neurons.softcap)
    )
    scores = capped if neurons.bias is None else capped + neurons.bias[query]
    weights, sink = _softmax(scores, neurons.sink)
    return Parts(products, dots, scaled, capped, scores, weights, sink)


def neurons_of(stack: "StackTrace", layer: int, head: int) -> Neurons:
    """The vectors of one head, the key head of its group already picked."""
    assert stack.query is not None and stack.key is not None and stack.scaling is not None
    place = stack.heads.index(head)
    return Neurons(
        query=array_of(stack.query, layer)[place].astype(np.float64),
        key=array_of(stack.key, layer)[stack.key_head_of[place]].astype(np.float64),
        scaling=stack.scaling[layer],
        softcap=stack.softcap,
        bias=_bias(stack, layer, place),
        sink=None if stack.sink is None else float(array_of(stack.sink, layer)[place]),
    )


def neuron_order(parts: Parts, order: str) -> np.ndarray:
    """Neurons by number, or by what each adds to the scores of the attended keys."""
    if order == "number":
        return np.arange(parts.products.shape[1])
    return np.argsort(-(parts.weights @ parts.products), kind="stable")


def key_order(parts: Parts, sort: str) -> np.ndarray:
    """Attended tokens as they stand in the text, or the strongest first."""
    if sort == "text":
        return np.arange(len(parts.scores))
    return np.argsort(-parts.scores, kind="stable")


def pinned_query(stack: "StackTrace", pinned: str | None) -> int:
    """The pinned query token, or the last one that is not special."""
    if pinned is not None and pinned.startswith("q"):
        return parse_pin(pinned)[1][0]
    plain = [token for token, special in enumerate(stack.queries.special) if not special]
    return plain[-1] if plain else 0


def _bias(stack: "StackTrace", layer: int, place: int) -> np.ndarray | None:
    if stack.bias is None or layer not in stack.bias:
        return None
    heads, shape = len(stack.heads), (len(stack.queries.labels), len(stack.keys.labels))
    whole = np.broadcast_to(array_of(stack.bias, layer).astype(np.float64), (heads, *shape))
    return whole[place]


def _softmax(scores: np.ndarray, sink: float | None) -> tuple[np.ndarray, float]:
    logits = scores if sink is None else np.append(scores, sink)
    largest = logits.max()
    powers = np.exp(logits - largest)
    weights = powers / powers.sum()
    return (weights, 0.0) if sink is None else (weights[:-1], float(weights[-1]))
