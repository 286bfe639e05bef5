"""Gradients with respect to attention weights agree with finite differences on tiny models."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import BertModel
from transformers.models.bert import modeling_bert
from transformers.models.gpt2 import modeling_gpt2

from headscope.metrics import Grid, gradient
from headscope.metrics.gradient import (
    TARGETS,
    HeadGradient,
    choose_masked,
    gradient_importance,
    why_no_gradient,
)
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.observe import NO_LABEL, SPECIAL, Columns, Example
from tests.references.float64_models import tiny_bert, tiny_gpt2

TEXTS = ("A cat sat, said Ann.", "Birds sing.")
STEP = 1e-5


@contextmanager
def nudged(module: object, at: tuple[int, ...], amount: float) -> Iterator[None]:
    """Add to one weight of one layer between softmax and values, in the model's own function."""
    original = module.eager_attention_forward  # pyright: ignore[reportAttributeAccessIssue]
    layer, row, head, query, key = at
    calls = iter(range(99))

    def forward(attention, query_states, keys, values, *args, **kwargs):  # noqa: ANN001, ANN002, ANN003, ANN202
        output, weights = original(attention, query_states, keys, values, *args, **kwargs)
        if next(calls) == layer:
            output = output.clone()
            output[row, query, head] += amount * values[row, head, key]
        return output, weights

    module.eager_attention_forward = forward  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        module.eager_attention_forward = original  # pyright: ignore[reportAttributeAccessIssue]


def loss_of(model: Model, batch: Batch, predicted: Tensor) -> float:
    """The summed loss, written apart from the library's."""
    if model.is_causal:
        logits = model.forward(batch).logits
        rows = [(r, t, t - 1) for r, t in predicted.nonzero().tolist() if t > 0]
    else:
        hidden = batch.ids.clone()
        hidden[predicted] = torch.tensor(model.tokenizer.mask_token_id)
        logits = model.forward(replace(batch, ids=hidden)).logits
        rows = [(r, t, t) for r, t in predicted.nonzero().tolist()]
    chances = functional.log_softmax(logits, -1)
    return -sum(chances[r, read, batch.ids[r, t]].item() for r, t, read in rows)


def finite_differences(model: Model, batch: Batch, predicted: Tensor, module: object) -> np.ndarray:
    """|∂L/∂a| for every weight: layer, batch, head, query, key."""
    size = batch.ids.shape[1]
    found = np.zeros((2, len(batch), 2, size, size))
    for at in np.ndindex(found.shape):
        values = []
        for amount in (STEP, -STEP):
            with nudged(module, at, amount):
                values.append(loss_of(model, batch, predicted))
        found[at] = abs(values[0] - values[1]) / (2 * STEP)
    return found


@pytest.mark.parametrize(
    ("model", "module"),
    [(tiny_bert(), modeling_bert), (tiny_gpt2(), modeling_gpt2)],
    ids=["masked", "next token"],
)
def test_gradients_agree_with_finite_differences(model: Model, module: object) -> None:
    batch = model.batch([model.encode(text) for text in TEXTS])
    special = batch.ids == torch.tensor(model.tokenizer.sep_token_id or -1)
    predicted = batch.mask if model.is_causal else _masked(batch.mask & ~special)
    keys = torch.stack([special, _second(batch.mask), batch.mask & ~predicted | special], -1)
    found = gradient_importance(model, batch, predicted, keys & batch.mask[..., None])
    slopes = finite_differences(model, batch, predicted, module)
    for layer, row, head, kind in np.ndindex(found.shape):
        real = range(batch.lengths[row])
        pairs = [
            slopes[layer, row, head, i, j]
            for i in real
            for j in real
            if keys[row, j, kind] and (j <= i or not model.is_causal)
        ]
        if pairs:
            assert found[layer, row, head, kind].item() == pytest.approx(np.mean(pairs), rel=1e-5)
        else:
            assert found[layer, row, head, kind].isnan()


def _masked(maskable: Tensor) -> Tensor:
    return torch.from_numpy(choose_masked(maskable.numpy(), (4, 9), seed=1))


def _second(mask: Tensor) -> Tensor:
    second = torch.zeros_like(mask)
    second[:, 1] = True
    return second


