"""The figures of clark2019's first part: where heads look."""

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.head import name_head, name_in_paper
from headscope.metrics.gradient import TARGETS
from headscope.observe.batch import SPECIAL
from headscope.plots.charts import Plot, Series, draw_plots
from headscope.plots.headmap import draw_head_map
from headscope.plots.ribbons import draw_ribbons, read_ribbon
from headscope.results.measure import behaviours_of
from headscope.results.ranks import top_heads
from headscope.studies.study import Figure

SPECIAL_NAMES = {"cls": "[CLS]", "sep": "[SEP]", "punct": "periods and commas"}
TARGET_NAMES = {**SPECIAL_NAMES, "unmasked": "all unmasked tokens"}
BEHAVIOUR_NAMES = {"next": "next token", "previous": "previous token", **SPECIAL_NAMES}
CLEAR = 0.3  # share of a head's attention from which on a pattern is one
BROAD = "attends broadly"
EVEN = "special_share_even"
# The colour and mark of every class of tokens, in all figures.
NUMBERS = {"cls": 0, "sep": 1, "punct": 2, "unmasked": 3}


def clearest_heads(result: xr.Dataset) -> list[tuple[str, int, int, float]]:
    """For each surface pattern the head that shows it most: its name, layer, head and value."""
    offset, special = result["offset_share"], result["special_share"]
    patterns = {
        "attends to previous": offset.sel(offset=-1),
        "attends to next": offset.sel(offset=1),
        BROAD: result["entropy"],
    }
    patterns |= {f"attends to {SPECIAL_NAMES[name]}": special.sel(special=name) for name in SPECIAL}
    known = {name: values for name, values in patterns.items() if np.isfinite(values.values).any()}
    return [(name, *top_heads(values, 1)[0]) for name, values in known.items()]


def is_clear(pattern: str, value: float) -> bool:
    """Whether the head that shows a pattern most shows it at all."""
    return pattern == BROAD or value >= CLEAR


def draw_examples(result: xr.Dataset) -> Drawing:
    """The clearest heads on one short stretch of the corpus."""
    ribbons = [
        read_ribbon(
            result["example_map"].sel(layer=layer, head=head),
            f"{name_in_paper(layer, head)}\n{pattern}: {value:.2f}"
            + (" nats" if pattern == BROAD else ""),
            with_null=True,
        )
        for pattern, layer, head, value in clearest_heads(result)
        if is_clear(pattern, value)
    ]
    return draw_ribbons(ribbons, columns=4 if len(ribbons) == 4 else 3)


def unclear_patterns(result: xr.Dataset) -> str:
    """What no head does, and the most that any does of it."""
    unclear = [
        f"{pattern.removeprefix('attends ')} (at most {value:.2f}, {name_head(layer, head)})"
        for pattern, layer, head, value in clearest_heads(result)
        if not is_clear(pattern, value)
    ]
    if not unclear:
        return ""
    return f"No head pays {CLEAR} or more of its attention {'; '.join(unclear)}."


def draw_special(result: xr.Dataset) -> Drawing:
    """Attention to special tokens, and to [SEP] by who attends."""
    special = result["special_share"]
    to_class = [
        replace(
            _series(result, "special_share", SPECIAL_NAMES[name], special=name),
            level=_by_chance(result, name),
            number=NUMBERS[name],
        )
        for name in SPECIAL
        if np.isfinite(special.sel(special=name).values).any()
    ]
    to_sep = [
        replace(_series(result, "sep_to_sep", "[SEP] → [SEP]"), number=NUMBERS["sep"]),
        replace(_series(result, "other_to_sep", "other → [SEP]"), number=NUMBERS["unmasked"]),
    ]
    share, even = "average attention", "even attention"
    plots = [Plot("to special tokens", share, to_class, level_label=even, top=1.02)]
    if np.isfinite(result["sep_to_sep"].values).any():
        level = _by_chance(result, "sep")
        plots.append(Plot("to [SEP], by attending token", share, to_sep, level, even, top=1.02))
    return draw_plots(plots)


def _by_chance(result: xr.Dataset, special: str) -> float | None:
    """What even attention pays: 1/64 where two of 128 tokens are [SEP]."""
    return float(result[EVEN].sel(special=special)) if EVEN in result else None


