"""The views on paper: vector figures with real text, made without a browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from headscope.errors import ViewError
from headscope.views.payload import Scores
from headscope.views.state import Kind, ViewState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.model.trace import Trace

__all__ = ["figure", "save_figure"]

_DPI = 300
# Text stays text: searchable, and set in the fonts of the document it goes into.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8.0,
    "text.parse_math": False,  # a token may hold dollar signs
}


def figure(trace: "Trace", kind: Kind, state: ViewState, scores: Scores | None = None) -> "Figure":
    """One view as a matplotlib figure."""
    from headscope.views.figures.head import head_figure
    from headscope.views.figures.model import model_figure
    from headscope.views.figures.neuron import neuron_figure

    if kind == "head":
        return head_figure(trace, state)
    if kind == "model":
        return model_figure(trace, state, scores)
    return neuron_figure(trace, state)


def save_figure(
    trace: "Trace", kind: Kind, state: ViewState, scores: Scores | None, target: Path
) -> None:
    """Draw one view and write it; the ending decides the format."""
    from matplotlib import rc_context

    from headscope.views.figures.fonts import families

    texts = [
        text
        for stack in trace.stacks.values()
        for text in (*stack.queries.tokens, *stack.keys.tokens)
    ]
    chosen = families("".join(texts), embedded=target.suffix.lower() != ".svg")
    with rc_context({**_STYLE, "font.family": chosen}), catch_warnings():
        # `families` has said it already, in our words.
        filterwarnings("ignore", message="Glyph .* missing")
        drawn = figure(trace, kind, state, scores)
        try:
            drawn.savefig(target, dpi=_DPI, metadata=_metadata(target))
        except OSError as error:
            raise ViewError(f"{target} cannot be written: {error.strerror}.") from error


def _metadata(target: Path) -> dict[str, Any]:
    """Without a date, so that the same view gives the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower(), {})
