"""A verdict follows from the interval of a statistic and its threshold, and from nothing else."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from headscope.results.claims import (
    Claim,
    Evidence,
    NotMeasured,
    Replicates,
    claim,
    judge,
    measure_untrained,
)
from headscope.results.held_out import HeldOut, hold_out, hold_out_each
from headscope.results.intervals import (
    ANY,
    CORRELATION,
    NO_SPREAD,
    PERCENT,
    SHARE,
    SIZE,
    TIMES,
    Interval,
    Quantity,
    find_interval,
    find_intervals,
    write_interval,
)
from headscope.results.replicates import informed, ratio_replicates
from tests.references.numbers import interval_of

GROUPS = 8


def result(values: list[float]) -> Replicates:
    """A measure x whose groups weigh the same and have these values."""
    sums = {
        "x_numerator": ("group", np.array(values)),
        "x_denominator": ("group", np.ones(len(values))),
    }
    return Replicates(xr.Dataset({"x": ((), float(np.mean(values))), **sums}))


def claimed(above: float | None = 0.5, below: float | None = None, of: Quantity = ANY) -> Claim:
    @claim("claim", "–", above=above, below=below, of=of)
    def value(data: Replicates) -> Evidence:
        """The value of x."""
        return Evidence(data["x"])

    return value


AROUND = [0.48, 0.52] * 4
ABOVE = [0.58, 0.62] * 4


@pytest.mark.parametrize(
    ("values", "side", "wanted"),
    [
        (ABOVE, "above", "yes"),
        (ABOVE, "below", "no"),
        (AROUND, "above", "unclear"),
        (AROUND, "below", "unclear"),
        ([0.4, 0.42] * 4, "above", "no"),
        ([0.4, 0.42] * 4, "below", "yes"),
    ],
)
def test_the_whole_interval_must_lie_on_the_claimed_side(
    values: list[float], side: str, wanted: str
) -> None:
    stated = claimed() if side == "above" else claimed(None, 0.5)
    judged = judge(stated, result(values))
    assert (judged.holds, judged.rule) == (wanted, f"The value of x: {side} 0.5")


def test_the_interval_is_students_with_one_degree_less_than_groups() -> None:
    judged = judge(claimed(), result(ABOVE))
    error = np.std(ABOVE, ddof=1) / np.sqrt(GROUPS)
    reach = stats.t.ppf(0.975, GROUPS - 1) * error
    assert interval_of(judged) == pytest.approx((0.6, 0.6 - reach, 0.6 + reach))


def test_nothing_is_judged_without_a_threshold() -> None:
    judged = judge(claimed(None), result(ABOVE))
    assert (judged.holds, judged.value) == ("for comparison", pytest.approx(0.6))
    assert judged.rule == "The value of x; no rule"


def test_what_cannot_be_measured_says_why() -> None:
    @claim("claim", "–", above=0.5)
    def refuses(data: Replicates) -> Evidence:
        raise NotMeasured("the model has no separator")

    @claim("claim", "–", above=0.5)
    def reads_what_is_missing(data: Replicates) -> Evidence:
        return Evidence(data["y"])

    refused = judge(refuses, result(ABOVE))
    assert (refused.measured, refused.holds) == ("the model has no separator", "not measured")
    absent = judge(reads_what_is_missing, result(ABOVE))
    assert (absent.measured, absent.holds) == ("the result has no y", "not measured")
    empty = judge(claimed(), result([np.nan] * GROUPS))
    assert (empty.holds, empty.measured) == (
        "not measured",
        "these texts are too few, or lack what it takes",
    )


def test_a_label_and_sums_that_a_result_lacks_are_not_measured() -> None:
    data = Replicates(xr.Dataset({"x": ("form", [0.5])}, {"form": ["either"]}))
    with pytest.raises(NotMeasured, match="x has no form both"):
        data.at("x", form="both")
    with pytest.raises(NotMeasured, match="the result has no sums of x by group of documents"):
        data.with_sums("x")
    assert data.at("x", form="either").item() == 0.5


def test_groups_are_those_of_what_was_read_and_a_refused_claim_is_forgotten() -> None:
    sums = {
        "y_numerator": ("group", [1.0, 2] + [0.0] * 6),
        "y_denominator": ("group", [1.0, 1] + [0.0] * 6),
    }
    both = result([0.5, 0.6, 0.7, 0.6] * 2).result.assign(sums)
    data = Replicates(both)

    @claim("claim", "–", above=0.5)
    def refused(data: Replicates) -> Evidence:
        raise NotMeasured(f"{data['x'].sizes['replicate']} replicates are no help")

    @claim("claim", "–", above=0.5)
    def of_two_groups(data: Replicates) -> Evidence:
        return Evidence(data["y"])

    assert judge(refused, data).measured == "9 replicates are no help"
    assert data.groups == 8
    judge(of_two_groups, data)
    assert data.groups == 2


@pytest.mark.parametrize(("count", "words"), [(1, "1 group"), (7, "7 groups")])
def test_fewer_than_eight_groups_show_a_value_but_no_verdict(count: int, words: str) -> None:
    judged = judge(claimed(), result([0.9, 0.8, 0.9, 0.9, 0.8, 0.9, 0.9][:count]))
    assert judged.holds == "not measured"
    assert judged.measured.endswith(
        f"; {words} with data for it, fewer than 8: the error is unknown"
    )
    assert judged.low is None


def test_only_groups_that_have_a_label_count() -> None:
    x = np.ones((12, 2))
    x[5:, 1] = 0  # the label b occurs in five groups
    sums = {"x_numerator": (("group", "label"), x), "x_denominator": ("group", np.ones(12))}
    coords = {"label": ["a", "b"]}
    data = Replicates(xr.Dataset({"x": ("label", x.mean(0)), **sums}, coords))
    for label, groups in (("a", 12), ("b", 5)):
        data.forget()
        data.at("x", label=label)
        assert data.groups == groups


def test_a_correlation_is_symmetric_on_the_scale_of_fisher_and_a_factor_on_that_of_logs() -> None:
    rng = np.random.default_rng(0)
    for quantity, value, scale in ((CORRELATION, 0.9, np.arctanh), (TIMES, 2.0, np.log)):
        values = value + 0.01 * rng.normal(size=GROUPS + 1)
        found = find_interval(xr.DataArray(values, dims="replicate"), GROUPS, quantity)
        low, middle, high = scale([found.low, found.value, found.high])
        assert middle - low == pytest.approx(high - middle)
        assert found.value - found.low != pytest.approx(found.high - found.value, rel=1e-3)


def test_a_count_has_the_middle_of_its_draws_and_is_exact_where_all_draws_agree() -> None:
    @claim("claim", "–", above=0.5, of=SHARE, is_counted=True)
    def share_above_half(data: Replicates) -> Evidence:
        return Evidence((data["x"] > 0.5).astype(float))

    judged = judge(share_above_half, result(ABOVE))
    assert (judged.holds, *interval_of(judged)) == ("yes", 1.0, 1.0, 1.0)
    mixed = judge(share_above_half, result([0.1, 0.9, 0.2, 0.95] * 2))
    assert (mixed.holds, mixed.low, mixed.high) == ("unclear", 0.0, 1.0)


@pytest.mark.parametrize(
    ("untrained", "wanted"), [(0.3, "yes"), (0.59, "untrained too"), (0.9, "untrained too")]
)
def test_what_networks_of_random_weights_show_too_was_not_learned(
    untrained: float, wanted: str
) -> None:
    judged = judge(claimed(), result(ABOVE), untrained)
    assert (judged.holds, judged.untrained) == (wanted, untrained)
    assert judged.measured.endswith(f"; untrained {untrained:.2f}")
    assert judge(claimed(), result([0.4, 0.42] * 4), untrained).holds == "no"


def test_of_several_untrained_networks_the_nearest_to_the_claim_counts() -> None:
    networks = [result([value] * GROUPS) for value in (0.1, 0.3, 0.2)]
    assert measure_untrained(claimed(), networks) == pytest.approx(0.3)
    assert measure_untrained(claimed(None, 0.5), networks) == pytest.approx(0.1)
    assert measure_untrained(claimed(None), networks) is None  # nothing is claimed


def test_a_value_that_never_varies_has_no_error_unless_it_is_a_share() -> None:
    judged = judge(claimed(), result([0.75] * GROUPS))
    assert (judged.holds, judged.measured) == ("yes", f"0.75 (0.75 … 0.75); {NO_SPREAD}")
    share = judge(claimed(of=SHARE), result([1.0] * GROUPS))
    _, low, high = interval_of(share)
    assert 0.5 < low < high == 1
    assert share.holds == "yes"


def test_intervals_keep_within_the_range_of_the_statistic() -> None:
    values = xr.DataArray(np.r_[0.02, np.linspace(0, 0.04, GROUPS)], dims="replicate")
    assert find_interval(values, GROUPS, ANY).low < 0
    for limits in (SHARE, SIZE):
        found = find_interval(values, GROUPS, limits)
        assert 0 <= found.low < found.value < found.high


@pytest.mark.parametrize(
    ("estimate", "quantity", "wanted"),
    [
        (Interval(2.069, 2.021, 2.117), TIMES, "2.07 × (2.02 … 2.12)"),
        (
            Interval(-0.03, -0.05, -0.01),
            Quantity("nats", is_signed=True),
            "−0.03 nats (−0.05 … −0.01)",
        ),
        (Interval(0.248, 0.235, 0.263), PERCENT, "24.8 % (23.5 … 26.3)"),
        (Interval(21.85), ANY, "21.85"),
        (Interval(0.0712, 0.0711, 0.0713), ANY, "0.0712 (0.0711 … 0.0713)"),
    ],
)
def test_numbers_have_as_many_digits_as_their_interval_leaves(
    estimate: Interval, quantity: Quantity, wanted: str
) -> None:
    assert write_interval(estimate, quantity) == wanted


def heads(values: np.ndarray) -> xr.Dataset:
    """A measure of heads from its values in every group, all of weight one."""
    x = xr.DataArray(
        values[:, None],
        dims=("group", "layer", "head"),
        coords={"layer": [3], "head": np.arange(values.shape[1])},
    )
    return xr.Dataset({"x_numerator": x, "x_denominator": ("group", np.ones(len(values)))})


def test_a_head_is_chosen_on_even_groups_and_scored_on_odd_ones_and_the_other_way() -> None:
    values = np.array([[9, 5], [2, 7], [9, 5], [2, 7]], dtype=float)
    found = hold_out(heads(values), "x")
    assert found.places == ({"layer": 3, "head": 0}, {"layer": 3, "head": 1})
    # The even groups choose head 0, which has 2 in the odd ones; those choose head 1, which has 5.
    assert found.numerator.tolist() == [5, 2, 5, 2]
    assert found.find(is_share=False).value == 3.5


def test_the_smallest_can_be_held_out_too() -> None:
    found = hold_out(heads(np.array([[9, 5], [9, 4], [9, 6], [9, 5]], dtype=float)), "x", sign=-1)
    assert found.places == ({"layer": 3, "head": 1},) * 2
    assert found.find(is_share=False).value == 5


def test_selection_from_noise_gains_nothing_where_it_is_scored() -> None:
    rng = np.random.default_rng(0)
    gains, in_sample = [], []
    for _ in range(200):
        values = rng.normal(0.5, 0.1, (16, 30))
        gains.append(hold_out(heads(values), "x").find().value - 0.5)
        in_sample.append(values.mean(0).max() - 0.5)
    assert np.mean(in_sample) > 0.04
    assert abs(np.mean(gains)) < 0.005


def test_a_half_without_data_has_no_choice_and_no_score() -> None:
    data = heads(np.ones((4, 2)))
    data["x_denominator"][1::2] = 0
    assert hold_out(data, "x").places == ({"layer": 3, "head": 0}, None)
    assert np.isnan(hold_out(data, "x").find().value)


def test_heads_without_a_number_are_never_chosen() -> None:
    values = np.array([[np.nan, 5]] * 4)
    found = hold_out(heads(values), "x")
    assert isinstance(found, HeldOut)
    assert found.places == ({"layer": 3, "head": 1},) * 2


def labelled(seed: int) -> xr.Dataset:
    """Shares of heads by label, in an order of dimensions of their own; a label in few groups."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (GROUPS, 3, 2, 4, 2)).round(1)  # rounded: ties happen
    y = np.ones((GROUPS, 3, 2, 2))
    x[:, :, :, 0] *= np.arange(GROUPS)[:, None, None, None] == 2
    y[:, 1, 1] = 0
    dims = ("group", "layer", "head", "label", "side")
    coords = {"layer": [0, 2, 5], "head": [0, 1], "label": list("abcd"), "side": [0, 1]}
    sums = {"x_numerator": (dims, x), "x_denominator": (("group", "layer", "head", "side"), y)}
    data = xr.Dataset(sums, coords=coords).isel(side=0)
    return data.transpose("group", "label", "head", "layer") if seed % 2 else data


