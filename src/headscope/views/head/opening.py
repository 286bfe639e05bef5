"""What the head view opens with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headscope.views.head.state import HeadState
from headscope.views.opening import MOST_OF_LINES, head_to_open, telling_query, what_to_hide

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace


def open_head_view(stack: "StackTrace", asked: Mapping[str, Any], state: HeadState) -> HeadState:
    """A head worth a look, without the tokens that take most of its attention.

    More tokens than lines can join are shown as a text, shaded by what one telling word looks at.
    """
    worth = head_to_open(stack, asked)
    if worth is not None:
        state = replace(state, layer=worth.layer, head=worth.head, heads=(worth.head,))
    if "layout" not in asked and max(len(stack.queries), len(stack.keys)) > MOST_OF_LINES:
        state = replace(state, layout="text")
        if worth is not None and "pinned" not in asked:
            query = telling_query(stack, worth.layer, worth.head)
            state = replace(state, pinned=None if query is None else f"q{query}")
    layers = (state.layer,) if state.summary == "each" else state.layers
    return replace(state, hide=what_to_hide(stack, asked, state, layers, state.heads))
