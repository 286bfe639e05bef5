"""What the neuron view shows now."""

from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class NeuronState(ViewState):
    """How the neuron view lists neurons."""

    neurons: str = setting(
        "Neurons",
        "how neurons are ordered",
        default="number",
        choices={"number": "By number", "contribution": "By contribution"},
    )
    expanded: bool = setting("Vectors", "whether the vectors are shown", default=True)
