"""A network as it is held: on which devices, in which mode a pass runs, and what it is known by.

Spreading is accelerate's work. Its hooks bring the weights of a module to a device right before the
module runs and take them away again; in between there is a tensor without numbers in their place,
which computes without complaint and gives nonsense. Whoever reads a weight outside of its module's
forward pass has to ask for it here.

Weights of attention are only right without dropout, and only eager attention computes them at all.
A network may belong to somebody who is training it with another implementation, so both settings
are put back after a pass.
"""

import hashlib
import json
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as hf_logging

from headscope.errors import ModelError

if TYPE_CHECKING:
    from headscope.model.model import Model

DeviceMap = str | Mapping[str, str | int]
STRATEGIES = ("auto", "balanced", "balanced_low_0", "sequential")
_WANTED = (
    f"give one of {', '.join(STRATEGIES)}, or which part goes where "
    '({"model.layers.0": "cuda:0", "model.layers.1": "disk", …})'
)
# Reading every number of a large model takes longer than many runs; training changes all of them.
_SAMPLE = 4096
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
SKETCH, SKETCH_SEED = 256, 16
# Of a configuration: what depends on where, how and by which version the model was loaded.
_CIRCUMSTANCES = ("_name_or_path", "transformers_version", "architectures", "dtype", "use_cache")
_lock = Lock()
_TALKATIVE = ("huggingface_hub", "accelerate", "torchao")


def find_device(name: str | None) -> torch.device:
    """The device of this name; CUDA where there is one by default, else the CPU."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        devices = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise ModelError(f"The device {name!r} cannot be used here; try {devices}.") from error
    return device


def read_device_map(given: DeviceMap | None, device: str | None) -> DeviceMap | None:
    """A map as accelerate takes it: by name, as a mapping, or as a mapping written in JSON."""
    if given is None:
        return None
    if device is not None:
        raise ModelError(f"device={device} and a device_map are both given; leave one of them out.")
    read = _read_json(given) if isinstance(given, str) and given not in STRATEGIES else given
    if isinstance(read, Mapping):
        for part, place in read.items():
            _check_place(part, place)
    if find_spec("accelerate") is None:
        raise ModelError(
            "Weights are spread and off-loaded by accelerate, which is not installed: "
            "`pip install 'headscope[large]'`."
        )
    return read


def _read_json(text: str) -> Mapping[str, str | int]:
    try:
        is_file = not text.lstrip().startswith("{") and Path(text).is_file()
        read = json.loads(Path(text).read_text(encoding="utf-8") if is_file else text)
    except (OSError, ValueError) as error:
        raise ModelError(f"There is no device map {text!r}; {_WANTED}.") from error
    if not isinstance(read, dict) or not read:
        raise ModelError(f"The device map {text!r} does not say which part goes where; {_WANTED}.")
    return read


def _check_place(part: object, place: object) -> None:
    if not isinstance(part, str) or not isinstance(place, str | int):
        raise ModelError(f"A device map names parts and devices, not {part!r}: {place!r}.")
    if place != "disk":
        find_device(f"cuda:{place}" if isinstance(place, int) else place)


def home_of(network: PreTrainedModel) -> torch.device:
    """Where a network takes its inputs."""
    hook = getattr(network.get_input_embeddings(), "_hf_hook", None)
    device = getattr(hook, "execution_device", None)
    if device is None:
        return network.device
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)


def at_hand(module: nn.Module) -> AbstractContextManager[object]:
    """A context in which the module's own weights are there, wherever they are kept."""
    if not any(tensor.is_meta for tensor in module.parameters(recurse=False)):
        return nullcontext()
    from accelerate.utils.modeling import align_module_device

    return align_module_device(module)


def entries_of(network: nn.Module) -> Iterator[tuple[str, Any]]:
    """The entries of a network's state, those that are off-loaded brought in one at a time."""
    for name, entry in network.state_dict().items():
        if not isinstance(entry, Tensor) or not entry.is_meta:
            yield name, entry
            continue
        parent, _, leaf = name.rpartition(".")
        module = network.get_submodule(parent)
        with at_hand(module):
            yield name, getattr(module, leaf).detach()


