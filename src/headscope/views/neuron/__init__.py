"""The neuron view: how query and key vectors of one head make the weights of one token."""

from headscope.views.kind import ViewKind
from headscope.views.neuron.state import NeuronState

NEURON = ViewKind(
    name="neuron",
    state=NeuronState,
    open="headscope.views.neuron.opening:open_neuron_view",
    figure="headscope.views.neuron.figure:draw",
    parts=frozenset({"neurons"}),
    without=frozenset(
        {
            "layers", "heads", "window", "summary", "weights", "unit", "spans", "attending",
            "attended", "hide", "pair",
        }
    ),
)  # fmt: skip
