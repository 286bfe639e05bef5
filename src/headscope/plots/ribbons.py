"""Attention of single heads over a short text: queries left, keys right, a line for each weight.

Every token has the same height in every panel, so that short texts are short:

    L4H2 previous token          L1H1 broad
    The ────── The               The ══════ The
    cat ─┐     cat               cat ══╗    cat
    ⋮    └──── ⋮                 ⋮     ╚═══ ⋮        tokens were left out here
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import fill

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from headscope.plots import add_axes, fit_columns, page_width
from headscope.theme import ACCENT, FAINT, INK, SECOND
from headscope.views.figures.curves import draw_curves
from headscope.views.labels import label, short
from headscope.views.lines import curves

WEAK = 0.05  # of the full colour: fainter lines cannot be seen
FULLEST = 0.12  # no weight below has the full colour: all lines of a broad head would cover it
THIN = 0.5  # panels are small, and so are their lines
TOKEN = "x-small"

# Inches.
PITCH = 0.155  # from one token to the next
TITLE = 0.16  # of one line
WIDE, LEAST = 2.5, 1.6  # a panel, and the narrowest
SIDE = 0.3  # share of a panel that its tokens take on each side
LETTER, TITLE_LETTER = 0.058, 0.076  # of a token and of a title
FOOT, MARGIN = 0.32, 0.08

Pairs = frozenset[tuple[int, int]]  # query, key


@dataclass(frozen=True)
class Ribbon:
    """One head on one text."""

    title: str
    tokens: Sequence[str]
    weights: np.ndarray  # query key
    gaps: frozenset[int] = frozenset()  # places before which tokens of the text are left out
    hidden: frozenset[int] = frozenset()  # tokens whose attention is not drawn; they are grey
    # What the head should find: its words are marked, the others grey, and a pair that the head
    # does not look at is dotted. None where nothing is sought.
    gold: Pairs | None = None

    @cached_property
    def full(self) -> float:
        """The weight from which on a line has its full colour.

        Twice the median over queries of their largest weight, so that a broad head can be seen.
        """
        largest = self.drawn.max(1, initial=0)
        if not (largest > 0).any():
            return 1.0
        return float(np.clip(2 * np.median(largest[largest > 0]), FULLEST, 1))

    @property
    def drawn(self) -> np.ndarray:
        """The weights that have a line."""
        shown = self.weights.astype(float).copy()
        shown[list(self.hidden)] = 0
        shown[:, list(self.hidden)] = 0
        return shown

    @property
    def rows(self) -> list[int]:
        """The line on which every token stands: a gap takes one of its own."""
        return [place + sum(gap <= place for gap in self.gaps) for place in range(len(self.tokens))]

    @property
    def lines(self) -> int:
        """How many lines the text takes."""
        return len(self.tokens) + len(self.gaps)


def read_ribbon(example: xr.DataArray, title: str, *, with_null: bool = False) -> Ribbon:
    """One head's map of an example: its tokens, where some are left out, and which are null."""
    tokens = [str(text).partition(" ")[2] for text in example["query"].values]
    places = np.atleast_1d(example.attrs.get("places", np.arange(len(tokens))))
    whole = int(example.attrs.get("tokens", len(tokens)))
    jumps = {at for at in range(1, len(tokens)) if places[at] > places[at - 1] + 1}
    null = np.flatnonzero(np.atleast_1d(example.attrs.get("null", 0))).tolist()
    return Ribbon(
        title,
        tokens,
        example.transpose("query", "key").values,
        frozenset(jumps | ({len(tokens)} if whole > int(places[-1]) + 1 else set())),
        frozenset() if with_null else frozenset(null),
    )


def draw_ribbons(ribbons: Sequence[Ribbon], columns: int) -> Figure:
    """One small drawing per head, `columns` to a row or as many as fit."""
    columns = fit_columns(min(columns, len(ribbons)), WIDE, LEAST)
    wide = page_width(WIDE * columns) / columns
    ribbons = [replace(ribbon, title=_wrap(ribbon.title, wide)) for ribbon in ribbons]
    rows = [ribbons[start : start + columns] for start in range(0, len(ribbons), columns)]
    heights = [max(map(_height, row)) for row in rows]
    whole = sum(heights) + MARGIN
    figure = Figure(figsize=(wide * columns, whole))
    top = whole
    for row, high in zip(rows, heights, strict=True):
        for column, ribbon in enumerate(row):
            _draw(
                _add_axes(figure, column * wide, top - _title(ribbon), wide, ribbon), wide, ribbon
            )
        top -= high
    return figure


