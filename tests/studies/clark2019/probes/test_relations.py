import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid
from headscope.studies.clark2019.probes.relations import (
    DIRECTIONS,
    OFFSETS,
    RelationAccuracy,
    count_correct,
    count_offsets,
    predict,
    scored_words,
)
from headscope.studies.clark2019.probes.trees import (
    ALL,
    CONTENT,
    Classes,
    count_arcs,
    is_punctuation,
    make_gold,
)
from headscope.studies.shared.words import word_layer
from headscope.text.sentence import ROOT, Sentence, Word
from tests.references.random_text import (
    LABELS,
    make_batch,
    make_layer,
    padded,
    random_pieces,
    random_sentence,
    random_weights,
)

CLASSES = Classes.of([*LABELS, "root"])
CLITICS = Classes.of([*LABELS, "root"], clitics=True)
HEADS = 3


def in_class(sentence: Sentence, i: int, name: str) -> bool:
    word = sentence.words[i]
    if name == CONTENT:
        return word.head != ROOT and not is_punctuation(word)
    return name == ALL or word.deprel == name.removesuffix(" with 's")


def answering(sentence: Sentence, i: int, name: str, clitics: bool) -> int:
    """Whose prediction counts for word i in a class."""
    following = i + 1 < len(sentence.words) and sentence.words[i + 1].text == "'s"
    in_sums = clitics and name in (ALL, CONTENT) and sentence.words[i].deprel == "nmod:poss"
    return i + 1 if (name.endswith(" with 's") or in_sums) and following else i


def is_scored(sentence: Sentence, i: int, direction: str, is_causal: bool) -> bool:
    head = sentence.words[i].head
    if not is_causal:
        return True
    if head is None or head == ROOT:
        return False
    return head < i if direction == "dependent_to_head" else head > i


def plain_prediction(weights: np.ndarray, i: int, direction: str) -> int:
    best, best_weight = 0, -1.0
    for j in range(len(weights)):
        weight = weights[i, j] if direction == "dependent_to_head" else weights[j, i]
        weight = 0.0 if i == j else weight
        if weight > best_weight:
            best, best_weight = j, weight
    return best


def plain_counts(
    sentences: list[Sentence], weights: list[np.ndarray], is_causal: bool, clitics: bool
) -> tuple[np.ndarray, ...]:
    size = len(sentences)
    correct = np.zeros((size, HEADS, len(DIRECTIONS), len(CLASSES)))
    scored = np.zeros((size, len(DIRECTIONS), len(CLASSES)))
    offsets = np.zeros((size, len(DIRECTIONS), len(OFFSETS), len(CLASSES)))
    for row, (sentence, maps) in enumerate(zip(sentences, weights, strict=True)):
        for c, name in enumerate(CLASSES.names):
            for i in range(len(sentence.words)):
                for d, direction in enumerate(DIRECTIONS):
                    if not in_class(sentence, i, name):
                        continue
                    if not is_scored(sentence, i, direction, is_causal):
                        continue
                    scored[row, d, c] += 1
                    head = sentence.words[i].head
                    who = answering(sentence, i, name, clitics)
                    for o, offset in enumerate(OFFSETS):
                        hit = head != ROOT and head == who + offset
                        offsets[row, d, o, c] += hit
                    for h in range(HEADS):
                        hit = plain_prediction(maps[h], who, direction) == head
                        correct[row, h, d, c] += hit
    return correct, scored, offsets


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_accuracies_and_baselines_equal_plain_loops(
    seed: int, is_causal: bool, clitics: bool
) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng) for _ in range(3)]
    weights = [random_weights(rng, HEADS, len(s.words), is_causal=is_causal) for s in sentences]
    gold = make_gold(sentences, CLITICS if clitics else CLASSES)
    scored = scored_words(gold.heads, gold.words, is_causal=is_causal)
    correct = count_correct(predict(padded(weights), gold.words), gold, scored)
    offsets = count_offsets(gold, scored)
    expected = plain_counts(sentences, weights, is_causal, clitics)
    np.testing.assert_array_equal(correct, expected[0])
    np.testing.assert_array_equal(offsets["scored"], expected[1])
    np.testing.assert_array_equal(offsets["offset_correct"], expected[2])
    assert offsets["words"][:, 0].sum() == sum(len(s.words) for s in sentences)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_metric_has_the_counts_of_every_layer_in_the_group_of_the_sentence(
    seed: int, is_causal: bool
) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng) for _ in range(3)]
    pieces = [random_pieces(rng, len(s.words), special=not is_causal) for s in sentences]
    weights = [random_weights(rng, HEADS, len(p), is_causal=is_causal) for p in pieces]
    batch = make_batch(sentences, pieces, is_causal=is_causal)
    layer = make_layer(weights, batch, index=1)
    metric = RelationAccuracy(Grid((4, 7), HEADS), CLASSES, is_causal)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, layer)
    maps = word_layer(layer)
    of_sentences = [
        m[:, : len(s.words), : len(s.words)].numpy() for m, s in zip(maps, sentences, strict=True)
    ]
    correct, scored, offsets = plain_counts(sentences, of_sentences, is_causal, clitics=False)
    np.testing.assert_array_equal(sums["correct"][:3, 1], correct)
    np.testing.assert_array_equal(sums["scored"][:3], scored)
    np.testing.assert_array_equal(sums["offset_correct"][:3], offsets)
    arcs = count_arcs(maps, make_gold(sentences, CLASSES))
    np.testing.assert_array_equal(sums["arcs_found"][:3, 1], arcs)
    assert not sums["correct"][3:].any() and not sums["correct"][:, 0].any()
    accuracy = metric.compute(sums)["relation_accuracy"].sel(layer=7).transpose("head", ...)
    words = scored.sum(0)
    expected = np.where(words > 0, correct.sum(0) / np.maximum(words, 1), np.nan)
    np.testing.assert_allclose(accuracy, expected)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_counts_of_two_batches_add_to_the_counts_of_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng) for _ in range(4)]
    weights = [random_weights(rng, HEADS, len(s.words)) for s in sentences]

    def count(part: slice) -> torch.Tensor:
        gold = make_gold(sentences[part], CLASSES)
        scored = scored_words(gold.heads, gold.words, is_causal=False)
        return count_correct(predict(padded(weights[part]), gold.words), gold, scored).sum(0)

    torch.testing.assert_close(count(slice(0, 1)) + count(slice(1, 4)), count(slice(0, 4)))


