"""The three views as Python objects: they show themselves in a notebook and save to any format.

A gallery is several texts in one page: a list of them beside the view of the chosen one. Views are
also put into words: for readers without a picture, screen readers and pages without scripts.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import ViewError
from headscope.files import find_place, replacing
from headscope.head import name_head
from headscope.views.kind import ViewKind
from headscope.views.kinds import kind_of
from headscope.views.labels import label, short
from headscope.views.lines import Lines, drawing, lines
from headscope.views.opening import initial_state
from headscope.views.page import Frame, frame, gallery_page, page
from headscope.views.payload import Payload, Scores, payload
from headscope.views.state import (
    ViewState,
    chosen_stack,
    parse_pin,
    picture_name,
    shown_layers,
    span,
)
from headscope.views.weights import require_neurons, shown_weights
from headscope.wording import counted, model_title

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace
    from headscope.views.widget import ViewWidget

ENDINGS = (".html", ".svg", ".png", ".pdf")
_LISTED = 8  # lines
_LONGEST_TEXT = 120  # characters


@dataclass(frozen=True)
class View:
    """One view of one trace. The last line of a notebook cell shows it; `save` writes a file."""

    trace: "Trace"
    kind: str
    state: ViewState
    scores: Scores | None = None

    @property
    def declared(self) -> ViewKind:
        """What is declared of this kind of view."""
        return kind_of(self.kind)

    def html(self) -> str:
        """A self-contained page: no network, works from a file."""
        return page(self.payload, without_script(self))

    def iframe(self, *, height: int | None = None) -> Frame:
        """The page in a frame, as a string of HTML that a notebook also shows.

        Without a height, in pixels, the frame is made as high as its page where the host allows it.
        """
        return frame(self.html(), title(self), height)

    def save(
        self,
        path: str | Path,
        *,
        width: float | None = None,
        font: str | None = None,
        size: float | None = None,
        dpi: float | None = None,
    ) -> Path:
        """Write the view; the ending decides the format: .html, .svg, .png or .pdf.

        The options are for print: `width` of the figure in inches, `font` family, `size` of the
        text in points, `dpi` of a PNG. What is not given is taken from matplotlib's rcParams where
        they were changed.
        """
        target = find_place(path)
        ending = check_ending(target)
        given = {"width": width, "font": font, "size": size, "dpi": dpi}
        options = {name: value for name, value in given.items() if value is not None}
        if ending != ".html":
            from headscope.views.figures import figure, rendered

            draw = partial(figure, self.trace, self.kind, self.state, self.scores)
            write(target, rendered(self.trace, draw, ending, **options))
        elif options:
            raise ViewError(
                f"{', '.join(options)}: for print only; save as .svg, .png or .pdf, or leave it "
                "out: a page fits its window."
            )
        else:
            write(target, self.html().encode("utf-8"))
        return target

    @cached_property
    def payload(self) -> Payload:
        """What travels to the browser."""
        return payload(self.trace, self.kind, self.state, self.scores)

    @cached_property
    def widget(self) -> "ViewWidget":
        """The notebook widget: its traits are the view's state, to be set and read back."""
        if find_spec("anywidget") is None:
            raise ViewError("The widget needs anywidget: `pip install 'headscope[notebook]'`.")
        from headscope.views.widget import widget_of

        return widget_of(type(self.state))(self.trace, self.payload, self.state)

    def _ipython_display_(self) -> None:
        from headscope.views.cell import show

        show(self)

    def _repr_html_(self) -> str:
        """For hosts that take HTML and know nothing of kernels."""
        return str(self.iframe())  # marimo wants a str and nothing derived from it

    def __repr__(self) -> str:
        return f"<{self.kind} view of {self.trace.model}: {len(self.trace.tokens)} tokens>"


def open_view(trace: "Trace", kind: str, *, scores: Scores | None = None, **settings: Any) -> View:
    """A view of any kind; `settings` are those that the kind has."""
    if "neurons" in kind_of(kind).parts:
        require_neurons(trace)
    return View(trace, kind, initial_state(trace, kind, **settings), scores)


def head_view(
    trace: "Trace",
    *,
    layer: int | None = None,
    heads: int | str | Sequence[int | str] | None = None,
    **settings: Any,
) -> View:
    """Lines from token to token, one colour per head.

    A head is a number, or a name with its layer such as "L5H2"; layers below 0 count from the end.

    `settings` are the other names of the view's state: stack, pinned, weights, unit, mass, hide,
    pair, layout, theme.
    """
    return open_view(trace, "head", layer=layer, heads=heads, **settings)


def model_view(
    trace: "Trace",
    *,
    layers: int | Sequence[int] | None = None,
    heads: int | str | Sequence[int | str] | None = None,
    scores: Scores | None = None,
    **settings: Any,
) -> View:
    """Every layer and head as a thumbnail.

    `scores` are further numbers to order the heads by: a name and one number for each layer and
    head, such as a result's `dependency_alignment`.
    """
    return open_view(trace, "model", scores=scores, layers=layers, heads=heads, **settings)


def neuron_view(
    trace: "Trace", *, layer: int | None = None, head: int | str | None = None, **settings: Any
) -> View:
    """How query and key vectors of one head make the weights of one token."""
    return open_view(trace, "neuron", layer=layer, head=head, **settings)


def check_ending(target: Path) -> str:
    """The ending of the file, if a view can be saved as that."""
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise ViewError(
            f"{target.name!r} has the ending {ending!r}; a view can be saved as "
            f"{', '.join(ENDINGS)}."
        )
    return ending


def write(target: Path, content: bytes) -> None:
    """Write the file in one step: what cannot be finished leaves nothing behind."""
    try:
        with replacing(target) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise ViewError(f"{target} cannot be written: {error.strerror or error}.") from error


