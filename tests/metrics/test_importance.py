"""Loss without a head, with its mean, and gate gradients equal plain readings on tiny models."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertModel

import headscope as hs
from headscope.metrics import Grid, importance
from headscope.metrics.importance import (
    HeadImportance,
    loss_changes,
    mean_outputs,
    predicted_tokens,
    why_no_importance,
)
from headscope.model.model import Model
from headscope.observe import Columns, Cut, Example
from headscope.results.statements import read_statements
from headscope.text.corpus import Corpus
from tests.references.float64_models import tiny_bert, tiny_gpt2
from tests.references.tiny_models import MODELS as STUDIED
from tests.references.tiny_models import make_sentences

TEXTS = ("A cat sat, said Ann.", "Birds sing.", "Ann said no.")
MODELS = {"masked": tiny_bert, "next token": tiny_gpt2}
STEP = 1e-5
Change = Callable[[Tensor], Tensor]  # of what a projection receives: batch token head·width


def projections(model: Model) -> list[nn.Module]:
    if model.is_causal:
        return [block.attn.c_proj for block in model.network.transformer.h]  # pyright: ignore
    return [layer.attention.output.dense for layer in model.network.bert.encoder.layer]  # pyright: ignore


@contextmanager
def changed(projection: nn.Module, change: Change) -> Iterator[None]:
    handle = projection.register_forward_pre_hook(lambda _, given: (change(given[0]), *given[1:]))
    try:
        yield
    finally:
        handle.remove()


def cut_of(model: Model) -> Cut:
    examples = []
    for number, text in enumerate(TEXTS):
        encoded = model.encode(text, special=not model.is_causal)
        null = [place == 0 if model.is_causal else special
                for place, special in enumerate(encoded.special)]  # fmt: skip
        examples.append(Example(number, encoded, null))
    return Columns.of(examples).cut(range(3), pad=model.pad, is_causal=model.is_causal)


def plain_losses(model: Model, cut: Cut, predicted: Tensor) -> list[float]:
    """The summed loss of every input, one token after the other."""
    ids = cut.batch.ids.clone()
    if not model.is_causal:
        ids[predicted] = torch.tensor(model.tokenizer.mask_token_id)
    mask = cut.batch.mask.long()
    with torch.no_grad():
        logits = model.network.eval()(input_ids=ids, attention_mask=mask).logits
    chances = functional.log_softmax(logits, -1)
    found = [0.0] * len(TEXTS)
    for row, token in predicted.nonzero().tolist():
        if not model.is_causal or token > 0:
            read = token - 1 if model.is_causal else token
            found[row] -= chances[row, read, cut.batch.ids[row, token]].item()
    return found


def counts(model: Model, predicted: Tensor) -> list[int]:
    first = int(model.is_causal)
    return [int(row[first:].sum()) for row in predicted]


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[Model, Cut, Tensor, dict[str, Any]]:
    model = MODELS[request.param]()
    cut = cut_of(model)
    metric = HeadImportance(
        Grid((0, 1), 2), lambda: mean_outputs(model, [(cut.batch, cut.annotated)], 0, 0.15)
    )
    sums = metric.zero()
    metric.see_model(sums, model, cut.batch, cut.annotated)
    return model, cut, predicted_tokens(cut.annotated, 0, 0.15), metric.compute(sums)


def part(head: int) -> slice:
    return slice(4 * head, 4 * head + 4)


def test_removal_is_the_loss_with_nothing_of_the_head(case: tuple) -> None:
    model, cut, predicted, found = case
    before, tokens = sum(plain_losses(model, cut, predicted)), sum(counts(model, predicted))
    for layer, projection in enumerate(projections(model)):
        for head in range(2):

            def silence(given: Tensor, head: int = head) -> Tensor:
                given = given.clone()
                given[..., part(head)] = 0
                return given

            with changed(projection, silence):
                after = sum(plain_losses(model, cut, predicted))
            assert found["removal"].values[layer, head] == pytest.approx(
                (after - before) / tokens, rel=1e-6, abs=1e-9
            )


def test_mean_replacement_says_the_mean_over_all_tokens_everywhere(case: tuple) -> None:
    model, cut, predicted, found = case
    before, tokens = sum(plain_losses(model, cut, predicted)), sum(counts(model, predicted))
    for layer, projection in enumerate(projections(model)):
        seen: list[Tensor] = []
        with changed(projection, lambda given, seen=seen: seen.append(given.clone()) or given):
            plain_losses(model, cut, predicted)
        said = [seen[0][row, token].tolist() for row, token in cut.batch.mask.nonzero().tolist()]
        mean = torch.tensor(np.mean(said, axis=0))
        for head in range(2):

            def repeat(given: Tensor, head: int = head, mean: Tensor = mean) -> Tensor:
                given = given.clone()
                given[..., part(head)] = mean[part(head)]
                return given

            with changed(projection, repeat):
                after = sum(plain_losses(model, cut, predicted))
            assert found["mean_replacement"].values[layer, head] == pytest.approx(
                (after - before) / tokens, rel=1e-6, abs=1e-9
            )


def test_gate_importance_agrees_with_finite_differences(case: tuple) -> None:
    model, cut, predicted, found = case
    tokens = counts(model, predicted)
    for layer, projection in enumerate(projections(model)):
        for head in range(2):
            losses = []
            for factor in (1 + STEP, 1 - STEP):

                def scale(given: Tensor, head: int = head, factor: float = factor) -> Tensor:
                    given = given.clone()
                    given[..., part(head)] *= factor
                    return given

                with changed(projection, scale):
                    losses.append(plain_losses(model, cut, predicted))
            slopes = [abs(a - b) / (2 * STEP) / n for a, b, n in zip(*losses, tokens, strict=True)]
            assert found["gate_importance"].values[layer, head] == pytest.approx(
                float(np.mean(slopes)), rel=1e-5
            )


@pytest.mark.parametrize("kind", STUDIED)
def test_a_study_has_importance_and_its_correlations_only_when_asked(kind: str) -> None:
    corpus = Corpus.from_sentences(make_sentences(16))
    model = STUDIED[kind]()
    result = hs.study("vig2019", model, corpus, importance=True)
    again = hs.study("vig2019", model, corpus, importance=True, batch_tokens=32)
    for name in ("removal", "mean_replacement", "gate_importance"):
        assert np.isfinite(result[name]).all() and result[name].dims == ("layer", "head")
        np.testing.assert_allclose(result[name], again[name], rtol=1e-3, atol=1e-6)
    table = read_statements(result).table("importance")
    assert table is not None
    row = next(row for row in table.rows if row["measure"] == "Distance")
    wanted = np.corrcoef(result["distance"].values.ravel(), result["removal"].values.ravel())[0, 1]
    assert row["removal"] == pytest.approx(wanted)
    low, high = row["removal low"], row["removal high"]
    assert isinstance(low, float) and isinstance(high, float)
    assert low <= wanted <= high
    assert "removal" not in hs.study("vig2019", model, corpus)


def test_raw_text_has_importance_with_errors_and_any_size_of_a_batch_gives_the_same() -> None:
    corpus, model = Corpus.from_sentences(make_sentences(30)), STUDIED["causal"]()
    asked = {"context": 10, "depths": [], "records": False, "importance": True}
    result = hs.study("luger2026", model, corpus, batch_tokens=512, **asked)
    again = hs.study("luger2026", model, corpus, batch_tokens=20, **asked)
    for name in ("removal", "mean_replacement"):
        assert (result[f"{name}_se"] > 0).all() and np.isfinite(result[f"{name}_se"]).all()
        np.testing.assert_allclose(result[name], again[name], rtol=1e-4, atol=1e-5)


def test_heads_that_cannot_be_removed_are_left_out_with_the_reason() -> None:
    model = tiny_bert(BertModel)
    reason = why_no_importance(model)
    assert reason is not None and "no language-model head" in reason


@pytest.mark.parametrize("room", [40, 4096])
def test_losses_are_the_same_however_many_heads_at_once(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    model = STUDIED["causal"]()
    texts = ("the old cat sees a dog .", "a quiet gardener .")
    batch = model.batch([model.encode(text) for text in texts])
    grid = Grid(model.stacks[0].attending, model.heads)
    means = {layer: torch.randn(grid.heads, 8) for layer in grid.layers}
    with torch.no_grad():
        monkeypatch.setattr(importance, "ROOM", (1, 1))
        one_by_one = loss_changes(model, batch, batch.mask, grid, means)
        monkeypatch.setattr(importance, "ROOM", (room, room))
        some = loss_changes(model, batch, batch.mask, grid, means)
    for name, values in one_by_one.items():
        assert values.abs().min() > 1e-4
        torch.testing.assert_close(some[name], values, rtol=1e-4, atol=1e-4)
