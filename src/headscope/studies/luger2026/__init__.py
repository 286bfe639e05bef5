"""luger2026: what heads do over a broad sample of raw text, after HeadVis; figures and tables."""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.engine.look_again import LookAgain
from headscope.metrics import surface
from headscope.metrics.composition import COMPOSITION
from headscope.plots.headmap import draw_head_scatter
from headscope.plots.heatmap import Panel, Strips, draw_panels, draw_strips
from headscope.results.measure import behaviours_of
from headscope.results.statements import Tabulation
from headscope.results.tables import MeasureColumn, head_rows, layer_rows, measure_columns
from headscope.studies.additions import IMPORTANCE, IMPORTANCE_TABLE, with_portrait
from headscope.studies.luger2026 import maps
from headscope.studies.luger2026.claims import CLAIMS
from headscope.studies.luger2026.composition import COMPOSED, Compose
from headscope.studies.luger2026.inputs import (
    check_room,
    inputs_again,
    settle_context,
    start_of,
)
from headscope.studies.luger2026.kinds import BEHAVIOUR, behaviour
from headscope.studies.luger2026.metrics import KINDS_OF_INPUT, RECORD_OPTIONS
from headscope.studies.luger2026.tables import KINDS_TABLE
from headscope.studies.luger2026.vectors import Vectors
from headscope.studies.option import ATTENTION, BOS, DOCUMENTS, Option, say_errors
from headscope.studies.study import Figure, Study
from headscope.studies.untrained import UNTRAINED

