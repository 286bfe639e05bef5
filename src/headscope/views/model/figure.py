"""The model view on paper: a grid of small heads."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from headscope.errors import ViewError
from headscope.head import name_head, name_layer
from headscope.theme import PAPER, PRINT_FAINT, PRINT_RULE, ROLES, head_color
from headscope.views.caveats import caveats
from headscope.views.figures import points
from headscope.views.figures.captions import add_caption
from headscope.views.figures.curves import draw_curves
from headscope.views.lines import THUMBNAIL, binned, curves, drawing, lines, opacity
from headscope.views.payload import Scores, ordering_scores
from headscope.views.roles import Role, roles
from headscope.views.state import chosen_stack
from headscope.views.weights import chosen_weights, reference
from headscope.wording import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.model.trace import StackTrace, Trace
    from headscope.views.model.state import ModelState

_SIZE = 0.62  # inches of one thumbnail
_MOST_BINS = {"lines": 28, "matrix": 64}  # as on screen
_SEEN = 0.15  # opacity: fainter lines are hardly seen
_MOSTLY = 0.5  # of the attention: what is hidden is the reason that nothing is seen


def draw(trace: "Trace", state: "ModelState", scores: Scores | None) -> Figure:
    """Every chosen layer (rows) and head (columns), in the order of the state."""
    stack = chosen_stack(trace, state.stack)
    rows = _ordered_rows(stack, state, scores)
    columns = max(len(row) for row in rows)
    figure = Figure(
        figsize=(max(1.6, 0.2 + columns * (_SIZE + 0.08)), 0.55 + len(rows) * (_SIZE + 0.3))
    )
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    named = roles(stack)
    hidden = []
    for line, row in enumerate(rows):
        for column, (layer, head) in enumerate(row):
            role = None
            if state.weights != "rollout":
                role = named[stack.layers.index(layer)][stack.heads.index(head)]
            hidden.append(_thumbnail(grid[line, column], stack, state, layer, head, role))
    wide, tall = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.1 / wide,
        right=1 - 0.1 / wide,
        top=1 - 0.45 / tall,
        bottom=0.2 / tall,
        wspace=0.1,
        hspace=0.45,
    )
    title = model_title(trace.model)
    figure.text(0.5, 1 - 0.15 / tall, title, ha="center", va="center", color=PRINT_FAINT)
    lines_drawn = (0, 0) if state.thumbnail == "lines" else None
    add_caption(figure, caveats(state, float(np.mean(hidden or [0.0])), lines_drawn))
    return figure


def _ordered_rows(
    stack: "StackTrace", state: "ModelState", extra: Scores | None
) -> list[list[tuple[int, int]]]:
    heads = [0] if state.weights == "rollout" else list(state.heads)
    rows = [[(layer, head) for head in heads] for layer in state.layers]
    if state.order == "number" or state.weights == "rollout":
        return rows
    table = ordering_scores(stack, extra or {})
    if state.order not in table:
        raise ViewError(f"There is no score {state.order!r}; there are {', '.join(table)}.")
    score = {
        (layer, head): value
        for layer, values in zip(stack.layers, table[state.order], strict=True)
        for head, value in zip(stack.heads, values, strict=True)
    }
    if state.ranked:
        cells = _by_score([cell for row in rows for cell in row], score, state.ascending)
        return [cells[i : i + len(heads)] for i in range(0, len(cells), len(heads))]
    return [_by_score(row, score, state.ascending) for row in rows]


def _by_score(
    cells: list[tuple[int, int]], score: dict[tuple[int, int], float | None], ascending: bool
) -> list[tuple[int, int]]:
    sign = 1 if ascending else -1
    return sorted(cells, key=lambda cell: (score[cell] is None, sign * (score[cell] or 0)))


def _thumbnail(
    axes: "Axes", stack: "StackTrace", state: "ModelState", layer: int, head: int, role: Role | None
) -> float:
    """Draw one head; returns the share of its attention that goes to hidden tokens."""
    _, weights = chosen_weights(stack, state.weights, layer, [head])
    picture = drawing(weights, stack, state)
    _, everything = chosen_weights(stack, state.weights, layer, stack.heads)
    most = reference(state.weights, everything)
    axes.axis("on")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=PRINT_RULE, linewidth=0.6)
    name = name_layer(layer) if state.weights == "rollout" else name_head(layer, head)
    axes.set_title(name, fontsize=points(6), color=PRINT_FAINT, pad=2)
    color = head_color(0)
    if role is not None:
        color = ROLES[role.group].light if state.thumbnail == "matrix" else color
        axes.set_xlabel(fill(role.name, 14), fontsize=points(5), color=PRINT_FAINT, labelpad=2)
    small = binned(picture, _MOST_BINS[state.thumbnail])
    if state.thumbnail == "matrix":
        strength = small.weights[0] / most
        _matrix(axes, strength, color)
    else:
        shown = lines(small, state.mass)
        strength = shown.weight / most
        _lines(axes, shown.query, shown.key, strength, small.weights.shape[1:], color)
    if opacity(strength).max(initial=0.0) < _SEEN:
        share = f"{100 * picture.hidden:.0f} %\nhidden"
        reason = share if picture.hidden >= _MOSTLY else "nothing\nto show"
        style = {"color": PRINT_FAINT, "size": points(6), "transform": axes.transAxes}
        axes.text(0.5, 0.5, reason, style, ha="center", va="center")
    return picture.hidden


def _matrix(axes: "Axes", weights: np.ndarray, color: str) -> None:
    colors = LinearSegmentedColormap.from_list("head", (PAPER, color))
    axes.pcolormesh(opacity(weights), cmap=colors, vmin=0, vmax=1, linewidth=0)
    axes.invert_yaxis()


def _lines(
    axes: "Axes",
    query: np.ndarray,
    key: np.ndarray,
    strength: np.ndarray,
    ends: tuple[int, ...],
    color: str,
) -> None:
    starts = np.column_stack([np.zeros(len(query)), (query + 0.5) / ends[0]])
    stops = np.column_stack([np.ones(len(key)), (key + 0.5) / ends[1]])
    draw_curves(axes, curves(starts, stops), to_rgb(color), strength, scale=THUMBNAIL)
    axes.set(xlim=(-0.12, 1.12), ylim=(1.06, -0.06))
