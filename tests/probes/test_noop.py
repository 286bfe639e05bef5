"""Attention to delimiters, and its gradients, equal plain loops over words and their pieces."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics.gradient import differentiate
from headscope.metrics.metric import Grid
from headscope.model.model import Model
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.inputs import Columns
from headscope.probes.noop import Noop, NoopGradient, gradient_to
from headscope.probes.trees import Classes, is_punctuation
from headscope.probes.words import WORD, WordTokens, encode_words, word_example
from headscope.results.replicates import GROUPS
from headscope.text.sentence import ROOT, Sentence
from tests.engine.tiny import MODELS, make_sentences
from tests.probes.random_text import LABELS, random_pieces, random_sentence, random_weights

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
    null = [[i == 0 if is_causal else w < 0 and i in (0, len(words) - 1)
             for i, w in enumerate(words)] for words in pieces]  # fmt: skip
    weights = [random_weights(rng, HEADS, len(words), is_causal=is_causal) for words in pieces]
    size = max(map(len, pieces))
    batch = AnnotatedBatch(
        numbers=np.arange(3),
        rows=np.arange(3),
        groups=torch.arange(3) % GROUPS,
        mask=torch.tensor([[i < len(words) for i in range(size)] for words in pieces]),
        null=torch.tensor([[*each, *[False] * (size - len(each))] for each in null]),
        is_causal=is_causal,
        labels={WORD: torch.tensor([[*words, *[-1] * (size - len(words))] for words in pieces])},
        sentences=tuple(sentences),
    )
    padded = np.zeros((3, HEADS, size, size), np.float32)
    for row, each in enumerate(weights):
        padded[row, :, : each.shape[1], : each.shape[2]] = each
    metric = Noop(GRID, CLASSES, is_causal)
    state = metric.zero(3)
    metric.update_text(state, batch)
    metric.update_layer(state, DenseLayer(0, torch.from_numpy(padded), batch))
    found = metric.compute(state.sums, lambda: iter(()))
    paid = [
        np.stack([[sum(a[h, t, j] for j, is_null in enumerate(nothing) if is_null)
                   for t in range(a.shape[1])] for h in range(HEADS)])
        for a, nothing in zip(weights, null, strict=True)
    ]  # fmt: skip
    for kind, wanted in plain_means(sentences, pieces, null, paid, is_causal).items():
        np.testing.assert_allclose(
            found[f"noop_{kind}"].sel(layer=0), wanted, rtol=1e-5, atol=1e-6, err_msg=kind
        )


def test_the_gradient_of_a_query_is_the_mean_over_the_keys_that_it_sees() -> None:
    gradient = torch.arange(-9.0, 9.0).reshape(1, 2, 3, 3)
    keys = torch.tensor([[True, False, True]])
    both = gradient_to(gradient, keys, is_causal=False)
    seen = gradient_to(gradient, keys, is_causal=True)
    for head in range(2):
        for i in range(3):
            row = gradient[0, head, i].abs()
            assert float(both[0, head, i]) == pytest.approx(float(row[0] + row[2]) / 2)
            wanted = (row[0] + row[2]) / 2 if i == 2 else row[0]
            assert float(seen[0, head, i]) == pytest.approx(float(wanted))


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_to_delimiters_equal_plain_loops(kind: str) -> None:
    model, sentences = MODELS[kind](), make_sentences(6)
    classes = Classes.of(["det", "nsubj", "obj", "amod", "root", "punct"])
    made = [each for each in encode_words(model, sentences) if isinstance(each, WordTokens)]
    examples = [word_example(n, each, is_causal=model.is_causal) for n, each in enumerate(made)]
    cut = Columns.of(examples).cut(range(len(made)), pad=model.pad, is_causal=model.is_causal)
    metric = NoopGradient(Grid(tuple(range(model.layers)), model.heads), classes, model.is_causal)
    state = metric.zero(len(made))
    metric.update_model(state, model, cut.batch, cut.annotated)
    found = metric.compute(state.sums, lambda: iter(()))
    slopes = _slopes(model, cut, metric)
    for name in ("det", "obj"):
        for governors in (False, True):
            values: dict[bool, list[np.ndarray]] = {True: [], False: []}
            for row, each in enumerate(made):
                words, null = each.alignment.word_of_token, examples[row].null
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
    differentiate(model, batch, metric._predicted(annotated), keep)
    return np.stack([kept[layer] for layer in range(model.layers)])
