"""Exemplars show the kind a head is listed for, with an arc over what fits a line."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from headscope.metrics.records.kinds import PICKS, RANDOM

import headscope as hs
from headscope.report import parts
from headscope.report.page import render_part
from headscope.report.parts import ShownExemplar, csv_rows, cut, of_choice, pieces_of, show_head
from headscope.results.run import read_finished
from headscope.results.statements import Choice, read_statements
from headscope.text.corpus import Corpus
from tests.engine.tiny import causal_model, make_sentences


def exemplar(tokens: list[str], query: int, key: int, **more: Any) -> dict[str, Any]:
    text = "".join(tokens).replace(" ##", "").replace("##", "")
    given = {"layer": 0, "head": 0, "rank": 0, "weight": 0.5, "kind": None, "random": False}
    return given | {"tokens": tokens, "text": text, "query": query, "key": key, "id": "s"} | more


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    hs.study("vig2019", causal_model(), Corpus.from_sentences(make_sentences(40)), out, seed=5)
    return out


def test_a_listed_head_has_the_stored_picks_of_its_kind(run: Path) -> None:
    opened = read_finished(run)
    choices = read_statements(opened.data).choices
    assert {choice.kind.split(" ")[0] for choice in choices} == {
        "tag", "relation", "distance", "any",
    }  # fmt: skip
    for choice in choices:
        shown = of_choice(choice, opened.exemplars)
        own = opened.data.sel(layer=choice.layer, head=choice.head, kind=choice.kind)
        there = [pick for pick in PICKS if int(own["kind_exemplar_sentence"].sel(pick=pick)) >= 0]
        assert [each["random"] for each in shown] == [pick == RANDOM for pick in there]
        for each, pick in zip(shown, there, strict=True):
            stored = own.sel(pick=pick)
            assert each["weight"] == pytest.approx(float(stored["kind_exemplar_weight"]))
            assert each["query"] != each["key"]
            names = ("sentence", "query", "key")
            assert [each[n] for n in names] == [int(stored[f"kind_exemplar_{n}"]) for n in names]
            _assert_of_kind(each, choice.kind)
        weights = [each["weight"] for each in shown if not each["random"]]
        assert weights == sorted(weights, reverse=True)
    assert sum(len(of_choice(choice, opened.exemplars)) == len(PICKS) for choice in choices) > 10


def _assert_of_kind(each: dict[str, Any], kind: str) -> None:
    what, _, name = kind.partition(" ")
    if what == "tag":
        assert each["key_tag"] == name
    if what == "relation":
        assert each["key_relation"] == name
    if what == "distance":
        ends = [int(end) for end in re.findall(r"\d+", name)]
        assert (
            ends[0] <= abs(each["query"] - each["key"]) <= (ends[1:] or ends)[0] or "more" in name
        )


def test_a_run_that_is_continued_draws_the_same(run: Path, tmp_path: Path) -> None:
    corpus = Corpus.from_sentences(make_sentences(40))
    again = hs.study("vig2019", causal_model(), corpus, tmp_path, seed=5)
    other = hs.study("vig2019", causal_model(), corpus, seed=6)
    first = read_finished(run).data
    for name in ("weight", "sentence", "query", "key"):
        xr.testing.assert_equal(
            first[f"kind_exemplar_{name}"].drop_attrs(), again[f"kind_exemplar_{name}"].drop_attrs()
        )
    drawn = "kind_exemplar_sentence"
    assert not (first[drawn].sel(pick=RANDOM) == other[drawn].sel(pick=RANDOM)).all()
    assert (first[drawn].sel(pick="1") == other[drawn].sel(pick="1")).all()


def test_heads_that_are_listed_for_nothing_show_pairs_of_any_kind() -> None:
    rows = [
        exemplar(["a", " b"], 1, 0, rank=1),
        exemplar(["c", " d"], 1, 0),
        exemplar(["e", " f"], 1, 0, kind="tag X"),
    ]
    any_kind = show_head(Choice("asked", 0, 0, ""), rows)
    assert [each.text for each in any_kind.exemplars] == ["c d", "a b"]
    of_kind = show_head(Choice("table1", 0, 0, "", "tag X"), rows)
    assert [each.text for each in of_kind.exemplars] == ["e f"]
    nothing = show_head(Choice("table1", 0, 0, "", "tag Y"), rows)
    assert "tokens with themselves" in render_part("head_exemplars", nothing)
    assert "tokens with themselves" not in render_part("head_exemplars", of_kind)


def test_the_pieces_of_a_character_are_shown_as_the_character() -> None:
    each = exemplar([" I", " 你 1/3", "你 2/3", "你 3/3", " !"], 2, 0)
    each["text"] = " I 你 !"
    pieces = pieces_of(each)
    assert [piece.text for piece in pieces] == ["I", " 你", " !"]
    assert [piece.attending for piece in pieces] == [False, True, False]
    row = csv_rows([Choice("t", 0, 0, "")], [each])[0]
    assert (row["attending"], row["sentence"]) == ("你", "_I_ **你** !")


def test_a_long_sentence_is_cut_around_the_pair_and_says_so() -> None:
    tokens = [f" w{n:02d}" for n in range(90)]
    shown = cut(pieces_of(exemplar(tokens, 80, 10)))
    texts = [piece.text.strip() for piece in shown]
    assert {"w10", "w80"} <= set(texts)
    assert texts[0] == "…" and texts[-1] == "…" and texts.count("…") == 3
    assert sum(map(len, texts)) <= parts.LONGEST + 3
    inside = [text for text in texts if text != "…"]
    assert inside == sorted(inside)
    assert cut(pieces_of(exemplar(tokens[:9], 3, 1))) == list(pieces_of(exemplar(tokens[:9], 3, 1)))


@pytest.mark.parametrize(("query", "key"), [(3, 1), (1, 3), (2, 2)])
def test_the_arc_leads_from_the_attending_to_the_attended_token(query: int, key: int) -> None:
    shown = ShownExemplar(0.5, pieces_of(exemplar(["The", " cat", " sat", " down"], query, key)))
    start, *_, end = re.findall(r"(-?[\d.]+) (-?[\d.]+)", shown.arc)
    middles = [one.middle for one in shown.line]
    loop = 6 if query == key else 0
    assert float(start[0]) == pytest.approx(middles[query] - loop, abs=0.1)
    assert float(end[0]) == pytest.approx(middles[key] + loop, abs=0.1)
    assert float(start[1]) == float(end[1]) == pytest.approx(shown.rise, abs=0.1)
    ends = [(one.left, one.left + one.width) for one in shown.line]
    assert all(one[1] < other[0] for one, other in pairwise(ends))
    page = render_part("sentence", shown)
    assert page.count("<text") == 4 and page.count('text-decoration="underline"') == 1


def test_a_sentence_from_right_to_left_is_laid_out_so() -> None:
    shown = ShownExemplar(0.5, pieces_of(exemplar(["שלום", " לך", " עולם"], 2, 0)))
    lefts = [one.left for one in shown.line]
    assert lefts == sorted(lefts, reverse=True) and lefts[-1] == pytest.approx(0)
