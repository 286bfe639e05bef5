"""The figures of the paper, from a result."""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.head import name_head
from headscope.observe.batch import FORMS
from headscope.plots.charts import draw_scatters, draw_shares
from headscope.plots.heatmap import Panel, draw_panels
from headscope.plots.ribbons import draw_ribbons, read_ribbon
from headscope.results.intervals import percent
from headscope.studies.study import Figure
from headscope.studies.vig2019.specialists import find_specialists, telling_heads

ALWAYS = ("DET", "PROPN", "PUNCT")  # tags in figures 6 and 7 beside the most specialised ones
TELLING = 6  # of both together; the appendix has all of them
RARE = 0.005  # tags and relations below this share of the tokens are left to the tables
EVEN_RELATIONS = "deprel_to_even"
_FORM_TITLES = {
    "attender_is_parent": "attender is the parent",
    "receiver_is_parent": "receiver is the parent",
    "either": "either",
}


def draw_one(result: xr.Dataset, variable: str, title: str, unit: str) -> Drawing:
    """One value per head; the profile shows the pooled value of each layer where there is one."""
    return draw_panels([Panel.of(result, variable, title)], 1, unit)


def uncounted_heads(result: xr.Dataset) -> str:
    """Why some heads have no entropy."""
    missing = int(np.isnan(result["entropy"].values).sum())
    if not missing:
        return ""
    what = "1 head has" if missing == 1 else f"{missing} heads have"
    return f"{what} no value: every row of it pays more than 0.9 to null tokens."


def draw_alignment(result: xr.Dataset) -> Drawing:
    """The three forms of dependency alignment, each with its baseline."""
    panels = []
    for form in FORMS:
        at, title = {"form": form}, _FORM_TITLES[form]
        baseline = float(result["dependency_baseline"].sel(at))
        panels.append(Panel.of(result, "dependency_alignment", title, at, baseline=baseline))
    return draw_panels(panels, 3, "pooled share")


def draw_tags(result: xr.Dataset, variable: str, count: int | None) -> Drawing:
    """Shares of tags: those of the paper and the most specialised ones, or all that occur."""
    chosen = specialised_tags(result, variable, count) if count else occurring_tags(result)
    panels = []
    for tag in chosen:
        at, even = {"tag": tag}, float(result[f"{variable}_even"].sel(tag=tag))
        panels.append(Panel.of(result, variable, tag, at, baseline=even, from_zero=False))
    return draw_panels(panels, 2 if count else 3, "pooled share")


def specialised_tags(result: xr.Dataset, variable: str, count: int) -> list[str]:
    """Tags that are not rare, the most specialised first: those of ALWAYS, and what fits besides.

    The head of a tag is chosen on other documents than those that its factor is of.
    """
    frequency = result["tag_frequency"]
    common = set(frequency["tag"].values[(frequency >= min(RARE, float(frequency.max()))).values])
    found = [each for each in find_specialists(result, variable, "tag") if each.label in common]
    found.sort(key=lambda each: -np.nan_to_num(each.factor.value, nan=-np.inf))
    tags = [each.label for each in found]
    chosen = [tag for tag in tags if tag in ALWAYS]
    chosen += [tag for tag in tags if tag not in ALWAYS][: count - len(chosen)]
    return sorted(chosen, key=tags.index)


def occurring_tags(result: xr.Dataset) -> list[str]:
    """Every tag of the corpus, rare ones too, in alphabetical order."""
    return sorted(result["tag"].values[(result["tag_frequency"] > 0).values].tolist())


def rare_tags(result: xr.Dataset) -> str:
    """Which panels say more about the sample than about the heads."""
    frequency = result["tag_frequency"]
    rare = sorted(frequency["tag"].values[((frequency > 0) & (frequency < RARE)).values].tolist())
    return f"Rare (under {percent(RARE)} of the tokens): {', '.join(rare)}." if rare else ""


def draw_relations(result: xr.Dataset) -> Drawing:
    """Shares of all relations by layer, the most frequent first."""
    frequency = result["deprel_frequency"]
    order = (-frequency.values).argsort(kind="stable")
    there = frequency.isel(deprel=order[frequency.values[order] > 0])
    shares, even = (
        result[name].sel(deprel=there["deprel"]) for name in ("deprel_to_by_layer", EVEN_RELATIONS)
    )
    return draw_shares(shares, even, there, "deprel")


def draw_correlations(result: xr.Dataset) -> Drawing:
    """Distance against entropy and, with relations, against alignment."""
    named = {"distance~entropy": ("entropy in nats", result["entropy"])}
    if "dependency_alignment" in result:
        either = result["dependency_alignment"].sel(form="either")
        named["distance~alignment"] = ("dependency alignment", either)
    panels = [
        (name, result["distance"], other, float(result["correlation"].sel(pair=pair)))
        for pair, (name, other) in named.items()
    ]
    return draw_scatters(panels, "mean distance in tokens")


