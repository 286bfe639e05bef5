"""A text shaded by the attention it gets, on paper."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rcParams
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath

from headscope.theme import HEADS, PRINT_FAINT, PRINT_INK
from headscope.views.figures.fonts import points
from headscope.views.labels import gaps, label, short
from headscope.views.lines import Drawing, attention_on_text, opacity
from headscope.views.state import parse_pin, picture_name, shown_layers, span
from headscope.views.window import cut, spans

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace
    from headscope.views.state import ViewState

_WIDE, _MARGIN, _LINE, _TOP = 6.2, 0.15, 0.2, 0.55  # inches
_STRONGEST = 0.75  # opacity of the shade of the largest weight: the word on it must stay readable


def draw_text(trace: "Trace", stack: "StackTrace", state: "ViewState", picture: Drawing) -> Figure:
    """The text in lines; the darker a token, the more of the attention it gets."""
    prompt = None if stack.name == "encoder" else trace.prompt_length
    values = attention_on_text(picture, state.pinned, prompt)
    side = "q" if state.pinned is None else parse_pin(state.pinned)[0]
    window = spans(stack, state.window)[1 if side == "q" else 0]
    tokens = cut(stack.keys if side == "q" else stack.queries, window)
    labels = [label(token) for token in tokens.tokens]
    places, rows = _placed(labels, gaps(tokens.tokens, tokens.text, tokens.offsets))
    figure = Figure(figsize=(_WIDE, _TOP + rows * _LINE + _MARGIN))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDE), ylim=(_TOP + rows * _LINE + _MARGIN, 0))
    axes.axis("off")
    most = max(float(values.max(initial=0.0)), 1e-12)
    chosen = set(parse_pin(state.pinned)[1]) if state.pinned else set()
    for number, (text, value, (left, row, width)) in enumerate(
        zip(labels, values, places, strict=True)
    ):
        top = _TOP + row * _LINE
        shade = to_rgba(HEADS.light[0], _STRONGEST * float(opacity(np.array(value / most))))
        axes.add_patch(Rectangle((left, top), width, _LINE * 0.9, color=shade, linewidth=0))
        is_chosen = side == "q" and window.start + number in chosen and state.unit == "token"
        weight = "bold" if is_chosen else "normal"
        ink = PRINT_FAINT if tokens.special[number] else PRINT_INK
        axes.text(left, top + _LINE * 0.45, text, va="center", color=ink, weight=weight)
    _title(figure, trace, state, most)
    return figure


def _placed(labels: list[str], before: list[int]) -> tuple[list[tuple[float, int, float]], int]:
    """Left edge, line and width of every token, in inches."""
    ruler, font = TextToPath(), FontProperties(family=rcParams["font.family"])
    font.set_size(rcParams["font.size"])
    space = 0.035
    left, row, places = _MARGIN, 0, []
    for number, (text, gap) in enumerate(zip(labels, before, strict=True)):
        width = ruler.get_text_width_height_descent(text, font, ismath=False)[0] / 72
        broken = number and (gap == 2 or labels[number - 1].endswith("⏎"))
        start = left + (space if gap == 1 else 0)
        if broken or start + width > _WIDE - _MARGIN:
            row, start = row + 1, _MARGIN
        places.append((start, row, width))
        left = start + width
    return places, row + 1


def _title(figure: Figure, trace: "Trace", state: "ViewState", most: float) -> None:
    tall = figure.get_size_inches()[1]
    heads = picture_name(state) or f"mean of heads {span(state.heads)}"
    said = f"{short(trace.model, 40)} · {shown_layers(state)} · {heads}"
    figure.text(_MARGIN / _WIDE, 1 - 0.17 / tall, said, va="center", color=PRINT_FAINT)
    figure.text(
        _MARGIN / _WIDE, 1 - 0.36 / tall, f"{_whose(trace, state)}; the darkest is {most:.3f}",
        va="center", color=PRINT_FAINT, fontsize=points(7),
    )  # fmt: skip


def _whose(trace: "Trace", state: "ViewState") -> str:
    if state.pinned is None:
        return f"what {'generated' if trace.prompt_length else 'all'} tokens look at, on average"
    side, numbers = parse_pin(state.pinned)
    those = "token" if len(numbers) == 1 else "tokens"
    name = f"{those} {span(numbers)}"
    return f"what {name} looks at" if side == "q" else f"what looks at {name}"
