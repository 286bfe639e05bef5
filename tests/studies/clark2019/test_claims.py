"""The claims of clark2019 are judged by intervals on results that must give each verdict."""

import numpy as np
import pytest

from headscope.results.replicates import GROUPS
from headscope.studies.clark2019.best_heads import clear_relations, name_linguistic
from headscope.studies.clark2019.probes.trees import ALL
from tests.references.clark2019_results import (
    HEADS,
    LAYERS,
    claim,
    put_layers,
    surface,
    words,
)
from tests.references.numbers import interval_of
from tests.references.results import put


@pytest.mark.parametrize("offset", [-1, 1])
@pytest.mark.parametrize(
    ("share", "noise", "wanted"), [(0.9, 0.01, "yes"), (0.4, 0.01, "no"), (0.51, 0.3, "unclear")]
)
def test_a_head_for_a_neighbour_has_more_than_half_where_it_was_not_chosen(
    offset: int, share: float, noise: float, wanted: str
) -> None:
    start = f"Some heads look mostly at the {'next' if offset > 0 else 'previous'}"
    found = claim(
        start, put(surface(), "offset_share", share, noise, layer=2, head=1, offset=offset)
    )
    assert found.holds == wanted
    assert "L2H1 (paper 3-2)" in found.measured


def test_a_causal_model_is_not_asked_for_the_next_token_or_for_cls() -> None:
    result = surface(is_causal=True)
    for start in ("Some heads look mostly at the next", "Next-token heads"):
        assert claim(start, result).measured == "a causal model cannot see the next token"
        assert claim(start, result).holds == "not measured"
    assert claim("In the last layer [CLS]", result).holds == "not measured"
    assert claim("Some heads look mostly at the prev", result).holds == "no"


@pytest.mark.parametrize(
    ("shares", "noise", "wanted"),
    [
        ({0: 0.8, 1: 0.8, 9: 0.8}, 0.01, "yes"),
        ({8: 0.8, 9: 0.8, 1: 0.8}, 0.01, "no"),
        ({0: 0.55, 9: 0.49}, 0.5, "unclear"),
    ],
)
def test_next_token_heads_are_low_if_most_of_them_are(
    shares: dict[int, float], noise: float, wanted: str
) -> None:
    result = surface()
    for layer, share in shares.items():
        result = put(result, "offset_share", share, noise, layer=layer, head=0, offset=1)
    assert claim("Next-token heads", result).holds == wanted
    assert claim("Next-token heads", surface()).holds == "not measured"


@pytest.mark.parametrize(
    ("share", "noise", "wanted"), [(0.8, 0.01, "yes"), (0.2, 0.01, "no"), (0.501, 0.5, "unclear")]
)
def test_the_share_of_separators_is_held_against_one_half(
    share: float, noise: float, wanted: str
) -> None:
    result = put_layers(surface(), "special_share", range(5, 10), share, noise, special="sep")
    assert claim("In the upper middle layers most", result).holds == wanted
    assert claim("In the upper middle layers most", result).value == pytest.approx(share)


@pytest.mark.parametrize(
    ("share", "noise", "wanted"), [(0.95, 0.01, "yes"), (0.5, 0.01, "no"), (0.9, 0.3, "unclear")]
)
def test_separators_look_at_separators_in_more_than_nine_of_ten(
    share: float, noise: float, wanted: str
) -> None:
    rare = put_layers(surface(), "sep_to_sep", range(5, 10), share, noise)
    assert (
        claim("In the upper middle layers [SEP]", rare).measured
        == "attention to [SEP] is only 0.20 in layers 5–9"
    )
    result = put_layers(rare, "special_share", range(5, 10), 0.6, special="sep")
    assert claim("In the upper middle layers [SEP]", result).holds == wanted


def test_a_model_without_a_separator_is_not_judged_by_it() -> None:
    result = surface()
    result["special_share_denominator"] = result["special_share_denominator"] * 0
    for start in ("In the upper middle layers most", "Where attention to [SEP]"):
        found = claim(start, result)
        assert (found.measured, found.holds) == ("the model has no separator", "not measured")


def test_layers_that_vary_together_widen_the_error_of_their_mean() -> None:
    """The error of five layers that move as one is that of one layer, not a √5-th of it."""
    alone = put_layers(surface(0.0), "special_share", range(5, 10), 0.6, 0.2, special="sep")
    together = surface(0.0)
    drawn = np.random.default_rng(3).normal(size=GROUPS)
    moved = 0.6 * (1 + 0.2 * (drawn - drawn.mean()))
    for layer in range(5, 10):
        for head in range(HEADS):
            place = {"layer": layer, "head": head, "special": "sep"}
            together["special_share_numerator"].loc[place] = moved
    narrow, wide = (claim("In the upper middle layers most", each) for each in (alone, together))
    expected = 0.2 * 0.6 * np.std(drawn, ddof=1) / np.sqrt(GROUPS)
    (_, low, high), (_, narrow_low, narrow_high) = interval_of(wide), interval_of(narrow)
    assert high - low == pytest.approx(2 * 2.04 * expected, rel=0.05)
    assert high - low > 2 * (narrow_high - narrow_low)


