"""What every backend hands over: one call of a model's attention, and how a backend is run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from torch import Tensor, nn

BackendName = Literal["interface", "hooks", "outputs"]


@dataclass(frozen=True, slots=True)
class Call:
    """One attention computation, in the order the forward pass makes them.

    Only the order says which layer it is: many classes carry no layer number, ALBERT calls one
    module object for every layer, DiffLlama calls twice per layer.
    """

    weights: Tensor  # batch head query key
    module: nn.Module | None = None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    scaling: float | None = None
    mask: Tensor | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    output: Tensor | None = None  # batch query head dim, what the output projection receives


Watch = Callable[[Call], None]
Forward = Callable[..., Any]  # the network with its inputs bound; takes further keywords


class Backend(Protocol):
    """A way to see the attention of a network while its forward pass runs."""

    @property
    def name(self) -> BackendName:
        """The word that `headscope check` prints."""
        ...

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass, show every call to `watch`, return the network's output."""
        ...