def describe_places(network: PreTrainedModel) -> str | None:
    """Which share of the weights is where, in one sentence; None where all are on one device."""
    places: Mapping[str, Any] | None = getattr(network, "hf_device_map", None)
    if not places or (len(set(places.values())) < 2 and "disk" not in places.values()):
        return None
    numbers = Counter[str]()
    for name, tensor in network.named_parameters():
        owner = max((part for part in places if _is_part(name, part)), key=len, default=None)
        if owner is not None:
            place = places[owner]
            label = f"cuda:{place}" if isinstance(place, int) else str(place)
            numbers[label] += tensor.numel()
    total = numbers.total()
    shares = ", ".join(f"{count / total:.0%} on {place}" for place, count in numbers.items())
    return f"Weights are spread by accelerate: {shares}."


def _is_part(name: str, part: str) -> bool:
    return part == "" or name == part or name.startswith(f"{part}.")


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars or advice from transformers and the hub; their errors still come through."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    verbosity = hf_logging.get_verbosity()
    bars = hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.CRITICAL)
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()


@dataclass
class _Settings:
    """What a network was set to before the first of the passes that are running now."""

    passes: int = 0
    training: list[nn.Module] = field(default_factory=list)
    implementations: list[tuple[PreTrainedConfig, str | None]] = field(default_factory=list)
    switchable: list[PreTrainedConfig] | None = None  # found on the first pass


_settings: WeakKeyDictionary[nn.Module, _Settings] = WeakKeyDictionary()


@contextmanager
def evaluating(network: PreTrainedModel) -> Iterator[None]:
    """Set a network to evaluation mode and eager attention; restore it after the last pass.

    Threads may share a network: the settings stay until no pass is left.
    """
    with _lock:
        settings = _settings.setdefault(network, _Settings())
        if settings.passes == 0:
            _apply(network, settings)
        settings.passes += 1
    try:
        yield
    finally:
        with _lock:
            settings.passes -= 1
            if settings.passes == 0:
                _restore(settings)


def _apply(network: PreTrainedModel, settings: _Settings) -> None:
    settings.training = [module for module in network.modules() if module.training]
    for module in settings.training:
        module.training = False
    configs = _configs(network)
    settings.implementations = [(config, config._attn_implementation) for config in configs]
    if settings.switchable is None:
        # transformers 5.15 passes over parts that have a copy of the configuration, as T5's stacks
        # do, so every part is told.
        with quiet():
            for part in network.modules():
                if isinstance(part, PreTrainedModel):
                    part.set_attn_implementation("eager")
        settings.switchable = [c for c in configs if c._attn_implementation == "eager"]
    for config in settings.switchable:
        config._attn_implementation_internal = "eager"


def _restore(settings: _Settings) -> None:
    for module in settings.training:
        module.training = True
    for config, implementation in settings.implementations:
        config._attn_implementation_internal = implementation
    settings.training, settings.implementations = [], []


def _configs(network: PreTrainedModel) -> list[PreTrainedConfig]:
    """The configurations of a network and its parts, each once; they are compared by identity."""
    waiting = [network.config]
    waiting += [m.config for m in network.modules() if isinstance(m, PreTrainedModel)]
    configs: dict[int, PreTrainedConfig] = {}
    while waiting:
        config = waiting.pop()
        if id(config) not in configs:
            configs[id(config)] = config
            parts = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [part for part in parts if isinstance(part, PreTrainedConfig)]
    return list(configs.values())


def load_again(name: str, origin: Mapping[str, Any]) -> "Model":
    """The model of another process, perhaps of another machine, under the name it has there."""
    from headscope.model.loading.load import load

    model = load(**origin)
    model.name = name
    return model


