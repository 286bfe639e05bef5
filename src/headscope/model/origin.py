"""How another process gets the same model: by loading it from where it came, or by a copy."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from headscope.errors import ModelError

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.model.source import Source


@dataclass(frozen=True)
class Origin:
    """What `load` was given, with paths that do not depend on the working directory."""

    name: str  # as the user wrote it; runs are recorded under it
    place: str  # what to load: a bundled name, a hub id or an absolute path
    revision: str | None
    dtype: str
    device: str
    trust_remote_code: bool

    def load(self) -> "Model":
        """Load the model again, perhaps on another machine."""
        from headscope.model.load import load

        model = load(
            self.place,
            revision=self.revision,
            dtype=self.dtype,
            device=self.device,
            trust_remote_code=self.trust_remote_code,
        )
        model.name = self.name
        return model


@dataclass(frozen=True)
class Copy:
    """A network that was made in Python, as numbers; hooks that others put on it stay behind."""

    kind: Any  # the class of the network
    config: Any
    state: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]  # all of them: some are not part of the state
    device: str
    tokenizer: Any
    name: str
    revision: str | None

    @classmethod
    def of(cls, model: "Model") -> "Copy":
        """What it takes to make the model again."""
        network = model.network
        return cls(
            type(network),
            network.config,
            {name: tensor.cpu() for name, tensor in network.state_dict().items()},
            {name: tensor.cpu() for name, tensor in network.named_buffers()},
            model.device.type,
            model.tokenizer,
            model.name,
            model.revision,
        )

    def load(self) -> "Model":
        """Make the model again."""
        from headscope.model.model import Model

        network = self.kind(self.config)
        try:
            network.load_state_dict(self.state, assign=True)
            for name, tensor in self.buffers.items():
                parent, _, leaf = name.rpartition(".")
                setattr(network.get_submodule(parent), leaf, tensor)
        except (RuntimeError, AttributeError) as error:
            raise ModelError(
                f"{self.name} is not what its configuration says, so it cannot be made again in "
                "another process; save it and load it from its directory."
            ) from error
        network = network.to(self.device)
        return Model(network, self.tokenizer, name=self.name, revision=self.revision)


def find_place_of(source: "Source") -> str:
    """The name under which any process finds the source."""
    if source.bundled or source.hub:
        return source.name
    path = Path(source.place).absolute()
    return str(path if source.gguf is None else path / source.gguf)
