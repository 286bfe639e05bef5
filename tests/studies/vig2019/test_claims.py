"""Each published claim is judged by the interval of its statistic, and noise is called noise."""

import numpy as np
import pytest
import xarray as xr

from headscope.results.claims import JudgedClaim, Replicates, judge
from headscope.results.ranks import share_below, share_of_top
from headscope.results.replicates import replicates_of
from headscope.studies.vig2019.claims import CLAIMS
from headscope.studies.vig2019.specialists import count_twice, label_factors
from tests.references.numbers import interval_of
from tests.references.results import make_result, numerator, put, with_sums

BY_SENTENCE = {claim.sentence: claim for claim in CLAIMS}
ALL_HEADS = [{"head": head} for head in range(12)]


def measured(claim: str, result: xr.Dataset) -> JudgedClaim:
    return judge(BY_SENTENCE[claim], Replicates(result))


def verdict(claim: str, result: xr.Dataset) -> str:
    return measured(claim, result).holds


def put_layer(
    result: xr.Dataset, name: str, layer: int, value: float, noise: float = 0.01, **place: str
) -> xr.Dataset:
    for head in range(result.sizes["head"]):
        result = put(result, name, value, noise, layer=layer, head=head, **place)
    return result


def set_all(result: xr.Dataset, name: str, value: float, noise: float = 0.01) -> xr.Dataset:
    return with_sums(result.assign({name: result[name] * 0 + value}), (name,), noise)


@pytest.mark.parametrize(
    ("share", "noise", "wanted"),
    [(0.6, 0.01, "yes"), (0.4, 0.01, "no"), (0.505, 5.0, "unclear")],
)
def test_the_null_share_is_held_against_one_half(share: float, noise: float, wanted: str) -> None:
    claim = "More than half of the attention goes to the null token."
    assert verdict(claim, set_all(make_result(), "null_share", share, noise)) == wanted


@pytest.mark.parametrize(
    ("share", "noise", "wanted"), [(0.99, 0.001, "yes"), (0.8, 0.01, "no"), (0.972, 0.2, "unclear")]
)
def test_the_head_with_the_largest_null_share_is_chosen_elsewhere(
    share: float, noise: float, wanted: str
) -> None:
    claim = "Some heads look at hardly anything else."
    result = set_all(make_result(), "null_share", 0.2, 0.001)
    result = put(result, "null_share", share, noise, layer=3, head=1)
    found = measured(claim, result)
    assert found.holds == wanted
    assert found.value == pytest.approx(share, rel=0.02)
    value, low, high = interval_of(found)
    assert 0 <= low < value < high <= 1


def test_a_head_that_is_best_by_chance_scores_less_where_it_was_not_chosen() -> None:
    claim = "Some heads look at hardly anything else."
    noise = set_all(make_result(), "null_share", 0.5, 0.5)
    found = measured(claim, noise)
    best = float(replicates_of(noise, "null_share").isel(replicate=0).max())
    assert best == pytest.approx(0.5)
    in_halves = noise["null_share_numerator"][0::2].mean("group").max()
    assert float(in_halves) > 0.6
    assert interval_of(found)[0] < float(in_halves) - 0.05


@pytest.mark.parametrize(
    ("best", "noise", "wanted"), [(0.9, 0.01, "yes"), (0.25, 0.01, "no"), (0.42, 0.3, "unclear")]
)
def test_a_noun_head_needs_twice_the_mean_on_documents_that_did_not_choose_it(
    best: float, noise: float, wanted: str
) -> None:
    claim = "Some head gives nouns twice the usual share."
    result = set_all(make_result(), "pos_to", 0.2, 0.001)
    result = put(result, "pos_to", best, noise, layer=9, head=0, tag="NOUN")
    found = measured(claim, result)
    assert found.holds == wanted
    assert "L9H0" in found.measured


def peaked(tags: tuple[str, ...], name: str = "pos_to", noise: float = 0.001) -> xr.Dataset:
    result = set_all(set_all(make_result(), "pos_to", 0.2, 0.001), "pos_from", 0.2, 0.001)
    for tag in tags:
        result = put(result, name, 0.9, noise, layer=3, head=1, tag=tag)
    return result