def test_of_equal_weights_the_first_word_is_predicted() -> None:
    maps = torch.full((1, 1, 3, 3), 0.25)
    predicted = predict(maps, torch.ones(1, 3, dtype=torch.bool))
    assert predicted[:, 0, 0].tolist() == [[1, 0, 0], [1, 0, 0]]


def test_the_diagonal_is_never_chosen_over_a_word_that_is_attended_to() -> None:
    maps = torch.tensor([[[[0.9, 0.1], [0.2, 0.8]]]])
    predicted = predict(maps, torch.ones(1, 2, dtype=torch.bool))
    assert predicted[0, 0, 0].tolist() == [1, 0]


def test_padding_is_never_predicted() -> None:
    maps = torch.zeros(1, 1, 3, 3)
    predicted = predict(maps, torch.tensor([[True, False, False]]))
    assert predicted[:, 0, 0, 0].tolist() == [0, 0]


def test_the_root_of_a_sentence_is_not_the_word_before_it() -> None:
    word = Word("Go", 0, 2, head=ROOT, deprel="root")
    gold = make_gold([Sentence("Go", (word,))], Classes.of(["root"]))
    scored = scored_words(gold.heads, gold.words, is_causal=False)
    assert count_offsets(gold, scored)["offset_correct"].sum() == 0


def test_offsets_of_the_released_code_end_at_the_first_and_last_word() -> None:
    """Four words that all hang on the last: from the first it is three ahead."""
    relations = ["det", "det", "det", "root"]
    heads = [3, 3, 3, ROOT]
    words = [
        Word("a", 2 * place, 2 * place + 1, head=head, deprel=relation)
        for place, (head, relation) in enumerate(zip(heads, relations, strict=True))
    ]
    gold = make_gold([Sentence("a a a a", tuple(words))], Classes.of(["det", "root"]))
    scored = scored_words(gold.heads, gold.words, is_causal=False)
    det = Classes.of(["det", "root"]).names.index("det")
    plain, clamped = (
        count_offsets(gold, scored, is_clamped=is_clamped)["offset_correct"][0, 0, :, det].tolist()
        for is_clamped in (False, True)
    )
    assert plain == [0, 0, 0, 1, 1, 1]
    assert clamped == [0, 0, 0, 1, 2, 0]


@pytest.mark.parametrize(("direction", "expected"), [(0, [False, True]), (1, [True, False])])
def test_a_causal_head_is_asked_for_what_it_could_see(direction: int, expected: list[bool]) -> None:
    heads = torch.tensor([[1, ROOT, 1]])
    scored = scored_words(heads, torch.ones(1, 3, dtype=torch.bool), is_causal=True)
    assert scored[direction, 0, [0, 2]].tolist() == expected
    assert not scored[direction, 0, 1]
