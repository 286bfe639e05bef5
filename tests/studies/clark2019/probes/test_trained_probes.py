"""Probes equal their formulas, have the parameters they should, and learn what can be learned."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.studies.clark2019.probes.trained_probes import (
    AttentionProbe,
    AttentionWordsProbe,
    DistanceWordsProbe,
    Learner,
    Probe,
    Seeds,
    count_parameters,
    distance_features,
)
from headscope.studies.clark2019.probes.trees import (
    Classes,
    ParseBatch,
    count_attached,
    is_punctuation,
    loss,
    make_gold,
    make_parse_batch,
    parse,
    right_branching,
    take_sentences,
)
from headscope.studies.shared.words import END, EXTRA, START
from headscope.text.sentence import ROOT, Sentence
from tests.references.random_text import LABELS, random_heads, random_sentence

CLASSES = Classes.of([*LABELS, "root"])
HEADS, SIZE = 3, 4
Tensors = tuple[torch.Tensor, torch.Tensor]


def random_batch(rng: np.random.Generator, sentences: list[Sentence]) -> tuple[ParseBatch, Tensors]:
    gold = make_gold(sentences, CLASSES)
    width = gold.heads.shape[1]
    maps = torch.from_numpy(rng.random((len(sentences), HEADS, width + EXTRA, width + EXTRA)))
    vectors = torch.from_numpy(rng.normal(size=(len(sentences), width, SIZE))).float()
    return make_parse_batch(gold, maps.float(), vectors), (maps.float(), vectors)


def unit_attention(
    maps: torch.Tensor, scalars: torch.Tensor, width: int, k: int, i: int, j: int
) -> tuple[float, float]:
    """a^k[i, j] and a^k[j, i]; j = -1 stands for ROOT, made of the two special units."""
    if j >= 0:
        return float(maps[k, i, j]), float(maps[k, j, i])
    start, end = width + START, width + END
    to = scalars[0] * maps[k, i, start] + scalars[1] * maps[k, i, end]
    back = scalars[0] * maps[k, start, i] + scalars[1] * maps[k, end, i]
    return float(to), float(back)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_attention_scores_equal_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, (maps, _) = random_batch(rng, [random_sentence(rng, 5) for _ in range(2)])
    probe = AttentionProbe(2 * HEADS, Seeds(2, seed), has_special=True)
    with torch.no_grad():
        probe.root.scalars.copy_(torch.tensor([[0.5, 2.0], [1.0, -1.0]]))
    scores, width = probe(batch).detach(), batch.heads.shape[1]
    scalars = probe.root.scalars.detach()
    for s, b, i, j in np.ndindex(2, 2, width, width + 1):
        w, u = probe.weights[s].detach().split(HEADS)
        expected = 0.0
        for k in range(HEADS):
            to, back = unit_attention(maps[b], scalars[s], width, k, i, j - 1)
            expected += float(w[k]) * to + float(u[k]) * back
        assert float(scores[s, b, i, j]) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_attention_and_words_scores_equal_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, (maps, vectors) = random_batch(rng, [random_sentence(rng, 5) for _ in range(2)])
    probe = AttentionWordsProbe(2 * HEADS, SIZE, Seeds(2, seed), has_special=True)
    scores, width = probe(batch).detach(), batch.heads.shape[1]
    scalars = probe.root.scalars.detach()
    for s, b, i, j in np.ndindex(2, 2, width, width + 1):
        # Candidate j−1 goes with the vector of word j−1, and ROOT with none.
        governor = vectors[b, j - 1] if j else torch.zeros(SIZE)
        pair = torch.cat([vectors[b, i], governor])
        weights = torch.cat(list(probe.weights[s].detach()), dim=-1) @ pair
        expected = 0.0
        for k in range(HEADS):
            to, back = unit_attention(maps[b], scalars[s], width, k, i, j - 1)
            expected += float(weights[k]) * to + float(weights[HEADS + k]) * back
        assert float(scores[s, b, i, j]) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_distance_and_words_scores_equal_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng, 5) for _ in range(2)]
    batch, (_, vectors) = random_batch(rng, sentences)
    probe = DistanceWordsProbe(SIZE, Seeds(2, seed), hidden=6)
    scores = probe(batch).detach()
    for s, b, i, j in np.ndindex(2, 2, *scores.shape[2:]):
        n = len(sentences[b].words)
        o = j - 1 - i
        distance = [
            max(o, 0) / n,
            max(-o, 0) / n,
            *(float(o == near) for near in (0, -1, 1, -2, 2)),
        ]
        features = [*distance, 0.0] if j else [0.0] * 7 + [1.0]
        governor = vectors[b, j - 1] if j else torch.zeros(SIZE)
        inputs = torch.cat([torch.tensor(features), vectors[b, i], governor])
        hidden = torch.tanh(inputs @ probe.hidden[s] + probe.bias[s])
        assert float(scores[s, b, i, j]) == pytest.approx(
            float((hidden @ probe.out[s]).detach()), abs=1e-4
        )


def test_parameter_counts_match_the_definitions() -> None:
    seeds, heads, size = Seeds(3), 72, 50
    attention = AttentionProbe(2 * heads, seeds, has_special=True)
    words = AttentionWordsProbe(2 * heads, size, seeds, has_special=True)
    assert count_parameters(attention) == 2 * heads + 2
    assert count_parameters(words) == 2 * heads * 2 * size + 2
    assert count_parameters(AttentionProbe(2 * heads, seeds, has_special=False)) == 2 * heads + 1
    assert count_parameters(DistanceWordsProbe(size, seeds)) == (8 + 2 * size + 1) * 256 + 256


def test_there_are_eight_distance_features_and_root_has_one_of_its_own() -> None:
    features = distance_features(torch.tensor([[True, True, True, False]]))[0]
    assert features[0, 0].tolist() == [0] * 7 + [1]
    assert features[0, 3].tolist() == pytest.approx([2 / 3, 0, 0, 0, 0, 0, 1, 0])
    assert features[2, 1].tolist() == pytest.approx([0, 2 / 3, 0, 0, 0, 1, 0, 0])


def test_without_special_tokens_the_score_of_root_is_a_constant() -> None:
    rng = np.random.default_rng(0)
    batch, _ = random_batch(rng, [random_sentence(rng, 5)])
    probe = AttentionProbe(2 * HEADS, Seeds(1), has_special=False)
    with torch.no_grad():
        probe.root.scalars.fill_(0.7)
    assert probe(batch)[..., 0].unique().tolist() == pytest.approx([0.7])


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_padding_changes_neither_loss_nor_parse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, _ = random_batch(rng, [random_sentence(rng, 6) for _ in range(3)])
    probe = AttentionWordsProbe(2 * HEADS, SIZE, Seeds(2, seed), has_special=True)
    alone = [take_sentences(batch, torch.tensor([row])) for row in range(3)]
    summed = sum(float(loss(probe(one), one).detach()) for one in alone)
    assert float(loss(probe(batch), batch).detach()) == pytest.approx(summed, rel=1e-4)
    whole = parse(probe(batch), batch)
    for row, one in enumerate(alone):
        width = one.heads.shape[1]
        torch.testing.assert_close(whole[:, row, :width], parse(probe(one), one)[:, 0])


def test_attached_words_are_counted_without_punctuation_and_with_the_root() -> None:
    rng = np.random.default_rng(3)
    sentences = [random_sentence(rng, 8) for _ in range(4)]
    batch, _ = random_batch(rng, sentences)
    right, total = count_attached(batch.heads[None].clone(), batch)
    words = [sum(not is_punctuation(word) for word in s.words) for s in sentences]
    assert (right.tolist(), total.tolist()) == ([words], words)


def test_right_branching_hangs_each_word_on_the_next_and_the_last_on_root() -> None:
    words = torch.tensor([[True, True, True], [True, False, False]])
    assert right_branching(words)[0, 0].tolist() == [1, 2, ROOT]
    assert right_branching(words)[0, 1, 0] == ROOT


def learn(learner: Learner, batch: ParseBatch) -> None:
    """One step for every sentence."""
    for rows in torch.arange(len(batch.heads)).split(1):
        learner.learn(take_sentences(batch, rows))


def test_seeds_trained_side_by_side_equal_seeds_trained_alone() -> None:
    rng = np.random.default_rng(4)
    batch, _ = random_batch(rng, [random_sentence(rng, 6) for _ in range(6)])

    def trained(seeds: Seeds) -> torch.Tensor:
        probe = AttentionWordsProbe(2 * HEADS, SIZE, seeds, has_special=True)
        learn(Learner.of(probe), batch)
        return probe.weights.detach()

    together = trained(Seeds(2, first=5))
    torch.testing.assert_close(together[0], trained(Seeds(1, first=5))[0])
    torch.testing.assert_close(together[1], trained(Seeds(1, first=6))[0])


def synthetic(rng: np.random.Generator, sentences: int, *, with_tree: bool) -> ParseBatch:
    """Noise in every head; with the tree, head 1 looks from each word to its governor."""
    size = 8
    heads = torch.tensor([random_heads(rng, size) for _ in range(sentences)])
    maps = torch.from_numpy(rng.random((sentences, HEADS, size + EXTRA, size + EXTRA))).float()
    if with_tree:
        targets = torch.where(heads >= 0, heads, size + START)
        maps[:, 1, :size] = torch.nn.functional.one_hot(targets, size + EXTRA).float()
    gold = make_gold([random_sentence(rng, 1)], CLASSES)
    none = torch.zeros(sentences, size, dtype=torch.bool)
    vectors = torch.from_numpy(rng.normal(size=(sentences, size, SIZE))).float()
    batch = make_parse_batch(gold, maps, vectors)
    return ParseBatch(batch.maps, vectors, heads, none)


def attachment(probe: Probe, rng: np.random.Generator, *, with_tree: bool) -> float:
    learner = Learner.of(probe, rate=0.05)
    learn(learner, synthetic(rng, 300, with_tree=with_tree))
    right, total = learner.count(synthetic(rng, 200, with_tree=with_tree))
    return float(right[0].sum() / total.sum())


def test_a_probe_finds_the_tree_where_attention_contains_it() -> None:
    probe = AttentionProbe(2 * HEADS, Seeds(1), has_special=True)
    assert attachment(probe, np.random.default_rng(5), with_tree=True) > 0.95


@pytest.mark.parametrize("words", [False, True])
def test_a_probe_of_noise_stays_at_chance(words: bool) -> None:
    probe = (
        AttentionWordsProbe(2 * HEADS, SIZE, Seeds(1), has_special=True)
        if words
        else AttentionProbe(2 * HEADS, Seeds(1), has_special=True)
    )
    # Nine candidates: ROOT and eight words; ruling out the word itself makes it one in eight.
    assert attachment(probe, np.random.default_rng(6), with_tree=False) < 0.18
