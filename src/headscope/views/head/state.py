"""What the head view shows now."""

from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class HeadState(ViewState):
    """How the tokens of the head view lie."""

    layout: str = setting(
        "Layout",
        "lines between two columns of tokens, or a text that is shaded by the attention it gets",
        default="lines",
        choices={"lines": "Lines", "text": "Text"},
    )
