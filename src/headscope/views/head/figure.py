"""The head view on paper: lines from token to token, or a text shaded by the attention it gets."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath

from headscope.head import name_within_layer
from headscope.model.inputs.spans import Span
from headscope.theme import GROUPS, HEADS, PRINT_FAINT, PRINT_INK, PRINT_RULE, head_color
from headscope.views.caveats import caveats
from headscope.views.figures import points
from headscope.views.figures.captions import add_caption
from headscope.views.figures.curves import draw_curves
from headscope.views.labels import gaps, label, short
from headscope.views.lines import (
    Drawing,
    Lines,
    Units,
    attention_on_text,
    curves,
    drawing,
    lines,
    opacity,
    span_runs,
    strongest,
)
from headscope.views.state import chosen_stack, parse_pin, picture_name, shown_layers, span
from headscope.views.weights import reference, shown_weights
from headscope.views.window import spans
from headscope.wording import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.model.trace import StackTrace, Trace
    from headscope.views.head.state import HeadState
    from headscope.views.payload import Scores

_PITCH = 0.17  # inches from token to token
_SPAN = 2.2  # inches between the two columns of tokens
_LABEL = 1.4  # inches for the tokens of each side
_LETTERS = 15  # of a title, to the inch
MOST_LINES = 12_000  # as on screen; more is fog
_WIDE, _MARGIN, _LINE, _TOP = 6.2, 0.15, 0.2, 0.55  # inches
_STRONGEST = 0.75  # opacity of the shade of the largest weight: the word on it must stay readable


def draw(trace: "Trace", state: "HeadState", _: "Scores | None") -> Figure:
    """Lines from the attending to the attended tokens of one layer."""
    stack = chosen_stack(trace, state.stack)
    heads, weights = shown_weights(stack, state, state.heads)
    picture = drawing(weights, stack, state)
    if state.layout == "text":
        return draw_text(trace, stack, state, picture)
    count = max(len(picture.queries.labels), len(picture.keys.labels))
    wide, tall = _SPAN + 2 * _LABEL, max(2.4, (count + 3) * _PITCH)
    figure = Figure(figsize=(wide, tall))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set(xlim=(0, wide), ylim=(tall, 0))
    found = _only(lines(picture, state.mass), picture, state.pinned)
    shown = strongest(found, MOST_LINES)
    sharing = len(heads) if state.pinned is None else 1
    _draw_lines(axes, shown, heads, reference(state.weights, weights), sharing)
    for units, is_query in ((picture.queries, True), (picture.keys, False)):
        _draw_side(axes, units, np.any(picture.shown, axis=int(is_query)), is_query)
    if state.unit != "span":
        same = stack.queries.labels == stack.keys.labels
        _draw_spans(axes, picture.queries, state.spans if same else (), True)
        _draw_spans(axes, picture.keys, state.spans, False)
    prompt = None if stack.name == "encoder" else trace.prompt_length
    _draw_boundary(axes, prompt, picture, wide)
    _draw_title(figure, model_title(trace.model), heads, state)
    counts = (len(shown.weight), len(found.weight))
    add_caption(figure, caveats(state, picture.hidden, counts))
    return figure


def _only(all_lines: Lines, picture: Drawing, pinned: str | None) -> Lines:
    if pinned is None:
        return all_lines
    side, numbers = parse_pin(pinned)
    index = np.array(numbers) - (picture.queries if side == "q" else picture.keys).first
    return all_lines.take(np.isin(all_lines.query if side == "q" else all_lines.key, index))


def _draw_lines(axes: "Axes", shown: Lines, heads: list[int], most: float, sharing: int) -> None:
    shift = _shift(shown.head, len(heads) if sharing == 1 else 1)
    left = np.full(len(shown.query), _LABEL)
    starts = np.column_stack([left, _middle(shown.query) + shift])
    ends = np.column_stack([left + _SPAN, _middle(shown.key) + shift])
    paths = curves(starts, ends)
    colors = np.array([to_rgb(head_color(heads[place])) for place in shown.head]).reshape(-1, 3)
    draw_curves(axes, paths, colors, shown.weight / most, heads=sharing)


def _shift(places: np.ndarray, heads: int) -> np.ndarray:
    """Heads side by side across a token, so that lines of the same pair stay apart."""
    if heads < 2:
        return np.zeros(len(places))
    spread = min(0.6 * _PITCH, 0.02 * (heads - 1))
    return spread * (places / (heads - 1) - 0.5)


def _middle(index: np.ndarray) -> np.ndarray:
    return (index + 2.5) * _PITCH


def _draw_side(axes: "Axes", units: Units, kept: np.ndarray, is_query: bool) -> None:
    edge, side = (_LABEL - 0.08, "right") if is_query else (_LABEL + _SPAN + 0.08, "left")
    for index, text in enumerate(units.labels):
        style: dict[str, Any] = {"color": PRINT_INK if kept[index] else PRINT_RULE, "ha": side}
        axes.text(edge, float(_middle(np.array(index))), short(text), style, va="center")


def _draw_spans(axes: "Axes", units: Units, named: tuple[str, ...], is_query: bool) -> None:
    """A bar along the tokens of each span, and on the attending side its name."""
    edge = _LABEL - 0.04 if is_query else _LABEL + _SPAN + 0.04
    for first, end, number in span_runs(units, named):
        color = GROUPS.light[number % len(GROUPS.light)]
        ends = [(first + 2.05) * _PITCH, (end + 1.95) * _PITCH]
        axes.plot([edge, edge], ends, color=color, linewidth=1.8, solid_capstyle="butt")
        if is_query:
            style = {"color": color, "weight": "bold", "size": points(6)}
            name = short(label(Span.parse(named[number]).name), 14)
            axes.text(0.04, (first + 2.5) * _PITCH, name, style, va="center")


def _draw_boundary(axes: "Axes", prompt: int | None, picture: Drawing, wide: float) -> None:
    if prompt is None:
        return
    firsts = [picture.queries.start + group[0] for group in picture.queries.members]
    index = next((i for i, first in enumerate(firsts) if first >= prompt), None)
    if not index:
        return
    top = (index + 2.0) * _PITCH
    style: dict[str, Any] = {"linestyle": (0, (4, 3)), "zorder": 0}
    axes.plot([0, wide], [top, top], color=PRINT_RULE, linewidth=0.8, **style)


def _draw_title(figure: Figure, model: str, heads: list[int], state: "HeadState") -> None:
    """What is shown, and the heads in their colours."""
    wide, tall = figure.get_size_inches()
    line = 0.13 / tall
    layers = f" · {shown_layers(state)}"
    text = short(model, max(8, int(wide * _LETTERS) - len(layers))) + layers
    figure.text(0.5, 1 - line, text, ha="center", va="center", color=PRINT_FAINT)
    said = picture_name(state)
    if said is not None:
        figure.text(0.5, 1 - 2.2 * line, said, ha="center", va="center", color=PRINT_FAINT)
        return
    step = min(0.3 / wide, 0.9 / len(heads))
    for place, head in enumerate(heads):
        across = 0.5 + (place - (len(heads) - 1) / 2) * step
        style = {"color": head_color(head), "weight": "bold", "size": points(7)}
        name = name_within_layer(head)
        figure.text(across, 1 - 2.2 * line, name, style, ha="center", va="center")


def draw_text(trace: "Trace", stack: "StackTrace", state: "HeadState", picture: Drawing) -> Figure:
    """The text in lines; the darker a token, the more of the attention it gets."""
    prompt = None if stack.name == "encoder" else trace.prompt_length
    values = attention_on_text(picture, state.pinned, prompt)
    side = "q" if state.pinned is None else parse_pin(state.pinned)[0]
    window = spans(stack, state.window)[1 if side == "q" else 0]
    tokens = (stack.keys if side == "q" else stack.queries)[window]
    labels = [label(token) for token in tokens.labels]
    spaces = gaps(tokens.labels, tokens.text, tokens.offsets, word_pieces=trace.word_pieces)
    places, rows = _placed(labels, spaces)
    figure = Figure(figsize=(_WIDE, _TOP + rows * _LINE + _MARGIN))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDE), ylim=(_TOP + rows * _LINE + _MARGIN, 0))
    axes.axis("off")
    most = max(float(values.max(initial=0.0)), 1e-12)
    chosen = set(parse_pin(state.pinned)[1]) if state.pinned else set()
    for number, (text, value, (left, row, wide)) in enumerate(
        zip(labels, values, places, strict=True)
    ):
        top = _TOP + row * _LINE
        shade = to_rgba(HEADS.light[0], _STRONGEST * float(opacity(np.array(value / most))))
        axes.add_patch(Rectangle((left, top), wide, _LINE * 0.9, color=shade, linewidth=0))
        is_chosen = side == "q" and window.start + number in chosen and state.unit == "token"
        weight = "bold" if is_chosen else "normal"
        ink = PRINT_FAINT if tokens.special[number] else PRINT_INK
        axes.text(left, top + _LINE * 0.45, text, va="center", color=ink, weight=weight)
    _title(figure, trace, state, most)
    add_caption(figure, caveats(state, picture.hidden, None))
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


def _title(figure: Figure, trace: "Trace", state: "HeadState", most: float) -> None:
    tall = figure.get_size_inches()[1]
    heads = picture_name(state) or f"mean of heads {span(state.heads)}"
    said = f"{short(model_title(trace.model), 40)} · {shown_layers(state)} · {heads}"
    figure.text(_MARGIN / _WIDE, 1 - 0.17 / tall, said, va="center", color=PRINT_FAINT)
    figure.text(
        _MARGIN / _WIDE, 1 - 0.36 / tall, f"{_whose(trace, state)}; the darkest is {most:.3f}",
        va="center", color=PRINT_FAINT, fontsize=points(7),
    )  # fmt: skip


def _whose(trace: "Trace", state: "HeadState") -> str:
    if state.pinned is None:
        return f"what {'generated' if trace.prompt_length else 'all'} tokens look at, on average"
    side, numbers = parse_pin(state.pinned)
    those = "token" if len(numbers) == 1 else "tokens"
    name = f"{those} {span(numbers)}"
    return f"what {name} looks at" if side == "q" else f"what looks at {name}"
