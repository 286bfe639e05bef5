"""A hosted demo: type a text, see where the heads of a bundled model look.

python space/app.py [PORT]
"""

import sys
from functools import cache
from html import escape
from typing import TYPE_CHECKING

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.head import read_head

if TYPE_CHECKING:
    import gradio as gr  # pyright: ignore[reportMissingImports]

    from headscope.model.model import Model

TEXT = "The old cat sat on the mat. The old cat was tired."
HEAD = "L5H5"  # an induction head: it looks at what followed the same word before
KINDS = ("head", "model", "neuron")
CHARACTERS = 500
HEIGHT = 620  # pixels of the frame


@cache
def load_model() -> "Model":
    """The model, once for all visitors."""
    return hs.load("mini-gpt2")


def show(text: str, kind: str, head: str) -> str:
    """The view as HTML, or the sentence that says what is wrong."""
    try:
        trace = load_model().trace(text[:CHARACTERS])
        if kind == "model":
            return str(trace.model_view().iframe(height=HEIGHT))
        place = read_head(head)
        if kind == "neuron":
            return str(trace.neuron_view(layer=place.layer, head=place.head).iframe(height=HEIGHT))
        return str(trace.head_view(layer=place.layer, heads=[place.head]).iframe(height=HEIGHT))
    except HeadscopeError as error:
        return f"<p>{escape(str(error))}</p>"


def make_app() -> "gr.Blocks":
    """The page: a text, a kind of view and a head above the view."""
    import gradio as gr  # pyright: ignore[reportMissingImports]

    with gr.Blocks(title="Headscope") as app:
        gr.Markdown("# What does each attention head look at?")
        with gr.Row():
            text = gr.Textbox(TEXT, label="Text", max_length=CHARACTERS, scale=4)
            kind = gr.Dropdown(list(KINDS), value="head", label="View")
            head = gr.Textbox(HEAD, label="Head")
        shown = gr.HTML()
        asked = [text, kind, head]
        for event in (text.submit, kind.change, head.submit, app.load):
            event(show, asked, shown)
    return app


if __name__ == "__main__":
    load_model()  # before the first visitor comes
    make_app().launch(server_port=int(sys.argv[1]) if len(sys.argv) > 1 else None)
