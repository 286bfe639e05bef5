"""What the neuron view opens with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headscope.views.neuron.state import NeuronState
from headscope.views.opening import head_to_open, telling_query

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
