"""Every family: rows and fused kernels give the sums and the output that whole matrices give."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pytest
import torch
from torch import Tensor

from headscope.engine import forward
from headscope.errors import CaptureError
from headscope.model.capture import modes
from headscope.model.capture.modes import AttentionPath
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.observe import (
    AnnotatedBatch,
    BlockLayer,
    Columns,
    Example,
    Layer,
    PackedLayer,
)
from tests.contracts.families import FAMILIES, loaded
from tests.references.random_attention import sums_of

TEXTS = ("Birds sing in the old tree.", "To be", "A longer line")
NAMES = [family.name for family in FAMILIES]
# Fused, but not end to end: positions are counted by the network, a layer mixes neighbours without
# attention, or a window is too narrow for the kernels.
COUNTED = {"RoBERTa", "XLM-RoBERTa", "CamemBERT", "XMOD"}
MIXED = {"Qwen 3 Next", "Jamba", "Bamba", "Zamba", "LFM2", "MobileBERT"}
WINDOWED = {"ModernBERT", "Mistral", "Gemma 3", "OLMo 3"}
NOT_END_TO_END = COUNTED | MIXED | WINDOWED | {"LayoutLM"}  # which adds a mask of its own
POSITION_BIAS = {"T5", "mT5", "UMT5", "Switch"}  # scores that queries, keys and mask do not give

each_family = pytest.mark.parametrize("name", NAMES, scope="module")
each_way = pytest.mark.parametrize("way", ["rows", "fused"])


def annotated_batch(model: Model) -> tuple[Batch, AnnotatedBatch]:
    """Texts of different lengths, padded where the family can be, with random labels and arcs."""
    rng = np.random.default_rng(0)
    texts = TEXTS if model.can_pad("right") else TEXTS[:1]
    examples = []
    for number, text in enumerate(texts):
        encoded = model.encode(text)
        size = len(encoded)
        null = [place == 0 for place in range(size)] if model.is_causal else encoded.special
        pairs = {(int(a), int(b)) for a, b in rng.integers(1, size, (8, 2)) if a != b}
        labels = {"tag": rng.integers(-1, 3, size).tolist()}
        examples.append(Example(number, encoded, null, labels, sorted(pairs)))
    cut = Columns.of(examples).cut(range(len(texts)), pad=model.pad, is_causal=model.is_causal)
    return cut.batch, replace(cut.annotated, first_peak_token=1)


@dataclass(frozen=True)
class Whole:
    """A layer as whole matrices, and its sums."""

    layer: BlockLayer

    @cached_property
    def sums(self) -> dict[str, Tensor]:
        return sums_of(self.layer)


@dataclass(frozen=True)
class Inputs:
    """A family's model, what it reads, and what it must show."""

    model: Model
    batch: Batch
    annotated: AnnotatedBatch

    @cached_property
    def wanted(self) -> list[Whole]:
        layers: list[Layer] = []
        forward.show_layers(self.model, self.batch, self.annotated, "dense", layers.append)
        return [Whole(layer) for layer in layers if isinstance(layer, BlockLayer)]


@lru_cache(maxsize=1)
def inputs_of(name: str) -> Inputs:
    """Kept for the tests of one family, which follow each other."""
    model = loaded(name)
    return Inputs(model, *annotated_batch(model))


def close(found: Tensor, wanted: Tensor, what: str) -> None:
    found, wanted = found.double(), wanted.double()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, msg=lambda m: f"{what}: {m}")


def same_layer(found: Layer, whole: Whole) -> None:
    for name, values in sums_of(found).items():
        close(values, whole.sums[name], name)
    wanted = whole.layer
    for offset in (-3, -1, 0, 1):
        close(found.on_offset(offset), wanted.on_offset(offset), f"offset {offset}")
    close(found.by_offset(4), wanted.by_offset(4), "by offset")
    real = wanted.batch.mask[:, None, 2:7, None]
    close(found.weights(2, 7) * real, wanted.weights(2, 7) * real, "weights")
    for row, length in enumerate(wanted.batch.mask.sum(1).tolist()):
        mine, theirs = (layer.text(row, 1, length)[..., :length] for layer in (found, wanted))
        close(mine, theirs, "text")
    query, key = torch.tensor([[0, 2, 3, 3], [0, 1, 1, 3]])
    there = (wanted.batch.mask[:, query] & wanted.batch.mask[:, key])[:, None]
    mine, theirs = (layer.corner(4, query, key) * there for layer in (found, wanted))
    close(mine, theirs, "corner")


@each_family
@each_way
def test_sums_equal_those_of_whole_matrices(
    name: str, way: AttentionPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(modes.BLOCK_BYTES, "cpu", 4 * 4 * 30 * 8)  # eight rows at a time
    given = inputs_of(name)
    if way not in given.model.modes:
        with pytest.raises(CaptureError, match="cannot be computed by"):
            forward.show_layers(given.model, given.batch, given.annotated, way, lambda _: None)
        return
    wanted = given.wanted
    found: list[Layer] = []

    def compare(layer: Layer) -> None:
        same_layer(layer, wanted[layer.index])
        found.append(layer)

    forward.show_layers(given.model, given.batch, given.annotated, way, compare)
    assert len(found) == len(wanted)


@each_family
def test_the_networks_output_stays_what_the_plain_forward_pass_gives(name: str) -> None:
    given = inputs_of(name)
    model, batch = given.model, given.batch
    with torch.no_grad():
        plain = model.forward(batch, logits=False)[0]
    real = given.annotated.mask[..., None]
    if "rows" in model.modes:
        output = model.forward(batch, lambda _: None, block=3, logits=False)[0]
        close(output * real, plain * real, "rows")
    if "fused" in model.modes:
        output = model.forward_fused(batch, lambda _: None, logits=False)[0]
        torch.testing.assert_close(output * real, plain * real, rtol=1e-4, atol=1e-4)


@each_family
def test_what_is_proved_is_what_the_family_is(name: str) -> None:
    model = loaded(name)
    stack = model.stacks[0]
    assert ("rows" in model.modes) == (stack.backend == "interface")
    assert ("fused" in model.modes) == (stack.plain and name not in POSITION_BIAS)
    assert all(model.modes.deferred.values())  # no mask of tokens × tokens either


@each_family
def test_texts_laid_end_to_end_have_the_sums_of_whole_matrices(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = inputs_of(name)
    model = given.model
    if "fused" not in model.modes or model.is_encoder_decoder:
        assert not model.lays_end_to_end
        return
    monkeypatch.setattr(modes, "takes", lambda query, value: True)
    monkeypatch.setattr(forward, "is_packed", lambda model: True)
    monkeypatch.delitem(vars(model), "lays_end_to_end", raising=False)
    assert model.lays_end_to_end == (name not in NOT_END_TO_END)
    found: list[Layer] = []
    forward.show_layers(model, given.batch, given.annotated, "fused", found.append)
    for layer in found:
        assert not model.lays_end_to_end or isinstance(layer, PackedLayer)
        same_layer(layer, given.wanted[layer.index])
    assert len(found) == len(given.wanted)