def draw_examples(result: xr.Dataset) -> Drawing:
    """One input as three telling heads see it, each with its values; null tokens have no lines."""
    example = result["example_map"]
    ribbons = [
        read_ribbon(example.sel(layer=layer, head=head), _describe(result, kind, layer, head))
        for kind, layer, head in telling_heads(result)
    ]
    return draw_ribbons(ribbons, columns=3)


def _describe(result: xr.Dataset, kind: str, layer: int, head: int) -> str:
    own = result.sel(layer=layer, head=head)
    lines = [f"{name} {float(own[name]):.2f}" for name in ("distance", "entropy", "variability")]
    if "dependency_alignment" in result:
        lines.append(f"alignment {float(own['dependency_alignment'].sel(form='either')):.2f}")
    return f"{name_head(layer, head)} – {kind}\n" + "\n".join(lines)


FIGURES = (
    Figure(
        "figure04",
        "Three kinds of heads",
        "One sentence as three heads see it (attending token left, attended token right): the "
        "head that depends least on content, the most dispersed one, and a focused one that "
        "depends on content; heads that pay nearly everything to null tokens are passed over. "
        "Null tokens are grey and without lines, as the numbers leave them out; ⋮ stands for "
        "tokens that are not shown. A line has its full colour from the weight below it on.",
        ("example_map", "variability"),
        draw_examples,
    ),
    Figure(
        "figure05",
        "Attention to null tokens",
        "Share of each head's attention that goes to the null token (the first token of a causal "
        "model, the delimiters of a bidirectional one). Right: pooled over the heads of a layer.",
        ("null_share",),
        partial(draw_one, variable="null_share", title="null share", unit="pooled share"),
    ),
    Figure(
        "figure06",
        "Attention to parts of speech",
        "Share of attention that tokens with a tag receive: determiners, proper nouns, "
        "punctuation, and the tags on which heads specialise most, each head chosen on other "
        "documents. Orange: what rows that spread evenly over all they see would give. Colours of "
        "a tag run from the smallest to the largest value of a head.",
        ("pos_to", "pos_to_even"),
        partial(draw_tags, variable="pos_to", count=TELLING),
    ),
    Figure(
        "figure07",
        "Attention from parts of speech",
        "Share of attention that tokens with a tag pay, for tags chosen likewise. Orange: what "
        "rows that spread evenly over all they see would give. Colours of a tag run from the "
        "smallest to the largest value of a head.",
        ("pos_from", "pos_from_even"),
        partial(draw_tags, variable="pos_from", count=TELLING),
    ),
    Figure(
        "figure08",
        "Attention along dependency arcs",
        "Share of attention between words of which one is the parent of the other. Dashed: the "
        "share of all pairs that are related, as in the paper.",
        ("dependency_alignment",),
        draw_alignment,
    ),
    Figure(
        "figure09",
        "Attention to relation types",
        "Share of attention by the relation of the receiving token, pooled over the heads of each "
        "layer, and relative to what rows that spread evenly over all they see would give (1: as "
        "much). Every relation of the corpus, the most frequent first, with its share of the "
        "tokens.",
        ("deprel_to", EVEN_RELATIONS),
        draw_relations,
    ),
    Figure(
        "figure10",
        "Variability",
        "How much the attention of the first tokens changes with content: 0 for a head that looks "
        "at the same positions in every sentence. Right: mean over the heads of a layer.",
        ("variability",),
        partial(draw_one, variable="variability", title="variability", unit="mean"),
    ),
    Figure(
        "figure11",
        "Distance",
        "Mean distance in tokens between the attending and the attended token, null attention "
        "left out. Right: pooled over the heads of a layer.",
        ("distance",),
        partial(draw_one, variable="distance", title="distance in tokens", unit="pooled"),
    ),
    Figure(
        "figure12",
        "Entropy",
        "Mean entropy of attention rows in nats after dropping null attention. Right: pooled over "
        "the heads of a layer.",
        ("entropy",),
        partial(draw_one, variable="entropy", title="entropy in nats", unit="pooled"),
        uncounted_heads,
    ),
    Figure(
        "correlations",
        "Distance, entropy and alignment",
        "Each dot is a head; r is Pearson's correlation over all heads.",
        ("correlation",),
        draw_correlations,
    ),
    Figure(
        "figureA1",
        "Attention to every part of speech",
        "As in figure 6, for every tag of the corpus.",
        ("pos_to", "pos_to_even"),
        partial(draw_tags, variable="pos_to", count=None),
        rare_tags,
    ),
    Figure(
        "figureA2",
        "Attention from every part of speech",
        "As in figure 7, for every tag of the corpus.",
        ("pos_from", "pos_from_even"),
        partial(draw_tags, variable="pos_from", count=None),
        rare_tags,
    ),
)
