"""A batch taken at once, without padding, gives what whole matrices give."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.engine.forward import choose_path
from headscope.model.attention import PackedAttention, Packing
from headscope.model.capture import modes
from headscope.model.capture.gpu.packed import attend_plainly, lay_end_to_end
from headscope.model.model import Model
from headscope.observe import AnnotatedBatch, BlockLayer, PackedLayer, pack_layer
from tests.references.float64_models import tiny_bert, tiny_gpt2
from tests.references.random_attention import (
    make_batch,
    matrix_layer,
    random_input,
    sums_of,
    with_first_peak,
)

WIDTH, SCALING = 4, 0.7


def random_layers(
    seed: int, is_causal: bool, texts: int, groups: int
) -> tuple[PackedLayer, BlockLayer]:
    """One layer both ways, with queries and keys of 2 × `groups` heads."""
    rng = np.random.default_rng(seed)
    batch = with_first_peak(make_batch([random_input(rng, is_causal) for _ in range(texts)]), seed)
    count, tokens = batch.mask.shape
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(count, 2 * groups, tokens, WIDTH, generator=generator) * 2
    key = torch.randn(count, 2, tokens, WIDTH, generator=generator)
    packing, kind = Packing.of(batch.mask), "causal" if is_causal else "full"
    packed = [packing.pack(part.transpose(1, 2)) for part in (query, key)]
    _, lse = attend_plainly(packed[0], packed[1], packed[1], SCALING, kind, packing)
    attention = PackedAttention("self", 0, packed[0], packed[1], SCALING, lse, kind, packing)
    return pack_layer(0, attention, batch), matrix_layer(0, batch, whole(query, key, batch))


def whole(query: Tensor, key: Tensor, batch: AnnotatedBatch) -> Tensor:
    scores = query @ key.repeat_interleave(query.shape[1] // 2, 1).mT * SCALING
    seen = batch.mask[:, None, None, :].expand(-1, 1, batch.mask.shape[1], -1)
    seen = seen.tril() if batch.is_causal else seen
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) * batch.mask[:, None, :, None]


@pytest.mark.parametrize("kind", ["causal", "full"])
def test_texts_of_one_length_lie_as_if_they_had_been_packed(kind: Any) -> None:
    query, key, value = torch.randn(3, 2, 4, 5, WIDTH).unbind(0)  # text head token dim
    scores = query @ key.mT * SCALING
    if kind == "causal":
        scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    found = lay_end_to_end(scores.softmax(-1) @ value, scores.logsumexp(-1))
    packing = Packing.of(torch.ones(2, 5, dtype=torch.bool))
    parts = [packing.pack(part.transpose(1, 2)) for part in (query, key, value)]
    wanted = attend_plainly(parts[0], parts[1], parts[2], SCALING, kind, packing)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


CASES = (st.integers(0, 2**31), st.booleans(), st.integers(1, 5), st.integers(1, 3))


@given(*CASES)
@settings(max_examples=60, deadline=None)
def test_every_sum_is_that_of_the_matrix(
    seed: int, is_causal: bool, texts: int, groups: int
) -> None:
    packed, dense = random_layers(seed, is_causal, texts, groups)
    wanted = sums_of(dense)
    for name, values in sums_of(packed).items():
        one, other = values.double(), wanted[name].double()
        near = 1e-4 if name == "entropy_sum" else 2e-5  # large sums of scores cancel in an entropy
        torch.testing.assert_close(one, other, rtol=near, atol=near, msg=name)
    for offset in (-40, -2, -1, 0, 1, 3):
        torch.testing.assert_close(
            packed.on_offset(offset), dense.on_offset(offset), rtol=1e-5, atol=1e-5
        )
    for longest in (1, 3, 40):
        torch.testing.assert_close(
            packed.by_offset(longest), dense.by_offset(longest), rtol=1e-5, atol=1e-5
        )
    torch.testing.assert_close(packed.weights(0, 3), dense.weights(0, 3), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(packed.weights(2, 99), dense.weights(2, 99), rtol=1e-5, atol=1e-6)


@given(*CASES)
@settings(max_examples=30, deadline=None)
def test_sums_by_offset_are_those_of_the_matrix(
    seed: int, is_causal: bool, texts: int, groups: int
) -> None:
    packed, dense = random_layers(seed, is_causal, texts, groups)
    for longest in (2, 20):
        torch.testing.assert_close(
            packed.by_offset(longest), dense.by_offset(longest), rtol=2e-5, atol=2e-5
        )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans())
@settings(max_examples=40)
def test_packing_and_unpacking_keep_every_token(lengths: list[int], on_the_left: bool) -> None:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    mask = mask.flip(1) if on_the_left else mask
    packing = Packing.of(mask)
    values = torch.arange(mask.numel()).reshape(mask.shape)
    packed = packing.pack(values)
    assert packed.tolist() == values[mask].tolist()
    assert packing.text.tolist() == [n for n, length in enumerate(lengths) for _ in range(length)]
    assert packing.firsts.tolist() == [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    assert packing.unpack(packed, -1).tolist() == values.masked_fill(~mask, -1).tolist()


@pytest.mark.parametrize("make", [tiny_gpt2, tiny_bert])
def test_a_network_run_packed_gives_its_own_output_and_weights(
    make: Callable[[], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make()
    texts = [model.encode(text) for text in ("the cat sat on the mat", "the cat", "cat the mat")]
    batch, wanted, seen = model.batch(texts), [], []
    plain = model.forward(batch, lambda layer: wanted.append(layer.weights), logits=False)[0]
    monkeypatch.setattr(modes, "takes", lambda query, value: True)
    found = model.forward_fused(batch, seen.append, logits=False)[0]
    torch.testing.assert_close(found[batch.mask], plain[batch.mask], rtol=1e-4, atol=1e-5)
    assert len(seen) == len(wanted) > 0
    for layer, weights in zip(seen, wanted, strict=True):
        assert isinstance(layer, PackedAttention)
        annotated = AnnotatedBatch(
            np.arange(3), np.arange(3), torch.zeros(3).long(), batch.mask,
            torch.zeros_like(batch.mask), model.is_causal,
        )  # fmt: skip
        rows = pack_layer(layer.layer, layer, annotated).weights(0, batch.mask.shape[1])
        real = batch.mask[:, None, :, None]
        torch.testing.assert_close(rows * real, weights * real, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("refuses", [False, True])
def test_texts_are_laid_end_to_end_only_where_together_they_may_be_longer_than_one(
    refuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_gpt2()
    monkeypatch.setattr(modes, "takes", lambda query, value: True)

    def refuse(module: Any, args: Any, given: dict[str, Any]) -> None:
        ids = given["input_ids"] if "input_ids" in given else args[0]
        if refuses and ids.shape[1] > model.network.config.n_positions:
            raise ValueError("more tokens than positions")

    model.network.base_model.register_forward_pre_hook(refuse, with_kwargs=True)
    assert model.lays_end_to_end is not refuses


@pytest.mark.parametrize(
    ("device", "window", "needs_matrices", "way"),
    [("cuda", None, False, "fused"), ("cuda", None, True, "dense"), ("cuda", 128, False, "dense"),
     ("cpu", None, False, "dense")],
)  # fmt: skip
def test_a_gpu_packs_plain_attention_unless_matrices_are_asked_for(
    device: str, window: int | None, needs_matrices: bool, way: str
) -> None:
    config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(sliding_window=window))
    model: Any = SimpleNamespace(
        device=torch.device(device), modes=("rows", "fused"), network=SimpleNamespace(config=config)
    )
    assert choose_path(model, 20, "auto", needs_matrices=needs_matrices) == way
    assert choose_path(model, 5000, "auto", needs_matrices=needs_matrices) == "fused"
    assert choose_path(model, 20, "rows") == "rows"


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_give_what_their_plain_twins_give() -> None:
    """In Triton's interpreter, which needs no GPU but a process of its own."""
    command = [sys.executable, "-m", "tests.tools.check_packed_kernels", "--device", "cpu"]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
