"""What the model view opens with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headscope.views.model.state import ModelState
from headscope.views.opening import head_to_open, what_to_hide

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace


def open_model_view(stack: "StackTrace", asked: Mapping[str, Any], state: ModelState) -> ModelState:
    """All heads, and where the caller asked for nothing, one worth a look in large."""
    worth = head_to_open(stack, asked)
    enlarged = state.summary != "each"
    if worth is not None:
        enlarged = not asked.keys() - {"stack", "theme"}
        state = replace(state, layer=worth.layer, head=worth.head)
    state = replace(state, enlarged=asked.get("enlarged", enlarged))
    hidden = what_to_hide(stack, asked, state, state.layers, state.heads)
    if state.enlarged and not hidden:
        hidden = what_to_hide(stack, asked, state, (state.layer,), (state.head,))
    return replace(state, hide=hidden)
