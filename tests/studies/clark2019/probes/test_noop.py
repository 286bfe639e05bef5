"""Attention to delimiters, and its gradients, equal plain loops over words and their pieces."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid
from headscope.metrics.gradient import differentiate
from headscope.model.model import Model
from headscope.observe import Columns
from headscope.studies.clark2019.probes.noop import Noop, NoopGradient, mean_gradient, pairs_to_null
from headscope.studies.clark2019.probes.trees import Classes, is_punctuation
from headscope.studies.shared.words import WordTokens, encode_words, word_example
from headscope.text.sentence import ROOT, Sentence
from tests.references.random_attention import plain_batch
from tests.references.random_text import (
    LABELS,
    make_batch,
    make_layer,
    random_pieces,
    random_sentence,
    random_weights,
)
from tests.references.tiny_models import MODELS, make_sentences

CLASSES = Classes.of([*LABELS, "root"])
HEADS = 3
GRID = Grid((0,), HEADS)
KINDS = ("applies", "not", "applies_governor", "not_governor")


def in_class(sentence: Sentence, i: int, name: str) -> bool:
    word = sentence.words[i]
    if name.startswith("all but"):
        return word.head != ROOT and not is_punctuation(word)
    return name == "all" or word.deprel == name.removesuffix(" with 's")


def is_seen(sentence: Sentence, i: int, *, by_dependent: bool, is_causal: bool) -> bool:
    """Whether a head could look from one word of the arc to the other."""
    head = sentence.words[i].head
    if not is_causal:
        return True
    return head not in (None, ROOT) and (head < i if by_dependent else head > i)


def applies_to(sentence: Sentence, name: str, *, governors: bool, is_causal: bool) -> set[int]:
    """The attending words that a relation is for."""
    found = set()
    for i, word in enumerate(sentence.words):
        if not in_class(sentence, i, name):
            continue
        if not is_seen(sentence, i, by_dependent=not governors, is_causal=is_causal):
            continue
        marked = i + 1 < len(sentence.words) and sentence.words[i + 1].text == "'s"
        if governors:
            found |= {word.head} if word.head not in (None, ROOT) else set()
        else:
            found.add(i + 1 if name.endswith(" with 's") and marked else i)
    return found


def plain_means(
    sentences: list[Sentence],
    pieces: list[list[int]],
    null: list[list[bool]],
    paid: list[np.ndarray],
    is_causal: bool,
) -> dict[str, np.ndarray]:
    """`paid` is what every token of a sentence pays, head × token."""
    sums = {kind: np.zeros((2, HEADS, len(CLASSES))) for kind in KINDS}
    for sentence, words, nothing, spent in zip(sentences, pieces, null, paid, strict=True):
        for c, name in enumerate(CLASSES.names):
            for governors in (False, True):
                chosen = applies_to(sentence, name, governors=governors, is_causal=is_causal)
                for i in range(len(sentence.words)):
                    tokens = [t for t, word in enumerate(words) if word == i]
                    if any(nothing[t] for t in tokens):
                        continue
                    kind = ("applies" if i in chosen else "not") + "_governor" * governors
                    for h in range(HEADS):
                        mean = sum(spent[h, t] for t in tokens) / len(tokens)
                        sums[kind][:, h, c] += mean, 1
    return {
        kind: np.array([[x / n if n else math.nan for x, n in zip(*row, strict=True)]
                        for row in zip(*terms, strict=True)])
        for kind, terms in sums.items()
    }  # fmt: skip


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_shares_to_delimiters_equal_plain_loops(seed: int, is_causal: bool) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng) for _ in range(3)]
    pieces = [random_pieces(rng, len(s.words), special=not is_causal) for s in sentences]
    weights = [random_weights(rng, HEADS, len(words), is_causal=is_causal) for words in pieces]
    batch = make_batch(sentences, pieces, is_causal=is_causal)
    null = [row[: len(words)] for row, words in zip(batch.null.tolist(), pieces, strict=True)]
    metric = Noop(GRID, CLASSES, is_causal)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer(weights, batch))
    found = metric.compute(sums)
    paid = [
        np.stack([[sum(a[h, t, j] for j, is_null in enumerate(nothing) if is_null)
                   for t in range(a.shape[1])] for h in range(HEADS)])
        for a, nothing in zip(weights, null, strict=True)
    ]  # fmt: skip
    for kind, wanted in plain_means(sentences, pieces, null, paid, is_causal).items():
        np.testing.assert_allclose(
            found[f"noop_{kind}"].sel(layer=0), wanted, rtol=1e-5, atol=1e-6, err_msg=kind
        )


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_gradient_of_a_query_is_the_mean_over_the_null_tokens_that_it_sees(
    is_causal: bool,
) -> None:
    """Two null tokens around a word, and one token of padding."""
    batch = plain_batch(torch.tensor([[True, True, True, False]]))
    null = torch.tensor([[True, False, True, True]])
    batch = replace(batch, null=null, is_causal=is_causal)
    gradient = torch.arange(-16.0, 16.0).reshape(1, 2, 4, 4)
    gradient[:, :, 3] = torch.nan
    means = mean_gradient(gradient, pairs_to_null(batch))
    for head in range(2):
        for i in range(3):
            keys = [j for j in (0, 2) if j <= i or not is_causal]
            wanted = sum(float(gradient[0, head, i, j].abs()) for j in keys) / len(keys)
            assert float(means[0, head, i]) == pytest.approx(wanted)
        assert float(means[0, head, 3]) == 0


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_to_delimiters_equal_plain_loops(kind: str) -> None:
    model, sentences = MODELS[kind](), make_sentences(6)
    classes = Classes.of(["det", "nsubj", "obj", "amod", "root", "punct"])
    made = [each for each in encode_words(model, sentences) if isinstance(each, WordTokens)]
    examples = [word_example(n, each, is_causal=model.is_causal) for n, each in enumerate(made)]
    cut = Columns.of(examples).cut(range(len(made)), pad=model.pad, is_causal=model.is_causal)
    metric = NoopGradient(Grid(tuple(range(model.layers)), model.heads), classes, model.is_causal)
    sums = metric.zero()
    metric.see_text(sums, cut.annotated)
    metric.see_model(sums, model, cut.batch, cut.annotated)
    found = metric.compute(sums)
    slopes = _slopes(model, cut, metric)
    for name in ("det", "obj"):
        for governors in (False, True):
            values: dict[bool, list[np.ndarray]] = {True: [], False: []}
            for row, each in enumerate(made):
                words, null = each.word_of_token, examples[row].null
                keys = [j for j, is_null in enumerate(null) if is_null]
                chosen = applies_to(each.sentence, name, governors=governors,
                                    is_causal=model.is_causal)  # fmt: skip
                for i in range(len(each.sentence.words)):
                    tokens = [t for t, word in enumerate(words) if word == i]
                    if not any(null[t] for t in tokens):
                        seen = [[j for j in keys if j <= t or not model.is_causal] for t in tokens]
                        paid = [slopes[:, row, :, t][..., s].mean(-1)
                                for t, s in zip(tokens, seen, strict=True)]  # fmt: skip
                        values[i in chosen].append(np.mean(paid, axis=0))
            for applies, end in ((True, "applies"), (False, "not")):
                variable = f"noop_gradient_{end}" + "_governor" * governors
                wanted = np.mean(values[applies], axis=0) if values[applies] else np.nan
                shown = found[variable].sel(relation=name)
                np.testing.assert_allclose(shown, wanted, rtol=1e-4, err_msg=variable)


def _slopes(model: Model, cut: object, metric: NoopGradient) -> np.ndarray:
    """|∂L/∂a| of every layer, input, head, query and key."""
    kept: dict[int, np.ndarray] = {}

    def keep(layer: int, gradient: torch.Tensor) -> None:
        kept[layer] = gradient.abs().numpy()

    batch, annotated = cut.batch, cut.annotated  # pyright: ignore[reportAttributeAccessIssue]
    differentiate(model, batch, metric.predicted(annotated), keep)
    return np.stack([kept[layer] for layer in range(model.layers)])
