"""From a text to a saved view in one call, as the command line asks for it."""

from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import ViewError
from headscope.views import View, head_view, model_view, neuron_view
from headscope.views.state import Kind
from headscope.views.view import check_ending

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.model.trace import Trace


def save_view(
    model: "Model",
    text: str,
    out: Path,
    *,
    kind: Kind = "head",
    pair: str | None = None,
    target: str | None = None,
    generate: int = 0,
    layer: int | None = None,
    heads: str | None = None,
) -> Path:
    """Trace `text` and write one view of it to `out`."""
    check_ending(out)
    numbers = None if heads is None else parse_heads(heads)
    trace = model.trace(text, pair, target=target, generate=generate)
    return _view(trace, kind, layer, numbers).save(out)


def parse_heads(text: str) -> list[int]:
    """`0,3` and `0-3` as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ViewError(f"Heads are {text!r}; write them like 0,3 or 0-3.")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    return numbers


def _view(trace: "Trace", kind: Kind, layer: int | None, heads: list[int] | None) -> View:
    if kind == "head":
        return head_view(trace, layer=layer, heads=heads)
    if kind == "model":
        return model_view(trace, layers=None if layer is None else [layer], heads=heads)
    if heads is not None and len(heads) > 1:
        raise ViewError(f"The neuron view takes one head, not {len(heads)}.")
    return neuron_view(trace, layer=layer, head=heads[0] if heads else None)
