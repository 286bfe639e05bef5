"""The figures of the second part: relations, trees and probes, from a result."""

import json
from itertools import product

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from headscope.plots import NARROW, SIGNED, add_axes, add_bar, fit_columns, page_width
from headscope.plots.charts import DASHED, MARKS
from headscope.plots.heatmap import Panel, draw_panels
from headscope.plots.ribbons import Ribbon, draw_ribbons
from headscope.studies.clark2019.best_heads import (
    relation_rows,
)
from headscope.studies.study import Figure
from headscope.theme import ACCENT, FAINT, SECOND, SERIES

ARROWS = {"dependent_to_head": "dependent → head", "head_to_dependent": "head → dependent"}
PROBE_NAMES = {
    "right_branching": "right-branching",
    "distances_words": "distances and words",
    "random_attention_words": "random network: attention and words",
    "attention": "attention",
    "attention_words": "attention and words",
}
COLUMNS = 4  # two heads, each on two sentences
# Inches of the maps of weights.
CELL, NARROWEST, TALLEST = 0.22, 1.8, 3.6
LEFT, GAP, BAR, BAR_TEXT, BOTTOM, TOP = 0.5, 0.1, 0.08, 0.5, 0.5, 0.45
RELATIONS = 24
ENTRY = 0.17  # inches of a line of a legend
SHOWN_PROBES = ("attention", "attention_words")


def draw_examples(result: xr.Dataset) -> Drawing:
    """The best heads at work, each on its clearest sentence and on one drawn at random."""
    ribbons = [_ribbon(result.isel(figure5=number)) for number in range(result.sizes["figure5"])]
    return draw_ribbons(ribbons, COLUMNS)


def _ribbon(example: xr.Dataset) -> Ribbon:
    words = [str(word) for word in example["figure5_words"].values if str(word)]
    size = len(words)
    gold = np.argwhere(example["figure5_gold"].values[:size, :size] > 0)
    return Ribbon(
        str(example["figure5"].item()).partition(" ")[2],
        words,
        example["figure5_weights"].values[:size, :size],
        gold=frozenset((int(query), int(key)) for query, key in gold),
    )


