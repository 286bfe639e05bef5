"""Syntax or position? How much of what heads do position explains, and how much relations of words.

Classes of words predict much of what relations do, so the order of features matters: right after
position syntax explains all that it can, entered last only what nothing else has.

```
L4H4  ██████████ position  ▓▓▓▓▓ syntax or class beyond it  ░ only syntax
```
"""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.plots import NARROW, page_width
from headscope.results.claims import Evidence, Replicates, claim, on_all
from headscope.results.held_out import hold_out
from headscope.results.intervals import SHARE
from headscope.results.measure import heads_of
from headscope.results.ranks import top_heads
from headscope.studies.study import Figure
from headscope.theme import ROLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SYNTAX = "syntax_after_position"
SHOWN = 16  # heads of the figure
CLEARLY = 0.05  # of a head's attention
WIDTH, ROW, FOOT = 6.4, 0.2, 0.6  # inches


@claim(
    "Some head follows syntax beyond what position predicts.",
    "asked by the paper, without a number",
    above=CLEARLY,
    of=SHARE,
)
def some_head_follows_syntax(data: Replicates) -> Evidence:
    """Largest share of a head's attention that relations explain right after position, the head
    chosen on other documents."""
    elsewhere = hold_out(data.with_sums(SYNTAX), SYNTAX)
    layer, head, share = top_heads(on_all(data[SYNTAX]), 1)[0]
    words = f"a head chosen on other documents; {share:.3f} in {name_head(layer, head)}"
    return Evidence(elsewhere.replicates, words)


@claim(
    "Most of what syntax adds to position, classes of words predict as well.",
    "asked by the paper, without a number",
    below=0.5,
    of=SHARE,
)
def classes_predict_most_of_it(data: Replicates) -> Evidence:
    """What only syntax explains / what it explains right after position, means over heads."""
    only = data.at("explained_only", explained_with="syntax").mean(("layer", "head"))
    after = data[SYNTAX].mean(("layer", "head"))
    position = data.at("explained_by", explained_with="position").mean(("layer", "head"))
    words = (
        f"position explains {float(on_all(position)):.3f} of the mean head's attention, syntax "
        f"{float(on_all(after)):.3f} more, {float(on_all(only)):.3f} of it alone"
    )
    return Evidence(only / after, words)


def draw_syntax(result: xr.Dataset) -> "Drawing":
    """The heads that syntax tells most about, each as a bar of three shares."""
    from matplotlib.figure import Figure as Drawing

    position = result["explained_by"].sel(explained_with="position").values.ravel()
    after = result[SYNTAX].values.ravel()
    only = result["explained_only"].sel(explained_with="syntax").values.ravel()
    names = np.array([str(head) for head in heads_of(result)])
    known = np.flatnonzero(np.isfinite(after))
    shown = known[np.argsort(-after[known], kind="stable")][:SHOWN]
    wide = page_width(WIDTH)
    columns = 3 if wide >= NARROW else 1
    high = FOOT + ROW * (len(shown) + 3 // columns)
    drawing = Drawing(figsize=(wide, high), layout="constrained")
    axes = drawing.subplots()
    alone = np.clip(only, 0, np.maximum(after, 0))
    start = np.zeros(len(shown))
    for label, group, shares in (
        ("position", "position", position),
        ("syntax or class beyond it", "word class", after - alone),
        ("only syntax", "syntax", alone),
    ):
        widths = np.maximum(shares[shown], 0)
        axes.barh(names[shown], widths, left=start, color=ROLES[group].light, label=label)
        start += widths
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="explained share of the head's attention")
    drawing.legend(loc="outside lower center", ncols=columns, fontsize="small")
    return drawing


CLAIMS = (some_head_follows_syntax, classes_predict_most_of_it)
FIGURE = Figure(
    "syntax",
    "Syntax or position?",
    "The heads that relations between words tell most about. Position: what offsets and distance "
    "explain of the head's attention beside the sink. Beyond it: what relations add right after "
    "position; only syntax: what is lost without relations when classes of words and all other "
    "features stay. All on documents that nothing was fitted to.",
    (SYNTAX, "explained_by", "explained_only"),
    draw_syntax,
)