@dataclass(frozen=True)
class Gallery:
    """Views of several texts, as one page that needs no network."""

    title: str
    views: tuple[tuple[str, View], ...]  # each with its title, which may be empty

    def html(self) -> str:
        """The page as text."""
        texts = [
            (name, _text(view), view.payload, without_script(view)) for name, view in self.views
        ]
        return gallery_page(self.title, texts)

    def save(self, path: str | Path) -> Path:
        """Write the page; its name ends in .html."""
        target = find_place(path)
        if target.suffix.lower() != ".html":
            raise ViewError(f"A gallery is a page: save it as .html, not as {target.name!r}.")
        write(target, self.html().encode("utf-8"))
        return target

    def iframe(self, *, height: int | None = None) -> Frame:
        """The page in a frame, as `View.iframe` makes it."""
        return frame(self.html(), self.title, height)

    def _repr_html_(self) -> str:
        return str(self.iframe())

    def __repr__(self) -> str:
        listed = [f"  {name or _text(view)}" for name, view in self.views]
        return "\n".join([f"{self.title}: {counted(len(listed), 'texts')}", *listed])


def gallery(
    texts: "Iterable[Trace | View] | Mapping[str, Trace | View]",
    *,
    kind: str = "head",
    title: str = "Attention",
    **settings: Any,
) -> Gallery:
    """Several texts in one page, for a lesson or a talk.

    `texts` are traces, or views with settings of their own, in a list, or by title in a dictionary.
    Traces are shown in a view of this `kind` with these `settings`.
    """
    named: Any = texts.items() if isinstance(texts, Mapping) else zip(repeat(""), texts)
    views = tuple(
        (name, one if isinstance(one, View) else open_view(one, kind, **settings))
        for name, one in named
    )
    if not views:
        raise ViewError("The gallery is empty; give at least one trace.")
    return Gallery(title, views)


def _text(view: View) -> str:
    side = stack_of(view).queries
    return label(side.text) if side.text else " ".join(map(label, side.labels))


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a drawing: which head, from which token to which, how strong."""

    head: str
    query: str
    key: str
    weight: float

    def __str__(self) -> str:
        return f"{self.head}: {self.query} → {self.key} {self.weight:.2f}"


def stack_of(view: View) -> "StackTrace":
    """The attention that is shown, of those that the model has."""
    return chosen_stack(view.trace, view.state.stack)


def title(view: View) -> str:
    """What is shown, in one line."""
    stack, state = stack_of(view), view.state
    if view.declared.shows_all_layers:
        shown = f"{counted(len(stack.layers), 'layers')} × {counted(len(stack.heads), 'heads')}"
    elif "heads" in view.declared.settings:
        shown = _heads(state)
    else:
        shown = name_head(state.layer, state.head)
    tokens = counted(len(stack.queries), "tokens")
    return f"{view.kind.capitalize()} view of {model_title(view.trace.model)} · {shown} · {tokens}"


def describe(view: View) -> str:
    """What is shown, of which text, and its strongest lines."""
    found = "; ".join(map(str, strongest_lines(view)))
    said = [title(view), short(label(stack_of(view).queries.text), _LONGEST_TEXT)]
    return "\n".join([*said, f"Strongest: {found}"] if found else said)


def strongest_lines(view: View) -> list[Listed]:
    """The strongest lines of what is drawn; of the model view those of its enlarged head."""
    stack, state = stack_of(view), view.state
    heads, weights = shown_weights(stack, state, view.declared.heads_in_sight(state))
    picture = drawing(weights, stack, state)
    found, queries = _chosen(lines(picture, 1.0)), _queries(view)
    if queries is not None:
        found = found.take(np.isin(found.query, np.array(queries) - picture.queries.first))
    together = picture_name(state)
    names = [name_head(state.layer, h) if together is None else together for h in heads]
    strongest = found.take(_first_strongest(found.weight, _LISTED))
    rows = zip(strongest.head, strongest.query, strongest.key, strongest.weight, strict=True)
    return [
        Listed(names[head], picture.queries.labels[query], picture.keys.labels[key], float(weight))
        for head, query, key, weight in rows
    ]


def _first_strongest(weight: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest weights, the largest first, of equal ones the first."""
    if len(weight) > count:  # a long text has a million lines: only a few are put into order
        least = np.partition(weight, -count)[-count]
        places = np.flatnonzero(weight >= least)
    else:
        places = np.arange(len(weight))
    return places[np.argsort(-weight[places], kind="stable")[:count]]


def without_script(view: View) -> str:
    """What a page says where its script may not run: plain HTML, text as text."""
    text = short(label(stack_of(view).queries.text), 10 * _LONGEST_TEXT)
    rows = "".join(
        f"<tr><td>{one.head}<td>{html.escape(one.query)}<td>{html.escape(one.key)}"
        f"<td>{one.weight:.3f}"
        for one in strongest_lines(view)
    )
    return (
        f"<h1>{html.escape(title(view))}</h1>"
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


def _queries(view: View) -> tuple[int, ...] | None:
    """The only tokens whose lines are shown: pinned ones, in the neuron view always one."""
    side, numbers = ("k", ()) if view.state.pinned is None else parse_pin(view.state.pinned)
    if side == "q":
        return numbers
    return (len(stack_of(view).queries) - 1,) if "neurons" in view.declared.parts else None


def _chosen(found: Lines) -> Lines:
    """Lines of rows that had a choice: the first token of a causal model sees only itself."""
    row = found.head * (1 + found.query.max(initial=0)) + found.query
    return found.take(np.bincount(row)[row] > 1)
