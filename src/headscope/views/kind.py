"""What a kind of view is: its settings, how it opens, what travels to the page, how it prints."""

from dataclasses import dataclass
from typing import Literal

from headscope.views.state import ViewState, settings_of

Part = Literal["norms", "rollout", "tiles", "scores", "neurons"]  # of a payload, beside the weights


@dataclass(frozen=True)
class ViewKind:
    """A kind of view, declared in a folder of its own.

    `open` and `figure` name a function as module:function, which is imported on first use: listing
    the kinds costs nothing. `open` gets a stack, the settings that the caller asked for and the
    state with them, and returns the state with what is best seen at first. `figure` gets a trace, a
    state and scores to order heads by, and returns a figure of matplotlib. The module `view.js` of
    its scripts exports NAMEView, which makes the view of a page.
    """

    name: str
    state: type[ViewState]
    open: str
    figure: str
    parts: frozenset[Part]
    without: frozenset[str] = frozenset()  # settings of every state that mean nothing in this view
    shows_all_layers: bool = False  # at once
    scripts: str | None = None  # a package that has them, where they are not in static/kinds/NAME

    @property
    def settings(self) -> list[str]:
        """The names of its settings."""
        return [name for name in settings_of(self.state) if name not in self.without]

    def heads_in_sight(self, state: ViewState) -> tuple[int, ...]:
        """The heads whose lines are drawn: one that is enlarged or taken apart, or the chosen."""
        return (state.head,) if "head" in self.settings else state.heads
