"""The heads whose exemplars are shown are the most specialised ones that look at something."""

import re

import pytest

from headscope.errors import RunError
from headscope.head import name_head, read_head
from headscope.results.ranks import check_heads, top_heads
from headscope.studies import STUDIES, find_study
from headscope.studies.vig2019.specialists import choose_heads, telling_heads
from tests.references.results import make_result, put


def test_the_most_specialised_head_is_chosen_for_its_tag_and_relation() -> None:
    result = put(make_result(), "pos_to", 0.99, layer=7, head=3, tag="PROPN")
    result = put(result, "deprel_to", 0.99, layer=2, head=5, deprel="det")
    chosen = {(c.table, c.layer, c.head) for c in choose_heads(result)}
    assert ("table1", 7, 3) in chosen
    assert ("table2", 2, 5) in chosen
    first = next(c for c in choose_heads(result) if c.table == "table1")
    assert first.why.startswith("PROPN receives 0.99")
    assert "held out" in first.why


def test_choices_tell_the_value_of_heads_that_other_documents_chose() -> None:
    result = put(make_result(), "distance", 9.0, layer=2, head=3)
    (furthest,) = [c for c in choose_heads(result) if c.why.startswith("looks furthest")]
    assert (furthest.layer, furthest.head) == (2, 3)
    assert re.fullmatch(
        r"looks furthest: 9\.0 tokens; held out 9\.0, [89]\.\d … 9\.\d", furthest.why
    )


def test_a_head_that_looks_at_null_tokens_alone_is_not_chosen() -> None:
    result = put(make_result(), "pos_to", 0.99, layer=7, head=3, tag="PROPN")
    result = put(result, "null_share", 0.99, layer=7, head=3)
    chosen = choose_heads(result)
    assert (7, 3) not in {(c.layer, c.head) for c in chosen}
    assert all("nan" not in c.why for c in chosen)


def test_the_heads_of_figure_4_are_the_extremes() -> None:
    result = put(make_result(), "variability", 0.0001, layer=1, head=1)
    result = put(result, "entropy", 3.0, layer=2, head=2)
    result = put(put(result, "entropy", 0.01, layer=3, head=3), "variability", 1.0, layer=3, head=3)
    wanted = [("positional", 1, 1), ("dispersed", 2, 2), ("content", 3, 3)]
    assert telling_heads(result) == wanted


def test_a_corpus_without_labels_still_has_heads_by_shape() -> None:
    labelled = [name for name in make_result() if str(name).startswith(("pos_to", "deprel_to"))]
    result = make_result().drop_vars(labelled)
    assert {choice.table for choice in choose_heads(result)} == {"table3"}


@pytest.mark.parametrize("name", ["L4H11", "4.11", "4-11", "(4, 11)", " l4h11 "])
def test_heads_are_read_in_every_usual_notation(name: str) -> None:
    assert read_head(name) == (4, 11)
    assert name_head(4, 11) == "L4H11"


def test_a_head_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(RunError, match="'4/x' names no head"):
        read_head("4/x")
    with pytest.raises(RunError, match="L12H0 is no head of this model"):
        check_heads([(12, 0)], make_result())


def test_top_heads_put_unknown_values_last() -> None:
    values = make_result(2, 2)["entropy"] * 0 + [[1, float("nan")], [3, 2]]
    assert [found[:2] for found in top_heads(values, 4)] == [(1, 0), (1, 1), (0, 0), (0, 1)]


def test_every_registered_study_can_be_found() -> None:
    assert all(find_study(name).name == name for name in STUDIES)