def draw_relations(result: xr.Dataset) -> Drawing:
    """Accuracy of the best head against the best offset, for the most frequent relations."""
    few = json.loads(result.attrs["options"])["few"]
    # A root has no governor to find.
    rows = [row for row in relation_rows(result) if row.relation != "root"][:RELATIONS]
    drawing = Drawing(figsize=(page_width(6.4), 0.2 * len(rows) + 0.8), layout="constrained")
    axes = drawing.subplots()
    for height, row in enumerate(rows):
        colour = FAINT if row.words < few else ACCENT
        axes.plot(
            [row.accuracy.low, row.accuracy.high], [height, height], color=colour, linewidth=1
        )
        axes.plot(row.accuracy.value, height, "o", color=colour, markersize=3.4)
        axes.plot(row.held_out.value, height, "o", color=colour, markersize=6.4, fillstyle="none",
                  markeredgewidth=0.9)  # fmt: skip
        axes.plot(row.baseline, height, "|", color=SECOND, markersize=8, markeredgewidth=1.6)
    names = [f"{row.relation} ({row.words:,})" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    key = "best head: ● same words, ○ held out\nbest fixed offset: |"
    drawing.supxlabel(key, fontsize="medium")
    return drawing


def draw_learning(result: xr.Dataset) -> Drawing:
    """Attachment of every probe after quarters of its training; right-branching learns nothing."""
    curves = result["parsing_curve"]
    wide = page_width(5.6)
    baseline, *probes = curves["probe"].values.tolist()
    columns = 2 if wide >= NARROW else 1
    legend = ENTRY * (len(probes) + 1) / columns
    drawing = Drawing(figsize=(wide, 0.6 * wide + legend), layout="constrained")
    axes = drawing.subplots()
    for probe, colour, mark in zip(probes, SERIES, MARKS, strict=False):
        axes.plot(100 * curves["share"], 100 * curves.sel(probe=probe), color=colour, marker=mark,
                  markersize=3.2, linewidth=1.4, label=PROBE_NAMES[probe])  # fmt: skip
    level = 100 * float(curves.sel(probe=baseline)[-1])
    axes.axhline(level, color=FAINT, linewidth=1, linestyle=DASHED, label=PROBE_NAMES[baseline])
    axes.set(xlabel="% of the training", ylabel="UAS in %", ylim=(0, None))
    axes.set_xticks(100 * curves["share"].values)
    drawing.legend(fontsize="small", loc="outside lower center", ncols=columns)
    return drawing


def draw_weights(result: xr.Dataset) -> Drawing:
    """What each attention probe relies on: the mean weight of every head on gold arcs."""
    weights = result["probe_weight"].sel(attention_probe=list(SHOWN_PROBES))
    layers, heads = weights.sizes["layer"], weights.sizes["head"]
    cell = min(CELL, TALLEST / layers)
    high = cell * layers
    natural = LEFT + max(cell * heads, NARROWEST) + GAP + BAR + BAR_TEXT
    columns = fit_columns(len(ARROWS), natural, natural)
    panel = (page_width(columns * natural) / columns, BOTTOM + high + TOP)
    wide = panel[0] - LEFT - GAP - BAR - BAR_TEXT
    rows = len(SHOWN_PROBES) * len(ARROWS) // columns
    drawing = Drawing(figsize=(columns * panel[0], rows * panel[1]))
    for number, (probe, direction) in enumerate(product(SHOWN_PROBES, ARROWS)):
        row, column = divmod(number, columns)
        of_probe = weights.sel(attention_probe=probe)
        left, bottom = column * panel[0] + LEFT, (rows - 1 - row) * panel[1] + BOTTOM
        axes = add_axes(drawing, left, bottom, wide, high)
        values = of_probe.sel(direction=direction).transpose("layer", "head")
        image = _draw_signed(axes, values, float(np.abs(of_probe).max()))
        axes.set_title(f"{PROBE_NAMES[probe]},\n{ARROWS[direction]}", fontsize="medium")
        add_bar(drawing, image, (left + wide + GAP, bottom, BAR, high))
    return drawing


def _draw_signed(axes: Axes, values: xr.DataArray, reach: float) -> AxesImage:
    image = axes.imshow(
        values, cmap=SIGNED, vmin=-reach, vmax=reach, aspect="auto", interpolation="none"
    )
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    places = range(0, len(values), max(1, -(-len(values) // 12)))
    axes.set_yticks(places, values["layer"].values[list(places)])
    axes.tick_params(length=0, labelsize="small")
    axes.spines[:].set_visible(False)
    return image


def draw_trees(result: xr.Dataset) -> Drawing:
    """Share of the gold arcs in the tree of every head."""
    baseline = float(result.attrs["tree_baseline"])
    return draw_panels(
        [Panel.of(result, "tree_accuracy", "arcs in tree", baseline=baseline)], 1, "mean"
    )


FIGURES = (
    Figure(
        "figure05",
        "Best heads at work",
        "Attention between words, for the heads that find a relation most clearly and for "
        "coreference: of the first sentences of the corpus with the relation the clearest, and "
        "one drawn at random. Orange: the attending words of the relation with their attention, "
        "and the words they should find; dotted where the head looks away. Accuracy over the whole "
        "corpus, and of the best fixed offset, or of the best system without a network. [CLS] and "
        "[SEP] are left out unless the option figure5_special is set.",
        ("figure5_weights",),
        draw_examples,
    ),
    Figure(
        "relations",
        "Relations and their best heads",
        "95 % intervals; grey: too few words to say. The most frequent relations.",
        ("relation_accuracy_numerator",),
        draw_relations,
    ),
    Figure(
        "trees",
        "Undirected trees",
        "Share of the gold arcs in each head's maximum spanning tree. Dashed: joining neighbours.",
        ("tree_accuracy",),
        draw_trees,
    ),
    Figure(
        "learning",
        "How far the probes are trained",
        "Words attached rightly after each quarter of the training, all on the same test words. A "
        "probe that still gains 1 % in the last quarter has not levelled off, and no claim is "
        "judged by it.",
        ("parsing_curve",),
        draw_learning,
    ),
    Figure(
        "probe_weights",
        "What the probes rely on",
        "Mean weight that a probe gives to each head on the arcs of the corpus: blue speaks for "
        "an arc, orange against it.",
        ("probe_weight",),
        draw_weights,
    ),
)