def chance_in_words(result: xr.Dataset) -> str:
    """The levels of chance as numbers."""
    if EVEN not in result:
        return ""
    known = result[EVEN].dropna("special")
    said = [
        f"{SPECIAL_NAMES[name]} {float(known.sel(special=name)):.3f}"
        for name in known["special"].values.tolist()
        if name in SPECIAL_NAMES
    ]
    return f"Even attention would pay {', '.join(said)}." if said else ""


def draw_gradients(result: xr.Dataset) -> Drawing:
    """Gradient magnitudes by layer for both reductions of the loss."""
    titles = {"gradient": "sum of the losses", "gradient_mean_loss": "mean of the losses"}
    return draw_plots(
        [Plot(title, "mean |∂L/∂a|", _targets(result, name)) for name, title in titles.items()]
    )


def _targets(result: xr.Dataset, variable: str) -> list[Series]:
    by_layer, errors = result[f"{variable}_by_layer"], result[f"{variable}_by_layer_se"]
    return [
        Series(
            TARGET_NAMES[name],
            by_layer.sel(target=name),
            errors.sel(target=name),
            number=NUMBERS[name],
        )
        for name in TARGETS
        if np.isfinite(by_layer.sel(target=name).values).any()
    ]


def draw_entropies(result: xr.Dataset) -> Drawing:
    """Entropy of all tokens and of [CLS], against uniform attention."""
    causal = bool(result.attrs["is_causal"])
    level = float(result["entropy_even"])
    everything = [_series(result, "entropy", "")]
    plots = [Plot("from all tokens", "entropy in nats", everything, level, "uniform")]
    if np.isfinite(result["entropy_from_cls"].values).any() and not causal:
        series = [_series(result, "entropy_from_cls", "")]
        plots.append(Plot("from [CLS]", "entropy in nats", series, level, "uniform"))
    return draw_plots(plots)


def draw_map(result: xr.Dataset) -> Drawing:
    """Heads in the plane of their divergences."""
    labels = result["behaviour"]
    named = np.array([BEHAVIOUR_NAMES.get(str(label), str(label)) for label in labels.values.flat])
    renamed = labels.copy(data=named.reshape(labels.shape))
    shown = [
        replace(each, name=BEHAVIOUR_NAMES.get(each.name, each.name))
        for each in behaviours_of(result)
    ]
    return draw_head_map(result["head_position"], renamed, shown)


def _series(result: xr.Dataset, variable: str, label: str, **place: str) -> Series:
    names = (f"{variable}_by_layer", f"{variable}_by_layer_se", variable)
    by_layer, errors, values = (result[name].sel(place) for name in names)
    return Series(label, by_layer, errors, values)


FIGURES = (
    Figure(
        "figure01",
        "Heads with clear patterns",
        "For each surface pattern the head that shows it most and its value over all segments, "
        "drawn on the first token of a segment and a stretch around its separator; ⋮ stands for "
        "tokens that are not shown. Attending tokens are left; the darker a line, the larger the "
        "weight, up to the full colour at the weight that is written below.",
        ("example_map",),
        draw_examples,
        unclear_patterns,
    ),
    Figure(
        "figure02",
        "Attention to special tokens",
        "Each point is a head, lines are layer means with two standard errors. Left: attention to "
        "each kind of token. Right: attention to [SEP] from [SEP] and from all other tokens. "
        "Dashed: what attention spread evenly over all visible tokens would give.",
        ("special_share",),
        draw_special,
        chance_in_words,
    ),
    Figure(
        "figure03",
        "Importance of attention by gradients",
        "How much the language-model loss changes with the attention to each kind of token, mean "
        "over heads and two standard errors, for the loss summed over the predicted tokens of a "
        "segment and for their mean.",
        ("gradient",),
        draw_gradients,
    ),
    Figure(
        "figure04",
        "Entropy of attention",
        "Each point is a head, the line is the mean of the layer; dashed: attention spread evenly "
        "over all tokens that can be seen.",
        ("entropy",),
        draw_entropies,
    ),
    Figure(
        "figure06",
        "Heads that behave alike",
        "Every point is a head; distances approximate Jensen–Shannon divergences between heads "
        "(metric multidimensional scaling). Names are those of the portraits, if there are any; in "
        "brackets how many heads have them. As many heads are "
        "named as there is room for, some of every behaviour.",
        ("head_position",),
        draw_map,
    ),
)
