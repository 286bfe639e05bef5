"""A view in words: for readers without a picture, for screen readers, for pages without scripts."""

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.head import name_head
from headscope.views.labels import label, short
from headscope.views.lines import Drawing, Lines, drawing, lines
from headscope.views.state import (
    Kind,
    ViewState,
    chosen_stack,
    parse_pin,
    picture_name,
    shown_layers,
    span,
)
from headscope.views.weights import shown_weights
from headscope.wording import counted

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

_LISTED = 8  # lines
_LONGEST_TEXT = 120  # characters


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a drawing: which head, from which token to which, how strong."""

    head: str
    query: str
    key: str
    weight: float

    def __str__(self) -> str:
        return f"{self.head}: {self.query} → {self.key} {self.weight:.2f}"


def title(trace: "Trace", kind: Kind, state: ViewState) -> str:
    """What is shown, in one line."""
    stack = chosen_stack(trace, state.stack)
    shown = {"head": _heads(state), "neuron": name_head(state.layer, state.head)}
    size = f"{counted(len(stack.layers), 'layers')} × {counted(len(stack.heads), 'heads')}"
    tokens = counted(len(stack.queries), "tokens")
    return f"{kind.capitalize()} view of {trace.model} · {shown.get(kind, size)} · {tokens}"


def describe(trace: "Trace", kind: Kind, state: ViewState) -> str:
    """What is shown, of which text, and its strongest lines."""
    text = chosen_stack(trace, state.stack).queries.text
    found = "; ".join(map(str, strongest_lines(trace, kind, state)))
    said = [title(trace, kind, state), short(label(text), _LONGEST_TEXT)]
    return "\n".join([*said, f"Strongest: {found}"] if found else said)


def strongest_lines(
    trace: "Trace", kind: Kind, state: ViewState, most: int = _LISTED
) -> list[Listed]:
    """The strongest lines of what is drawn; of the model view those of its enlarged head."""
    stack = chosen_stack(trace, state.stack)
    wanted = state.heads if kind == "head" else (state.head,)
    heads, weights = shown_weights(stack, state, wanted)
    picture = drawing(weights, stack, state)
    found = _of_queries(_chosen(lines(picture, 1.0)), picture, _queries(kind, state, stack))
    together = picture_name(state)
    names = [name_head(state.layer, h) if together is None else together for h in heads]
    return [
        Listed(names[head], picture.queries.labels[query], picture.keys.labels[key], float(weight))
        for head, query, key, weight in sorted(
            zip(found.head, found.query, found.key, found.weight, strict=True),
            key=lambda line: -line[3],
        )[:most]
    ]


def without_script(trace: "Trace", kind: Kind, state: ViewState) -> str:
    """What a page says where its script may not run: plain HTML, text as text."""
    text = short(label(chosen_stack(trace, state.stack).queries.text), 10 * _LONGEST_TEXT)
    rows = "".join(
        f"<tr><td>{one.head}<td>{html.escape(one.query)}<td>{html.escape(one.key)}"
        f"<td>{one.weight:.3f}"
        for one in strongest_lines(trace, kind, state)
    )
    return (
        f"<h1>{html.escape(title(trace, kind, state))}</h1>"
        "<p>This view is drawn by JavaScript, which is turned off here or forbidden by the policy "
        "of the page around it. Open the file in a window of its own to use it. The strongest "
        "lines in words:</p>"
        f'<p dir="auto">{html.escape(text)}</p>'
        f"<table><tr><th>head<th>looks from<th>at<th>weight{rows}</table>"
    )


def _heads(state: ViewState) -> str:
    together = picture_name(state)
    if together is not None:
        return f"{shown_layers(state)}, {together}"
    if not state.heads:
        return f"layer {state.layer}, no head"
    return f"layer {state.layer}, head{'s' * (len(state.heads) > 1)} {span(state.heads)}"


def _queries(kind: Kind, state: ViewState, stack: "StackTrace") -> tuple[int, ...] | None:
    """The only tokens whose lines are shown: pinned ones, in the neuron view always one."""
    side, numbers = ("k", ()) if state.pinned is None else parse_pin(state.pinned)
    if side == "q":
        return numbers
    return (len(stack.queries) - 1,) if kind == "neuron" else None


def _chosen(found: Lines) -> Lines:
    """Lines of rows that had a choice: the first token of a causal model sees only itself."""
    rows = np.stack([found.head, found.query])
    _, row, count = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    return found.take(count[row.ravel()] > 1)


def _of_queries(found: Lines, picture: Drawing, queries: tuple[int, ...] | None) -> Lines:
    if queries is None:
        return found
    return found.take(np.isin(found.query, np.array(queries) - picture.queries.first))
