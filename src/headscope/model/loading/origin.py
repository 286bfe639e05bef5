"""Which model this is, and how another process gets the same one: by loading or by a copy."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.loading.network import DeviceMap, at_hand, entries_of

if TYPE_CHECKING:
    from headscope.model.loading.source import Source
    from headscope.model.model import Model


@dataclass(frozen=True)
class Origin:
    """What `load` was given, with paths that do not depend on the working directory."""

    name: str  # as the user wrote it; runs are recorded under it
    place: str  # what to load: a bundled name, a hub id or an absolute path
    revision: str | None
    dtype: str
    device: str | None
    trust_remote_code: bool
    device_map: DeviceMap | None = None
    quantization: str | None = None

    def load(self) -> "Model":
        """Load the model again, perhaps on another machine."""
        from headscope.model.loading.load import load

        model = load(
            self.place,
            revision=self.revision,
            dtype=self.dtype,
            device=self.device,
            device_map=self.device_map,
            quantization=self.quantization,
            trust_remote_code=self.trust_remote_code,
        )
        model.name = self.name
        return model


@dataclass(frozen=True)
class Copy:
    """A network that was made in Python, as numbers; hooks that others put on it stay behind."""

    kind: Any  # the class of the network
    config: Any
    layers: tuple[str, ...]  # the classes of its modules: a quantised layer takes any numbers
    state: Mapping[str, Any]  # tensors, and what quantised layers keep besides
    buffers: Mapping[str, Tensor]  # all of them: some are not part of the state
    device: str
    tokenizer: Any
    name: str
    revision: str | None

    def __repr__(self) -> str:
        return f"Copy({self.name!r}, {self.kind.__name__})"

    @classmethod
    def of(cls, model: "Model") -> "Copy":
        """What it takes to make the model again."""
        network = model.network
        return cls(
            type(network),
            network.config,
            _layers(network),
            {name: _on_cpu(entry) for name, entry in entries_of(network)},
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
        if _layers(network) != self.layers:
            raise self._differs()
        try:
            network.load_state_dict(self.state, assign=True)
            for name, tensor in self.buffers.items():
                parent, _, leaf = name.rpartition(".")
                setattr(network.get_submodule(parent), leaf, tensor)
        except (RuntimeError, AttributeError) as error:
            raise self._differs() from error
        network = network.to(self.device)
        return Model(network, self.tokenizer, name=self.name, revision=self.revision)

    def _differs(self) -> ModelError:
        return ModelError(
            f"{self.name} is not what its configuration says, so it cannot be made again in "
            "another process; save it and load it from its directory."
        )


def _layers(network: nn.Module) -> tuple[str, ...]:
    return tuple(type(module).__name__ for module in network.modules())


def _on_cpu(entry: Any) -> Any:
    return entry.cpu() if isinstance(entry, Tensor) else entry


def find_place_of(source: "Source") -> str:
    """The name under which any process finds the source."""
    if source.bundled or source.hub:
        return source.name
    path = Path(source.place).absolute()
    return str(path if source.gguf is None else path / source.gguf)


# Reading every number of a large model takes longer than many runs; training changes all of them.
_SAMPLE = 4096
SKETCH, SKETCH_SEED = 256, 16
_CIRCUMSTANCES = ("_name_or_path", "transformers_version", "architectures", "dtype", "use_cache")


def fingerprint(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Hash the configuration, an even sample of every parameter, and the vocabulary."""
    digest = hashlib.sha256()
    digest.update(_configuration(network).encode())
    for name, entry in entries_of(network):
        _add(digest, name, entry)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0]))
    digest.update(json.dumps(vocabulary).encode())
    return digest.hexdigest()[:32]


def sketch(network: PreTrainedModel) -> str:
    """A few numbers of the input embeddings, rounded: alike in networks of one lineage.

    Checkpoints, fine-tuned and quantised copies keep most of their embeddings, while two networks
    that were trained apart have nothing in common. Where the numbers are taken from follows from a
    seed and the shape of the matrix. Empty for a network without a matrix of embeddings.
    """
    found = network.get_input_embeddings()
    with at_hand(found):
        return _sketch(found)


def _sketch(embeddings: nn.Module) -> str:
    weight: Any = getattr(embeddings, "weight", None)
    weight = weight() if callable(weight) and not isinstance(weight, Tensor) else weight
    if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.numel() == 0:
        return ""
    random = np.random.default_rng([SKETCH_SEED, *weight.shape])
    rows, columns = (random.integers(size, size=SKETCH) for size in weight.shape)
    numbers = _picked(weight.detach(), torch.from_numpy(rows), torch.from_numpy(columns))
    return " ".join(f"{number:.4g}" for number in numbers)


def _picked(weight: Tensor, rows: Tensor, columns: Tensor) -> list[float]:
    try:
        chosen = weight[rows.to(weight.device), columns.to(weight.device)]
    except (RuntimeError, TypeError, NotImplementedError):  # tensors of quantised layers
        chosen = weight.dequantize()[rows.to(weight.device), columns.to(weight.device)]
    if chosen.is_quantized:
        chosen = chosen.dequantize()
    return chosen.to("cpu", torch.float64).tolist()


def _configuration(network: PreTrainedModel) -> str:
    """Without what depends on where, how and by which version the model was loaded."""
    config = network.config.to_diff_dict()
    for name in _CIRCUMSTANCES:
        config.pop(name, None)
    return json.dumps(config, sort_keys=True, default=str)


def _add(digest: Any, name: str, entry: Any) -> None:
    """Add an entry of the state; quantised layers also keep tuples of tensors, and settings."""
    if isinstance(entry, tuple):
        for place, part in enumerate(entry):
            _add(digest, f"{name}.{place}", part)
    elif isinstance(entry, Tensor):
        digest.update(f"{name} {tuple(entry.shape)} {entry.dtype}".encode())
        digest.update(_sample(entry))
    else:
        digest.update(f"{name} {entry}".encode())


def _sample(tensor: Tensor) -> bytes:
    try:
        return _numbers(tensor.detach())
    except (RuntimeError, TypeError):  # tensors of quantised layers know few operations
        return _numbers(tensor.detach().dequantize())


def _numbers(tensor: Tensor) -> bytes:
    flat = tensor.reshape(-1)
    step = max(1, flat.numel() // _SAMPLE)
    return flat[::step].to("cpu", torch.float64).numpy().tobytes()