def _wrap(title: str, wide: float) -> str:
    """A title with lines that a panel has room for."""
    letters = int(wide / TITLE_LETTER)
    return "\n".join(fill(line, letters, break_on_hyphens=False) for line in title.split("\n"))


def _title(ribbon: Ribbon) -> float:
    return MARGIN + TITLE * (ribbon.title.count("\n") + 1) + MARGIN


def _height(ribbon: Ribbon) -> float:
    return _title(ribbon) + PITCH * ribbon.lines + FOOT


def _add_axes(figure: Figure, left: float, top: float, wide: float, ribbon: Ribbon) -> Axes:
    """Axes in which one unit is an inch across and a token down."""
    tall = PITCH * ribbon.lines
    axes = add_axes(figure, left, top - tall, wide, tall)
    axes.set_xlim(-SIDE * wide, (1 - SIDE) * wide)
    axes.set_ylim(ribbon.lines - 0.5, -0.5)
    axes.axis("off")
    return axes


def _draw(axes: Axes, wide: float, ribbon: Ribbon) -> None:
    span = (1 - 2 * SIDE) * wide
    if ribbon.gold is None:
        _draw_lines(axes, span, ribbon, ribbon.drawn, ACCENT)
    else:
        sought = np.isin(np.arange(len(ribbon.tokens)), [query for query, _ in ribbon.gold])
        _draw_lines(axes, span, ribbon, ribbon.drawn * ~sought[:, None], FAINT)
        _draw_missed(axes, span, ribbon)
        _draw_lines(axes, span, ribbon, ribbon.drawn * sought[:, None], SECOND)
    _write_tokens(axes, span, ribbon, int(SIDE * wide / LETTER))
    axes.text(span / 2, -0.8, ribbon.title, ha="center", va="bottom", linespacing=1.2)
    axes.annotate(
        f"full colour: {ribbon.full:.2f}", (span / 2, ribbon.lines - 0.5),
        xytext=(0, -3), textcoords="offset points", ha="center", va="top", fontsize=TOKEN,
        color=FAINT, annotation_clip=False,
    )  # fmt: skip


def _draw_lines(axes: Axes, span: float, ribbon: Ribbon, weights: np.ndarray, colour: str) -> None:
    """A line from every query to every key, the darker the larger the weight."""
    strength = np.minimum(1, weights / ribbon.full)
    pairs = np.argwhere(strength > WEAK)
    rows = ribbon.rows
    starts = np.array([(0.0, rows[query]) for query, _ in pairs]).reshape(-1, 2)
    ends = np.array([(span, rows[key]) for _, key in pairs]).reshape(-1, 2)
    draw_curves(axes, curves(starts, ends), to_rgb(colour), strength[tuple(pairs.T)], scale=THIN)


def _draw_missed(axes: Axes, span: float, ribbon: Ribbon) -> None:
    for ends in sorted(ribbon.gold or ()):
        rows = [ribbon.rows[end] for end in ends]
        axes.plot((0, span), rows, color=SECOND, linewidth=0.7, linestyle=(0, (1, 2)))


def _write_tokens(axes: Axes, span: float, ribbon: Ribbon, letters: int) -> None:
    for side, (x, align) in enumerate(((-0.04, "right"), (span + 0.04, "left"))):
        marked = None if ribbon.gold is None else {pair[side] for pair in ribbon.gold}
        for place, (token, row) in enumerate(zip(ribbon.tokens, ribbon.rows, strict=True)):
            colour = _colour(place, marked, ribbon.hidden)
            weight = "bold" if colour == SECOND else "normal"
            axes.text(x, row, short(label(token), letters), ha=align, va="center", color=colour,
                      fontsize=TOKEN, fontweight=weight)  # fmt: skip
        for gap in ribbon.gaps:
            row = ribbon.rows[gap] - 1 if gap < len(ribbon.tokens) else ribbon.lines - 1
            axes.text(x, row, "⋮", ha=align, va="center", color=FAINT, fontsize=TOKEN)


def _colour(place: int, marked: set[int] | None, hidden: frozenset[int]) -> str:
    if place in hidden:
        return FAINT
    if marked is None:
        return INK
    return SECOND if place in marked else FAINT
