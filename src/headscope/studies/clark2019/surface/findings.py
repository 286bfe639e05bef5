"""What the paper found in BERT-base about surface patterns, and the rule that judges a result."""

from functools import partial

import numpy as np
import xarray as xr

from headscope.heads import name_in_paper
from headscope.results.findings import Finding, Measured, decide, decide_difference
from headscope.results.heads import layers_between, top_heads

MOSTLY = 0.5  # "more than half of their attention"
SEPARATOR_DEPTH = (5 / 12, 10 / 12)  # layers 6–10 of BERT's 12, counted from 1


def _heads_at(result: xr.Dataset, offset: int) -> Measured:
    """Heads that put most of their attention on one offset, by name."""
    shares = result["offset_share"].sel(offset=offset)
    count = int((shares > MOSTLY).sum())
    best = top_heads(shares, max(count, 1))
    named = ", ".join(f"{name_in_paper(layer, head)} {share:.2f}" for layer, head, share in best)
    return Measured(f"{count}: {named}" if count else f"0; most in {named}", decide(count > 0))


def _next_heads_are_low(result: xr.Dataset) -> Measured:
    shares = result["offset_share"].sel(offset=1)
    layers = [layer for layer, _, share in top_heads(shares, shares.size) if share > MOSTLY]
    if not layers:
        return Measured("no next-token head", "not measured")
    first_half = layers_between(result, 0, 1 / 2)
    inside = sum(layer in first_half for layer in layers)
    return Measured(f"{inside} of {len(layers)}", decide(inside > len(layers) / 2))


def _separator_share(result: xr.Dataset) -> Measured:
    by_layer = result["special_share_by_layer"].sel(special="sep")
    errors = result["special_share_by_layer_se"].sel(special="sep")
    return _mean_above(by_layer, errors, MOSTLY)


def _separator_to_itself(result: xr.Dataset) -> Measured:
    return _mean_above(result["sep_to_sep_by_layer"], result["sep_to_sep_by_layer_se"], 0.9)


def _mean_above(by_layer: xr.DataArray, errors: xr.DataArray, level: float) -> Measured:
    """Whether the mean over the layers where BERT's separators matter exceeds a level."""
    layers = layers_between(by_layer, *SEPARATOR_DEPTH)
    mean = float(by_layer.sel(layer=layers).mean())
    if not np.isfinite(mean):
        return Measured("the model has no separator", "not measured")
    error = float(np.sqrt((errors.sel(layer=layers) ** 2).sum())) / len(layers)
    value = f"{mean:.2f} in layers {layers[0]}–{layers[-1]}"
    return Measured(value, decide_difference(mean - level, (error, 0.0)))


def _gradient_fades(result: xr.Dataset) -> Measured:
    """Whether attention to [SEP] matters less, relative to all attention, once it is large."""
    by_layer = result["gradient_by_layer"]
    relative = by_layer.sel(target="sep") / by_layer.sel(target="unmasked")
    if not np.isfinite(relative.values).any():
        return Measured("the model has no separator", "not measured")
    early = relative.sel(layer=layers_between(result, 0, 4 / 12)).mean()
    late = relative.sel(layer=layers_between(result, *SEPARATOR_DEPTH)).mean()
    value = f"{float(early):.2f} → {float(late):.2f} of the mean gradient"
    return Measured(value, decide(bool(late < early)))


def _broad_heads_are_low(result: xr.Dataset) -> Measured:
    by_layer = result["entropy_by_layer"]
    low, rest = layers_between(result, 0, 1 / 3), layers_between(result, 1 / 3, 1)
    layer, head, nats = top_heads(result["entropy"], 1)[0]
    difference = float(by_layer.sel(layer=low).mean() - by_layer.sel(layer=rest).mean())
    errors = result["entropy_by_layer_se"]
    noise = tuple(
        float(np.sqrt((errors.sel(layer=part) ** 2).sum())) / len(part) for part in (low, rest)
    )
    value = f"{difference:+.2f} nats; broadest {name_in_paper(layer, head)} {nats:.2f}"
    return Measured(value, decide_difference(difference, (noise[0], noise[1])))