def test_a_batch_does_not_change_the_gradients_of_its_inputs() -> None:
    model = tiny_bert()
    encoded = [model.encode(text) for text in TEXTS]
    together = model.batch(encoded)
    predicted = _masked(together.mask & (together.ids != model.tokenizer.sep_token_id))
    keys = together.mask[..., None]
    both = gradient_importance(model, together, predicted, keys)
    for row in range(2):
        length = together.lengths[row]
        alone = model.batch(encoded, [row])
        one = gradient_importance(model, alone, predicted[[row], :length], alone.mask[..., None])
        torch.testing.assert_close(one[:, 0], both[:, row])


@pytest.mark.parametrize("weights_at_once", [1, 2**27])
def test_values_of_heads_are_means_over_inputs_of_the_summed_and_the_mean_loss(
    weights_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient, "WEIGHTS_AT_ONCE", weights_at_once)
    model, grid = tiny_gpt2(), Grid((0, 1), 2)
    examples = []
    for number, text in enumerate(TEXTS):
        encoded = model.encode(text)
        marks = [SPECIAL.index("punct") if token in ".," else NO_LABEL for token in encoded.labels]
        examples.append(Example(number, encoded, (False,) * len(encoded), {"special": marks}))
    cut = Columns.of(examples).cut(range(2), pad=model.pad, is_causal=True)
    metric = HeadGradient(grid, seed=0)
    sums = metric.zero()
    metric.see_model(sums, model, cut.batch, cut.annotated)
    variables = metric.compute(sums)
    marked = cut.annotated.labels["special"] == torch.tensor(SPECIAL.index("punct"))
    keys = torch.stack([marked, cut.batch.mask], -1)
    summed = gradient_importance(model, cut.batch, cut.batch.mask, keys)
    predicted = cut.batch.mask.sum(1) - 1  # nothing predicts the first token
    for name, values in (
        ("gradient", summed),
        ("gradient_mean_loss", summed / predicted[:, None, None]),
    ):
        assert variables[name].dims == ("layer", "head", "target")
        assert variables[name]["target"].values.tolist() == list(TARGETS)
        assert variables[name].sel(target="sep").isnull().all()  # no input has any
        means = variables[name].sel(target=["punct", "unmasked"])
        np.testing.assert_allclose(means, values.mean(1), rtol=1e-12)


def test_no_parameter_keeps_a_gradient() -> None:
    model = tiny_bert()
    batch = model.batch([model.encode(TEXTS[0])])
    gradient_importance(model, batch, batch.mask, batch.mask[..., None])
    assert all(parameter.grad is None for parameter in model.network.parameters())


def test_frozen_parameters_do_not_stop_the_gradient() -> None:
    model = tiny_bert()
    batch = model.batch([model.encode(TEXTS[0])])
    predicted, keys = batch.mask.roll(3, 1) & batch.mask, batch.mask[..., None]
    free = gradient_importance(model, batch, predicted, keys)
    model.network.requires_grad_(False)
    torch.testing.assert_close(gradient_importance(model, batch, predicted, keys), free)


def test_the_draw_depends_on_the_seed_and_the_input_alone() -> None:
    maskable = np.array([[False, *[True] * 20, False]])
    drawn = choose_masked(maskable, [7], seed=0)
    padded = np.pad(np.vstack([maskable, maskable]), ((0, 0), (0, 5)))
    again = choose_masked(padded, [3, 7], seed=0)
    assert drawn.sum() == 3 and not (drawn & ~maskable).any()
    assert (again[1, :22] == drawn[0]).all()
    assert (again[0] != again[1]).any()
    assert (choose_masked(maskable, [7], seed=1) != drawn).any()


def test_a_short_input_still_has_one_masked_token_and_an_empty_one_none() -> None:
    maskable = np.array([[True, True], [False, False]])
    assert choose_masked(maskable, [0, 1], seed=0).sum(1).tolist() == [1, 0]


def test_a_model_without_a_language_model_head_has_no_gradient() -> None:
    assert why_no_gradient(tiny_bert()) is None
    reason = why_no_gradient(tiny_bert(BertModel))
    assert reason == "the model has no language-model head, so there is no loss to differentiate"
