"""A network of the same shape with random weights: what does the architecture alone give?"""

import torch
from torch import nn

from headscope.model.loading.network import entries_of, quiet
from headscope.model.model import Model

MOST_PARAMETERS = 1_000_000_000  # of a network that is held twice


def untrained(model: Model, seed: int, *, with_embeddings: bool = False) -> Model:
    """The same network with random weights; if asked for, with the trained input embeddings."""
    network = model.network
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(network)(network.config)
    if with_embeddings:
        embeddings = {name: e for name, e in entries_of(network) if is_embedding(network, name)}
        fresh.load_state_dict(embeddings, strict=False)
    nn.Module.to(fresh, device=model.device, dtype=network.dtype)
    return Model(fresh, model.tokenizer, name=f"{model.name}, random weights")


def why_no_untrained(model: Model) -> str | None:
    """Why there is no network of random weights beside this one."""
    network = model.network
    if getattr(network, "hf_quantizer", None) is not None:
        return "the network is quantized, and one of random weights would not be"
    if len(set(getattr(network, "hf_device_map", {}).values())) > 1:
        return "the network is spread over devices, and has no room for a second one"
    if sum(parameter.numel() for parameter in network.parameters()) > MOST_PARAMETERS:
        return f"a second network of more than {MOST_PARAMETERS:,} parameters takes too much memory"
    return None


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
