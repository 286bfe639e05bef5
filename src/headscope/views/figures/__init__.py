"""The views on paper: vector figures with real text, made without a browser."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from headscope.errors import ViewError
from headscope.views.payload import Scores
from headscope.views.state import Kind, ViewState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.model.trace import Trace

__all__ = ["figure", "rendered", "styled"]

# Where the user's rcParams are matplotlib's own: text stays text, searchable, and set in the fonts
# of the document it goes into.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8.0,
    "savefig.dpi": 300,
}


def figure(trace: "Trace", kind: Kind, state: ViewState, scores: Scores | None = None) -> "Figure":
    """One view as a matplotlib figure; a kind's drawing is `figures/KIND.py`."""
    drawing = import_module(f"headscope.views.figures.{kind}")
    return drawing.draw(trace, state, scores)


def rendered(
    trace: "Trace",
    draw: "Callable[[], Figure]",
    ending: str,
    *,
    width: float | None = None,
    font: str | None = None,
    size: float | None = None,
    dpi: float | None = None,
) -> bytes:
    """The file of a drawing; written to memory first, for a full disk must not leave half of it."""
    _check_positive(width=width, size=size, dpi=dpi)
    with styled(trace, ending, font, size):
        drawn = draw()
        if width is not None:
            _resize(drawn, width, scale_text=size is None)
        buffer = io.BytesIO()
        # Without a date, so that the same view gives the same file.
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
        drawn.savefig(buffer, format=ending[1:], dpi=dpi, metadata=undated)
    return buffer.getvalue()


@contextmanager
def styled(
    trace: "Trace", ending: str, font: str | None = None, size: float | None = None
) -> Iterator[None]:
    """Within it, matplotlib has the fonts that the tokens need, and the house's defaults."""
    from matplotlib import rc_context

    with rc_context(_style(trace, ending, font, size)), catch_warnings():
        # `families` has said it already, in our words.
        filterwarnings("ignore", message="Glyph .* missing")
        yield


def _style(trace: "Trace", ending: str, font: str | None, size: float | None) -> dict[Any, Any]:
    """rcParams: the options, else what the user changed, else ours."""
    from matplotlib import rcParams, rcParamsDefault

    from headscope.views.figures.fonts import check_font, families

    embedded = ending != ".svg"
    if font is not None and embedded:
        check_font(font)
    changed = {name for name in ("font.family", *_STYLE) if rcParams[name] != rcParamsDefault[name]}
    own = rcParams["font.family"] if "font.family" in changed else []
    tokens = [
        token
        for stack in trace.stacks.values()
        for token in (*stack.queries.tokens, *stack.keys.tokens)
    ]
    chosen = families("".join(tokens), embedded=embedded)
    style = {name: value for name, value in _STYLE.items() if name not in changed}
    style["font.family"] = [*([font] if font else own), *chosen]
    style |= {"text.parse_math": False, "text.usetex": False}  # a token may hold dollar signs
    return style if size is None else {**style, "font.size": size}


def _check_positive(**given: float | None) -> None:
    for name, value in given.items():
        if value is not None and not 0 < value < 10_000:
            raise ViewError(f"{name} is {value}; give a number above 0 and below 10,000.")


def _resize(drawn: "Figure", width: float, *, scale_text: bool) -> None:
    """Scale a figure to a width in inches, and its text with it, so that nothing overlaps."""
    from matplotlib.text import Text

    wide, tall = drawn.get_size_inches()
    drawn.set_size_inches(width, tall * width / wide)
    for text in drawn.findobj(Text) if scale_text else ():
        text.set_fontsize(float(text.get_fontsize()) * width / wide)
