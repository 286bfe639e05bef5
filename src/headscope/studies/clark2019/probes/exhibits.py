"""Tables 1 to 3 of the paper and the figures of the second part, from a result."""

import json
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from headscope.head import name_head, name_in_paper
from headscope.plots import SIGNED, add_axes, add_bar, fit_columns, page_width
from headscope.plots.heatmap import Panel, draw_panels
from headscope.plots.ribbons import Ribbon, draw_ribbons
from headscope.results.claims import Replicates, on_all
from headscope.results.held_out import hold_out
from headscope.results.intervals import DIFFERENCE, find_interval
from headscope.results.ranks import top_heads
from headscope.results.replicates import groups_of
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName, InPaper, Interval, Note
from headscope.studies.clark2019.best_heads import (
    ENOUGH,
    GRADIENT,
    NO_RELATION,
    NOOP,
    BestHead,
    BestResolver,
    best_resolver,
    layer_number,
    noop_names,
    pair_of,
    relation_rows,
)
from headscope.studies.clark2019.probes.coreference import CANDIDATES, KINDS
from headscope.studies.clark2019.probes.relations import DIRECTIONS
from headscope.studies.clark2019.probes.trees import PUNCTUATION
from headscope.studies.clark2019.published import (
    BEST_HEAD,
    TABLE2,
    TABLE3,
    published_relation,
)
from headscope.studies.study import Figure
from headscope.theme import ACCENT, FAINT, SECOND

ARROWS = {"dependent_to_head": "dependent → head", "head_to_dependent": "head → dependent"}
FEW = "few words"
SYSTEM_NAMES = {"nearest": "nearest mention", "head_match": "head match", "rules": "rules"}
PROBE_NAMES = {
    "right_branching": "right-branching",
    "distances_words": "distances and words",
    "random_attention_words": "random network: attention and words",
    "attention": "attention",
    "attention_words": "attention and words",
}
NOT_IN_TABLE = ("root", *PUNCTUATION)  # as in the paper
NO_NUMBER = float("nan")
NO_VALUE = InPaper("nan")  # of the paper
NOT_CHOSEN = {"held out": NO_NUMBER}
NOT_PUBLISHED = {"published": NO_VALUE, "published by kind": ""}
Row = dict[str, Any]
COLUMNS = 4  # two heads, each on two sentences

# Inches of the maps of weights.
CELL, NARROWEST, TALLEST = 0.22, 1.8, 3.6
LEFT, GAP, BAR, BAR_TEXT, BOTTOM, TOP = 0.5, 0.1, 0.08, 0.5, 0.5, 0.45
RELATIONS = 24
SHOWN_PROBES = ("attention", "attention_words")


def table1_rows(result: xr.Dataset) -> list[Row]:
    """One row per relation: its best head, next to the best fixed offset."""
    options = json.loads(result.attrs["options"])
    left_out = () if options["every_relation"] else NOT_IN_TABLE
    rows = [row for row in relation_rows(result) if row.relation.lower() not in left_out]
    return [_relation_row(result, row, options["few"]) for row in rows]


def _relation_row(result: xr.Dataset, row: BestHead, few: int) -> Row:
    paper = published_relation(row.relation)
    return {
        "relation": row.relation,
        "words": row.words,
        "head": HeadName(name_head(layer_number(result, row.layer), row.head)),
        "direction": ARROWS[row.direction],
        "accuracy": row.accuracy.cell,
        "held out": row.held_out.cell,
        "both halves agree": "yes" if row.same_choice else "no",
        "coverage": row.coverage,
        "baseline": row.baseline,
        "offset": row.offset,
        "margin": row.margin,
        "held out margin": row.held_out_margin.cell,
        "published": NO_VALUE if paper is None else InPaper(paper[0] / 100),
        "published baseline": NO_NUMBER if paper is None else paper[2] / 100,
        "note": Note(FEW if row.words < few else ""),
    }


