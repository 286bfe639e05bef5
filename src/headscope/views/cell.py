"""What a notebook cell shows of a view, and what of it a saved notebook keeps.

Three outputs, each of which hides those before it where it works:

a picture        everywhere, also on GitHub and in a notebook that is not trusted
the page         where scripts run: without a kernel, without a network
the widget       where the kernel is, in step with Python
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from headscope.views.page import frame
from headscope.views.state import chosen_stack
from headscope.views.summary import describe, title

if TYPE_CHECKING:
    from headscope.model.trace import Trace
    from headscope.views.view import View

MOST_BYTES = 4_000_000  # of the page that a cell keeps
_CODE_BYTES = 200_000  # of a page without weights, about
_KEY = 64  # characters by which a picture is known again

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
        print(describe(view.trace, view.kind, view.state))
        return
    if not hasattr(shell, "kernel"):
        display({"text/plain": describe(view.trace, view.kind, view.state)}, raw=True)
        return
    for bundle in outputs(view):
        display(bundle, raw=True)


def outputs(view: "View") -> Iterator[dict[str, Any]]:
    """The outputs of a cell, by media type, the one that works everywhere first."""
    said = describe(view.trace, view.kind, view.state)
    png = base64.b64encode(_picture(view)).decode("ascii")
    key = png[-_KEY:]
    yield {"image/png": png, "text/plain": said}
    yield {"text/html": _STYLE + _kept(view, key), "text/plain": _name(view)}
    if find_spec("anywidget") is not None:
        view.widget.picture = key
        made = view.widget._repr_mimebundle_()
        data = made[0] if isinstance(made, tuple) else made or {}
        yield {**data, "text/plain": _name(view)}


def _picture(view: "View") -> bytes:
    from headscope.views.figures.small import small_picture

    with catch_warnings():
        simplefilter("ignore")  # a letter that no font has is a box in the picture, not in the page
        return small_picture(view.trace, view.kind, view.state)


def _kept(view: "View", key: str) -> str:
    """The page in a frame; of a large one the shown layer alone, or a sentence on what to do."""
    size = _page_bytes(view)
    if size <= MOST_BYTES:
        return frame(view.html(), _name(view), picture=key)
    part = _shown_layer(view)
    whole = f"The page of all layers has {size / 1e6:.1f} MB, a cell keeps {MOST_BYTES / 1e6:g} MB"
    if part is not None and _page_bytes(part) <= MOST_BYTES:
        said = f"{whole}: without a kernel, layer {view.state.layer} alone is shown here."
        return frame(part.html(), _name(view), picture=key) + _note(said)
    said = f"{whole}: without a kernel, only the picture is shown here."
    return _note(f'{said} All of it goes into a file: <code>view.save("view.html")</code>.', key)


def _note(said: str, key: str | None = None) -> str:
    mark = "" if key is None else f' data-headscope-picture="{key}"'
    return f'<p style="opacity:0.7"{mark}>{said}</p>'


def _page_bytes(view: "View") -> float:
    if view.payload.is_long:
        return sum(_matrix_bytes(view.trace))
    return _CODE_BYTES + sum(map(len, view.payload.blocks)) * 4 / 3


def _matrix_bytes(trace: "Trace") -> Iterator[int]:
    for stack in trace.stacks.values():
        yield from (2 * weights.numel() for weights in stack.weights.values())


def _shown_layer(view: "View") -> "View | None":
    """The view of a trace that has nothing but the shown layer; the model view needs them all."""
    if view.kind == "model" or view.state.weights == "rollout":
        return None
    stack = chosen_stack(view.trace, view.state.stack)
    layer = view.state.layer
    by_layer = ("weights", "query", "key", "value", "scaling", "bias", "sink", "value_norms")
    kept = {
        name: {layer: values[layer]}
        for name in by_layer
        if (values := getattr(stack, name)) is not None and layer in values
    }
    alone = replace(stack, layers=(layer,), **kept)
    trace = replace(view.trace, stacks={stack.name: alone})
    return replace(view, trace=trace, state=replace(view.state, layers=(layer,)))


def _name(view: "View") -> str:
    return title(view.trace, view.kind, view.state)
