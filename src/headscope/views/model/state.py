"""What the model view shows now."""

from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class ModelState(ViewState):
    """How the model view draws and orders heads, and whether one is large."""

    thumbnail: str = setting(
        "Draw heads as",
        "how a head is drawn small",
        default="matrix",
        choices={"matrix": "Matrix", "lines": "Lines"},
    )
    order: str = setting(
        "Order by", "number, or the score that heads are ordered by", default="number"
    )
    ascending: bool = setting("Ascending", "lowest score first", default=False)
    ranked: bool = setting(
        "Across layers", "order across layers instead of within each", default=False
    )
    enlarged: bool = setting("Enlarged", "one head is shown large", default=False)