@pytest.mark.parametrize(
    ("late", "noise", "wanted"), [(0.1, 0.01, "yes"), (0.9, 0.01, "no"), (0.18, 0.5, "unclear")]
)
def test_a_fading_gradient_is_judged_relative_to_all_attention(
    late: float, noise: float, wanted: str
) -> None:
    result = put_layers(surface(), "special_share", range(5, 10), 0.6, special="sep")
    result = put_layers(result, "gradient", range(5, 10), late, noise, target="sep")
    found = claim("Where attention to [SEP]", result)
    assert found.holds == wanted
    assert f"1.00 → {late / 0.2:.2f} of the mean gradient" in found.measured


def test_a_gradient_cannot_fade_where_little_attention_goes_to_separators() -> None:
    result = put_layers(surface(), "special_share", range(5, 10), 0.02, special="sep")
    result = put_layers(result, "gradient", range(5, 10), 0.01, target="sep")
    found = claim("Where attention to [SEP]", result)
    assert found.holds == "not measured"
    assert found.measured == "attention to [SEP] is only 0.02 in layers 5–9"


@pytest.mark.parametrize(
    ("low", "noise", "wanted"), [(0.4, 0.01, "yes"), (0.1, 0.01, "no"), (0.3, 0.3, "unclear")]
)
def test_broad_attention_is_low_if_the_first_third_has_more_entropy(
    low: float, noise: float, wanted: str
) -> None:
    result = put_layers(surface(), "entropy", range(4), low, noise)
    assert claim("Broad attention", result).holds == wanted


@pytest.mark.parametrize(
    ("last", "noise", "wanted"), [(0.4, 0.01, "yes"), (0.1, 0.01, "no"), (0.3, 0.5, "unclear")]
)
def test_cls_is_broad_at_the_end_if_no_other_upper_layer_has_more(
    last: float, noise: float, wanted: str
) -> None:
    result = put_layers(surface(), "entropy_from_cls", range(11, 12), last, noise)
    result = put_layers(result, "entropy_from_cls", range(3), 0.9)  # lower layers do not count
    assert claim("In the last layer [CLS]", result).holds == wanted


@pytest.mark.parametrize(("layers", "verdict"), [(5, "yes"), (1, "no"), (3, "unclear")])
def test_special_tokens_get_most_often_if_they_do_in_more_than_a_quarter_of_heads(
    layers: int, verdict: str
) -> None:
    """Elsewhere [CLS], [SEP] and punctuation get 0.45 together, none of them half."""
    result = surface()
    for special in ("cls", "sep", "punct"):
        result = put_layers(result, "special_share", range(12), 0.15, special=special)
        noise = 0.3 if verdict == "unclear" else 0.01
        share = 0.17 if verdict == "unclear" else 0.2
        result = put_layers(result, "special_share", range(layers), share, noise, special=special)
    judged = claim("Often more than half", result)
    assert judged.holds == verdict
    assert judged.value == pytest.approx(layers / 12)
    assert judged.measured.endswith(f"{3 * layers} of 36 heads")


@pytest.mark.parametrize(
    ("largest", "noise", "verdict"), [(0.05, 0.01, "yes"), (0.3, 0.01, "no"), (0.1, 0.5, "unclear")]
)
def test_heads_that_attend_broadly_are_asked_for_their_largest_weights(
    largest: float, noise: float, verdict: str
) -> None:
    start = "Heads that attend broadly"
    assert claim(start, surface()).measured == "all heads attend equally broadly"
    narrow = put(surface(), "entropy", 3.0, layer=1, head=2)
    assert claim(start, narrow).measured == "no head attends broadly"
    broad = put(surface(), "entropy", 4.2, layer=1, head=2)
    judged = claim(start, put(broad, "confidence", largest, noise, layer=1, head=2))
    assert judged.holds == verdict
    assert judged.value == pytest.approx(largest)  # that of all other heads, 0.2, does not count


@pytest.mark.parametrize(
    ("layers", "apart", "noise", "verdict"),
    [(4, 1.0, 0.01, "yes"), (8, 1.0, 0.01, "no"), (8, 0.25, 0.5, "unclear")],
)
def test_cls_is_as_broad_as_others_if_most_layers_before_the_last_are_close(
    layers: int, apart: float, noise: float, verdict: str
) -> None:
    result = put(surface(), "entropy", 4.2, layer=1, head=2)
    result = put_layers(result, "entropy_from_cls", range(11), 0.3)
    result = put_layers(result, "entropy_from_cls", range(11, 12), 4.0)  # the last is not asked
    result = put_layers(result, "entropy_from_cls", range(layers), 0.2 + apart, noise)
    start = "In most layers [CLS]"
    assert claim(start, result).holds == verdict
    assert claim(start, surface()).measured == "all heads attend equally broadly"
    assert claim(start, surface(is_causal=True)).holds == "not measured"


