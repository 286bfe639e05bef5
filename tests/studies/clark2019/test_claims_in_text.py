"""Claims that the paper makes in its text get each verdict where they should."""

import numpy as np
import pytest
import xarray as xr

from headscope.results.claims import JudgedClaim, Replicates, judge
from headscope.results.replicates import GROUPS
from headscope.studies import additions
from headscope.studies.clark2019.probes import tables
from tests.references.clark2019_results import claim, put_layers, surface, words
from tests.references.numbers import interval_of
from tests.references.results import with_sums


@pytest.mark.parametrize(
    ("share", "noise", "wanted"), [(0.02, 0.01, "yes"), (0.3, 0.01, "no"), (0.1, 2.0, "unclear")]
)
def test_the_middle_head_looks_little_at_the_token_itself(
    share: float, noise: float, wanted: str
) -> None:
    result = put_layers(surface(), "offset_share", range(12), share, noise, offset=0)
    found = claim("Most heads look little", result)
    assert found.holds == wanted
    assert found.value == pytest.approx(share, rel=0.3)


@pytest.mark.parametrize(
    ("start", "special", "layers"),
    [("[CLS] is looked at", "cls", range(4)), ("Full stops and commas", "punct", range(8, 12))],
)
def test_a_third_of_the_layers_is_held_against_the_rest(
    start: str, special: str, layers: range
) -> None:
    for share, wanted in ((0.6, "yes"), (0.1, "no")):
        result = put_layers(surface(), "special_share", layers, share, special=special)
        found = claim(start, result)
        assert found.holds == wanted
        assert found.value == pytest.approx(share - 0.2, abs=0.01)
        where = f"layers {layers[0]}–{layers[-1]}"
        assert f"{share:.3f} in {where}, 0.200 in the rest" in found.measured
    close = put_layers(surface(), "special_share", layers, 0.22, 0.5, special=special)
    assert claim(start, close).holds == "unclear"


def test_a_model_without_cls_is_not_judged_by_it() -> None:
    result = surface()
    result["special_share_denominator"] = result["special_share_denominator"] * 0
    assert claim("[CLS] is looked at", result).measured == "the model has no such token"


def test_best_heads_of_both_directions_are_compared_on_other_documents() -> None:
    start = "Dependents look at their heads"
    found = claim(start, words(0.9))
    assert (found.holds, round(interval_of(found)[0], 1)) == ("yes", 0.8)
    assert "1 of 1 relations" in found.measured
    turned = words(0.9)
    turned["relation_accuracy_numerator"] = turned["relation_accuracy_numerator"].isel(
        direction=[1, 0]
    ).assign_coords(direction=turned["direction"])  # fmt: skip
    assert claim(start, turned).holds == "no"
    assert "0 of 1 relations; not det" in claim(start, turned).measured
    assert claim(start, words(0.12)).holds == "unclear"
    assert claim(start, words().assign_attrs(is_causal=1)).holds == "not measured"


@pytest.mark.parametrize(("nominal", "wanted"), [(0.9, "yes"), (0.3, "no"), (0.6, "unclear")])
def test_strength_on_nominals_is_what_it_gains_beyond_all_mentions(
    nominal: float, wanted: str
) -> None:
    result = words(resolved=0.6).assign_coords(mention=["all", "nominal"])
    found = result["coref_accuracy_numerator"]
    found[:, 0, 1, :, 1] += 20 * (nominal - 0.6)
    ratio = found.sum("group") / result["coref_accuracy_denominator"].sum("group")
    base = result["coref_baseline_numerator"].sum("group") / (20 * GROUPS)
    judged = claim(
        "The best head for coreference is particularly good",
        result.assign(coref_accuracy=ratio, coref_baseline=base),
    )
    assert judged.holds == wanted
    # Head match finds half of both kinds.
    assert judged.value == pytest.approx(nominal - 0.6, abs=0.03)


def with_noop(applies: float, other: float, prefix: str, noise: float = 0.05) -> xr.Dataset:
    """L1H0 finds det; what its words pay to delimiters."""
    rng = np.random.default_rng(4)
    result = words(0.9).assign_coords(relation=["all", "obj", "prt"])
    found = {}
    for name, value in (("applies", applies), ("not", other)):
        for side in ("", "_governor"):
            drawn = 1 + noise * rng.normal(size=(GROUPS, 2, 2, 3))
            x = xr.DataArray(value * drawn, dims=("group", "layer", "head", "relation"))
            variable = f"{prefix}_{name}{side}"
            found[variable] = x.mean("group")
            found[f"{variable}_numerator"] = x
            found[f"{variable}_denominator"] = xr.DataArray(np.ones((GROUPS, 3)),
                                                            dims=("group", "relation"))  # fmt: skip
    return result.assign(found)


def judged_noop(start: str, result: xr.Dataset) -> JudgedClaim:
    accuracy = result["relation_accuracy_numerator"].sum("group")
    return claim(start, result.assign(relation_accuracy=accuracy))


@pytest.mark.parametrize(
    ("applies", "other", "noise", "wanted"),
    [(0.1, 0.5, 0.05, "yes"), (0.5, 0.1, 0.05, "no"), (0.3, 0.3, 0.5, "unclear")],
)
def test_doing_nothing_is_looking_at_delimiters_where_nothing_is_to_be_found(
    applies: float, other: float, noise: float, wanted: str
) -> None:
    result = with_noop(applies, other, "noop", noise)
    for start in ("Heads look at delimiters", "The head that finds direct objects does so"):
        found = judged_noop(start, result)
        assert found.holds == wanted
        assert found.value == pytest.approx(other - applies, abs=0.05)
    (row,) = [row for row in tables.noop_rows(result) if row["relation"] == "obj"]
    assert row["head"] == "L1H0" and row["attending"] == "dependent"
    assert row["difference"].value == pytest.approx(row["does not"] - row["applies"])
    assert row["difference"].low < row["difference"].value < row["difference"].high


def test_gradients_of_doing_nothing_are_compared_as_a_ratio() -> None:
    start = "Where the relation does not apply"
    smaller = judged_noop(start, with_noop(0.4, 0.1, "noop_gradient"))
    assert (smaller.holds, round(interval_of(smaller)[0], 1)) == ("yes", 0.2)
    assert judged_noop(start, with_noop(0.1, 0.4, "noop_gradient")).holds == "no"


@pytest.mark.parametrize(
    ("norm", "noise", "wanted"), [(0.05, 0.01, "yes"), (0.18, 0.01, "no"), (0.1, 0.9, "unclear")]
)
def test_a_sink_survives_if_half_of_it_is_left(norm: float, noise: float, wanted: str) -> None:
    result = surface(noise=0.03)
    result["special_share_norm"] = result["special_share"] * 0 + norm
    result = with_sums(result, ("special_share_norm",), noise)
    sink = additions.sink_claim("[SEP]", "special_share", {"special": "sep"})
    found = judge(sink, Replicates(result))
    assert found.holds == wanted
    assert found.value == pytest.approx(norm / 0.2, rel=0.05)
    assert judge(sink, Replicates(surface())).holds == "not measured"