def test_tags_above_twice_the_mean_are_counted_with_those_beyond_doubt() -> None:
    certain = peaked(("DET", "NOUN"))
    assert count_twice(label_factors(certain, "pos_to", "tag")) == "2 of 5 (2 … 2)"
    doubtful = put(peaked(("DET",)), "pos_to", 0.42, 0.4, layer=2, head=2, tag="ADJ")
    counted = count_twice(label_factors(doubtful, "pos_to", "tag"))
    assert counted in ("1 of 5 (1 … 2)", "2 of 5 (1 … 2)")


@pytest.mark.parametrize(
    ("tags", "noise", "wanted"),
    [
        (("DET", "NOUN", "ADJ"), 0.001, "yes"),
        (("DET", "NOUN"), 0.001, "no"),
    ],
)
def test_most_tags_have_a_head_if_the_median_factor_is_above_two(
    tags: tuple[str, ...], noise: float, wanted: str
) -> None:
    claim = "For most tags some head pays them more than twice the mean."
    assert verdict(claim, peaked(tags, noise=noise)) == wanted


def test_a_median_factor_near_two_is_unclear() -> None:
    result = peaked(("DET", "NOUN"))
    result = put(result, "pos_to", 0.405, 0.3, layer=3, head=1, tag="ADJ")
    claim = "For most tags some head pays them more than twice the mean."
    assert verdict(claim, result) == "unclear"


def test_attention_from_tags_is_compared_with_attention_to_them() -> None:
    claim = "Fewer tags have a head that attends from them more than twice as much as the mean."
    every = ("ADJ", "DET", "NOUN", "PROPN", "PUNCT")
    assert verdict(claim, peaked(every)) == "yes"
    assert verdict(claim, peaked(every, "pos_from")) == "no"
    assert verdict(claim, peaked(())) == "no"


def test_the_top_heads_are_counted_in_every_replicate() -> None:
    rng = np.random.default_rng(5)
    values = xr.DataArray(
        rng.random((9, 6, 4)),
        dims=("replicate", "layer", "head"),
        coords={"layer": range(6), "head": range(4)},
    )
    for count in range(1, 8):
        layers = sorted(rng.choice(6, 3, replace=False).tolist())
        shares = share_of_top(values.transpose("head", "replicate", "layer"), count, layers)
        for replicate in range(9):
            top = np.argsort(-values.values[replicate].ravel())[:count] // 4
            assert float(shares[replicate]) == pytest.approx(np.isin(top, layers).mean())
    below = share_below(values, {"layer": 2, "head": 1})
    assert float(below[3]) == (values.values[3] < values.values[3, 2, 1]).mean()


@pytest.mark.parametrize(
    ("layer", "noise", "wanted"), [(0, 0.01, "no"), (11, 0.01, "yes"), (11, 9.0, "unclear")]
)
def test_proper_noun_heads_count_as_deep_in_the_last_quarter(
    layer: int, noise: float, wanted: str
) -> None:
    result = set_all(make_result(), "pos_to", 0.2, 0.001)
    for head in range(5):
        result = put(result, "pos_to", 0.9, noise, layer=layer, head=head, tag="PROPN")
        result = put(result, "pos_to", 0.9, noise, layer=layer, head=head, tag="DET")
    assert verdict("Heads that attend to proper nouns are deep.", result) == wanted
    low = "yes" if wanted == "no" else "no"
    assert verdict("Heads that attend to determiners are low.", result) == low


def test_punctuation_heads_are_named_by_how_many_are_deep() -> None:
    claim = "Heads that attend from punctuation are deep."
    result = set_all(make_result(), "pos_from", 0.2, 0.001)
    for head in range(10):
        result = put(result, "pos_from", 0.9, layer=11, head=head, tag="PUNCT")
    assert verdict(claim, result) == "yes"
    assert "10 of the top 10 in layers 6–11" in measured(claim, result).measured


