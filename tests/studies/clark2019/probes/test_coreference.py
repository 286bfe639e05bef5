"""Antecedent accuracy and the sieves equal plain readings of their definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid
from headscope.studies.clark2019.probes.coreference import (
    CANDIDATES,
    KINDS,
    CorefAccuracy,
    find_baselines,
    find_resolved,
    make_queries,
)
from headscope.studies.clark2019.probes.mentions import SYSTEMS, Phrase, phrases, resolve
from headscope.studies.shared.words import word_layer
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from tests.references.random_text import (
    make_batch,
    make_layer,
    padded,
    random_pieces,
    random_sentence,
    random_weights,
)

HEADS = 2


def plain_resolve(system: str, found: list[Phrase], index: int) -> Phrase | None:
    """The nearest earlier mention that passes the first sieve which lets any through."""
    mention = found[index]
    earlier = [phrase for phrase in found[:index] if phrase.head != mention.head]
    groups = []
    if system == "rules":
        groups.append([p for p in earlier if p.text == mention.text])
    if system in ("rules", "head_match"):
        groups.append([p for p in earlier if p.head_text == mention.head_text])
    if system == "rules":
        groups.append([p for p in earlier if p.agreement.allows(mention.agreement)])
    groups.append(earlier)
    return next((group[-1] for group in groups if group), None)


def plain_choice(row: np.ndarray, allowed: list[int]) -> int:
    best = allowed[0]
    for j in allowed:
        if row[j] > row[best]:
            best = j
    return best


def plain_counts(
    windows: list[Sentence], weights: list[np.ndarray], is_causal: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    heads = np.zeros((HEADS, len(CANDIDATES), len(KINDS)))
    systems = np.zeros((len(SYSTEMS), len(KINDS)))
    scored, unseen = np.zeros(len(KINDS)), np.zeros((len(windows), len(KINDS)))
    for place, (window, maps) in enumerate(zip(windows, weights, strict=True)):
        found = phrases(window)
        for index, mention in enumerate(found):
            earlier = [p.head for p in found[:index] if p.head != mention.head]
            targets = [
                p.head
                for p in found[:index]
                if p.head != mention.head and p.entity == mention.entity
            ]
            kinds = np.array([kind in ("all", mention.kind) for kind in KINDS], dtype=float)
            if targets and is_causal and not any(t < mention.head for t in targets):
                unseen[place] += kinds
                continue
            if not targets:
                continue
            scored += kinds
            for s, system in enumerate(SYSTEMS):
                chosen = plain_resolve(system, found, index)
                systems[s] += kinds * (chosen is not None and chosen.head in targets)
            for h in range(HEADS):
                row = maps[h, mention.head].copy()
                row[mention.head] = 0
                words = list(range(len(window.words)))
                heads[h, 0] += kinds * (plain_choice(row, words) in targets)
                heads[h, 1] += kinds * (plain_choice(row, sorted(earlier)) in targets)
    return heads, systems, scored, unseen


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_accuracies_and_baselines_equal_plain_loops(seed: int, is_causal: bool) -> None:
    rng = np.random.default_rng(seed)
    windows = [random_sentence(rng, 10, document=f"d{n}", mentions=6) for n in range(3)]
    weights = [random_weights(rng, HEADS, len(w.words), is_causal=is_causal) for w in windows]
    queries = make_queries(windows, is_causal=is_causal)
    heads, systems, scored, unseen = plain_counts(windows, weights, is_causal)
    np.testing.assert_array_equal(find_resolved(padded(weights), queries).sum(0), heads)
    np.testing.assert_array_equal(find_baselines(queries).sum(0), systems)
    np.testing.assert_array_equal(queries.kinds.sum(0), scored)
    np.testing.assert_array_equal(queries.unseen, unseen)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_metric_has_the_counts_of_every_layer_in_the_group_of_the_window(
    seed: int, is_causal: bool
) -> None:
    rng = np.random.default_rng(seed)
    windows = [random_sentence(rng, 10, document=f"d{n}", mentions=6) for n in range(3)]
    pieces = [random_pieces(rng, len(w.words), special=not is_causal) for w in windows]
    weights = [random_weights(rng, HEADS, len(p), is_causal=is_causal) for p in pieces]
    batch = make_batch(windows, pieces, is_causal=is_causal)
    layer = make_layer(weights, batch, index=1)
    metric = CorefAccuracy(Grid((4, 7), HEADS), is_causal)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, layer)
    maps = word_layer(layer).numpy()
    for row, window in enumerate(windows):
        heads, systems, scored, unseen = plain_counts([window], [maps[row]], is_causal)
        np.testing.assert_array_equal(sums["correct"][row, 1], heads)
        np.testing.assert_array_equal(sums["baseline"][row], systems)
        np.testing.assert_array_equal(sums["scored"][row], scored)
        np.testing.assert_array_equal(sums["unseen"][row], unseen[0])
    assert not sums["correct"][3:].any() and not sums["correct"][:, 0].any()
    words = sums["scored"].sum(0).numpy()
    expected = sums["correct"].sum(0)[1].numpy() / np.where(words > 0, words, np.nan)
    np.testing.assert_allclose(metric.compute(sums)["coref_accuracy"].sel(layer=7), expected)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SYSTEMS))
def test_sieves_equal_a_plain_reading(seed: int, system: str) -> None:
    rng = np.random.default_rng(seed)
    found = phrases(random_sentence(rng, 12, mentions=8))
    for index in range(len(found)):
        assert resolve(system, found, index) == plain_resolve(system, found, index)


def tagged(text: str, upos: str) -> Word:
    return Word(text, 0, len(text), upos=upos, head=ROOT, deprel="root")


ADA = Sentence(
    "Ada saw dogs ; she waved",
    tuple(
        tagged(text, upos)
        for text, upos in [
            ("Ada", "PROPN"),
            ("saw", "VERB"),
            ("dogs", "NOUN"),
            (";", "PUNCT"),
            ("she", "PRON"),
            ("waved", "VERB"),
        ]
    ),
    (Mention("ada", ((0, 1),)), Mention("dogs", ((2, 3),)), Mention("ada", ((4, 5),))),
)


def test_candidates_are_all_words_or_only_head_words_of_earlier_mentions() -> None:
    maps = torch.zeros(1, 1, 6, 6)
    maps[0, 0, 4] = torch.tensor([0.3, 0.4, 0.0, 0.0, 0.3, 0.0])
    resolved = find_resolved(maps, make_queries([ADA])).sum(0)
    # "saw" attracts most, but is no mention; among mentions it is Ada.
    assert resolved[0].tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize(("number", "rules"), [("Number=Plur", 0), ("Number=Sing", 2)])
def test_the_rules_pass_over_a_mention_that_clashes_in_number(number: str, rules: int) -> None:
    dogs = Word("dogs", 8, 12, upos="NOUN", feats=number, head=ROOT, deprel="root")
    words = (*ADA.words[:2], dogs, *ADA.words[3:])
    found = phrases(Sentence(ADA.text, words, ADA.mentions))
    chosen = resolve("rules", found, 2)
    nearest = resolve("nearest", found, 2)
    assert chosen is not None and nearest is not None
    assert (chosen.head, nearest.head) == (rules, 2)


def test_a_window_without_a_scored_mention_counts_nothing() -> None:
    alone = Sentence("Ada", ADA.words[:1], ADA.mentions[:1])
    queries = make_queries([alone])
    assert len(queries) == 0
    assert find_resolved(torch.rand(1, 2, 1, 1), queries).shape == (0, 2, 2, 4)
    assert queries.unseen.tolist() == [[0] * 4]
