"""The figures of clark2019's second part: best heads at work, probes, relations, trees."""

import json

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from headscope.plots.charts import draw_lines, write_tokens
from headscope.plots.heatmap import Panel, draw_panels
from headscope.studies.clark2019.words.choices import relation_rows
from headscope.studies.clark2019.words.tables import ARROWS, PROBE_NAMES
from headscope.studies.study import Figure
from headscope.theme import ACCENT, FAINT, SECOND, SIGNED

COLUMNS = 4
RELATIONS = 24
SHOWN_PROBES = ("attention", "attention_words")


def draw_examples(result: xr.Dataset) -> Drawing:
    """Maps of the best heads, gold pairs in the second colour."""
    count = result.sizes["figure5"]
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    longest = int((result["figure5_words"] != "").sum("figure5_query").max())
    size = (2.6 * columns, (0.16 * longest + 0.5) * rows)
    drawing = Drawing(figsize=size, layout="constrained")
    grid = np.atleast_1d(drawing.subplots(rows, columns)).ravel()
    for axes in grid:
        axes.axis("off")
    for place, axes in zip(range(count), grid, strict=False):
        _draw_example(axes, result.isel(figure5=place))
    return drawing


def _draw_example(axes: Axes, example: xr.Dataset) -> None:
    words = [str(word) for word in example["figure5_words"].values if str(word)]
    size = len(words)
    weights = example["figure5_weights"].values[:size, :size]
    gold = example["figure5_gold"].values[:size, :size] > 0
    for query, key in np.argwhere(gold):  # also where the head does not look
        axes.plot((0, 1), (query, key), color=SECOND, linewidth=0.7, linestyle=(0, (1, 2)))
    for chosen, colour in ((~gold, ACCENT), (gold, SECOND)):
        draw_lines(axes, np.where(chosen, weights, 0.0), colour)
    write_tokens(axes, str(example["figure5"].item()).partition(" ")[2], words)


def draw_relations(result: xr.Dataset) -> Drawing:
    """Accuracy of the best head against the best offset, for the most frequent relations."""
    few = json.loads(result.attrs["options"])["few"]
    # A root has no governor to find.
    rows = [row for row in relation_rows(result) if row.relation != "root"][:RELATIONS]
    drawing = Drawing(figsize=(6.4, 0.2 * len(rows) + 0.8), layout="constrained")
    axes = drawing.subplots()
    for place, row in enumerate(rows):
        colour = FAINT if row.words < few else ACCENT
        axes.plot([row.accuracy.low, row.accuracy.high], [place, place], color=colour, linewidth=1)
        axes.plot(row.accuracy.value, place, "o", color=colour, markersize=4)
        axes.plot(row.held_out.value, place, "o", color=colour, markersize=4, fillstyle="none")
        axes.plot(row.baseline, place, "|", color=SECOND, markersize=8, markeredgewidth=1.6)
    names = [f"{row.relation} ({row.words:,})" for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("best head (● same words, ○ held out) and best fixed offset (|)")
    return drawing


def draw_weights(result: xr.Dataset) -> Drawing:
    """What each attention probe relies on: the mean weight of every head on gold arcs."""
    weights = result["probe_weight"].sel(attention_probe=list(SHOWN_PROBES))
    layers, heads = weights.sizes["layer"], weights.sizes["head"]
    size = (2 * (0.24 * heads + 1.2), len(SHOWN_PROBES) * (0.24 * layers + 1.0))
    drawing = Drawing(figsize=size, layout="constrained")
    grid = drawing.subplots(len(SHOWN_PROBES), len(ARROWS), squeeze=False)
    for row, probe in zip(grid, SHOWN_PROBES, strict=True):
        of_probe = weights.sel(attention_probe=probe)
        reach = float(np.abs(of_probe).max())
        for axes, direction in zip(row, ARROWS, strict=True):
            values = of_probe.sel(direction=direction).transpose("layer", "head")
            title = f"{PROBE_NAMES[probe]}, {ARROWS[direction]}"
            _draw_signed(drawing, axes, values, reach, title)
    return drawing


def _draw_signed(
    drawing: Drawing, axes: Axes, values: xr.DataArray, reach: float, title: str
) -> None:
    image = axes.imshow(values, cmap=SIGNED, vmin=-reach, vmax=reach, interpolation="none")
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    places = range(0, len(values), max(1, len(values) // 12))
    axes.set_yticks(places, values["layer"].values[list(places)])
    axes.spines[:].set_visible(False)
    bar = drawing.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def draw_trees(result: xr.Dataset) -> Drawing:
    """UUAS of every head."""
    values = result["tree_accuracy"]
    baseline = float(result.attrs["tree_baseline"])
    panel = Panel("UUAS", values, values.mean("head"), baseline=baseline)
    return draw_panels([panel], 1, "mean")


FIGURES = (
    Figure(
        "figure05",
        "Best heads at work",
        "Attention between words in sentences of the corpus, for the clearest relations and for "
        "coreference. Orange: what the corpus marks, dotted where the head looks away.",
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
        "probe_weights",
        "What the probes rely on",
        "Mean weight that a probe gives to each head on the arcs of the corpus: orange speaks for "
        "an arc, violet against it.",
        ("probe_weight",),
        draw_weights,
    ),
)
