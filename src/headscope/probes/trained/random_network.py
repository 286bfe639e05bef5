"""A model that has learned nothing but its embeddings: the control for what architecture gives."""

import torch
from torch import nn

from headscope.model.model import Model
from headscope.model.quiet import quiet


def randomise(model: Model, seed: int) -> Model:
    """The same network with pretrained input embeddings and otherwise fresh random weights."""
    network = model.network
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(network)(network.config)
    kept = {name for name in network.state_dict() if is_embedding(network, name)}
    fresh.load_state_dict({name: network.state_dict()[name] for name in kept}, strict=False)
    nn.Module.to(fresh, device=network.device, dtype=network.dtype)
    return Model(fresh, model.tokenizer, name=f"{model.name}, random weights")


def is_embedding(network: nn.Module, name: str) -> bool:
    """Whether a tensor belongs to the embeddings that turn ids into the first layer's input.

    Its module is an embedding table outside attention (T5 keeps its position bias in one), or it
    stands in a module that is called embeddings (BERT's layer norm after the sum).
    """
    parts = name.split(".")[:-1]
    if any("attention" in part.lower() or "attn" in part.lower() for part in parts):
        return False
    owner = network.get_submodule(".".join(parts))
    return isinstance(owner, nn.Embedding) or any(part == "embeddings" for part in parts)