def table2_rows(result: xr.Dataset) -> list[Row]:
    """Baselines, then the best head for each set of candidates, by kind of mention."""
    systems = result["system"].values.tolist()
    heads = [best_resolver(result, candidates) for candidates in CANDIDATES]
    return [
        *(_system_row(result, name) for name in systems),
        *(_resolver_row(result, best) for best in heads if best is not None),
        _mentions_row(result),
    ]


def _system_row(result: xr.Dataset, name: str) -> Row:
    values = _kinds(result["coref_baseline"].sel(system=name))
    return {"system": SYSTEM_NAMES[name], "head": "", **values, **NOT_CHOSEN, **_published(name)}


def _resolver_row(result: xr.Dataset, best: BestResolver) -> Row:
    choice = {"layer": best.layer, "head": best.head, "candidates": best.candidates}
    return {
        "system": f"best head, candidates: {best.candidates}",
        "head": HeadName(name_head(best.layer, best.head)),
        **_kinds(result["coref_accuracy"].sel(choice)),
        "all": best.accuracy.cell,
        "held out": best.held_out.cell,
        **_published(BEST_HEAD),
    }


def _mentions_row(result: xr.Dataset) -> Row:
    counts = result["coref_count"] * result["coref_coverage"]
    scored = {kind: int(counts.sel(mention=kind).fillna(0)) for kind in KINDS}
    coverage = float(result["coref_coverage"].sel(mention="all"))
    name = f"mentions scored (coverage {coverage:.2f})"
    return {"system": name, "head": "", **scored, **NOT_CHOSEN, **NOT_PUBLISHED}


def _kinds(values: xr.DataArray) -> Row:
    return {kind: float(values.sel(mention=kind)) for kind in KINDS}


def _published(system: str) -> Row:
    percents = TABLE2[system]
    return {
        "published": InPaper(percents[0] / 100),
        "published by kind": " / ".join(map(str, percents)),
    }


def table3_rows(result: xr.Dataset) -> list[Row]:
    """One row per probe."""
    return [_probe_row(result.sel(probe=name), name) for name in result["probe"].values.tolist()]


def _probe_row(probe: xr.Dataset, name: str) -> Row:
    before, end = probe["parsing_curve"].values[-2:]  # the last quarter of the training
    control = {"selectivity": "probe_selectivity"} if "probe_selectivity" in probe else {}
    return {
        "probe": PROBE_NAMES[name],
        "UAS": Interval(
            float(probe["parsing_uas"]),
            float(probe["parsing_uas_ci"].sel(bound="low")),
            float(probe["parsing_uas_ci"].sel(bound="high")),
        ),
        "sd over seeds": float(probe["parsing_uas_sd"]),
        "last gain": float(end - before),
        **{key: float(probe[variable]) for key, variable in control.items()},
        "parameters": int(probe["parsing_parameters"]),
        "word vectors": probe.attrs["parsing_vectors"] if "words" in name else "",
        "published": InPaper(TABLE3[name] / 100),
    }


def tree_rows(result: xr.Dataset) -> list[Row]:
    """The heads whose spanning trees have the most arcs, and the best of other documents."""
    baseline = result.attrs["tree_baseline"]
    accuracies = {
        "neighbours joined": Interval(baseline, NO_NUMBER, NO_NUMBER),
        "best head, held out": hold_out(result, "tree_accuracy").find().cell,
    }
    for layer, head, value in top_heads(result["tree_accuracy"], 10):
        accuracies[name_in_paper(layer, head)] = Interval(value, NO_NUMBER, NO_NUMBER)
    return [
        {
            "head": HeadName(name),
            "UUAS": accuracy,
            "margin": accuracy.value - baseline,
        }
        for name, accuracy in accuracies.items()
    ]


def noop_rows(result: xr.Dataset) -> list[Row]:
    """For the best head of every relation with enough words: both shares, and both gradients."""
    data, groups = Replicates(result), groups_of(result, noop_names(NOOP))
    rows = (row for row in relation_rows(result) if row.relation not in NO_RELATION)
    return [_noop_row(data, groups, row) for row in rows if row.words >= ENOUGH]


