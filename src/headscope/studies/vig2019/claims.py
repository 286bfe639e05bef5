"""What the paper found in GPT-2 small, and how a result is judged by it.

Where a head is picked by the measure that it is judged by, it is picked on half of the documents
and judged on the other. Where it is picked by one measure and judged by another (the best aligned
head by its distance), the choice does not flatter it, and it is picked on everything. The threshold
of a claim is the least effect that matters: with enough documents any difference is there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import Head, name_head
from headscope.results.claims import (
    Claim,
    Evidence,
    NotMeasured,
    Replicates,
    claim,
    claims_in,
    on_all,
    or_not_measured,
    split_layers,
)
from headscope.results.held_out import HeldOut, hold_out
from headscope.results.intervals import (
    CORRELATION,
    DIFFERENCE,
    SHARE,
    SIGNED,
    SIZE,
    TIMES,
    Quantity,
    percent,
)
from headscope.results.ranks import (
    layers_between,
    lead,
    name_layers,
    share_below,
    share_of_top,
    top_heads,
)
from headscope.studies.additions import sink_claim
from headscope.studies.shared.published import DISTANCE_ENTROPY
from headscope.studies.vig2019 import published
from headscope.studies.vig2019.specialists import (
    Specialist,
    count_twice,
    find_specialists,
    label_factors,
)

TWICE = 2.0
CLEAR_FACTOR = 0.25  # × the mean share
CLEAR_SHARE = 0.02  # of attention
CLEAR_DISTANCE = 0.25  # tokens
CLEAR_ENTROPY = 0.1  # nats
DIFFERENT = 0.5  # tokens: standard deviation of the heads' distances
CLEAR_CORRELATION = 0.3  # of 64 heads with nothing in common 2 in 100 exceed it
CLEAR_CHANGE = 1.1  # between halves of the layers, as a factor
MOST_OF_TOP = 0.7  # 4 of 5 heads, 8 of 10: half of them may lie in half of the layers by chance
FEW_STEADY = 0.05  # share of the heads that counts as "the least variable"
NEAR_ONE = 0.5  # tokens: how far from 1 the mean distance of a head to the previous token may be
QUARTER = 1 / 4
FEWEST_HEADS = 3  # of which a correlation says anything
ONE_LAYER = "the model has too few layers to compare"
ONE_HEAD = "the model has too few heads to compare"
TOKENS = Quantity("tokens", is_signed=True)
NATS = Quantity("nats", is_signed=True)
SIGNED_TIMES = Quantity("×", is_signed=True)


@claim(
    "More than half of the attention goes to the null token.",
    f"{published.NULL_SHARE} on average",
    above=0.5,
    of=SHARE,
)
def most_goes_to_null(data: Replicates) -> Evidence:
    """Mean null share of the heads."""
    return Evidence(data["null_share"].mean(("layer", "head")))


@claim(
    "Some heads look at hardly anything else.",
    f"> {published.LARGEST_NULL_SHARE}",
    above=published.LARGEST_NULL_SHARE,
    of=SHARE,
)
def some_look_at_null_alone(data: Replicates) -> Evidence:
    """Largest null share, the head chosen on other documents."""
    elsewhere = hold_out(data.with_sums("null_share"), "null_share")
    layer, head, share = top_heads(on_all(data["null_share"]), 1)[0]
    words = f"a head chosen on other documents; {share:.3f} in {name_head(layer, head)}"
    return Evidence(elsewhere.replicates, words)


@claim(
    "Some head gives nouns twice the usual share.",
    f"{published.NOUN_SHARE} in {published.NOUN_HEAD}, {published.MEAN_NOUN_SHARE} on average",
    above=TWICE,
    of=TIMES,
)
def nouns_have_a_head(data: Replicates) -> Evidence:
    """Share of the best head, chosen on other documents / the mean over heads."""
    shares = data.at("pos_to", tag="NOUN")
    specialists = find_specialists(data.with_sums("pos_to"), "pos_to", "tag")
    (noun,) = [specialist for specialist in specialists if specialist.label == "NOUN"]
    layer, head, best = top_heads(on_all(shares), 1)[0]
    return Evidence(
        xr.DataArray(noun.replicates, dims="replicate", attrs={"groups": noun.groups}),
        f"a head chosen on other documents; {best:.2f} in {name_head(layer, head)}, "
        f"{float(on_all(shares).mean()):.2f} on average",
    )


@claim(
    "For most tags some head pays them more than twice the mean.",
    f"{published.TAGS_TO} of {published.TAGS}",
    above=TWICE,
    of=TIMES,
)
def most_tags_have_a_head(data: Replicates) -> Evidence:
    """Median over tags of best head / mean over heads, the head chosen on other documents."""
    to = _tag_factors(data, "pos_to")
    return Evidence(_median_factor(to), f"above 2 for {count_twice(to)} tags")


@claim(
    "Fewer tags have a head that attends from them more than twice as much as the mean.",
    f"{published.TAGS_FROM} of {published.TAGS}",
    below=-CLEAR_FACTOR,
    of=SIGNED_TIMES,
)
def fewer_tags_from(data: Replicates) -> Evidence:
    """Median over tags of best head / mean over heads for attention from tags, less that for
    attention to tags."""
    of, to = _tag_factors(data, "pos_from"), _tag_factors(data, "pos_to")
    words = f"above 2 for {count_twice(of)} tags from, {count_twice(to)} to"
    return Evidence(_median_factor(of) - _median_factor(to), words)


def _tag_factors(data: Replicates, name: str) -> list[Specialist]:
    return label_factors(data.with_sums(name), name, "tag")


def _median_factor(specialists: list[Specialist]) -> xr.DataArray:
    if not specialists:
        raise NotMeasured("no tag occurs in both halves of the documents")
    return xr.DataArray(np.median([one.replicates for one in specialists], 0), dims="replicate")


@claim(
    "Heads that attend to proper nouns are deep.",
    "top five in the last three layers",
    above=MOST_OF_TOP,
    of=SHARE,
    is_counted=True,
)
def proper_nouns_are_deep(data: Replicates) -> Evidence:
    """Share of the top five in the last quarter of the layers."""
    return _share_of_top(data, data.at("pos_to", tag="PROPN"), 5, (3 / 4, 1))


@claim(
    "Heads that attend to determiners are low.",
    "top five in the first four layers",
    above=MOST_OF_TOP,
    of=SHARE,
    is_counted=True,
)
def determiners_are_low(data: Replicates) -> Evidence:
    """Share of the top five in the first third of the layers."""
    return _share_of_top(data, data.at("pos_to", tag="DET"), 5, (0, 1 / 3))


@claim(
    "Heads that attend from punctuation are deep.",
    "top ten in the last six layers",
    above=MOST_OF_TOP,
    of=SHARE,
    is_counted=True,
)
def punctuation_is_deep(data: Replicates) -> Evidence:
    """Share of the top ten in the last half of the layers."""
    return _share_of_top(data, data.at("pos_from", tag="PUNCT"), 10, (1 / 2, 1))


def _share_of_top(
    data: Replicates, values: xr.DataArray, count: int, depths: tuple[float, float]
) -> Evidence:
    """How many of the top heads lie between two depths (0 first layer, 1 end)."""
    inside = layers_between(data.layers, *depths)
    if len(inside) == len(data.layers):
        raise NotMeasured(ONE_LAYER)
    count = min(count, on_all(values).size)
    share = share_of_top(values, count, inside)
    number = round(count * float(on_all(share)))
    return Evidence(share, f"{number} of the top {count} in {name_layers(inside)}")


@claim(
    "Middle layers follow dependency arcs best.",
    f"{published.ALIGNED_LAYERS} of 12",
    above=CLEAR_SHARE,
    of=SIGNED,
)
def middle_layers_follow_arcs(data: Replicates) -> Evidence:
    """Largest pooled alignment between the first twelfth and the last third, less the largest
    elsewhere."""
    by_layer = data.at("dependency_alignment_by_layer", form="either")
    middle = layers_between(data.layers, 1 / 12, 2 / 3)
    words = f"largest in layer {_best_layer(by_layer)}: {float(on_all(by_layer).max()):.3f}"
    return Evidence(or_not_measured(lead(by_layer, middle), ONE_LAYER), words)


@claim(
    "The best aligned layers look the least far.",
    f"{published.ALIGNED_LAYERS} for both",
    below=QUARTER,
    of=SHARE,
    is_counted=True,
)
def aligned_layers_look_near(data: Replicates) -> Evidence:
    """Share of the layers that look less far than the best aligned one."""
    best = _best_layer(data.at("dependency_alignment_by_layer", form="either"))
    distance = data["distance_by_layer"]
    if distance.sizes["layer"] < 2:
        raise NotMeasured(ONE_LAYER)
    if float(on_all(distance).std()) < CLEAR_DISTANCE:
        raise NotMeasured("all layers look equally far")
    return Evidence(share_below(distance, {"layer": best}), f"best aligned layer {best}")


@claim(
    "The deepest layers look the furthest.",
    "longest distance in the deepest layers",
    above=CLEAR_DISTANCE,
    of=TOKENS,
)
def deep_layers_look_far(data: Replicates) -> Evidence:
    """Largest pooled distance in the last quarter, less the largest elsewhere."""
    distance = data["distance_by_layer"]
    gap = lead(distance, layers_between(data.layers, 3 / 4, 1))
    longest = float(on_all(distance).max())
    words = f"largest in layer {_best_layer(distance)}: {longest:.2f} tokens"
    return Evidence(or_not_measured(gap, ONE_LAYER), words)


@claim(
    "The best aligned head looks at the previous token.",
    published.ALIGNED_HEAD,
    below=NEAR_ONE,
    of=SIZE,
)
def aligned_head_looks_near(data: Replicates) -> Evidence:
    """Difference of its mean distance from 1."""
    head = _best_aligned(data)
    distance = data["distance"].sel(head._asdict())
    words = f"{head}: distance {float(on_all(distance)):.2f}"
    return Evidence(abs(distance - 1), words)


@claim(
    "The best aligned head is the least variable one.",
    f"{published.ALIGNED_HEAD}: alignment {published.ALIGNMENT}, "
    f"variability {published.VARIABILITY}",
    below=FEW_STEADY,
    of=SHARE,
    is_counted=True,
)
def aligned_head_is_steady(data: Replicates) -> Evidence:
    """Share of the heads that are less variable than it."""
    head = _best_aligned(data)
    variability = data["variability"]
    if on_all(variability).size < 2:
        raise NotMeasured(ONE_HEAD)
    place = head._asdict()
    alignment, value = (float(on_all(of).sel(place)) for of in (_alignment(data), variability))
    words = f"{head}: alignment {alignment:.2f}, variability {value:.3f}"
    return Evidence(share_below(variability, place), words)


@claim(
    "The head that looks furthest is a focused one.",
    f"{published.FARTHEST_HEAD}: distance {published.DISTANCE}, entropy {published.ENTROPY}",
    below=-CLEAR_ENTROPY,
    of=NATS,
)
def furthest_head_is_focused(data: Replicates) -> Evidence:
    """Its entropy, less the mean over heads."""
    entropy = data["entropy"]
    layer, head, distance = top_heads(on_all(data["distance"]), 1)[0]
    if on_all(entropy).size < 2:
        raise NotMeasured(ONE_HEAD)
    of_head, mean = entropy.sel(layer=layer, head=head), entropy.mean(("layer", "head"))
    words = (
        f"{name_head(layer, head)}: distance {distance:.1f}, "
        f"entropy {float(on_all(of_head)):.2f} (mean {float(on_all(mean)):.2f})"
    )
    return Evidence(of_head - mean, words)


@claim(
    "Heads that look further spread their attention more.",
    f"r = {DISTANCE_ENTROPY}",
    above=CLEAR_CORRELATION,
    of=CORRELATION,
)
def far_is_wide(data: Replicates) -> Evidence:
    """Correlation of distance and entropy over heads."""
    return Evidence(_correlation(data["distance"], data["entropy"]))


@claim(
    "Heads that look further follow arcs less.",
    f"r = {published.DISTANCE_ALIGNMENT}".replace("-", "−"),
    below=-CLEAR_CORRELATION,
    of=CORRELATION,
)
def far_is_not_aligned(data: Replicates) -> Evidence:
    """Correlation of distance and alignment over heads."""
    return Evidence(_correlation(data["distance"], _alignment(data)))


def _correlation(first: xr.DataArray, second: xr.DataArray) -> xr.DataArray:
    """Of the distances of heads with something else; of heads that look equally far there is none.

    Between networks without training it is as large as between trained ones, of differences that
    do not matter.
    """
    if on_all(first).size < FEWEST_HEADS:
        raise NotMeasured(ONE_HEAD)
    if float(on_all(first).std()) < DIFFERENT:
        raise NotMeasured("all heads look nearly equally far")
    return xr.corr(first, second, ("layer", "head"))


@claim(
    "Heads differ widely in how far they look (standard deviation).",
    f"{published.DISTANCE_DEVIATION}",
    of=SIZE,
)
def heads_differ_in_distance(data: Replicates) -> Evidence:
    """Standard deviation over heads of the mean distance."""
    return Evidence(data["distance"].std(("layer", "head")))


@claim(
    "Relations become rare with distance (at 1, 5, 10 tokens).",
    ", ".join(f"{share}" for share in published.PROBABILITY.values()),
    of=SIGNED,
)
def relations_become_rare(data: Replicates) -> Evidence:
    """The smaller of the two steps down; a fact about the corpus."""
    near, middle, far = (
        data.at("dependency_probability", separation=separation)
        for separation in published.PROBABILITY
    )
    smaller = xr.where(near - middle < middle - far, near - middle, middle - far)
    shares = ", ".join(f"{float(on_all(share)):.2f}" for share in (near, middle, far))
    return Evidence(smaller, f"the smaller step; {shares}")


@claim(
    "Mean span of a relation in tokens.",
    f"{published.MEAN_SPAN}; {100 * published.WITHIN_FAR:g} % within {published.FAR}",
)
def span_of_relations(data: Replicates) -> Evidence:
    """Mean number of tokens between two related ones; a fact about the corpus."""
    within = data.at("dependency_within", separation=published.FAR)
    words = f"{percent(float(on_all(within)))} within {published.FAR}"
    return Evidence(data["mean_dependency_span"], words)


@claim("Mean length of a sentence in tokens.", f"{published.MEAN_TOKENS}")
def length_of_sentences(data: Replicates) -> Evidence:
    """Tokens of all inputs / their number."""
    return Evidence(xr.DataArray(data.attrs["mean_tokens"]))


def _alignment(data: Replicates) -> xr.DataArray:
    return data.at("dependency_alignment", form="either")


def _best_aligned(data: Replicates) -> Head:
    alignment = on_all(_alignment(data))
    layer, head, best = top_heads(alignment, 1)[0]
    if best - float(alignment.mean()) < CLEAR_SHARE:
        raise NotMeasured("no head is clearly better aligned than the mean head")
    return Head(layer, head)


def _best_layer(by_layer: xr.DataArray) -> int:
    return int(by_layer["layer"][int(np.argmax(on_all(by_layer).values))])


# What the paper says of layer depth in words beside its figures.
FIRST = (0.0, 2 / 12)  # layers 0 and 1 of GPT-2's 12
NEXT = (2 / 12, 5 / 12)  # layers 2 to 4
# Names of one thing in the scheme of the paper and in Universal Dependencies.
SUBJECTS = ("csubj", "csubjpass", "csubj:pass", "csubj:outer", "nsubj", "nsubjpass", "nsubj:pass",
            "nsubj:outer")  # fmt: skip
LOW = {
    "auxiliaries": ("aux", "auxpass", "aux:pass"),
    "conjunctions": ("cc", "cc:preconj"),
    "determiners": ("det", "det:predet"),
    "expletives": ("expl",),
    "negations": ("neg",),
}


@claim(
    "Subjects are attended to in deep layers.",
    "more in deeper layers",
    above=CLEAR_CHANGE,
    of=TIMES,
)
def subjects_are_deep(data: Replicates) -> Evidence:
    """Mean share of the deeper half of the layers / that of the lower half."""
    return _deep_to_low(data, SUBJECTS)


def _relations_are_low(name: str, labels: tuple[str, ...]) -> Claim:
    @claim(
        f"{name.capitalize()} are attended to in low layers.",
        "more in lower layers",
        below=round(1 / CLEAR_CHANGE, 2),
        of=TIMES,
    )
    def relations_are_low(data: Replicates) -> Evidence:
        """Mean share of the deeper half of the layers / that of the lower half."""
        return _deep_to_low(data, labels)

    return relations_are_low


LOW_RELATIONS = tuple(_relations_are_low(name, labels) for name, labels in LOW.items())


def _deep_to_low(data: Replicates, relations: Sequence[str]) -> Evidence:
    """What some relations receive together: in the deeper half of the layers and in the lower."""
    frequency = on_all(data["deprel_frequency"])
    known = [name for name in relations if name in frequency["deprel"].values.tolist()]
    occurring = [name for name in known if float(frequency.sel(deprel=name))]
    if not occurring:
        raise NotMeasured("the corpus has no such relation")
    by_layer = data.at("deprel_to_by_layer", deprel=occurring).sum("deprel", min_count=1)
    lower = layers_between(data.layers, 0, 1 / 2)
    deeper = [layer for layer in data.layers if layer not in lower]
    deep, low = _mean_of_layers(by_layer, deeper), _mean_of_layers(by_layer, lower)
    even = float(on_all(data["deprel_to_even"]).sel(deprel=occurring).sum())
    words = (
        f"{float(on_all(low)):.3f} in {name_layers(lower)}, {float(on_all(deep)):.3f} above; "
        f"even attention {even:.3f}"
    )
    return Evidence(deep / low, words)


def _mean_of_layers(by_layer: xr.DataArray, layers: Sequence[int]) -> xr.DataArray:
    if not layers:
        raise NotMeasured(ONE_LAYER)
    return by_layer.sel(layer=list(layers)).mean("layer")


@claim(
    "In the first layers attention comes from all tags as often as they occur.",
    "roughly uniform in the initial layers, which pay little to the null token",
    below=-CLEAR_SHARE,
    of=SIGNED,
)
def first_layers_are_uniform(data: Replicates) -> Evidence:
    """Mean over heads of ½ Σ |share − frequency| in the first sixth of the layers, less that in
    the rest."""
    gaps = abs(data["pos_from"] - data["tag_frequency"])
    by_layer = 0.5 * gaps.sum("tag", min_count=1).mean("head")
    form = "{:.3f} from the frequencies in {}, {:.3f} in the rest"
    return _first_less(by_layer, _first_and_rest(data), form)


@claim(
    "The first layers spread their attention widely.",
    "many heads of layers 0 and 1 have high entropy",
    above=CLEAR_ENTROPY,
    of=NATS,
)
def first_layers_are_wide(data: Replicates) -> Evidence:
    """Mean entropy of the first sixth of the layers, less that of the rest."""
    return _first_less(
        data["entropy_by_layer"], _first_and_rest(data), "{:.2f} in {}, {:.2f} in the rest"
    )


@claim(
    "The first layers look further than the layers after them.",
    f"layers 0 and 1 further than {published.ALIGNED_LAYERS}",
    above=CLEAR_DISTANCE,
    of=TOKENS,
)
def first_layers_look_far(data: Replicates) -> Evidence:
    """Mean distance of the first sixth of the layers, less that of the next quarter."""
    first = layers_between(data.layers, *FIRST)
    following = [layer for layer in layers_between(data.layers, *NEXT) if layer not in first]
    return _first_less(data["distance_by_layer"], (first, following), "{:.2f} in {}, {:.2f} in {}")


def _first_and_rest(data: Replicates) -> tuple[list[int], list[int]]:
    return split_layers(data.layers, *FIRST, ONE_LAYER)


def _first_less(by_layer: xr.DataArray, layers: tuple[list[int], list[int]], form: str) -> Evidence:
    """A value in the first layers, less that in others; `form` has the words for both."""
    first, others = (_mean_of_layers(by_layer, part) for part in layers)
    values = (float(on_all(first)), name_layers(layers[0]), float(on_all(others)))
    return Evidence(first - others, form.format(*values, name_layers(layers[1])))


# What a head knows of syntax beyond looking near: alignment less what its distances give.
SYNTAX = ("dependency_alignment", "dependency_expected")
BEYOND = "dependency_beyond"  # alignment − expected, for the time of a statement
EITHER = {"form": "either"}
CLEAR = 0.1  # of a head's attention
LITTLE_BEYOND = 0.05
CLEAR_ON_AVERAGE = 0.005  # of all attention, over all heads


@claim(
    "The best aligned head owes its alignment to looking near.",
    f"{published.ALIGNED_HEAD} looks at the previous token: {published.ALIGNMENT}, "
    "the chance of an arc between neighbours",
    below=LITTLE_BEYOND,
    of=DIFFERENCE,
)
def aligned_head_owes_it_to_distance(data: Replicates) -> Evidence:
    """Its alignment, less what its distances give."""
    head = _best_aligned(data)
    return Evidence(beyond(data).sel(head._asdict()), _describe_alignment(data, head))


@claim(
    "Some head follows arcs far beyond what its distances explain.",
    "not in the paper",
    above=CLEAR,
    of=DIFFERENCE,
)
def some_head_follows_arcs(data: Replicates) -> Evidence:
    """Alignment less what its distances give, the head chosen on other documents."""
    layer, head, _ = top_heads(on_all(beyond(data)), 1)[0]
    words = f"a head chosen on other documents; {_describe_alignment(data, Head(layer, head))}"
    return Evidence(best_beyond(data).replicates, words)


@claim(
    "On average heads follow arcs more than their distances explain.",
    "not in the paper",
    above=CLEAR_ON_AVERAGE,
    of=DIFFERENCE,
)
def heads_follow_arcs(data: Replicates) -> Evidence:
    """Mean over heads of alignment less what their distances give."""
    aligned, expected = (float(on_all(data.at(name, **EITHER)).mean()) for name in SYNTAX)
    words = f"alignment {aligned:.3f}, expected {expected:.3f}"
    return Evidence(beyond(data).mean(("layer", "head")), words)


def beyond(data: Replicates) -> xr.DataArray:
    """Alignment of every head, either form, less what its distances give."""
    aligned, expected = (data.at(name, **EITHER) for name in SYNTAX)
    return aligned - expected


def best_beyond(data: Replicates) -> HeldOut:
    """The head that is furthest beyond its distances, chosen on other documents."""
    result = data.with_sums(*SYNTAX)
    aligned, expected = (result[f"{name}_numerator"] for name in SYNTAX)
    sums: dict[str, Any] = {
        f"{BEYOND}_numerator": aligned - expected,
        f"{BEYOND}_denominator": result[f"{SYNTAX[0]}_denominator"],
    }
    return hold_out(result.assign(sums), BEYOND, EITHER)


def _describe_alignment(data: Replicates, head: Head) -> str:
    place = head._asdict()
    aligned, expected = (float(on_all(data.at(name, **EITHER)).sel(place)) for name in SYNTAX)
    return f"{head}: alignment {aligned:.2f}, expected {expected:.2f}"


SINK = sink_claim("the null token", "null_share", {})

CLAIMS = claims_in(globals())