@pytest.mark.parametrize("seed", range(6))
def test_every_label_is_held_out_as_it_would_be_alone(seed: int) -> None:
    data = labelled(seed)
    found = hold_out_each(data, "x", "label")
    assert found.dims == ("label",)
    for place, label in enumerate(data["label"].values.tolist()):
        alone = hold_out(data, "x", {"label": label})
        assert np.array_equal(found.numerator[:, place], alone.numerator, equal_nan=True)
        assert np.array_equal(found.denominator[:, place], alone.denominator, equal_nan=True)


@pytest.mark.parametrize("limits", [ANY, SHARE, SIZE])
def test_intervals_of_several_statistics_are_those_of_each(limits: Quantity) -> None:
    sums = hold_out_each(labelled(0), "x", "label")
    y = sums.denominator * [1.0, 1.0, 0.5, 2.0]
    y[1:, 3] = 0  # one group has data
    values, groups, weight = ratio_replicates(sums.numerator, y), informed(y), y.sum(0)
    found = find_intervals(values, groups, limits, weight)
    assert found[3].trouble.startswith("1 group with data") and np.isnan(found[3].low)
    for place, each in enumerate(found):
        attributes = {"groups": groups[place], "weight": weight[place]}
        alone = xr.DataArray(values[:, place], dims="replicate", attrs=attributes)
        wanted = find_interval(alone, 0, limits)
        assert each.trouble == wanted.trouble
        np.testing.assert_allclose(
            (each.value, each.low, each.high), (wanted.value, wanted.low, wanted.high), rtol=1e-14
        )
