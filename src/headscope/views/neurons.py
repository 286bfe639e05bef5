"""One weight taken apart: query × key, summed, scaled, capped, biased, through the softmax."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import ViewError
from headscope.views.state import parse_pin
from headscope.views.weights import array_of

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace


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


def pinned_query(stack: "StackTrace", pinned: str | None) -> int:
    """The pinned query token, or the last one that is not special."""
    if pinned is not None and pinned.startswith("q"):
        return parse_pin(pinned)[1][0]
    plain = [token for token, special in enumerate(stack.queries.special) if not special]
    return plain[-1] if plain else 0


def _bias(stack: "StackTrace", layer: int, place: int) -> np.ndarray | None:
    if stack.bias is None or layer not in stack.bias:
        return None
    heads, shape = len(stack.heads), (len(stack.queries.tokens), len(stack.keys.tokens))
    whole = np.broadcast_to(array_of(stack.bias, layer).astype(np.float64), (heads, *shape))
    return whole[place]


def _softmax(scores: np.ndarray, sink: float | None) -> tuple[np.ndarray, float]:
    logits = scores if sink is None else np.append(scores, sink)
    largest = logits.max()
    powers = np.exp(logits - largest)
    weights = powers / powers.sum()
    return (weights, 0.0) if sink is None else (weights[:-1], float(weights[-1]))
