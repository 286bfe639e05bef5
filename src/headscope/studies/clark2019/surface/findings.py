"""What the paper found in BERT-base about surface patterns, and the rule that judges a result."""

from functools import partial
from operator import itemgetter

import numpy as np
import xarray as xr

from headscope.head import name_in_paper
from headscope.results.findings import (
    PERCENT,
    SHARE,
    Finding,
    Found,
    NotMeasured,
    known,
    layers_between,
    lead,
    majority_gap,
    name_layers,
    split_layers,
    top_heads,
    whole,
)
from headscope.results.held_out import hold_out
from headscope.studies.option import NO_NEXT
from headscope.wording import counted

LITTLE = 0.1  # of a head's attention
MOSTLY = 0.5  # "more than half of their attention"
LARGE = 0.3  # of a layer's attention to [SEP]; below it there is nothing that could fade
SEPARATOR_DEPTH = (5 / 12, 10 / 12)  # layers 6–10 of BERT's 12, counted from 1
FEWEST_LAYERS = 3  # that a spread over layers can be taken from
NO_SEPARATOR = "the model has no separator"
FEW_LAYERS = "the model has too few heads or layers to compare"


def _best_at(data: xr.Dataset, offset: int) -> xr.DataArray:
    """The share on one offset of the head that is best at it on other documents."""
    if offset > 0:
        _check_sees_next(data)
    return hold_out(data, "offset_share", {"offset": offset}).replicates


def _heads_at(data: xr.Dataset, found: Found, offset: int) -> str:
    """Heads that put most of their attention on one offset, by name."""
    shares = whole(data["offset_share"].sel(offset=offset))
    count = int((shares > MOSTLY).sum())
    best = top_heads(shares, max(count, 1))
    named = ", ".join(f"{name_in_paper(layer, head)} {share:.2f}" for layer, head, share in best)
    return f"{counted(count, 'heads')} above 0.5: {named}" if count else f"most in {named}"


def _next_heads(data: xr.Dataset) -> tuple[xr.DataArray, int]:
    """Shares on the next token, and how many heads are above half."""
    _check_sees_next(data)
    shares = data["offset_share"].sel(offset=1)
    count = int((whole(shares) > MOSTLY).sum())
    if not count:
        raise NotMeasured("no head looks mostly at the next token")
    return shares, count


def _next_heads_are_low(data: xr.Dataset) -> xr.DataArray:
    shares, count = _next_heads(data)
    return known(majority_gap(shares, count, layers_between(data, 0, 1 / 2)), FEW_LAYERS)


def _count_low(data: xr.Dataset, found: Found) -> str:
    shares, count = _next_heads(data)
    half = layers_between(data, 0, 1 / 2)
    inside = sum(layer in half for layer, _, _ in top_heads(whole(shares), count))
    return f"{inside} of {count} in layers {half[0]}–{half[-1]}"


def _count_little(data: xr.Dataset, found: Found) -> str:
    shares = whole(data["offset_share"].sel(offset=0))
    return f"the median; {int((shares < LITTLE).sum())} of {shares.size} heads below {LITTLE}"