def test_the_deepest_layers_win_only_if_the_lead_is_more_than_noise() -> None:
    claim = "The deepest layers look the furthest."
    result = set_all(make_result(), "distance", 3.0)
    assert verdict(claim, put_layer(result, "distance", 11, 9.0)) == "yes"
    assert verdict(claim, put_layer(result, "distance", 2, 9.0)) == "no"
    close = put_layer(put_layer(result, "distance", 2, 9.0, 0.3), "distance", 11, 9.01, 0.3)
    assert verdict(claim, close) == "unclear"


def test_layers_that_vary_together_are_told_apart_by_their_difference() -> None:
    """Each layer varies widely from group to group, but the lead is the same in every group."""
    claim = "The deepest layers look the furthest."
    result = set_all(make_result(), "distance", 3.0, 0.0)
    shared = 1 + 0.5 * np.random.default_rng(0).normal(size=(32, 1, 1))
    steady = 1 + 0.001 * np.random.default_rng(1).normal(size=(32, 12, 12))
    lead = result["distance_numerator"].copy()
    lead.loc[{"layer": 11}] = 3.5
    result["distance_numerator"] = lead * shared * steady
    assert verdict(claim, result) == "yes"


def test_the_middle_layers_lead_or_not() -> None:
    claim = "Middle layers follow dependency arcs best."
    result = set_all(make_result(), "dependency_alignment", 0.2)
    for layer, wanted in ((4, "yes"), (11, "no"), (0, "no")):
        peaked_there = put_layer(result, "dependency_alignment", layer, 0.4, form="either")
        assert verdict(claim, peaked_there) == wanted
    noise = set_all(make_result(), "dependency_alignment", 0.2, 0.01)
    close = put_layer(noise, "dependency_alignment", 4, 0.22, 0.5, form="either")
    assert verdict(claim, close) == "unclear"


def test_the_best_aligned_layer_is_short_if_few_layers_look_less_far() -> None:
    claim = "The best aligned layers look the least far."
    result = set_all(make_result(), "dependency_alignment", 0.2)
    result = put_layer(result, "dependency_alignment", 4, 0.4, form="either")
    for layer in range(12):
        result = put_layer(result, "distance", layer, 5.0 + layer)
    assert verdict(claim, put_layer(result, "distance", 4, 1.0)) == "yes"
    assert verdict(claim, put_layer(result, "distance", 4, 30.0)) == "no"
    # The third shortest of the others looks 7 tokens far.
    assert verdict(claim, put_layer(result, "distance", 4, 7.2, 0.5)) == "unclear"


def aligned() -> xr.Dataset:
    return put(make_result(), "dependency_alignment", 0.9, layer=4, head=11, form="either")


def test_the_best_aligned_head_is_compared_with_the_least_variable_ones() -> None:
    claim = "The best aligned head is the least variable one."
    found = measured(claim, put(aligned(), "variability", 0.001, layer=4, head=11))
    assert found.holds == "yes"
    assert found.measured == "0.00 (0.00 … 0.00); L4H11: alignment 0.90, variability 0.001"
    assert verdict(claim, put(aligned(), "variability", 0.95, layer=4, head=11)) == "no"
    noisy = put(aligned(), "variability", 0.06, 5.0, layer=4, head=11)
    assert verdict(claim, noisy) == "unclear"


@pytest.mark.parametrize(
    ("distance", "noise", "wanted"),
    [(1.1, 0.01, "yes"), (2.5, 0.01, "no"), (0.2, 0.01, "no"), (1.5, 0.2, "unclear")],
)
def test_a_head_that_looks_back_one_token_is_within_half_a_token_of_it(
    distance: float, noise: float, wanted: str
) -> None:
    claim = "The best aligned head looks at the previous token."
    result = put(aligned(), "distance", distance, noise, layer=4, head=11)
    found = measured(claim, result)
    assert found.holds == wanted
    assert interval_of(found)[1] >= 0


@pytest.mark.parametrize(
    ("entropy", "noise", "wanted"), [(0.1, 0.01, "yes"), (2.0, 0.01, "no"), (0.2, 1.0, "unclear")]
)
def test_the_furthest_head_is_focused_if_its_entropy_is_below_the_mean(
    entropy: float, noise: float, wanted: str
) -> None:
    claim = "The head that looks furthest is a focused one."
    result = put(make_result(), "distance", 20.0, layer=5, head=1)
    result = put(result, "entropy", entropy, noise, layer=5, head=1)
    assert verdict(claim, result) == wanted


