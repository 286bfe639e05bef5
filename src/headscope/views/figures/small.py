"""A small picture of a view, for a notebook that is read without its kernel and without scripts.

It is there to recognise the view, so it is cheap: few lines, no more tokens than can be read, and a
matrix for longer texts.
"""

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from headscope.head import name_layer, name_within_layer
from headscope.theme import HEAD_MAP, PRINT_FAINT
from headscope.views.figures import figure, styled
from headscope.views.lines import binned, drawing, opacity
from headscope.views.state import Kind, ViewState, chosen_stack
from headscope.views.summary import title
from headscope.views.weights import chosen_weights, reference, shown_weights

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

_MOST_TOKENS = 48
_MOST_MASS = 0.7
_DPI = 100
_COLORS = 64
_CELL = 24  # pixels of a head in the mosaic of the model view
_LEAST_INCHES = 3  # of the mosaic
_MATRIX = 128  # pixels of a head that is shown alone


def small_picture(trace: "Trace", kind: Kind, state: ViewState) -> bytes:
    """A PNG of a few dozen kilobytes."""
    with styled(trace, ".png"):
        drawn = _figure(trace, kind, state)
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="png", dpi=_DPI)
    colors = Image.open(buffer).convert("RGB").quantize(_COLORS)
    result = io.BytesIO()
    colors.save(result, format="PNG", optimize=True)
    return result.getvalue()


def _figure(trace: "Trace", kind: Kind, state: ViewState) -> Figure:
    stack = chosen_stack(trace, state.stack)
    if kind == "model":
        return _mosaic(trace, state)
    long = max(len(stack.queries), len(stack.keys)) > _MOST_TOKENS
    if long and state.unit != "span" and state.direction != "text":
        return _matrix(trace, kind, state)
    return figure(trace, kind, replace(state, mass=min(state.mass, _MOST_MASS)))


def _matrix(trace: "Trace", kind: Kind, state: ViewState) -> Figure:
    """The mean of the shown heads as a matrix: attending tokens down, attended tokens across."""
    heads = state.heads if kind == "head" else (state.head,)
    stack = chosen_stack(trace, state.stack)
    picture = _tile(stack, state, shown_weights(stack, state, heads)[1], _MATRIX)
    drawn = Figure(figsize=(4.2, 4.5))
    axes = drawn.add_axes((0.08, 0.06, 0.86, 0.8))
    axes.imshow(picture, cmap=_colors(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.set(xticks=[], yticks=[], xlabel="attended tokens", ylabel="attending tokens")
    drawn.text(0.5, 0.93, title(trace, kind, state), ha="center", color=PRINT_FAINT, wrap=True)
    return drawn


def _mosaic(trace: "Trace", state: ViewState) -> Figure:
    """Every layer (down) and head (across) as a small matrix, in one image."""
    heads = [0] if state.weights == "rollout" else list(state.heads)
    stack = chosen_stack(trace, state.stack)
    step = _CELL + 2
    image = np.zeros((len(state.layers) * step, len(heads) * step))
    for row, layer in enumerate(state.layers):
        for column, head in enumerate(heads):
            _, weights = chosen_weights(stack, state.weights, layer, (head,))
            tile = _tile(stack, state, weights, _CELL)
            tall, wide = tile.shape
            at = slice(row * step, row * step + tall), slice(column * step, column * step + wide)
            image[at] = tile
    inch = min(72.0, image.shape[1] / _LEAST_INCHES)  # pixels; a few heads are drawn larger
    tall, wide = (length / inch for length in image.shape)
    drawn = Figure(figsize=(0.5 + wide, 0.7 + tall))
    room = drawn.get_size_inches()
    axes = drawn.add_axes((0.4 / room[0], 0.05 / room[1], wide / room[0], tall / room[1]))
    axes.imshow(image, cmap=_colors(), vmin=0, vmax=1, interpolation="nearest")
    middle = _CELL / 2
    axes.set_yticks([row * step + middle for row in range(len(state.layers))])
    axes.set_yticklabels([name_layer(layer) for layer in state.layers])
    axes.set_xticks([column * step + middle for column in range(len(heads))])
    axes.set_xticklabels([name_within_layer(head) for head in heads])
    axes.tick_params(length=0, colors=PRINT_FAINT, labelsize="small")
    axes.xaxis.tick_top()
    for spine in axes.spines.values():
        spine.set_visible(False)
    drawn.text(0.5, 1 - 0.14 / room[1], trace.model, ha="center", va="center", color=PRINT_FAINT)
    return drawn


def _tile(stack: "StackTrace", state: ViewState, weights: np.ndarray, most: int) -> np.ndarray:
    small = binned(drawing(weights, stack, state), most)
    return opacity(small.weights.mean(0) / reference(state.weights, weights))


def _colors() -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("head", HEAD_MAP)
