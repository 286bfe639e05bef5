"""What the neuron view opens with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.views.labels import label
from headscope.views.neuron.state import NeuronState
from headscope.views.opening import head_to_open
from headscope.views.weights import checked_weights

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace


def open_neuron_view(
    stack: "StackTrace", asked: Mapping[str, Any], state: NeuronState
) -> NeuronState:
    """A head worth a look, and the token whose attention tells most."""
    worth = head_to_open(stack, asked)
    if worth is not None:
        state = replace(state, layer=worth.layer, head=worth.head)
    query = telling_query(stack, state.layer, state.head)
    if "pinned" in asked or query is None:
        return state
    return replace(state, pinned=f"q{query}")


def telling_query(stack: "StackTrace", layer: int, head: int) -> int | None:
    """The word whose attention is sharpest on another word; None where there is no word."""
    weights = checked_weights(stack, layer)[stack.heads.index(head)].copy()
    content = np.array([_is_word(token) for token in stack.keys.labels])
    weights[:, ~content | np.array(stack.keys.special, bool)] = 0
    weights[:, 0] = 0
    if stack.queries.labels == stack.keys.labels:
        np.fill_diagonal(weights, 0)
    asking = np.array([_is_word(token) for token in stack.queries.labels])
    asking &= ~np.array(stack.queries.special, bool)
    sharpest = np.where(asking, weights.max(1, initial=0.0), 0.0)
    return int(sharpest.argmax()) if sharpest.any() else None


def _is_word(token: str) -> bool:
    return len(label(token)) > 2 and label(token).isalpha()
