"""A short hash that tells whether two models are the same."""

import hashlib
import json

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Reading every number of a large model takes longer than many runs; training changes all of them.
_SAMPLE = 4096
_CIRCUMSTANCES = ("_name_or_path", "transformers_version", "architectures", "dtype", "use_cache")


def fingerprint(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Hash the configuration, an even sample of every parameter, and the vocabulary."""
    digest = hashlib.sha256()
    digest.update(_configuration(network).encode())
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(_sample(tensor))
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0]))
    digest.update(json.dumps(vocabulary).encode())
    return digest.hexdigest()[:32]


def _configuration(network: PreTrainedModel) -> str:
    """Without what depends on where, how and by which version the model was loaded."""
    config = network.config.to_diff_dict()
    for name in _CIRCUMSTANCES:
        config.pop(name, None)
    return json.dumps(config, sort_keys=True, default=str)


def _sample(tensor: Tensor) -> bytes:
    flat = tensor.detach().reshape(-1)
    step = max(1, flat.numel() // _SAMPLE)
    return flat[::step].to("cpu", torch.float64).numpy().tobytes()
