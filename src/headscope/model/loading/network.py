"""A network as it is held: on which devices, in how many bits, and in which mode a pass runs.

Spreading is accelerate's work. Its hooks bring the weights of a module to a device right before the
module runs and take them away again; in between there is a tensor without numbers in their place,
which computes without complaint and gives nonsense. Whoever reads a weight outside of its module's
forward pass has to ask for it here.

Weights of attention are only right without dropout, and only eager attention computes them at all.
A network may belong to somebody who is training it with another implementation, so both settings
are put back after a pass.
"""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedConfig, PreTrainedModel, TorchAoConfig
from transformers.pytorch_utils import Conv1D
from transformers.utils import logging as hf_logging

from headscope.errors import ModelError

DeviceMap = str | Mapping[str, str | int]
STRATEGIES = ("auto", "balanced", "balanced_low_0", "sequential")
_WANTED = (
    f"give one of {', '.join(STRATEGIES)}, or which part goes where "
    '({"model.layers.0": "cuda:0", "model.layers.1": "disk", …})'
)
# The libraries for each number of bits, the preferred one first. torchao's kernels for four bits
# want a GPU and further packages, while bitsandbytes computes with them everywhere.
LIBRARIES = {"int8": ("torchao", "bitsandbytes"), "int4": ("bitsandbytes", "torchao")}
CHOICES = (*LIBRARIES, *(f"{library}-{bits}" for bits in LIBRARIES for library in LIBRARIES[bits]))
_GROUP = 32  # weights that share a scale in torchao's four bits

# What a checkpoint that is quantised already is read by: its method, the package, how to get it.
_READERS = {
    "bitsandbytes": ("bitsandbytes", "'headscope[bitsandbytes]'"),
    "torchao": ("torchao", "'headscope[torchao]'"),
    "gptq": ("gptqmodel", "gptqmodel"),
    "awq": ("gptqmodel", "gptqmodel"),
    "hqq": ("hqq", "hqq"),
    "quanto": ("optimum.quanto", "optimum-quanto"),
    "compressed-tensors": ("compressed_tensors", "compressed-tensors"),
    "aqlm": ("aqlm", "aqlm"),
    "eetq": ("eetq", "eetq"),
    "vptq": ("vptq", "vptq"),
}
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
        raise ModelError(f"The device {name!r} cannot be used here; try cpu or cuda.") from error
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
    numbers: dict[str, int] = {}
    for name, tensor in network.named_parameters():
        owner = max((part for part in places if _is_part(name, part)), key=len, default=None)
        if owner is not None:
            place = places[owner]
            label = f"cuda:{place}" if isinstance(place, int) else str(place)
            numbers[label] = numbers.get(label, 0) + tensor.numel()
    total = sum(numbers.values())
    shares = ", ".join(f"{count / total:.0%} on {place}" for place, count in numbers.items())
    return f"Weights are spread by accelerate: {shares}."


def _is_part(name: str, part: str) -> bool:
    return part == "" or name == part or name.startswith(f"{part}.")


@dataclass(frozen=True)
class Quantization:
    """How many bits, and who does the work."""

    bits: str  # int8 or int4
    library: str

    def config(self, dtype: torch.dtype) -> Any:
        """What `from_pretrained` is given."""
        if self.library == "bitsandbytes":
            if self.bits == "int8":
                return BitsAndBytesConfig(load_in_8bit=True)
            return BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
            )
        return TorchAoConfig(_torchao(self.bits))

    def describe(self, network: PreTrainedModel) -> str:
        """What was quantised by what; a network in which nothing was is refused."""
        linear = [m for m in network.modules() if isinstance(m, nn.Linear | Conv1D)]
        done = [module for module in linear if _is_quantised(module)]
        if not done:
            raise ModelError(
                f"{self.library} finds nothing to store in {self.bits}: the network has no layers "
                f"that it replaces (nn.Linear); {self._otherwise()}."
            )
        return (
            f"{len(done)} of {len(linear)} linear layers are in {self.bits} by {self.library} "
            f"{version(self.library)}; the others and the embeddings are as they were."
        )

    def fails(self, name: str) -> ModelError:
        """What is said where the library gives up on the weights."""
        return ModelError(
            f"{self.library} {version(self.library)} cannot store the weights of {name} in "
            f"{self.bits}; {self._otherwise()}."
        )

    def _otherwise(self) -> str:
        other = next(name for name in LIBRARIES[self.bits] if name != self.library)
        return f"try quantization={other}-{self.bits}, or leave it out"


def read_quantization(name: str | None) -> Quantization | None:
    """The quantization that a user asked for; a library that is missing is named."""
    if name is None:
        return None
    if name not in CHOICES:
        raise ModelError(
            f"There is no quantization {name!r}; choose one of {', '.join(CHOICES)}, or leave it "
            "out."
        )
    library, _, bits = name.rpartition("-")
    wanted: Sequence[str] = [library] if library else LIBRARIES[bits]
    found = next((each for each in wanted if find_spec(each) is not None), None)
    if found is None:
        extras = " or ".join(f"`pip install 'headscope[{each}]'`" for each in wanted)
        raise ModelError(f"Weights in {bits} need {' or '.join(wanted)}: {extras}.")
    if find_spec("accelerate") is None:
        raise ModelError(
            f"Weights in {bits} by {found} need accelerate: `pip install 'headscope[{found}]'`."
        )
    return Quantization(bits, found)


def check_quantised(name: str, config: PreTrainedConfig, asked: Quantization | None) -> None:
    """Name the library that a checkpoint in few bits needs before its weights are touched."""
    own = getattr(config, "quantization_config", None)
    if own is None:
        return
    method = str(_entry(own, "quant_method") or "bitsandbytes")
    method = method.rpartition(".")[2].lower()
    if asked is not None:
        raise ModelError(f"{name} is quantised by {method} already; leave quantization out.")
    package, install = _READERS.get(method, (None, ""))
    if package is not None and not _is_installed(package):
        raise ModelError(
            f"{name} is quantised by {method}, which needs {package}: `pip install {install}`."
        )


def _entry(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, PackageNotFoundError, ValueError):  # the parent of a dotted name is absent
        return False


def _torchao(bits: str) -> Any:
    configs: Any = import_module("torchao.quantization")
    if bits == "int8":
        return configs.Int8WeightOnlyConfig()
    groups = import_module("torchao.quantization.granularity").PerGroup(_GROUP)
    return configs.IntxWeightOnlyConfig(weight_dtype=getattr(torch, bits), granularity=groups)


def _is_quantised(module: nn.Module) -> bool:
    weight = module.weight
    plain = type(weight) in (torch.Tensor, nn.Parameter)
    whole = isinstance(weight, torch.Tensor) and weight.dtype.is_floating_point
    return not plain or not whole


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
    found: dict[int, PreTrainedConfig] = {}
    while waiting:
        config = waiting.pop()
        if id(config) not in found:
            found[id(config)] = config
            parts = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [part for part in parts if isinstance(part, PreTrainedConfig)]
    return list(found.values())
