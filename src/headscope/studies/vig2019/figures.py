"""The figures of the paper, drawn from a result."""

from functools import partial

import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.head import name_head
from headscope.observe.batch import FORMS
from headscope.plots.charts import draw_curve, draw_ribbons, draw_scatters, draw_shares
from headscope.plots.heatmap import Panel, draw_panels
from headscope.studies.study import Figure
from headscope.studies.vig2019.choices import telling_heads

TELLING = 4  # tags in figures 6 and 7; the appendix has all of them
RARE = 0.005  # tags and relations below this share of the tokens are left to the tables
FARTHEST = 20  # separations in the curve
RELATIONS = 24
_FORM_TITLES = {
    "attender_is_parent": "attender is the parent",
    "receiver_is_parent": "receiver is the parent",
    "either": "either",
}


def draw_one(result: xr.Dataset, variable: str, title: str, unit: str) -> Drawing:
    """One value per head; the profile shows the pooled value of each layer where there is one."""
    pooled = f"{variable}_by_layer"
    by_layer = result[pooled] if pooled in result else result[variable].mean("head")
    errors = result[f"{pooled}_se"] if pooled in result else None
    return draw_panels([Panel(title, result[variable], by_layer, errors)], 1, unit)


def draw_alignment(result: xr.Dataset) -> Drawing:
    """The three forms of dependency alignment, each with its baseline."""
    panels = [
        Panel(
            _FORM_TITLES[form],
            result["dependency_alignment"].sel(form=form),
            result["dependency_alignment_by_layer"].sel(form=form),
            result["dependency_alignment_by_layer_se"].sel(form=form),
            float(result["dependency_baseline"].sel(form=form)),
        )
        for form in FORMS
    ]
    return draw_panels(panels, 3, "pooled share")


def draw_tags(result: xr.Dataset, variable: str, count: int | None) -> Drawing:
    """Shares of tags: the most specialised ones, or all."""
    tags = specialised_tags(result, variable)
    chosen = tags[:count] if count else sorted(tags)
    panels = [
        Panel(
            tag,
            result[variable].sel(tag=tag),
            result[f"{variable}_by_layer"].sel(tag=tag),
            result[f"{variable}_by_layer_se"].sel(tag=tag),
            float(result[f"{variable}_even"].sel(tag=tag)),
        )
        for tag in chosen
    ]
    return draw_panels(panels, 2 if count else 3, "pooled share")


def specialised_tags(result: xr.Dataset, variable: str) -> list[str]:
    """Tags that are not rare, the one with the largest head relative to the mean first."""
    shares = result[variable]
    factor = shares.max(("layer", "head")) / shares.mean(("layer", "head"))
    common = result["tag_frequency"] >= min(RARE, float(result["tag_frequency"].max()))
    known = factor.where(common).dropna("tag")
    return known["tag"].values[(-known.values).argsort(kind="stable")].tolist()


def draw_relations(result: xr.Dataset) -> Drawing:
    """Shares of the most frequent relations by layer."""
    frequency = result["deprel_frequency"]
    order = (-frequency.values).argsort(kind="stable")[:RELATIONS]
    common = frequency.isel(deprel=order[frequency.values[order] > 0])
    shares = result["deprel_to_by_layer"].sel(deprel=common["deprel"])
    return draw_shares(shares, result["deprel_to_even"].sel(deprel=common["deprel"]), "deprel")


def draw_probability(result: xr.Dataset) -> Drawing:
    """P(dependency | separation)."""
    near = slice(1, FARTHEST)
    values = result["dependency_probability"].sel(separation=near)
    errors = result["dependency_probability_se"].sel(separation=near)
    return draw_curve(values, errors, "separation in tokens", "share of pairs that are related")


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
    """One input as three telling heads see it, each with its values."""
    panels = [
        (_describe(result, kind, layer, head), result["example_map"].sel(layer=layer, head=head))
        for kind, layer, head in telling_heads(result)
    ]
    return draw_ribbons(panels, columns=3)


def _describe(result: xr.Dataset, kind: str, layer: int, head: int) -> str:
    names = {"distance": "distance", "entropy": "entropy", "variability": "variability"}
    own = result.sel(layer=layer, head=head)
    lines = [f"{name} {float(own[key]):.2f}" for key, name in names.items()]
    if "dependency_alignment" in result:
        lines.append(f"alignment {float(own['dependency_alignment'].sel(form='either')):.2f}")
    return f"{name_head(layer, head)} – {kind}\n" + "\n".join(lines)


FIGURES = (
    Figure(
        "figure04",
        "Three kinds of heads",
        "One sentence as three heads see it (attending token left, attended token right): the "
        "head that depends least on content, the most dispersed one, and a focused one that "
        "depends on content; heads that pay nearly everything to null tokens are passed over.",
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
        "Share of attention that tokens with a tag receive, for the tags on which heads "
        "specialise most. Dashed: what attention spread evenly over the same pairs would give.",
        ("pos_to", "pos_to_even"),
        partial(draw_tags, variable="pos_to", count=TELLING),
    ),
    Figure(
        "figure07",
        "Attention from parts of speech",
        "Share of attention that tokens with a tag pay, for the tags on which heads specialise "
        "most. Dashed: what attention spread evenly over the same pairs would give.",
        ("pos_from", "pos_from_even"),
        partial(draw_tags, variable="pos_from", count=TELLING),
    ),
    Figure(
        "figure08",
        "Attention along dependency arcs",
        "Share of attention between words of which one is the parent of the other. Dashed: what "
        "attention spread evenly over the same pairs would give.",
        ("dependency_alignment",),
        draw_alignment,
    ),
    Figure(
        "figure09",
        "Attention to relation types",
        "Share of attention by the relation of the receiving token, pooled over the heads of each "
        "layer, and relative to what even attention over the same pairs would give; the most "
        "frequent relations.",
        ("deprel_to", "deprel_to_even"),
        draw_relations,
    ),
    Figure(
        "figure10",
        "Variability",
        "How much attention changes with content: 0 for a head that looks at the same positions "
        "in every sentence. Right: mean over the heads of a layer.",
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
    ),
    Figure(
        "correlations",
        "Distance, entropy and alignment",
        "Each dot is a head.",
        ("correlation",),
        draw_correlations,
    ),
    Figure(
        "dependency_probability",
        "Relations by separation",
        "Share of the pairs of tokens at each separation that are related; two standard errors.",
        ("dependency_probability",),
        draw_probability,
    ),
    Figure(
        "figureA1",
        "Attention to every part of speech",
        "As in figure 6, for all tags that are not rare.",
        ("pos_to",),
        partial(draw_tags, variable="pos_to", count=None),
    ),
    Figure(
        "figureA2",
        "Attention from every part of speech",
        "As in figure 7, for all tags that are not rare.",
        ("pos_from",),
        partial(draw_tags, variable="pos_from", count=None),
    ),
)
