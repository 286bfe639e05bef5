"""The head view: lines from token to token, one colour per head."""

from headscope.views.head.state import HeadState
from headscope.views.kind import ViewKind

HEAD = ViewKind(
    name="head",
    state=HeadState,
    open="headscope.views.head.opening:open_head_view",
    figure="headscope.views.head.figure:draw",
    parts=frozenset({"norms", "rollout", "tiles"}),
    without=frozenset({"head"}),
)
