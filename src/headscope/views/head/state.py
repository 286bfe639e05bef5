"""What the head view shows now."""

from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class HeadState(ViewState):
    """How the tokens of the head view lie."""

    direction: str = setting(
        "Layout",
        "tokens in columns, in rows, or as a text that is shaded by the attention it gets",
        default="vertical",
        choices={"vertical": "Vertical", "horizontal": "Horizontal", "text": "Text"},
    )
