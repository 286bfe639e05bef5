"""Each published claim is judged by its stated rule, and noise is called noise."""

import numpy as np
import pytest
import xarray as xr

from headscope.results.findings import decide_difference, judge
from headscope.studies.vig2019.findings import FINDINGS, specialised
from tests.report.results import make_result, put

BY_CLAIM = {finding.claim: finding for finding in FINDINGS}


def verdict(claim: str, result: xr.Dataset) -> str:
    return judge(BY_CLAIM[claim], result).verdict


def test_the_null_share_is_held_against_one_half() -> None:
    claim = "More than half of the attention goes to the null token."
    result = make_result()
    assert verdict(claim, result) == "no"
    assert verdict(claim, result.assign(null_share=result["null_share"] * 0 + 0.6)) == "yes"


def test_a_tag_is_specialised_when_some_head_has_more_than_twice_the_mean() -> None:
    flat = make_result()["pos_to"] * 0 + 0.2
    peaked = flat.copy()
    peaked.loc[{"layer": 3, "head": 1, "tag": "DET"}] = 0.9
    assert specialised(flat) == (0, 5)
    assert specialised(peaked) == (1, 5)


@pytest.mark.parametrize(("layer", "wanted"), [(0, "no"), (11, "yes")])
def test_proper_noun_heads_count_as_deep_in_the_last_quarter(layer: int, wanted: str) -> None:
    result = make_result()
    for head in range(5):
        result = put(result, "pos_to", 0.9, layer=layer, head=head, tag="PROPN")
    assert verdict("Heads that attend to proper nouns are deep.", result) == wanted
    shallow = "Heads that attend to determiners are low."
    for head in range(5):
        result = put(result, "pos_to", 0.9, layer=layer, head=head, tag="DET")
    assert verdict(shallow, result) == ("yes" if wanted == "no" else "no")


def test_the_deepest_layers_win_only_if_the_lead_is_more_than_noise() -> None:
    claim = "The deepest layers look the furthest."
    result = make_result()
    assert verdict(claim, put(result, "distance_by_layer", 9.0, layer=11)) == "yes"
    assert verdict(claim, put(result, "distance_by_layer", 9.0, layer=2)) == "no"
    close = put(result, "distance_by_layer", 9.0, layer=2)
    close = put(close, "distance_by_layer", 9.01, layer=11)
    close = put(close, "distance_by_layer_se", 0.1, layer=11)
    assert verdict(claim, close) == "unclear"


def test_the_best_aligned_head_is_compared_with_the_least_variable_ones() -> None:
    claim = "The best aligned head is the least variable one."
    result = put(make_result(), "dependency_alignment", 0.9, layer=4, head=11, form="either")
    assert verdict(claim, put(result, "variability", 0.001, layer=4, head=11)) == "yes"
    assert verdict(claim, put(result, "variability", 0.95, layer=4, head=11)) == "no"
    measured = judge(BY_CLAIM[claim], put(result, "variability", 0.001, layer=4, head=11))
    assert (
        measured.value == "L4H11: alignment 0.90, variability 0.001 (rank 1 of 144, lowest first)"
    )


@pytest.mark.parametrize(
    ("r", "p", "wanted"), [(0.5, 0.001, "yes"), (-0.5, 0.001, "no"), (0.1, 0.4, "unclear")]
)
def test_a_correlation_needs_sign_and_significance(r: float, p: float, wanted: str) -> None:
    result = put(make_result(), "correlation", r, pair="distance~entropy")
    result = put(result, "correlation_p", p, pair="distance~entropy")
    assert verdict("Heads that look further spread their attention more.", result) == wanted


def test_what_a_result_lacks_is_not_measured() -> None:
    result = make_result().drop_vars(["pos_to", "dependency_alignment"])
    found = {finding.claim: judge(finding, result).verdict for finding in FINDINGS}
    assert found["For most tags some head pays them more than twice the mean."] == "not measured"
    assert found["The best aligned head looks at the previous token."] == "not measured"
    unknown = make_result().assign_coords(tag=["a", "b", "c", "d", "e"])
    assert verdict("Heads that attend to determiners are low.", unknown) == "not measured"


def test_every_claim_can_be_judged_for_a_model_of_one_layer_and_one_head() -> None:
    tiny = make_result(1, 1)
    tiny["correlation"][:] = np.nan
    assert all(judge(finding, tiny).value for finding in FINDINGS)


def test_a_difference_within_two_standard_errors_is_unclear() -> None:
    assert decide_difference(1.0, (0.1, 0.1)) == "yes"
    assert decide_difference(-1.0, (0.1, 0.1)) == "no"
    assert decide_difference(0.2, (0.1, 0.1)) == "unclear"
    assert decide_difference(float("nan"), (0.1, 0.1)) == "unclear"
