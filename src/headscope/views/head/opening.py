"""What the head view opens with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headscope.views.head.state import HeadState
from headscope.views.opening import head_to_open, what_to_hide

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace


def open_head_view(stack: "StackTrace", asked: Mapping[str, Any], state: HeadState) -> HeadState:
    """A head worth a look, without the tokens that take most of its attention."""
    worth = head_to_open(stack, asked)
    if worth is not None:
        state = replace(state, layer=worth.layer, head=worth.head, heads=(worth.head,))
    layers = (state.layer,) if state.summary == "each" else state.layers
    return replace(state, hide=what_to_hide(stack, asked, state, layers, state.heads))
