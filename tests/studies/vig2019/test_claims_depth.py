"""Claims on depth and on syntax beyond distance: yes, no and unclear where they should be."""

import numpy as np
import pytest
import xarray as xr

from headscope.results.claims import JudgedClaim, Replicates, judge
from headscope.studies.vig2019.claims import CLAIMS
from headscope.studies.vig2019.tables import syntax_rows
from tests.references.numbers import interval_of
from tests.references.results import make_result, put, with_sums

BY_SENTENCE = {claim.sentence: claim for claim in CLAIMS}


def judged(claim: str, result: xr.Dataset) -> JudgedClaim:
    return judge(BY_SENTENCE[claim], Replicates(result))


def with_layers(name: str, low: float, deep: float, noise: float = 0.01) -> xr.Dataset:
    """A result whose measure has one value in the lower half of the layers, another above."""
    result = make_result()
    at_layer = xr.where(result["layer"] < 6, low, deep)
    values = xr.ones_like(result[name]) * at_layer
    return with_sums(result.assign({name: values.transpose(*result[name].dims)}), (name,), noise)


def set_all(result: xr.Dataset, name: str, value: float, noise: float = 0.001) -> xr.Dataset:
    return with_sums(result.assign({name: result[name] * 0 + value}), (name,), noise)


@pytest.mark.parametrize(
    ("low", "deep", "noise", "subjects", "determiners"),
    [
        (0.1, 0.3, 0.01, "yes", "no"),
        (0.3, 0.1, 0.01, "no", "yes"),
        (0.2, 0.22, 0.3, "unclear", "no"),
    ],
)
def test_the_halves_of_the_layers_are_compared(
    low: float, deep: float, noise: float, subjects: str, determiners: str
) -> None:
    result = with_layers("deprel_to", low, deep, noise)
    found = judged("Subjects are attended to in deep layers.", result)
    assert found.holds == subjects
    assert found.value == pytest.approx(deep / low, rel=0.03)
    assert f"{low:.3f} in layers 0–5, {deep:.3f} above; even attention 0.333" in found.measured
    assert judged("Determiners are attended to in low layers.", result).holds == determiners


def test_a_relation_that_the_corpus_lacks_is_not_measured() -> None:
    found = judged("Negations are attended to in low layers.", make_result())
    assert (found.holds, found.measured) == ("not measured", "the corpus has no such relation")


def test_attention_from_tags_is_held_against_their_frequency() -> None:
    claim = "In the first layers attention comes from all tags as often as they occur."
    result = make_result()
    skewed = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    values = np.where((np.arange(12) < 2)[:, None, None], 0.2, skewed) * np.ones((12, 12, 5))
    result["pos_from"] = (("layer", "head", "tag"), values)
    found = judged(claim, with_sums(result, ("pos_from",), 0.001))
    assert found.holds == "yes"
    # Half of what the skewed shares differ by from one fifth each.
    assert found.value == pytest.approx(-0.3, abs=0.002)
    mirrored = with_sums(result.assign(pos_from=result["pos_from"][::-1].assign_coords(
        layer=result["layer"])), ("pos_from",), 0.001)  # fmt: skip
    assert judged(claim, mirrored).holds == "no"


def test_a_model_of_two_layers_is_not_judged_by_its_first() -> None:
    result = make_result(layers=1)
    for claim in ("The first layers spread their attention widely.",
                  "The first layers look further than the layers after them."):  # fmt: skip
        assert judged(claim, result).holds == "not measured"


def test_the_first_layers_are_compared_in_entropy_and_distance() -> None:
    result = make_result()
    for name in ("entropy", "distance"):
        result = set_all(result, name, 1.0)
        for layer in (0, 1):
            for head in range(12):
                result = put(result, name, 2.0, 0.001, layer=layer, head=head)
    for claim in ("The first layers spread their attention widely.",
                  "The first layers look further than the layers after them."):  # fmt: skip
        found = judged(claim, result)
        assert (found.holds, round(interval_of(found)[0], 2)) == ("yes", 1.0)


def test_alignment_is_held_against_what_the_distances_of_the_same_head_give() -> None:
    result = set_all(make_result(), "dependency_alignment", 0.2)
    result = set_all(result, "dependency_expected", 0.2)
    place = {"layer": 4, "head": 11, "form": "either"}
    near = put(result, "dependency_alignment", 0.42, 0.001, **place)
    near = put(near, "dependency_expected", 0.41, 0.001, **place)
    best = "The best aligned head owes its alignment to looking near."
    some = "Some head follows arcs far beyond what its distances explain."
    assert judged(best, near).holds == "yes"
    assert "L4H11: alignment 0.42, expected 0.41" in judged(best, near).measured
    assert judged(some, near).holds == "no"
    beyond = put(near, "dependency_expected", 0.2, 0.001, **place)
    assert judged(best, beyond).holds == "no"
    assert judged(some, beyond).holds == "yes"
    rows = syntax_rows(beyond)
    assert rows[1]["head"] == "L4H11" and rows[1]["beyond"].value == pytest.approx(0.22, abs=0.001)
    assert rows[0]["beyond"].value == pytest.approx(
        0.22, abs=0.01
    )  # chosen elsewhere, the same head
    assert rows[1]["beyond"].low < rows[1]["beyond"].value < rows[1]["beyond"].high