def take_apart(model: "Model") -> tuple[Callable[..., "Model"], tuple[Any, ...]]:
    """What makes a model again that was made in Python, in another process, and what it takes.

    The network goes as numbers: hooks that others put on it stay behind.
    """
    network = model.network
    state = {name: e.cpu() if isinstance(e, Tensor) else e for name, e in entries_of(network)}
    buffers = {name: tensor.cpu() for name, tensor in network.named_buffers()}  # also if not saved
    return put_together, (
        type(network), network.config, _layers(network), state, buffers, model.device.type,
        model.tokenizer, model.name, model.revision,
    )  # fmt: skip


def put_together(
    kind: Any,
    config: PreTrainedConfig,
    layers: Sequence[str],
    state: Mapping[str, Any],
    buffers: Mapping[str, Tensor],
    device: str,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    revision: str | None,
) -> "Model":
    """The model that was taken apart."""
    from headscope.model.model import Model

    network = kind(config)
    try:
        if _layers(network) != layers:  # a quantised layer would take any numbers
            raise RuntimeError("other layers")
        network.load_state_dict(state, assign=True)
        for place, tensor in buffers.items():
            parent, _, leaf = place.rpartition(".")
            setattr(network.get_submodule(parent), leaf, tensor)
    except (RuntimeError, AttributeError) as error:
        raise ModelError(
            f"{name} is not what its configuration says, so it cannot be made again in another "
            "process; save it and load it from its directory."
        ) from error
    return Model(network.to(device), tokenizer, name=name, revision=revision)


def _layers(network: nn.Module) -> tuple[str, ...]:
    return tuple(type(module).__name__ for module in network.modules())


def fingerprint(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Hash the configuration, every parameter, and the vocabulary.

    Of a parameter: an even sample of its numbers, and the sum of all their bits as integers, which
    is the same in any order of addition and on any device.
    """
    said = network.config.to_diff_dict().items()
    config = {name: value for name, value in said if name not in _CIRCUMSTANCES}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
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
    embeddings = network.get_input_embeddings()
    with at_hand(embeddings):
        weight: Any = getattr(embeddings, "weight", None)
        weight = weight() if callable(weight) and not isinstance(weight, Tensor) else weight
        if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.numel() == 0:
            return ""
        random = np.random.default_rng([SKETCH_SEED, *weight.shape])
        places = [torch.from_numpy(random.integers(size, size=SKETCH)) for size in weight.shape]
        rows, columns = (place.to(weight.device) for place in places)
        return " ".join(f"{n:.4g}" for n in _read(weight, lambda own: own[rows, columns]).tolist())


def _read(tensor: Tensor, pick: Callable[[Tensor], Tensor]) -> Tensor:
    """Some numbers of a tensor; those of quantised layers know few operations."""
    tensor = tensor.detach()
    try:
        chosen = pick(tensor)
        chosen = chosen.dequantize() if chosen.is_quantized else chosen
        return chosen.to("cpu", torch.float64)
    except (RuntimeError, TypeError):
        return pick(tensor.dequantize()).to("cpu", torch.float64)


def _add(digest: Any, name: str, entry: Any) -> None:
    """Add an entry of the state; quantised layers also keep tuples of tensors, and settings."""
    if isinstance(entry, tuple):
        for place, part in enumerate(entry):
            _add(digest, f"{name}.{place}", part)
    elif isinstance(entry, Tensor):
        digest.update(f"{name} {tuple(entry.shape)} {entry.dtype}".encode())
        step = max(1, entry.numel() // _SAMPLE)
        digest.update(_read(entry, lambda own: own.reshape(-1)[::step]).numpy().tobytes())
        digest.update(str(_sum_of_bits(entry)).encode())
    else:
        digest.update(f"{name} {entry}".encode())


def _sum_of_bits(tensor: Tensor) -> int:
    """A step of training, or one number multiplied in place, changes it."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    elif type(tensor) not in (Tensor, torch.nn.Parameter):  # a quantised one of its own kind
        tensor = tensor.dequantize()
    flat = tensor.reshape(-1).clone() if tensor.storage_offset() else tensor.reshape(-1)
    size = 8 if flat.nbytes % 8 == 0 else flat.element_size()  # eight bytes at once are faster
    return int(flat.view(_BITS[size]).sum(dtype=torch.int64))