@pytest.mark.parametrize(
    ("within", "spread", "wanted"), [(0.2, 0.01, "yes"), (0.8, 0.01, "no"), (0.5, 0.3, "unclear")]
)
def test_heads_of_one_layer_are_compared_with_heads_of_others(
    within: float, spread: float, wanted: str
) -> None:
    size = LAYERS * HEADS
    of_layer = np.repeat(np.arange(LAYERS), HEADS)
    own = within + spread * np.random.default_rng(1).normal(size=LAYERS)
    same = of_layer[:, None] == of_layer
    matrix = np.where(same, own[of_layer], 0.5) * (1 - np.eye(size))
    result = surface().assign(head_divergence=(("unit", "other"), 10 * matrix))
    result["head_divergence"].attrs["rows"] = 10.0
    assert claim("Heads of one layer", result).holds == wanted


@pytest.mark.parametrize(
    ("det", "noise", "wanted"), [(0.9, 1.0, "yes"), (0.3, 1.0, "no"), (0.51, 8.0, "unclear")]
)
def test_a_head_finds_a_relation_if_it_beats_the_best_offset_elsewhere(
    det: float, noise: float, wanted: str
) -> None:
    found = claim("A head finds det", words(det, noise=noise))
    assert found.holds == wanted
    assert "in L1H0 (paper 2-1)" in found.measured


def test_a_relation_that_a_corpus_lacks_is_not_measured() -> None:
    assert claim("A head finds dobj", words()).measured == "the corpus has no such relation"
    once = words().assign_coords(relation=[ALL, "det", "prt"])
    found = claim("A head finds prt", once)
    assert found.holds == "not measured"
    assert found.measured == "the 1 words with it are in one half of the documents"


@pytest.mark.parametrize(
    ("share", "coverage", "noise", "wanted"),
    [
        (0.3, 1.0, 1.0, "yes"),
        (0.9, 1.0, 1.0, "no"),
        (0.5, 1.0, 8.0, "unclear"),
        (0.557, 0.59, 1.0, "yes"),  # of the words that a causal head can see
    ],
)
def test_a_parser_must_find_half_of_all_governors_seen_or_not(
    share: float, coverage: float, noise: float, wanted: str
) -> None:
    found = claim("No single head parses", words(share, noise=noise, coverage=coverage))
    assert found.holds == wanted
    assert found.value == pytest.approx(share * coverage, abs=0.05)


@pytest.mark.parametrize(
    ("resolved", "noise", "better", "near"),
    [
        (0.9, 1.0, "yes", "yes"),
        (0.69, 0.5, "yes", "yes"),
        (0.55, 0.5, "yes", "no"),
        (0.3, 1.0, "no", "no"),
        (0.5, 3.0, "unclear", "no"),
        (0.65, 3.0, "yes", "unclear"),
    ],
)
def test_a_resolver_is_better_near_or_not(
    resolved: float, noise: float, better: str, near: str
) -> None:
    result = words(resolved=resolved, noise=noise)
    assert claim("A head resolves coreference", result).holds == better
    rules = claim("The best head for coreference comes near", result)
    assert rules.holds == near
    assert ("better than the rules" in rules.measured) == (resolved == 0.9)


@pytest.mark.parametrize(
    ("attention", "noise", "wanted"), [(0.5, 1.0, "yes"), (0.2, 1.0, "no"), (0.3, 2.0, "unclear")]
)
def test_probes_are_compared_on_the_same_documents(
    attention: float, noise: float, wanted: str
) -> None:
    result = words(noise=noise)
    moved = attention - 0.4
    result["parsing_uas_numerator"].loc[{"probe": "attention"}] += 50 * moved
    found = claim("Heads together know more", result)
    assert found.holds == wanted
    assert found.value == pytest.approx(attention - 0.3, abs=0.03)


def test_a_probe_that_still_learns_is_not_judged() -> None:
    result = words()
    result["parsing_curve"].loc[{"probe": "attention"}] = [0.2, 0.3, 0.37, 0.4]
    for start in ("Heads together know more", "Knowing the words"):
        found = claim(start, result)
        assert found.holds == "not measured"
        assert found.measured.startswith("the probe of attention has not levelled off: +3.0 %")
    assert claim("Attention says more", result).holds == "yes"


def test_a_relation_is_clear_if_its_whole_margin_exceeds_the_threshold() -> None:
    assert [row.relation for row in clear_relations(words(0.9), 20)] == ["det"]
    assert clear_relations(words(0.9), 2000) == []
    doubtful = words(0.61, noise=4.0)
    assert clear_relations(doubtful, 20) == []
    labels = name_linguistic(words(0.9, resolved=0.3), 20)["behaviour"]
    assert labels.values.tolist() == [["other", "other"], ["det", "other"]]


def test_a_head_is_named_for_coreference_only_if_it_beats_matching_beyond_doubt() -> None:
    def labels(resolved: float, noise: float) -> list[str]:
        result = words(0.1, resolved=resolved, noise=noise)
        return name_linguistic(result, 20)["behaviour"].values[0].tolist()

    assert labels(0.7, 1.0) == ["other", "coreference"]
    assert labels(0.505, 3.0) == ["other", "other"]
