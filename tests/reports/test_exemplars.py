"""Exemplars show the kind a head is listed for, the pair marked in what fits."""

import csv
from pathlib import Path

import pytest

import headscope as hs
from headscope.head import Head
from headscope.reports.exemplars import LONGEST, ShownExemplar, csv_rows, cut, pieces_of, show_head
from headscope.reports.page import render_part
from headscope.results.examples import Exemplar, distance_kind, exemplars_of
from headscope.results.run import read_finished
from headscope.results.statements import Choice, read_statements
from headscope.text.corpus import Corpus
from tests.references.exemplars import make_exemplar
from tests.references.tiny_models import causal_model, make_sentences


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    hs.study("vig2019", causal_model(), Corpus.from_sentences(make_sentences(40)), out, seed=5)
    return out


def test_a_listed_head_shows_pairs_of_its_kind_the_strongest_first(run: Path) -> None:
    hs.report(run, heads=["L1H0"])
    opened = read_finished(run)
    choices = read_statements(opened.data).choices
    assert {choice.kind.split(" ")[0] for choice in choices} == {
        "tag", "relation", "distance", "any",
    }  # fmt: skip
    count = 0
    for choice in choices:
        exemplars = exemplars_of(opened.records, Head(choice.layer, choice.head), choice.kind)
        for each in exemplars:
            assert each.query != each.key
            _assert_of_kind(each, choice.kind)
        weights = [each.weight for each in exemplars]
        assert weights == sorted(weights, reverse=True)
        count += bool(exemplars)
    assert count > 10
    with (run / "tables" / "asked.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    surest = exemplars_of(opened.records, Head(1, 0))
    assert [row["id"] for row in rows] == [each.input.id for each in surest]
    assert [row["kind"] for row in rows] == ["any"] * 5


def _assert_of_kind(each: Exemplar, kind: str) -> None:
    what, _, name = kind.partition(" ")
    if what == "tag":
        assert each.input.tags[each.key] == name
    if what == "relation":
        assert each.input.relations[each.key] == name
    if what == "distance":
        assert distance_kind(abs(each.query - each.key)) == kind


def test_a_head_without_a_pair_of_its_kind_says_so() -> None:
    choice = Choice("table1", 0, 0, "", "tag X")
    shown = show_head(choice, [make_exemplar(["c", " d"], 1, 0)], word_pieces=False)
    assert [each.text for each in shown.exemplars] == ["c d"]
    nothing = show_head(choice, [], word_pieces=False)
    assert "no pair of this kind" in render_part("head_exemplars", nothing)
    assert "no pair of this kind" not in render_part("head_exemplars", shown)


def test_the_pieces_of_a_character_are_shown_as_the_character() -> None:
    tokens = [" I", " 你 1/3", "你 2/3", "你 3/3", " !"]
    each = make_exemplar(tokens, 2, 0, text=" I 你 !")
    pieces = pieces_of(each, word_pieces=False)
    assert [piece.text for piece in pieces] == ["I", " 你", " !"]
    assert [piece.attending for piece in pieces] == [False, True, False]
    row = csv_rows(Choice("t", 0, 0, ""), [each], word_pieces=False)[0]
    assert (row["attending"], row["sentence"]) == ("你", "_I_ **你** !")


def test_the_tokenizer_says_whether_words_have_spaces_not_the_input() -> None:
    """No token of this input has "##", and its text is not that of the tokens."""
    exemplar = make_exemplar(["[CLS]", "hoped", "that", "it", "[SEP]"], 1, 3, text="")
    shown = {
        marks: ShownExemplar(0.5, pieces_of(exemplar, word_pieces=marks)).text
        for marks in (True, False)
    }
    assert shown == {True: "[CLS] hoped that it [SEP]", False: "[CLS]hopedthatit[SEP]"}


def test_a_long_sentence_is_cut_around_the_pair_and_says_so() -> None:
    tokens = [f" w{n:03d}" for n in range(200)]
    shown = cut(pieces_of(make_exemplar(tokens, 140, 60), word_pieces=False))
    texts = [piece.text.strip() for piece in shown]
    assert {"w060", "w140"} <= set(texts)
    assert texts[0] == "…" and texts[-1] == "…" and texts.count("…") == 3
    assert sum(map(len, texts)) <= LONGEST + 3
    inside = [text for text in texts if text != "…"]
    assert inside == sorted(inside)
    short = pieces_of(make_exemplar(tokens[:9], 3, 1), word_pieces=False)
    assert cut(short) == list(short)


@pytest.mark.parametrize(("query", "key"), [(3, 1), (1, 3), (2, 2)])
def test_the_attending_token_is_bold_and_the_attended_one_underlined(query: int, key: int) -> None:
    tokens = ["The", " cat", " sat", " down"]
    shown = ShownExemplar(0.5, pieces_of(make_exemplar(tokens, query, key), word_pieces=False))
    marked = ["The", "cat", "sat", "down"]
    marked[key] = f"<u>{marked[key]}</u>"
    marked[query] = f"<b>{marked[query]}</b>"
    assert render_part("sentence", shown).strip() == " ".join(marked)
