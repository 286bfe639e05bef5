"""The figures of luger2026, from a result."""

from functools import partial

import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.plots.headmap import draw_head_scatter
from headscope.plots.heatmap import Panel, draw_panels
from headscope.results.measure import behaviours_of
from headscope.studies.study import Figure

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


def draw_measures(result: xr.Dataset, titles: dict[str, str]) -> Drawing:
    """Some measures, head by head, each with what even attention would give."""
    panels = [
        Panel.of(result, name, title, baseline=result.attrs.get(f"{name}_even"))
        for name, title in titles.items()
        if name in result
    ]
    return draw_panels(panels, 3, "mean")


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
        "name. As many heads are named as there is room for.",
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