SINK_RATE = replace(surface.SINK_RATE, formula="heads with first_share > 0.3 / heads",
                    cost="from first_share alone")  # fmt: skip


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the sink rate, and the behaviour of heads that have no portrait."""
    rate = surface.sink_rate(result["first_share"].values)
    result = result.assign_attrs(sink_rate=rate)
    return result if "behaviour" in result else result.assign(behaviour=behaviour(result))


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    return (
        "Inputs are consecutive stretches of raw text. Nothing is left out of a row: attention to "
        "the first token counts as any other. Values are ratios of sums over all inputs. "
        f"Layers and heads count from 0. {say_errors(result)}"
    )


SHARES = {
    "first_share": "first token",
    "self_share": "itself",
    "previous_share": "previous token",
    "next_share": "next token",
    "delimiter_share": "delimiters",
    "induction": "induction",
    "duplicate": "duplicate token",
}
REACHES = {"entropy": "entropy in nats", "distance": "distance", "distance_spread": "its spread"}
DETECTORS = {
    "previous_token_score": "previous token",
    "duplicate_token_score": "duplicate token",
    "induction_score": "induction",
    "retrieval": "retrieval",
    "successor": "successor",
}
COLUMNS = tuple(map(MeasureColumn, (*SHARES, *REACHES, *DETECTORS)))


def draw_measures(result: xr.Dataset, titles: dict[str, str]) -> Drawing:
    """Some measures, head by head, each with what even attention would give."""
    panels = [
        Panel.of(result, name, title, baseline=result.attrs.get(f"{name}_even"))
        for name, title in titles.items()
        if name in result
    ]
    return draw_panels(panels, 3, "mean")


def draw_histograms(result: xr.Dataset) -> Drawing:
    """Attention by distance, and inputs by the largest weight."""
    starts = result["separation"].values.tolist()
    edges = result["peak"].values
    step = max(1, -(-len(starts) // 8))
    near = ["" if index % step else str(start) for index, start in enumerate(starts)]
    peaks = [f"{edge:g}" if np.isclose(edge * 5 % 1, 0) else "" for edge in edges]
    return draw_strips(
        [
            Strips("attention by distance", result["distance_histogram"], "tokens, from", near),
            Strips("inputs by largest weight", result["peak_histogram"], "weight, from", peaks),
        ],
        "share",
    )


def draw_map(result: xr.Dataset) -> Drawing:
    """Heads by entropy and distance."""
    x, y, labels = (result[name] for name in ("entropy", "distance", "behaviour"))
    return draw_head_scatter(
        x, y, labels, behaviours_of(result), ("entropy in nats", "distance in tokens")
    )


FIGURES = (
    Figure(
        "map",
        "Heads by how widely and how far they look",
        "Every point is a head, named after what its portrait says that it looks at, or without "
        "portraits by the thresholds of the table of kinds; in brackets how many heads have the "
        "name. As many are named as there is room for.",
        ("behaviour",),
        draw_map,
    ),
    Figure(
        "shares",
        "Where attention goes in text",
        "Shares of attention, layer by layer and head by head; bars are layers with two standard "
        "errors, dashed what even attention would give.",
        ("first_share",),
        partial(draw_measures, titles=SHARES),
    ),
    Figure(
        "reaches",
        "How widely and how far heads look",
        "Mean entropy of a row, mean distance in tokens and its standard deviation; dashed: even "
        "attention.",
        ("distance_spread",),
        partial(draw_measures, titles=REACHES),
    ),
    Figure(
        "histograms",
        "Distances and largest weights",
        "A strip for every head. Left: share of attention at each distance, in powers of two. "
        "Right: share of the inputs by the head's largest weight, the first token left out as "
        "query and key. Colours follow the square root.",
        ("distance_histogram", "peak_histogram"),
        draw_histograms,
    ),
    Figure(
        "detectors",
        "Detectors on made inputs",
        "On random sequences that occur twice: weight on the previous token, on the same token one "
        "period back, and on what followed it. On texts with a needle: weight of the copying "
        "position on what it copies. Successor: share of numbers, weekdays, months and letters of "
        "which the head writes the next one.",
        ("induction_score",),
        partial(draw_measures, titles=DETECTORS),
    ),
)


TABLES = (
    KINDS_TABLE,
    Tabulation(
        "layers",
        "Layers",
        "Values of all heads together.",
        (),
        lambda result: layer_rows(result, measure_columns(result, COLUMNS)),
    ),
    Tabulation(
        "heads",
        "Heads",
        "Every head.",
        (),
        lambda result: head_rows(result, measure_columns(result, COLUMNS)),
    ),
)


STUDY = Study(
    name="luger2026",
    title="Heads in the wild",
    citation="Luger, Kamath et al. (2026), HeadVis",
    question="What does each head do over a broad sample of raw text?",
    options=(
        Option(
            "context",
            int,
            None,
            "tokens of an input; 512, or what the model has positions for, if none",
            least=2,
        ),
        Option("rest", bool, False, "whether the shorter end of a document is an input too"),
        ATTENTION,
        BOS,
        Option(
            "repeated_sequences", int, 16, "sequences of random tokens that occur twice", least=1
        ),
        Option("period", int, 32, "tokens until such a sequence repeats", least=1),
        Option("needles", int, 8, "texts that a needle is hidden in, at every depth", least=1),
        Option(
            "depths",
            list[int],
            [10, 30, 50, 70, 90],
            "per cent of a text before the needle",
            least=0,
            most=100,
        ),
        DOCUMENTS,
        IMPORTANCE,
        UNTRAINED,
        COMPOSED,
        *RECORD_OPTIONS,
    ),
    inputs=KINDS_OF_INPUT,
    later_stages=(
        LookAgain(
            inputs_again,
            with_self=lambda setup: True,
            start=start_of,
            beside=Vectors(),
        ),
        Compose(),
    ),
    derive=derive,
    measures=(BEHAVIOUR, SINK_RATE, COMPOSITION, *maps.MEASURES),
    figures=FIGURES,
    tables=(TABLES[0], IMPORTANCE_TABLE, *TABLES[1:]),
    claims=CLAIMS,
    notes=notes,
    unit="inputs",
    check=check_room,
    settle=settle_context,
    layout="documents",
    remedy="give a smaller --context, or --rest to keep what is shorter; "
    "in a .txt a blank line ends a document",
)

STUDY = with_portrait(STUDY, raw=True)
