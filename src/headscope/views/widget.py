"""The notebook widget: a view whose state is traits, set from Python, read back from the page."""

from dataclasses import asdict, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import traitlets
from anywidget import AnyWidget

from headscope.views.bundle import script, style
from headscope.views.opening import check_setting
from headscope.views.payload import Payload
from headscope.views.state import ViewState, chosen_stack, settings_of

if TYPE_CHECKING:
    from headscope.model.trace import Trace


def _trait(kind: Any) -> Any:
    """The trait of a setting's type."""
    made = {
        str: traitlets.Unicode,
        int: traitlets.Int,
        float: traitlets.Float,
        bool: traitlets.Bool,
        str | None: lambda: traitlets.Unicode(allow_none=True),
        tuple[int, ...]: lambda: traitlets.List(traitlets.Int()),
        tuple[int, int]: lambda: traitlets.List(traitlets.Int()),
        tuple[str, ...]: lambda: traitlets.List(traitlets.Unicode()),
    }[kind]()
    return made.tag(sync=True)


class ViewWidget(AnyWidget):
    """One view in a notebook: `header` is that of the payload, the other traits are its state.

    The payload's blocks are no trait: a saved notebook would hold them a second time, and without
    its kernel shows what the cell kept. The page asks for them, of a long input for its window.
    """

    _esm = script("entry/widget")
    _css = style()

    header = traitlets.Dict().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)  # the cell's picture, by how its data end

    _state: type[ViewState]

    if TYPE_CHECKING:  # the traits of the settings

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, trace: "Trace", payload: Payload, state: ViewState) -> None:
        self._trace = trace
        self._payload = payload
        header = {**payload.header, "blocks": len(payload.blocks)}
        settings = asdict(state).items()
        lists = {name: list(value) for name, value in settings if isinstance(value, tuple)}
        super().__init__(header=header, **{**dict(settings), **lists})
        self.on_msg(self._send_blocks)

    def _send_blocks(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        """Blocks travel when the page asks for them."""
        wanted = asked["blocks"]
        self.send({"blocks": wanted}, [self._payload.blocks[index] for index in wanted])

    def __repr__(self) -> str:
        return f"<widget: {self.header['kind']} view of {self.header['model']}>"

    def _check(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        stack = chosen_stack(self._trace, (value if name == "stack" else self.stack) or None)
        check_setting(name, settings_of(self._state)[name], value, stack)
        return value


@cache
def widget_of(state: type[ViewState]) -> type[ViewWidget]:
    """The widget whose further traits are the settings of a kind's state, each of them checked."""
    traits = {setting.name: _trait(setting.type) for setting in fields(state)}
    check = traitlets.validate(*traits)(ViewWidget._check)
    members = {**traits, "_state": state, "_check_setting": check}
    return type(ViewWidget)(ViewWidget.__name__, (ViewWidget,), members)
