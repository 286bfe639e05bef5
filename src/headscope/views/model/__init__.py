"""The model view: every layer and head as a thumbnail."""

from headscope.views.kind import ViewKind
from headscope.views.model.state import ModelState

MODEL = ViewKind(
    name="model",
    state=ModelState,
    open="headscope.views.model.opening:open_model_view",
    figure="headscope.views.model.figure:draw",
    parts=frozenset({"norms", "rollout", "tiles", "scores"}),
    shows_all_layers=True,
)
