"""What BertViz's calls do with a view: show it where they stand, or return it."""

from typing import Literal

from headscope.errors import ViewError
from headscope.views import View

Action = Literal["view", "return"]


class Page(View):
    """A view that also has the attribute that BertViz users write to a file."""

    @property
    def data(self) -> str:
        """The page as text."""
        return self.html()


def check_action(html_action: str) -> None:
    """Refuse an action before anything is computed."""
    if html_action not in ("view", "return"):
        raise ViewError(f"html_action is {html_action!r}; choose 'view' or 'return'.")


def act(view: View, html_action: Action) -> Page | None:
    """Display the view, wherever in a cell the call stands, or return it."""
    page = Page(view.trace, view.kind, view.state, view.scores)
    if html_action == "return":
        return page
    try:
        from IPython.display import display
    except ImportError as error:
        raise ViewError(
            'A view is shown by IPython, which is not installed; give html_action="return" and '
            "save what comes back."
        ) from error
    display(page)
    return None
