"""Norm-weighted attention equals plain loops over weights, values and the output projection."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers.pytorch_utils import Conv1D
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.engine.forward import check_reading
from headscope.errors import RunError
from headscope.model.writes import norm_weighted, value_norms
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, causal_model, make_sentences

each_model = pytest.mark.parametrize("kind", MODELS)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([(4, 4), (4, 2), (3, 1)]))
def test_norms_and_weights_follow_their_formula(
    seed: int, is_conv: bool, heads: tuple[int, int]
) -> None:
    torch.manual_seed(seed)
    (all_heads, key_heads), batch, tokens, width, out = heads, 2, 5, 3, 7
    projection = Conv1D(out, all_heads * width) if is_conv else nn.Linear(all_heads * width, out)
    nn.init.normal_(projection.weight)
    projection.requires_grad_(False)
    value = torch.randn(batch, key_heads, tokens, width)
    weights = torch.randn(batch, all_heads, tokens, tokens).softmax(-1)
    norms = value_norms(value, projection, all_heads)
    found = norm_weighted(weights, norms)
    for b, h, i in np.ndindex(batch, all_heads, tokens):
        lengths = []
        for j in range(tokens):
            written = torch.zeros(all_heads * width)
            written[h * width : (h + 1) * width] = value[b, h * key_heads // all_heads, j]
            nothing = torch.zeros_like(written)
            difference = projection(written[None]) - projection(nothing[None])  # without the bias
            lengths.append(float(weights[b, h, i, j]) * float(difference.norm()))
        wanted = [length / sum(lengths) for length in lengths]
        np.testing.assert_allclose(found[b, h, i], wanted, rtol=2e-4, atol=1e-6)


def corpus() -> Corpus:
    return Corpus.from_sentences(make_sentences(12))


def plain_shares(kind: str) -> dict[str, np.ndarray]:
    """Null share, distance and alignment of every head, from traces, one weight at a time."""
    model = MODELS[kind]()
    sums: dict[str, np.ndarray] = {}

    def put(name: str, place: tuple[int, int], above: float, below: float) -> None:
        terms = sums.setdefault(name, np.zeros((2, model.layers, model.heads)))
        terms[(0, *place)] += above
        terms[(1, *place)] += below

    for sentence in corpus():
        stack = model.trace(sentence.text).default
        special = stack.keys.special
        size = len(special)
        null = [i == 0 if model.is_causal else special[i] for i in range(size)]
        word = [_word_at(sentence, span) for span in stack.keys.offsets]
        assert stack.norms is not None
        for layer in stack.layers:
            for head in range(model.heads):
                raw = stack.norms[layer][head].double().numpy()
                a = [[raw[i, j] / raw[i].sum() for j in range(size)] for i in range(size)]
                queries = [i for i in range(size) if not null[i]]
                seen = [(i, j) for i in queries for j in queries]
                kept = [(i, j) for i, j in seen if j <= i or not model.is_causal]
                total = sum(a[i][j] for i, j in kept)
                to_null = sum(a[i][j] for i in queries for j in range(size) if null[j])
                put("null_share", (layer, head), to_null, to_null + total)
                far = sum(a[i][j] * abs(i - j) for i, j in kept)
                put("distance", (layer, head), far, total)
                on_arcs = sum(a[i][j] for i, j in kept if _related(sentence, word[i], word[j]))
                put("dependency_alignment", (layer, head), on_arcs, total)
    return {name: terms[0] / terms[1] for name, terms in sums.items()}


def _word_at(sentence: Any, span: tuple[int, int]) -> int | None:
    start, end = span
    start += len(sentence.text[start:end]) - len(sentence.text[start:end].lstrip())
    inside = (n for n, word in enumerate(sentence.words) if word.start <= start < word.end)
    return next(inside, None) if end > start else None


def _related(sentence: Any, one: int | None, other: int | None) -> bool:
    if one is None or other is None or one == other:
        return False
    return sentence.words[one].head == other or sentence.words[other].head == one


@pytest.fixture(scope="module", params=MODELS)
def normed(request: pytest.FixtureRequest) -> tuple[str, xr.Dataset]:
    kind = request.param
    return kind, hs.study("vig2019", MODELS[kind](), corpus(), weights="norm")


def test_a_study_of_norms_equals_plain_loops(normed: tuple[str, xr.Dataset]) -> None:
    kind, result = normed
    assert result.attrs["weights"] == "norm"
    for name, wanted in plain_shares(kind).items():
        found = result[name].sel(form="either") if "form" in result[name].dims else result[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, err_msg=name)


def test_both_readings_are_those_of_two_runs(normed: tuple[str, xr.Dataset]) -> None:
    kind, norm = normed
    raw = hs.study("vig2019", MODELS[kind](), corpus())
    both = hs.study("vig2019", MODELS[kind](), corpus(), weights="both")
    for name in ("null_share", "dependency_alignment"):
        np.testing.assert_array_equal(both[name], raw[name])
        np.testing.assert_allclose(both[f"{name}_norm"], norm[name], rtol=1e-6)
        np.testing.assert_allclose(both[f"{name}_norm_se"], norm[f"{name}_se"], rtol=1e-4)
    assert not np.allclose(raw["null_share"], norm["null_share"], rtol=0.01)


@each_model
def test_rows_give_the_same_as_whole_matrices(kind: str) -> None:
    options: dict[str, Any] = {"weights": "norm", "context": 40}
    dense = hs.study("vig2019", MODELS[kind](), corpus(), attention="dense", **options)
    rows = hs.study("vig2019", MODELS[kind](), corpus(), attention="rows", **options)
    for name in ("null_share", "distance", "entropy", "dependency_expected", "variability"):
        np.testing.assert_allclose(rows[name], dense[name], rtol=1e-5, err_msg=name)


def test_what_has_no_values_or_no_rows_is_refused_in_a_sentence() -> None:
    outside = SimpleNamespace(name="mine", stacks=[SimpleNamespace(no_norms="it is quantised")])
    with pytest.raises(RunError, match="mine cannot run with weights=norm: it is quantised; leave"):
        check_reading(outside, "norm", None)  # pyright: ignore[reportArgumentType]
    check_reading(outside, "raw", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RunError, match="attention=fused never has; set attention=rows"):
        hs.study("vig2019", causal_model(), corpus(), weights="both", attention="fused", context=40)


def test_an_unknown_reading_ends_with_a_sentence_and_code_2() -> None:
    given = ["study", "vig2019", "--model", "mini-gpt2", "--corpus", "demo", "--out", "nowhere"]
    found = CliRunner().invoke(app, [*given, "--weights", "half"])
    assert isinstance(found.exception, RunError)
    assert "weights must be raw, norm or both, not 'half'" in str(found.exception)


def test_norms_of_zero_leave_a_row_of_zeros() -> None:
    found = norm_weighted(torch.full((1, 1, 2, 2), 0.5), torch.zeros(1, 1, 2))
    assert not found.isnan().any() and math.isclose(float(found.sum()), 0.0)
