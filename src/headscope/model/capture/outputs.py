"""Attention as the network itself reports it with `output_attentions=True`, all layers at once.

The reference that every other backend is proved against, and the last resort for families whose
layers never return the matrices one by one (XLNet).
"""

from typing import Any

from torch import Tensor

from headscope.model.attention import Stack
from headscope.model.capture.call import BackendName, Call, Forward, Watch

FIELDS: dict[str, Stack] = {
    "attentions": "self",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}


class OutputsBackend:
    """Shows the layers after the forward pass; memory grows with the number of layers."""

    name: BackendName = "outputs"

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass, then show what it reports."""
        output = forward(output_attentions=True)
        for matrices in reported(output).values():
            for weights in matrices:
                watch(Call(weights=weights))
        return output


def reported(output: Any) -> dict[Stack, tuple[Tensor, ...]]:
    """The attention matrices in a network's output, by stack, without the layers that have none."""
    found: dict[Stack, tuple[Tensor, ...]] = {}
    for field, stack in FIELDS.items():
        entries = getattr(output, field, None) or ()
        matrices = tuple(entry for entry in entries if isinstance(entry, Tensor))
        if matrices:
            found[stack] = matrices
    return found
