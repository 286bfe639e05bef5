"""The three views as Python objects: they show themselves in a notebook and save to any format."""

import html
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import ViewError
from headscope.views.page import page
from headscope.views.payload import Payload, Scores, payload
from headscope.views.state import Kind, ViewState

if TYPE_CHECKING:
    from headscope.model.trace import Trace
    from headscope.views.widget import ViewWidget

ENDINGS = (".html", ".svg", ".png", ".pdf")
_FRAME_HEIGHT = 640


@dataclass(frozen=True)
class View:
    """One view of one trace. The last line of a notebook cell shows it; `save` writes a file."""

    trace: "Trace"
    kind: Kind
    state: ViewState
    scores: Scores | None = None

    def html(self) -> str:
        """A self-contained page: no network, works from a file."""
        return page(self.payload)

    def save(self, path: str | Path) -> Path:
        """Write the view; the ending decides the format: .html, .svg, .png or .pdf."""
        target = Path(path)
        ending = check_ending(target)
        if ending == ".html":
            _write(target, self.html())
        else:
            from headscope.views.figures import save_figure

            save_figure(self.trace, self.kind, self.state, self.scores, target)
        return target

    @cached_property
    def payload(self) -> Payload:
        """What travels to the browser."""
        return payload(self.trace, self.kind, self.state, self.scores)

    @cached_property
    def widget(self) -> "ViewWidget":
        """The notebook widget: its traits are the view's state, to be set and read back."""
        from headscope.views.widget import ViewWidget

        return ViewWidget(self.trace, self.payload, self.state)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        if find_spec("anywidget") is not None:
            return self.widget._repr_mimebundle_(**options)
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks without anywidget."""
        source = html.escape(self.html())
        style = f"width:100%;height:{_FRAME_HEIGHT}px;border:0"
        return f'<iframe srcdoc="{source}" style="{style}" title="{self.kind} view"></iframe>'

    def __repr__(self) -> str:
        return f"<{self.kind} view of {self.trace.model}: {len(self.trace.tokens)} tokens>"


def check_ending(target: Path) -> str:
    """The ending of the file, if a view can be saved as that."""
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise ViewError(
            f"{target.name!r} has the ending {ending!r}; a view can be saved as "
            f"{', '.join(ENDINGS)}."
        )
    return ending


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ViewError(f"{target} cannot be written: {error.strerror}.") from error
