"""What a family shows is the same in every number type in which people load it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headscope.metrics.importance import why_no_importance
from headscope.model.model import Model
from headscope.model.norms import Norm
from headscope.model.writes import Readout, find_readout
from tests.contracts.families import FAMILIES, loaded
from tests.contracts.family import Family, tokenizer

each_family = pytest.mark.parametrize("name", [family.name for family in FAMILIES], scope="module")
each_type = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
ROUNDING = {torch.bfloat16: 2e-2, torch.float16: 3e-3}  # of a gain, of the largest of all


def family(name: str) -> Family:
    return next(family for family in FAMILIES if family.name == name)


def in_type(name: str, dtype: torch.dtype) -> Model:
    return Model(family(name).network().to(dtype), tokenizer(), name=name)  # pyright: ignore


def shown(model: Model) -> dict[str, Any]:
    """What the proofs on the probe found."""
    readout = find_readout(model)
    facts: dict[str, Any] = {
        "readout": type(readout.last).__name__ if isinstance(readout, Readout) else "none",
        "importance": why_no_importance(model),
        "modes": model.modes.deferred,
    }
    if isinstance(readout, Readout) and isinstance(readout.last, Norm):
        facts["is_centred"] = readout.last.is_centred
    return facts


@each_family
@each_type
def test_every_proof_gives_what_it_gives_in_float32(name: str, dtype: torch.dtype) -> None:
    model, wide = in_type(name, dtype), loaded(name)
    assert model.stacks == wide.stacks
    assert shown(model) == shown(wide)


@each_family
@each_type
def test_a_norm_is_read_within_the_rounding_of_its_type(name: str, dtype: torch.dtype) -> None:
    wide, narrow = find_readout(loaded(name)), find_readout(in_type(name, dtype))
    if not isinstance(wide, Readout) or not isinstance(wide.last, Norm):
        return
    assert isinstance(narrow, Readout) and isinstance(narrow.last, Norm)
    for fact in ("gain", "bias"):
        one, other = getattr(narrow.last, fact), getattr(wide.last, fact)
        assert (one - other).abs().max() <= ROUNDING[dtype] * max(1.0, float(other.abs().max()))


class NoNorm(nn.Module):
    """Squashes what it is given, each feature by itself."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden.tanh()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_what_is_no_norm_is_refused_and_the_type_is_named(dtype: torch.dtype) -> None:
    network: Any = family("Llama").network()
    network.model.norm = NoNorm()
    reason = find_readout(Model(network.to(dtype), tokenizer(), name="no norm"))
    assert isinstance(reason, str)
    assert reason.endswith(f"can be read from {str(dtype).removeprefix('torch.')} numbers")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_a_small_mean_does_not_make_an_rms_norm_a_layer_norm(dtype: torch.dtype) -> None:
    """Embeddings whose mean is half a per cent of their spread: two bytes hardly show it."""
    network: Any = family("Llama").network()
    for parameter in network.model.layers.parameters():
        parameter.data.zero_()
    rows = network.model.embed_tokens.weight.data
    rows.sub_(rows.mean(-1, keepdim=True)).add_(0.005 * rows.std(-1, keepdim=True))
    readout = find_readout(Model(network.to(dtype), tokenizer(), name="small mean"))
    assert isinstance(readout, Readout) and isinstance(readout.last, Norm)
    assert not readout.last.is_centred
