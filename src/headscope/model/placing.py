"""Where the weights of a network are: on one device, spread over several, or off-loaded.

Spreading is accelerate's work. Its hooks bring the weights of a module to a device right before the
module runs and take them away again; in between there is a tensor without numbers in their place,
which computes without complaint and gives nonsense. Whoever reads a weight outside of its module's
forward pass has to ask for it here.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.errors import ModelError

DeviceMap = str | Mapping[str, str | int]
STRATEGIES = ("auto", "balanced", "balanced_low_0", "sequential")
_WANTED = (
    f"give one of {', '.join(STRATEGIES)}, or which part goes where "
    '({"model.layers.0": "cuda:0", "model.layers.1": "disk", …})'
)


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
