"""Lines of attention on paper."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.path import Path

from headscope.views.lines import opacity, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]


def draw_curves(
    axes: "Axes",
    points: np.ndarray,
    color: np.ndarray | tuple[float, float, float],
    strength: np.ndarray,
    *,
    heads: int = 1,
    scale: float = 1.0,
) -> None:
    """Curves (line 4 2) whose opacity and width say how strong they are, the strongest on top.

    `heads` lie over each other; `scale` makes all of them thinner.
    """
    order = np.argsort(strength, kind="stable")
    colors = np.empty((len(order), 4))
    colors[:, :3] = np.broadcast_to(color, (len(order), 3))[order]
    colors[:, 3] = opacity(strength[order], heads)
    paths = [Path(four, _CURVE) for four in points[order]]
    widths = scale * width(strength[order])
    axes.add_collection(
        PathCollection(paths, facecolors="none", edgecolors=colors, linewidths=widths)
    )
