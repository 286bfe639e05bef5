import pytest
import torch

from headscope.studies.clark2019.probes.trees import (
    ALL,
    CONTENT,
    NO_HEAD,
    Classes,
    make_gold,
    tree_fault,
)
from headscope.text.sentence import ROOT, Sentence, Word


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