def _of_depth(claim: str, published: str, special: str, where: str, third: int) -> Finding:
    """The share of a kind of token in a third of the layers, less that in all others."""
    depths = third / 3, (third + 1) / 3

    def shares(data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
        by_layer = data["special_share_by_layer"].sel(special=special)
        if not np.isfinite(whole(by_layer).values).any():
            raise NotMeasured("the model has no such token")
        inside, rest = split_layers(data, *depths, FEW_LAYERS)
        return by_layer.sel(layer=inside).mean("layer"), by_layer.sel(layer=rest).mean("layer")

    def find(data: xr.Dataset) -> xr.DataArray:
        here, there = shares(data)
        return here - there

    def say(data: xr.Dataset, found: Found) -> str:
        here, there = (float(whole(each)) for each in shares(data))
        inside = name_layers(layers_between(data, *depths))
        return f"{here:.3f} in {inside}, {there:.3f} in the rest"

    return Finding(
        claim,
        published,
        f"mean share of the {where} third of the layers, less that of the rest, is above 0",
        ("special_share",),
        find,
        is_signed=True,
        words=say,
    )


def _at_separator_depth(data: xr.Dataset) -> list[int]:
    return layers_between(data, *SEPARATOR_DEPTH)


def _separator_share(data: xr.Dataset, variable: str = "special_share") -> xr.DataArray:
    by_layer = data[f"{variable}_by_layer"].sel(layer=_at_separator_depth(data))
    of_separator = by_layer.sel(special="sep") if "special" in by_layer.dims else by_layer
    return known(of_separator.mean("layer"), NO_SEPARATOR)


def _in_those_layers(data: xr.Dataset, found: Found) -> str:
    layers = _at_separator_depth(data)
    return f"in layers {layers[0]}–{layers[-1]}"


def _gradient_fades(data: xr.Dataset) -> xr.DataArray:
    """Gradient to [SEP] relative to all: where attention to it is large − in the first third."""
    share = float(whole(_separator_share(data)))
    if share < LARGE:
        where = _in_those_layers(data, Found(share))
        raise NotMeasured(f"attention to [SEP] is only {share:.2f} {where}")
    early, late = _relative_gradients(data)
    return known(late - early, NO_SEPARATOR)


def _relative_gradients(data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    by_layer = data["gradient_by_layer"]
    relative = by_layer.sel(target="sep") / by_layer.sel(target="unmasked")
    early, late = layers_between(data, 0, 4 / 12), _at_separator_depth(data)
    return relative.sel(layer=early).mean("layer"), relative.sel(layer=late).mean("layer")


def _say_gradients(data: xr.Dataset, found: Found) -> str:
    early, late = (float(whole(each)) for each in _relative_gradients(data))
    return f"{early:.2f} → {late:.2f} of the mean gradient"


def _broad_heads_are_low(data: xr.Dataset) -> xr.DataArray:
    by_layer = data["entropy_by_layer"]
    low, rest = split_layers(data, 0, 1 / 3, FEW_LAYERS)
    return by_layer.sel(layer=low).mean("layer") - by_layer.sel(layer=rest).mean("layer")


def _name_broadest(data: xr.Dataset, found: Found) -> str:
    layer, head, nats = top_heads(whole(data["entropy"]), 1)[0]
    return f"broadest {name_in_paper(layer, head)} {nats:.2f}"


def _cls_is_broad_at_the_end(data: xr.Dataset) -> xr.DataArray:
    if data.attrs["is_causal"]:
        raise NotMeasured("the first token of a causal model sees nothing but itself")
    by_layer = data["entropy_from_cls_by_layer"]
    if not np.isfinite(whole(by_layer).values).any():
        raise NotMeasured("the model has no [CLS]")
    upper = by_layer.sel(layer=layers_between(data, 1 / 2, 1))
    return known(lead(upper, [int(upper["layer"][-1])]), FEW_LAYERS)


def _say_cls(data: xr.Dataset, found: Found) -> str:
    last = float(whole(data["entropy_from_cls_by_layer"]).isel(layer=-1))
    return f"{last:.2f} in the last layer"


def _divergences(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Divergence per row between every two heads, and the layer of each head."""
    layers, heads = data.sizes["layer"], data.sizes["head"]
    matrix = data["head_divergence"].values / data["head_divergence"].attrs["rows"]
    if heads < 2 or layers < FEWEST_LAYERS:
        raise NotMeasured(FEW_LAYERS)
    return matrix, np.repeat(np.arange(layers), heads)


def _layers_cluster(data: xr.Dataset) -> xr.DataArray:
    """Divergence of two heads of a layer − of different layers, with each layer left out in turn.

    A matrix for every group of documents would take more room than all other sums together.
    """
    matrix, layer = _divergences(data)
    kept = [np.full(len(layer), True), *(layer != out for out in np.unique(layer))]
    gaps = []
    for chosen in kept:
        within, between = _mean_divergences(matrix[np.ix_(chosen, chosen)], layer[chosen])
        gaps.append(within - between)
    return xr.DataArray(np.array(gaps), dims="replicate", attrs={"groups": len(kept) - 1})


def _mean_divergences(matrix: np.ndarray, layer: np.ndarray) -> tuple[float, float]:
    same = (layer[:, None] == layer) & ~np.eye(len(matrix), dtype=bool)
    different = layer[:, None] != layer
    return float(matrix[same].mean()), float(matrix[different].mean())


def _say_divergences(data: xr.Dataset, found: Found) -> str:
    within, between = _mean_divergences(*_divergences(data))
    return f"{within:.3f} within, {between:.3f} between layers"


def _check_sees_next(data: xr.Dataset) -> None:
    if data.attrs["is_causal"]:
        raise NotMeasured(NO_NEXT)


FINDINGS = (
    Finding(
        "Some heads look mostly at the previous token.",
        "4 heads > 0.5, in layers 1, 3, 6, 7 (paper: 2, 4, 7, 8)",
        "the best head, chosen on other documents, is above 0.5",
        ("offset_share",),
        partial(_best_at, offset=-1),
        threshold=MOSTLY,
        range=SHARE,
        words=partial(_heads_at, offset=-1),
    ),
    Finding(
        "Some heads look mostly at the next token.",
        "5 heads > 0.5, in layers 0, 1, 1, 2, 5 (paper: 1, 2, 2, 3, 6)",
        "the best head, chosen on other documents, is above 0.5",
        ("offset_share",),
        partial(_best_at, offset=1),
        threshold=MOSTLY,
        range=SHARE,
        words=partial(_heads_at, offset=1),
    ),
    Finding(
        "Next-token heads are in the lower layers.",
        "5 of 5 in the lower half",
        "most of the heads above 0.5 in the first half of the layers: the share of the head that "
        "makes a majority inside, less that of its rival outside, is above 0",
        ("offset_share",),
        _next_heads_are_low,
        is_signed=True,
        words=_count_low,
    ),
    Finding(
        "Most heads look little at the token itself.",
        "most heads put little attention on the current token",
        "the median over heads of the share on the token itself is below 0.1",
        ("offset_share",),
        lambda data: data["offset_share"].sel(offset=0).median(("layer", "head")),
        threshold=LITTLE,
        more="below",
        range=SHARE,
        words=_count_little,
    ),
    _of_depth(
        "[CLS] is looked at in early layers.", "early heads attend to [CLS]", "cls", "first", 0
    ),
    _of_depth(
        "Full stops and commas are looked at in deep layers.",
        "deep heads attend to punctuation",
        "punct",
        "last",
        2,
    ),
    Finding(
        "In the upper middle layers most attention goes to [SEP].",
        "over 0.5 in layers 5–9 (paper: 6–10)",
        "mean share at the same depth above 0.5",
        ("special_share",),
        _separator_share,
        threshold=MOSTLY,
        range=SHARE,
        words=_in_those_layers,
    ),
    Finding(
        "There [SEP] itself looks almost only at [SEP].",
        "over 0.9",
        "mean share at the same depth above 0.9",
        ("sep_to_sep",),
        partial(_separator_share, variable="sep_to_sep"),
        threshold=0.9,
        range=SHARE,
        words=_in_those_layers,
    ),
    Finding(
        "Where attention to [SEP] is large, it matters little to the loss.",
        "gradients to [SEP] become very small",
        "where at least 0.3 goes to [SEP]: the gradient to it relative to all, less the same in "
        "the first third of the layers, is below 0",
        ("gradient", "special_share"),
        _gradient_fades,
        more="below",
        is_signed=True,
        words=_say_gradients,
    ),
    Finding(
        "Broad attention is found in the lower layers.",
        "some heads of the lower layers attend very broadly",
        "mean entropy of the first third of the layers, less that of the rest, is above 0",
        ("entropy",),
        _broad_heads_are_low,
        unit="nats",
        is_signed=True,
        words=_name_broadest,
    ),
    Finding(
        "In the last layer [CLS] attends broadly.",
        "3.89 nats",
        "its entropy there, less the largest of any other layer of the upper half, is above 0",
        ("entropy_from_cls",),
        _cls_is_broad_at_the_end,
        unit="nats",
        is_signed=True,
        words=_say_cls,
    ),
    Finding(
        "Entropy of uniform attention (mean ln n).",
        "about 4.8 nats",
        "no rule; a fact about the segments",
        ("uniform_entropy",),
        itemgetter("uniform_entropy"),
        threshold=None,
        unit="nats",
    ),
    Finding(
        "Heads of one layer behave alike.",
        "heads of the same layer are often close on the map",
        "mean divergence within layers, less that between layers, is below 0; the interval is over "
        "layers, each left out in turn",
        ("head_divergence",),
        _layers_cluster,
        more="below",
        is_signed=True,
        words=_say_divergences,
    ),
    Finding(
        "Heads with more than 0.3 of their attention on the first token (sink rate).",
        "not in the paper",
        "no rule",
        ("first_token_share",),
        lambda data: xr.DataArray(data.attrs["sink_rate"]),
        threshold=None,
        unit=PERCENT,
    ),
)