def _cls_is_broad_at_the_end(result: xr.Dataset) -> Measured:
    by_layer = result["entropy_from_cls_by_layer"]
    if not np.isfinite(by_layer.values).any():
        return Measured("the model has no [CLS]", "not measured")
    last = by_layer.isel(layer=-1)
    others = layers_between(result, 1 / 2, 1)[:-1] or [int(by_layer["layer"][0])]
    holds = bool(last > by_layer.sel(layer=others).max())
    return Measured(f"{float(last):.2f} nats", decide(holds))


def _uniform(result: xr.Dataset) -> Measured:
    return Measured(f"{float(result['uniform_entropy']):.2f} nats", "for comparison")


def _layers_cluster(result: xr.Dataset) -> Measured:
    """Whether two heads of a layer diverge less than two heads of different layers."""
    layers, heads = result.sizes["layer"], result.sizes["head"]
    matrix = result["head_divergence"].values / result["head_divergence"].attrs["rows"]
    of_layer = np.repeat(np.arange(layers), heads)
    same = (of_layer[:, None] == of_layer) & ~np.eye(len(matrix), dtype=bool)
    different = of_layer[:, None] != of_layer
    if not same.any() or not different.any():
        return Measured("too few heads or layers", "not measured")
    within, between = matrix[same].mean(), matrix[different].mean()
    return Measured(f"{within:.3f} within, {between:.3f} between layers", decide(within < between))


def _sink_rate(result: xr.Dataset) -> Measured:
    return Measured(f"{100 * result.attrs['sink_rate']:.0f} % of the heads", "for comparison")


FINDINGS = (
    Finding(
        "Some heads look mostly at the previous token.",
        "4 heads > 0.5, in layers 1, 3, 6, 7 (paper: 2, 4, 7, 8)",
        "at least one head > 0.5",
        ("offset_share",),
        partial(_heads_at, offset=-1),
    ),
    Finding(
        "Some heads look mostly at the next token.",
        "5 heads > 0.5, in layers 0, 1, 1, 2, 5 (paper: 1, 2, 2, 3, 6)",
        "at least one head > 0.5",
        ("offset_share",),
        partial(_heads_at, offset=1),
    ),
    Finding(
        "Next-token heads are in the lower layers.",
        "5 of 5 in the lower half",
        "most of them in the first half of the layers",
        ("offset_share",),
        _next_heads_are_low,
    ),
    Finding(
        "In the upper middle layers most attention goes to [SEP].",
        "over 0.5 in layers 5–9 (paper: 6–10)",
        "mean share at the same depth > 0.5, clear by 2 s.e.",
        ("special_share",),
        _separator_share,
    ),
    Finding(
        "There [SEP] itself looks almost only at [SEP].",
        "over 0.9",
        "mean share at the same depth > 0.9, clear by 2 s.e.",
        ("sep_to_sep",),
        _separator_to_itself,
    ),
    Finding(
        "Where attention to [SEP] is large, it matters little to the loss.",
        "gradients to [SEP] become very small",
        "gradient to [SEP] relative to all: smaller at that depth than in the first third",
        ("gradient",),
        _gradient_fades,
    ),
    Finding(
        "Broad attention is found in the lower layers.",
        "some heads of the lower layers attend very broadly",
        "mean entropy of the first third above that of the rest, clear by 2 s.e.",
        ("entropy",),
        _broad_heads_are_low,
    ),
    Finding(
        "In the last layer [CLS] attends broadly.",
        "3.89 nats",
        "more than in any other layer of the upper half",
        ("entropy_from_cls",),
        _cls_is_broad_at_the_end,
    ),
    Finding(
        "Entropy of uniform attention (mean ln n).",
        "about 4.8 nats",
        "no rule; a fact about the segments",
        ("uniform_entropy",),
        _uniform,
    ),
    Finding(
        "Heads of one layer behave alike.",
        "heads of the same layer are often close on the map",
        "mean divergence within layers below that between layers",
        ("head_divergence",),
        _layers_cluster,
    ),
    Finding(
        "Heads with more than 0.3 of their attention on the first token (sink rate).",
        "not in the paper",
        "no rule",
        ("first_token_share",),
        _sink_rate,
    ),
)
