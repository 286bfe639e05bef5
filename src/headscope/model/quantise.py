"""Weights in eight or four bits, by whichever library is installed."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from transformers import BitsAndBytesConfig, PreTrainedConfig, PreTrainedModel, TorchAoConfig
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError

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
