"""What a notebook cell shows of a view, and what of it a saved notebook keeps.

Three outputs, each of which hides those before it where it works:

a picture        everywhere, also on GitHub and in a notebook that is not trusted
the page         where scripts run: without a kernel, without a network
the widget       where the kernel is, in step with Python

The picture is there to recognise the view, so it is small and cheap: few lines, no more tokens than
can be read, and a matrix for longer texts.
"""

import base64
import io
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from headscope.head import name_layer, name_within_layer
from headscope.theme import HEAD_MAP, PRINT_FAINT
from headscope.views.figures import figure, styled
from headscope.views.head.state import HeadState
from headscope.views.lines import binned, drawing, opacity
from headscope.views.page import frame
from headscope.views.state import ViewState
from headscope.views.view import describe, stack_of, title
from headscope.views.weights import chosen_weights, reference, shown_weights
from headscope.wording import model_title

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace
    from headscope.views.view import View

MOST_BYTES = 4_000_000  # of the page that a cell keeps
_CODE_BYTES = 200_000  # of a page without weights, about
_KEY = 64  # characters by which a picture is known again
_MOST_TOKENS = 48
_MOST_MASS = 0.7
_DPI = 100
_COLORS = 64
_CELL = 24  # pixels of a head in the mosaic of the model view
_LEAST_INCHES = 3  # of the mosaic
_MATRIX = 128  # pixels of a head that is shown alone
_MAP = LinearSegmentedColormap.from_list("head", HEAD_MAP)

# JupyterLab says "Error displaying widget" where the kernel is gone, beside the page that works.
_STYLE = (
    "<style>.jp-OutputArea-child:has([data-headscope-picture]) + .jp-OutputArea-child "
    ".jp-OutputArea-output:not(:has(*)) { display: none; }</style>"
)


def show(view: "View") -> None:
    """Display a view: in a notebook all outputs, in a terminal its description."""
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None:
        print(describe(view))
        return
    if not hasattr(shell, "kernel"):
        display({"text/plain": describe(view)}, raw=True)
        return
    for bundle in outputs(view):
        display(bundle, raw=True)


def outputs(view: "View") -> Iterator[dict[str, Any]]:
    """The outputs of a cell, by media type, the one that works everywhere first."""
    said = describe(view)
    png = base64.b64encode(small_picture(view)).decode("ascii")
    key = png[-_KEY:]
    yield {"image/png": png, "text/plain": said}
    yield {"text/html": _STYLE + _kept(view, key), "text/plain": title(view)}
    if find_spec("anywidget") is not None:
        view.widget.picture = key
        made = view.widget._repr_mimebundle_()
        data = made[0] if isinstance(made, tuple) else made or {}
        yield {**data, "text/plain": title(view)}


def _kept(view: "View", key: str) -> str:
    """The page in a frame; of a large one the shown layer alone, or a sentence on what to do."""
    size = _page_bytes(view)
    if size <= MOST_BYTES:
        return frame(view.html(), title(view), picture=key)
    part = _shown_layer(view)
    whole = f"The page of all layers has {size / 1e6:.1f} MB, a cell keeps {MOST_BYTES / 1e6:g} MB"
    if part is not None and _page_bytes(part) <= MOST_BYTES:
        said = f"{whole}: without a kernel, layer {view.state.layer} alone is shown here."
        return frame(part.html(), title(view), picture=key) + _note(said)
    said = f"{whole}: without a kernel, only the picture is shown here."
    return _note(f'{said} All of it goes into a file: <code>view.save("view.html")</code>.', key)


def _note(said: str, key: str | None = None) -> str:
    mark = "" if key is None else f' data-headscope-picture="{key}"'
    return f'<p style="opacity:0.7"{mark}>{said}</p>'


def _page_bytes(view: "View") -> float:
    if view.payload.is_long:
        matrices = chain.from_iterable(one.weights.values() for one in view.trace.stacks.values())
        return sum(2 * weights.numel() for weights in matrices)
    return _CODE_BYTES + sum(map(len, view.payload.blocks)) * 4 / 3


def _shown_layer(view: "View") -> "View | None":
    """The view of a trace that has nothing but the shown layer; the model view needs them all."""
    if view.declared.shows_all_layers or view.state.weights == "rollout":
        return None
    stack, layer = stack_of(view), view.state.layer
    by_layer = ("weights", "query", "key", "value", "scaling", "bias", "sink", "value_norms")
    kept = {
        name: {layer: values[layer]}
        for name in by_layer
        if (values := getattr(stack, name)) is not None and layer in values
    }
    alone = replace(stack, layers=(layer,), **kept)
    trace = replace(view.trace, stacks={stack.name: alone})
    return replace(view, trace=trace, state=replace(view.state, layers=(layer,)))


def small_picture(view: "View") -> bytes:
    """A PNG of a few dozen kilobytes."""
    buffer, result = io.BytesIO(), io.BytesIO()
    with catch_warnings():
        simplefilter("ignore")  # a letter that no font has is a box in the picture, not in the page
        with styled(view.trace, ".png"):
            _figure(view).savefig(buffer, format="png", dpi=_DPI)
    colors = Image.open(buffer).convert("RGB").quantize(_COLORS)
    colors.save(result, format="PNG", optimize=True)
    return result.getvalue()


def _figure(view: "View") -> Figure:
    stack, state = stack_of(view), view.state
    if view.declared.shows_all_layers:
        return _mosaic(view)
    long = max(len(stack.queries), len(stack.keys)) > _MOST_TOKENS
    is_text = isinstance(state, HeadState) and state.layout == "text"
    if long and state.unit != "span" and not is_text:
        return _matrix(view)
    return figure(view.trace, view.kind, replace(state, mass=min(state.mass, _MOST_MASS)))


def _matrix(view: "View") -> Figure:
    """The mean of the shown heads as a matrix: attending tokens down, attended tokens across."""
    stack, state = stack_of(view), view.state
    heads = view.declared.heads_in_sight(state)
    picture = _tile(stack, state, shown_weights(stack, state, heads)[1], _MATRIX)
    drawn = Figure(figsize=(4.2, 4.5))
    axes = drawn.add_axes((0.08, 0.06, 0.86, 0.8))
    axes.imshow(picture, cmap=_MAP, vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.set(xticks=[], yticks=[], xlabel="attended tokens", ylabel="attending tokens")
    drawn.text(0.5, 0.93, title(view), ha="center", color=PRINT_FAINT, wrap=True)
    return drawn


def _mosaic(view: "View") -> Figure:
    """Every layer (down) and head (across) as a small matrix, in one image."""
    stack, state = stack_of(view), view.state
    heads = [0] if state.weights == "rollout" else list(state.heads)
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
    axes.imshow(image, cmap=_MAP, vmin=0, vmax=1, interpolation="nearest")
    middle = _CELL / 2
    rows, columns = (np.arange(len(shown)) * step + middle for shown in (state.layers, heads))
    axes.set_yticks(rows, list(map(name_layer, state.layers)))
    axes.set_xticks(columns, list(map(name_within_layer, heads)))
    axes.tick_params(length=0, colors=PRINT_FAINT, labelsize="small")
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    high = 1 - 0.14 / room[1]
    drawn.text(
        0.5, high, model_title(view.trace.model), ha="center", va="center", color=PRINT_FAINT
    )
    return drawn


def _tile(stack: "StackTrace", state: ViewState, weights: np.ndarray, most: int) -> np.ndarray:
    small = binned(drawing(weights, stack, state), most)
    return opacity(small.weights.mean(0) / reference(state.weights, weights))
