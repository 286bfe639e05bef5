import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from headscope.studies.clark2019.probes.trees import (
    ALL,
    CONTENT,
    NO_HEAD,
    Classes,
    count_arcs,
    count_neighbours,
    is_punctuation,
    make_gold,
    spanning_parents,
    tree_fault,
)
from headscope.text.sentence import ROOT, Sentence, Word
from tests.references.random_text import LABELS, padded, random_sentence, random_weights

CLASSES = Classes.of([*LABELS, "root"])


def distinct_weights(rng: np.random.Generator, heads: int, size: int) -> np.ndarray:
    """No two equal, so that there is one spanning tree."""
    values = rng.permutation(heads * size * size).reshape(heads, size, size)
    return (values + 1).astype(np.float32) / values.size


def edges(parents: np.ndarray) -> set[frozenset[int]]:
    return {frozenset((i, int(p))) for i, p in enumerate(parents) if p >= 0}


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["max", "sum"]))
def test_spanning_trees_equal_scipys(seed: int, symmetry: str) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    maps = torch.from_numpy(distinct_weights(rng, 1, size))
    weights = torch.maximum(maps, maps.mT) if symmetry == "max" else maps + maps.mT
    # Adding may make edges equal; a tree is then as good as another of the same weight.
    parents = spanning_parents(weights, torch.ones(1, size, dtype=torch.bool))[0].numpy()
    reference = minimum_spanning_tree(-np.triu(weights[0].numpy(), 1))
    total = sum(weights[0, i, p] for i, p in enumerate(parents) if p >= 0)
    assert len(edges(parents)) == size - 1
    np.testing.assert_allclose(float(total), -reference.sum(), rtol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_arcs_of_a_padded_batch_equal_arcs_counted_sentence_by_sentence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sentences = [random_sentence(rng) for _ in range(3)]
    weights = [distinct_weights(rng, 2, len(s.words)) for s in sentences]
    found = count_arcs(padded(weights), make_gold(sentences, CLASSES))
    expected = np.zeros((3, 2))
    for row, (sentence, maps) in enumerate(zip(sentences, weights, strict=True)):
        for head in range(2):
            both = np.maximum(maps[head], maps[head].T)
            tree = minimum_spanning_tree(-np.triu(both, 1)).nonzero()
            joined = {frozenset(pair) for pair in zip(*map(np.ndarray.tolist, tree), strict=True)}
            for i, word in enumerate(sentence.words):
                counts = word.head != ROOT and not is_punctuation(word)
                expected[row, head] += counts and frozenset((i, word.head)) in joined
    np.testing.assert_array_equal(found, expected)


def test_a_head_that_looks_at_its_governor_has_every_arc() -> None:
    rng = np.random.default_rng(1)
    sentence = random_sentence(rng, longest=8)
    size = len(sentence.words)
    maps = np.full((1, size, size), 1e-3, dtype=np.float32)
    for i, word in enumerate(sentence.words):
        if word.head != ROOT:
            maps[0, i, word.head] = 1
    gold = make_gold([sentence], CLASSES)
    arcs = ((gold.heads >= 0) & ~gold.punctuation).sum()
    assert count_arcs(torch.from_numpy(maps)[None], gold).tolist() == [[float(arcs)]]


def test_the_chain_of_words_has_the_arcs_between_neighbours() -> None:
    rng = np.random.default_rng(2)
    sentences = [random_sentence(rng) for _ in range(5)]
    expected = [
        sum(
            word.head not in (ROOT, None) and abs(word.head - i) == 1 and not is_punctuation(word)
            for i, word in enumerate(sentence.words)
        )
        for sentence in sentences
    ]
    assert count_neighbours(make_gold(sentences, CLASSES)).tolist() == expected


def test_a_graph_without_edges_still_gives_a_tree() -> None:
    zeros = torch.from_numpy(random_weights(np.random.default_rng(0), 1, 4)) * 0
    parents = spanning_parents(zeros, torch.ones(1, 4, dtype=torch.bool))
    assert parents.tolist() == [[-1, 0, 0, 0]]


def words(*rows: tuple[str, int | None, str | None]) -> tuple[Word, ...]:
    return tuple(Word(text, 0, 0, head=head, deprel=label) for text, head, label in rows)


BOOK = words(("Ada", 2, "nmod:poss"), ("'s", 0, "case"), ("book", ROOT, "root"), (".", 2, "punct"))

LABELS = ("nmod:poss", "case", "root", "punct")


def members(name: str, classes: Classes, table: torch.Tensor) -> list[int]:
    return table[0, :, classes.names.index(name)].nonzero().flatten().tolist()


def test_classes_are_the_sums_then_the_labels_of_the_corpus_then_the_clitic_rule() -> None:
    classes = Classes.of(["nsubj:pass", "poss", "nsubj"])
    assert classes.names == (ALL, CONTENT, "nsubj", "nsubj:pass", "poss", "poss with 's")


def test_every_word_is_in_all_and_neither_punctuation_nor_root_in_the_other() -> None:
    classes = Classes.of(LABELS)
    gold = make_gold([Sentence("Ada's book.", BOOK)], classes)
    assert members(ALL, classes, gold.by_itself) == [0, 1, 2, 3]
    assert members(CONTENT, classes, gold.by_itself) == [0, 1]
    assert gold.punctuation.tolist() == [[False, False, False, True]]


def test_the_clitic_answers_for_the_possessor_in_the_class_with_s_only() -> None:
    classes = Classes.of(LABELS)
    gold = make_gold([Sentence("Ada's book.", BOOK)], classes)
    assert members("nmod:poss", classes, gold.by_itself) == [0]
    assert members("nmod:poss with 's", classes, gold.by_next) == [0]
    assert members("nmod:poss with 's", classes, gold.by_itself) == []
    bare = words(("her", 1, "nmod:poss"), ("book", ROOT, "root"))
    gold = make_gold([Sentence("her book", bare)], classes)
    assert members("nmod:poss with 's", classes, gold.by_itself) == [0]


def test_padding_has_no_head() -> None:
    short = words(("Go", ROOT, "root"))
    classes = Classes.of(LABELS)
    gold = make_gold([Sentence("Ada's book.", BOOK), Sentence("Go", short)], classes)
    assert gold.heads[1].tolist() == [ROOT, NO_HEAD, NO_HEAD, NO_HEAD]
    assert gold.classes[1, 1:].sum() == 0


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ([1, ROOT, 1], None),
        ([ROOT, ROOT], "several roots"),
        ([1, 0, ROOT], "cycle"),
        ([0, ROOT], "cycle"),
        ([1, 0], "cycle"),
        ([None, ROOT], "no tree"),
        ([], "no tree"),
    ],
)
def test_what_is_no_tree_is_named(heads: list[int | None], fault: str | None) -> None:
    assert tree_fault(words(*[("w", head, "dep") for head in heads])) == fault
