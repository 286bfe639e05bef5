"""Three views of attention: heads, the whole model, neurons; for notebooks, files and print."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headscope.views.neurons import require_neurons
from headscope.views.payload import Scores
from headscope.views.state import initial_state
from headscope.views.view import View

if TYPE_CHECKING:
    from headscope.model.trace import Trace

__all__ = ["View", "head_view", "model_view", "neuron_view"]


def head_view(
    trace: "Trace",
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    **settings: Any,
) -> View:
    """Lines from token to token, one colour per head.

    `settings` are the other names of the view's state: stack, pinned, weights, unit, mass, hide,
    pair, direction, theme.
    """
    return View(trace, "head", initial_state(trace, layer=layer, heads=heads, **settings))


def model_view(
    trace: "Trace",
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    scores: Scores | None = None,
    **settings: Any,
) -> View:
    """Every layer and head as a thumbnail.

    `scores` are further numbers to order the heads by: a name and one number for each layer and
    head, such as a result's `dependency_alignment`.
    """
    state = initial_state(trace, layers=layers, heads=heads, **settings)
    return View(trace, "model", state, scores)


def neuron_view(
    trace: "Trace", *, layer: int | None = None, head: int | None = None, **settings: Any
) -> View:
    """How query and key vectors of one head make the weights of one token."""
    require_neurons(trace)
    return View(trace, "neuron", initial_state(trace, layer=layer, head=head, **settings))
