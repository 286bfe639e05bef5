"""Quantized weights: which library stores them, and what it did to a network."""

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedConfig, PreTrainedModel, TorchAoConfig
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError

# Of each number of bits the preferred library comes first. torchao's kernels for four bits want a
# GPU and further packages, while bitsandbytes computes with them everywhere.
CASES = ("torchao-int8", "bitsandbytes-int8", "bitsandbytes-int4", "torchao-int4")
_GROUP = 32  # weights that share a scale in torchao's four bits


@dataclass(frozen=True)
class Quantization:
    """How many bits, and who does the work."""

    library: str
    bits: str  # int8 or int4

    def config(self, dtype: torch.dtype) -> Any:
        """What `from_pretrained` is given."""
        match self.library, self.bits:
            case "bitsandbytes", "int8":
                return BitsAndBytesConfig(load_in_8bit=True)
            case "bitsandbytes", _:
                return BitsAndBytesConfig(
                    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
                )
            case _, "int8":
                torchao: Any = import_module("torchao.quantization")
                return TorchAoConfig(torchao.Int8WeightOnlyConfig())
            case _:
                torchao = import_module("torchao.quantization")
                groups = import_module("torchao.quantization.granularity").PerGroup(_GROUP)
                int4: Any = getattr(torch, self.bits)
                return TorchAoConfig(
                    torchao.IntxWeightOnlyConfig(weight_dtype=int4, granularity=groups)
                )

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
        """The error where the library gives up on the weights."""
        return ModelError(
            f"{self.library} {version(self.library)} cannot store the weights of {name} in "
            f"{self.bits}; {self._otherwise()}."
        )

    def _otherwise(self) -> str:
        other = "bitsandbytes" if self.library == "torchao" else "torchao"
        return f"try quantization={other}-{self.bits}, or leave it out"


def read_quantization(name: str) -> Quantization:
    """The quantization that a user asked for; a library that is missing is named."""
    cases = [case for case in CASES if case == name or case.endswith(f"-{name}")]
    if not cases:
        raise ModelError(
            f"There is no quantization {name!r}; choose one of int8, int4, {', '.join(CASES)}, or "
            "leave it out."
        )
    options = [Quantization(*case.split("-")) for case in cases]
    option = next((option for option in options if find_spec(option.library)), None)
    if option is None:
        libraries = " or ".join(option.library for option in options)
        extras = " or ".join(f"`pip install 'headscope[{option.library}]'`" for option in options)
        raise ModelError(f"Weights in {options[0].bits} need {libraries}: {extras}.")
    if find_spec("accelerate") is None:
        raise ModelError(
            f"Weights in {option.bits} by {option.library} need accelerate: "
            f"`pip install 'headscope[{option.library}]'`."
        )
    return option


def check_quantised(name: str, config: PreTrainedConfig) -> None:
    """Refuse to quantise a checkpoint once more."""
    stored = getattr(config, "quantization_config", None)
    if stored is None:
        return
    method = stored.get("quant_method") if isinstance(stored, dict) else stored.quant_method
    method = str(getattr(method, "value", method) or "bitsandbytes")
    raise ModelError(f"{name} is quantised by {method} already; leave quantization out.")


def _is_quantised(module: nn.Module) -> bool:
    weight = module.weight
    is_plain = type(weight) in (Tensor, nn.Parameter)
    is_whole = isinstance(weight, Tensor) and weight.dtype.is_floating_point
    return not is_plain or not is_whole
