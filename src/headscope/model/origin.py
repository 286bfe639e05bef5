"""Where a model was loaded from, so that another process can load the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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


def find_place_of(source: "Source") -> str:
    """The name under which any process finds the source."""
    if source.bundled or source.hub:
        return source.name
    path = Path(source.place).absolute()
    return str(path if source.gguf is None else path / source.gguf)
