"""Several texts in one page: a list of them beside the view of the chosen one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import ViewError
from headscope.files import find_place
from headscope.views.labels import label
from headscope.views.page import Frame, frame, gallery_page
from headscope.views.state import Kind, chosen_stack
from headscope.views.summary import without_script
from headscope.views.view import View, open_view, write
from headscope.wording import counted

if TYPE_CHECKING:
    from headscope.model.trace import Trace


@dataclass(frozen=True)
class Gallery:
    """Views of several texts, as one page that needs no network."""

    title: str
    views: tuple[tuple[str, View], ...]  # each with its title, which may be empty

    def html(self) -> str:
        """The page as text."""
        texts = [
            (name, _text(view), view.payload, without_script(view.trace, view.kind, view.state))
            for name, view in self.views
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
    kind: Kind = "head",
    title: str = "Attention",
    **settings: Any,
) -> Gallery:
    """Several texts in one page, for a lesson or a talk.

    `texts` are traces, or views with settings of their own, in a list, or by title in a dictionary.
    Traces are shown in a view of this `kind` with these `settings`.
    """
    views: tuple[tuple[str, View], ...] = tuple(
        (name, one if isinstance(one, View) else open_view(one, kind, **settings))
        for name, one in _named(texts)
    )
    if not views:
        raise ViewError("The gallery is empty; give at least one trace.")
    return Gallery(title, views)


def _named(texts: Any) -> "list[tuple[str, Trace | View]]":
    return list(texts.items()) if isinstance(texts, Mapping) else [("", one) for one in texts]


def _text(view: View) -> str:
    side = chosen_stack(view.trace, view.state.stack).queries
    return label(side.text) if side.text else " ".join(map(label, side.tokens))
