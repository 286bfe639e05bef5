"""The notebook widget: a view whose state is traits, set from Python, read back from the page."""

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import traitlets
from anywidget import AnyWidget

from headscope.views.modules import script, static
from headscope.views.payload import Payload
from headscope.views.state import ViewState, check_setting, chosen_stack

if TYPE_CHECKING:
    from headscope.model.trace import Trace

NAMES = tuple(field.name for field in fields(ViewState))


class ViewWidget(AnyWidget):
    """One view in a notebook; `header` and `blocks` are the payload, the other traits its state.

    The blocks of a long input are not sent at once: the page asks for those of its window.
    """

    _esm = script("widget")
    _css = static("view.css")

    header = traitlets.Dict().tag(sync=True)
    blocks = traitlets.Bytes().tag(sync=True)

    stack = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    layers = traitlets.List(traitlets.Int()).tag(sync=True)
    heads = traitlets.List(traitlets.Int()).tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    window = traitlets.List(traitlets.Int()).tag(sync=True)
    pinned = traitlets.Unicode(allow_none=True).tag(sync=True)
    weights = traitlets.Unicode().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    mass = traitlets.Float().tag(sync=True)
    hide = traitlets.List(traitlets.Unicode()).tag(sync=True)
    pair = traitlets.Unicode().tag(sync=True)
    direction = traitlets.Unicode().tag(sync=True)
    theme = traitlets.Unicode().tag(sync=True)
    thumbnail = traitlets.Unicode().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    ascending = traitlets.Bool().tag(sync=True)
    ranked = traitlets.Bool().tag(sync=True)
    enlarged = traitlets.Bool().tag(sync=True)
    neurons = traitlets.Unicode().tag(sync=True)
    expanded = traitlets.Bool().tag(sync=True)

    def __init__(self, trace: "Trace", payload: Payload, state: ViewState) -> None:
        self._trace = trace
        self._payload = payload
        sent = () if payload.is_long else payload.blocks
        header = {**payload.header, "sizes": [len(block) for block in sent]}
        settings = {name: _plain(value) for name, value in asdict(state).items()}
        super().__init__(header=header, blocks=b"".join(sent), **settings)
        self.on_msg(self._send_blocks)

    def _send_blocks(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        """Blocks of a long input travel when the page asks for them."""
        wanted = asked["blocks"]
        self.send({"blocks": wanted}, [self._payload.blocks[index] for index in wanted])

    @traitlets.validate(*NAMES)
    def _check(self, proposal: Any) -> Any:
        name = proposal["trait"].name
        chosen = proposal["value"] if name == "stack" else self.stack
        stack = chosen_stack(self._trace, chosen or None)
        check_setting(name, proposal["value"], stack)
        return proposal["value"]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
