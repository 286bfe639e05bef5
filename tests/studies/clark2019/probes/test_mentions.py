import pytest

from headscope.studies.clark2019.probes.mentions import (
    Agreement,
    antecedents,
    candidates,
    head_word,
    kind_of,
    phrases,
)
from headscope.text.sentence import ROOT, Mention, Sentence, Word


def word(text: str, head: int | None = None, **more: str) -> Word:
    return Word(text, 0, len(text), head=head, **more)  # pyright: ignore[reportArgumentType]


def test_the_head_word_is_the_one_whose_governor_lies_outside() -> None:
    words = [word("the", 1), word("king", 4), word("of", 3), word("Spain", 1), word("fell", ROOT)]
    assert head_word(words, [(0, 4)]) == 1


def test_of_several_tops_the_first_that_is_no_punctuation_is_the_head_word() -> None:
    words = [word('"', 3, upos="PUNCT"), word("a", 3), word("b", 3), word("c", ROOT)]
    assert head_word(words, [(0, 3)]) == 1


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ([("the", "DT"), ("king", "NN"), ("of", "IN"), ("Spain", "NNP")], 1),
        ([("old", "JJ"), ("Ada", "NNP"), ("'s", "POS")], 1),
        ([("the", "DT"), ("man", "NN"), ("who", "WP"), ("left", "VBD")], 1),
        ([("in", "IN")], 0),
        ([("a", None), ("big", None), ("dog", None)], 2),
    ],
)
def test_without_a_tree_the_head_word_stands_before_the_first_modifier(
    tagged: list[tuple[str, str]], expected: int
) -> None:
    words = [word(text, xpos=tag) for text, tag in tagged]
    assert head_word(words, [(0, len(words))]) == expected


@pytest.mark.parametrize(
    ("tags", "text", "kind"),
    [
        ({"upos": "PRON"}, "x", "pronoun"),
        ({"xpos": "PRP$"}, "x", "pronoun"),
        ({"upos": "PROPN"}, "x", "proper"),
        ({"xpos": "NNPS"}, "x", "proper"),
        ({"upos": "NOUN", "xpos": "NNP"}, "x", "nominal"),
        ({"xpos": "DT"}, "this", "pronoun"),
        ({"xpos": "CD"}, "two", "nominal"),
        ({}, "She", "pronoun"),
        ({}, "Ada", None),
    ],
)
def test_kinds_follow_the_tag_of_the_head_word(
    tags: dict[str, str], text: str, kind: str | None
) -> None:
    assert kind_of(word(text, None, **tags)) == kind


def window(*mentions: tuple[str, int, int], words: tuple[Word, ...] | None = None) -> Sentence:
    plain = tuple(word(text, ROOT, upos="NOUN") for text in ["a", "b", "c", "d", "e", "f"])
    return Sentence("", words or plain, tuple(Mention(name, ((i, j),)) for name, i, j in mentions))


def test_mentions_are_read_from_left_to_right_the_shorter_first() -> None:
    found = phrases(window(("x", 2, 4), ("y", 0, 2), ("z", 0, 1)))
    assert [phrase.entity for phrase in found] == ["z", "y", "x"]


def test_a_mention_with_the_same_head_word_is_no_antecedent() -> None:
    found = phrases(window(("x", 0, 1), ("x", 0, 2), ("x", 3, 4)))
    assert antecedents(found, 1) == []
    assert candidates(found, 1) == []
    assert antecedents(found, 2) == found[:2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((word("dogs", ROOT, feats="Number=Plur"),), Agreement("Plur", None, "3")),
        ((word("dogs", ROOT, xpos="NNS"),), Agreement("Plur", None, "3")),
        ((word("Her", ROOT),), Agreement("Sing", "Fem", "3")),
        ((word("we", ROOT, feats="Number=Plur|Person=1"),), Agreement("Plur", None, "1")),
        (
            (word("Mrs.", 1, upos="PROPN"), word("Hill", ROOT, upos="PROPN")),
            Agreement(None, "Fem", "3"),
        ),
        (
            (word("Ada", ROOT, upos="PROPN"), word("and", 2), word("Bo", 0, deprel="conj")),
            Agreement("Plur", None, "3"),
        ),
        ((word("brother", ROOT, xpos="NN"),), Agreement("Sing", "Masc", "3")),
        ((word("people", ROOT, xpos="NNS"),), Agreement("Plur", None, "3")),
    ],
)
def test_agreement_comes_from_features_tags_and_words(
    words: tuple[Word, ...], expected: Agreement
) -> None:
    found = phrases(window(("x", 0, len(words)), words=words))
    assert found[0].agreement == expected


def test_what_is_unknown_agrees_with_everything() -> None:
    assert Agreement("Sing").allows(Agreement(None, "Fem", "3"))
    assert not Agreement("Sing").allows(Agreement("Plur"))
    assert not Agreement("Sing", "Masc").allows(Agreement("Sing", "Fem"))
    assert not Agreement(person="1").allows(Agreement(person="3"))
