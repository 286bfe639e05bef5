"""What hosts show: views of a bundled model, by each host's own recipe from docs/embedding.md."""

TEXT = "The old cat sat on the mat. The old cat was tired, so the old dog barked."

_VIEWS = f'''
import headscope as hs

trace = hs.load("mini-gpt2").trace("{TEXT}")
head = trace.head_view(layer=4, heads=[0, 1], hide=(), mass=1.0)
model = trace.model_view(layer=4, head=0, enlarged=False, hide=(), mass=1.0)
neuron = trace.neuron_view(layer=5, head=5, pinned=10)
'''

GRADIO = f"""
import gradio as gr
{_VIEWS}
with gr.Blocks() as page:
    gr.HTML(head.iframe(height=700))
    gr.HTML(model.iframe(height=700))
    gr.HTML(neuron.iframe(height=700))

page.launch(server_port=int(__import__("sys").argv[1]), quiet=True)
"""

STREAMLIT = f"""
import streamlit as st
{_VIEWS}
for view in (head, model, neuron):
    st.components.v1.html(view.html(), height=700, scrolling=True)
"""

# In dark, while the system is light: the views must see it.
MARIMO_CONFIG = """
[display]
theme = "dark"
"""

MARIMO = f"""
import marimo

app = marimo.App()


@app.cell
def _():
{chr(10).join("    " + line for line in _VIEWS.strip().splitlines())}
    return head, model, neuron


@app.cell
def _(head):
    head
    return


@app.cell
def _(model):
    model
    return


@app.cell
def _(neuron):
    neuron
    return


if __name__ == "__main__":
    app.run()
"""

NOTEBOOK = [_VIEWS.strip(), "head", "model", "neuron"]
