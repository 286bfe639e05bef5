"""What the neuron view shows now."""

from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class NeuronState(ViewState):
    """How the neuron view lists tokens and neurons."""

    sort: str = setting(
        "Tokens",
        "how the attended tokens are ordered",
        default="weight",
        choices={"weight": "By weight", "text": "As in the text"},
    )
    neurons: str = setting(
        "Neurons",
        "how neurons are ordered",
        default="number",
        choices={"number": "By number", "contribution": "By contribution"},
    )