def _noop_row(data: Replicates, groups: int, row: BestHead) -> Row:
    applies, other = pair_of(data, row)
    difference = find_interval(other - applies, groups, DIFFERENCE)
    cells: Row = {
        "relation": row.relation,
        "words": row.words,
        "head": HeadName(name_head(data.layers[row.layer], row.head)),
        "attending": "dependent" if row.direction == DIRECTIONS[0] else "head",
        "accuracy": row.accuracy.value,
        "applies": float(on_all(applies)),
        "does not": float(on_all(other)),
        "difference": difference.cell,
    }
    if f"{GRADIENT}_applies" not in data:
        return cells
    gradients = (float(on_all(gradient)) for gradient in pair_of(data, row, GRADIENT))
    return cells | dict(zip(("gradient applies", "gradient does not"), gradients, strict=True))


TABLES = (
    Tabulation(
        "relations",
        "Table 1: heads as dependency classifiers",
        "The best head for each relation: chosen on the same words as in the paper, and held out: "
        "chosen on half of the groups of documents and scored on the other. 95 % intervals; "
        "the best fixed offset on the same words; coverage: the share that the head could see; "
        "published: BERT-base. "
        "“with 's”: the clitic's prediction counts instead of the possessor's, as in the paper.",
        ("relation_accuracy_numerator",),
        table1_rows,
        file="table1",
        narrow=("relation", "head", "accuracy", "offset", "baseline"),
    ),
    Tabulation(
        "coreference",
        "Table 2: heads as coreference resolvers",
        "Share of mentions for which the head word of an antecedent is found. Candidates: all "
        "other words, or only head words of earlier mentions. Interval, held-out and published "
        "value (BERT-base) are for all mentions.",
        ("coref_accuracy_numerator",),
        table2_rows,
        file="table2",
        narrow=("system", *KINDS),
    ),
    Tabulation(
        "parsing",
        "Table 3: attention probes",
        "Unlabelled attachment without punctuation: mean over seeds, with a 95 % interval over the "
        "documents of the test set; last gain: what the last quarter of the training added; "
        "selectivity: attachment less the accuracy on the control task of Hewitt & Liang (2019); "
        "published: BERT-base.",
        ("parsing_uas",),
        table3_rows,
        file="table3",
        narrow=("probe", "UAS", "parameters"),
    ),
    Tabulation(
        "trees",
        "Undirected trees",
        "Share of the gold arcs that the maximum spanning tree of a head has, without punctuation; "
        "the ten best heads; held out: chosen on half of the documents and scored on the other.",
        ("tree_accuracy",),
        tree_rows,
    ),
    Tabulation(
        "noop",
        "Attention to delimiters as doing nothing",
        "For the best head of each relation: the share that words pay to delimiters or the null "
        "token, where the relation applies to the attending word and where it does not, the "
        "difference with its 95 % interval, and the mean |∂L/∂a| of these weights where gradients "
        "were computed.",
        ("noop_applies", "relation_accuracy_numerator"),
        noop_rows,
    ),
)


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
    axes.set_xlabel("best head: ● same words, ○ held out\nbest fixed offset: |")
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
    for place, (probe, direction) in enumerate(product(SHOWN_PROBES, ARROWS)):
        row, column = divmod(place, columns)
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
    """UUAS of every head."""
    baseline = float(result.attrs["tree_baseline"])
    return draw_panels([Panel.of(result, "tree_accuracy", "UUAS", baseline=baseline)], 1, "mean")


FIGURES = (
    Figure(
        "figure05",
        "Best heads at work",
        "Attention between words, for the relations that a head finds most clearly and for "
        "coreference: of the first sentences of the corpus with the relation the clearest, and "
        "one drawn at random. Orange: the attending words of the relation with their attention, "
        "and the words they should find; dotted where the head looks away. Accuracy over the whole "
        "corpus, and of the best fixed offset. [CLS] and [SEP] are left out unless the option "
        "figure5_special is set.",
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
        "Mean weight that a probe gives to each head on the arcs of the corpus: blue speaks for "
        "an arc, orange against it.",
        ("probe_weight",),
        draw_weights,
    ),
)