@pytest.mark.parametrize(("slope", "wanted"), [(1.0, "yes"), (-1.0, "no")])
def test_a_correlation_is_judged_by_its_interval(slope: float, wanted: str) -> None:
    claim = "Heads that look further spread their attention more."
    result = far_apart()
    entropy = 1 + slope * (result["distance"] - 3) / 10
    found = measured(claim, with_sums(result.assign(entropy=entropy), ("entropy",)))
    assert found.holds == wanted
    value, low, high = interval_of(found)
    assert -1 <= low <= value <= high <= 1 and low < high


def test_a_correlation_of_noise_is_unclear() -> None:
    claim = "Heads that look further spread their attention more."
    result = far_apart()
    result["entropy_numerator"] = numerator(result["entropy"] * 0 + 0.3, 0.2)
    assert verdict(claim, result) == "unclear"


def test_heads_that_look_nearly_equally_far_have_no_correlation() -> None:
    found = measured("Heads that look further spread their attention more.", make_result())
    assert (found.holds, found.measured) == ("not measured", "all heads look nearly equally far")


def far_apart() -> xr.Dataset:
    """Heads whose distances lie between one and five tokens."""
    result = make_result()
    return with_sums(result.assign(distance=10 * result["distance"]), ("distance",))


def test_alignment_falls_with_distance_or_not() -> None:
    claim = "Heads that look further follow arcs less."
    result = far_apart()
    for slope, wanted in ((-0.1, "yes"), (0.1, "no")):
        values = result["dependency_alignment"] * 0 + 0.5 + slope * (result["distance"] - 3)
        bent = result.assign(dependency_alignment=values.transpose("layer", "head", "form"))
        assert verdict(claim, with_sums(bent, ("dependency_alignment",))) == wanted


def test_a_fact_about_the_corpus_is_not_judged() -> None:
    result = put(make_result(), "dependency_probability", 0.5, separation=1)
    result = put(result, "dependency_probability", 0.1, separation=5)
    result = put(result, "dependency_probability", 0.02, separation=10)
    found = measured("Relations become rare with distance (at 1, 5, 10 tokens).", result)
    assert found.holds == "for comparison"
    assert found.value == pytest.approx(0.08, abs=0.01)


def test_what_a_result_lacks_is_not_measured() -> None:
    lacking = ("pos_to", "dependency_alignment")
    ends = ("", "_by_layer", "_numerator", "_denominator")
    data = Replicates(make_result().drop_vars([f"{name}{end}" for name in lacking for end in ends]))
    found = {claim.sentence: judge(claim, data).holds for claim in CLAIMS}
    assert found["For most tags some head pays them more than twice the mean."] == "not measured"
    assert found["The best aligned head looks at the previous token."] == "not measured"
    unknown = make_result().assign_coords(tag=["a", "b", "c", "d", "e"])
    shallow = measured("Heads that attend to determiners are low.", unknown)
    assert (shallow.measured, shallow.holds) == ("pos_to has no tag DET", "not measured")


def test_every_claim_can_be_judged_for_a_model_of_one_layer_and_one_head() -> None:
    data = Replicates(make_result(1, 1))
    found = {claim.sentence: judge(claim, data) for claim in CLAIMS}
    assert all(judged.measured for judged in found.values())
    assert found["The deepest layers look the furthest."].holds == "not measured"
    assert found["Heads that look further follow arcs less."].holds == "not measured"


def test_only_intervals_of_counts_may_have_width_zero_and_none_leaves_its_range() -> None:
    for seed in range(3):
        data = Replicates(make_result(seed=seed))
        for claim in CLAIMS:
            found = judge(claim, data)
            if found.low is not None and found.high is not None:
                least, most = claim.quantity.least, claim.quantity.most
                assert least <= found.low <= found.high <= most, claim.sentence
                assert found.low < found.high or claim.is_counted, claim.sentence
