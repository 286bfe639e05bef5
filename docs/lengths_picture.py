"""Draw what statistics cost on a GPU at every length of the inputs: docs/images/lengths.svg.

python -m docs.lengths_picture

The numbers are those of the table that `python -m benchmarks.gpu_lengths` printed.
"""

import re
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from headscope.plots import style, to_svg
from headscope.theme import INK, SERIES

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "benchmarks" / "gpu" / "gpu_lengths.txt"
PICTURE = ROOT / "docs" / "images" / "lengths.svg"
LINE = re.compile(
    r"× (\d+) tokens, 135M.* ([\d.]+) s +([\d.]+) GB +([\d.]+) s +([\d.]+) GB +([\d.]+) ×"
)
AIM = 2


class Row(NamedTuple):
    """One length."""

    tokens: int
    ratio: float
    forward_memory: float  # GB
    memory: float  # GB


def read_rows(table: str) -> list[Row]:
    """The lines of the table that are of one network."""
    found = LINE.findall(table)
    return [Row(int(n), float(ratio), float(before), float(after))
            for n, _, before, _, after, ratio in found]  # fmt: skip


def draw(rows: list[Row]) -> Figure:
    """Ratio and memory, side by side."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    ratio, memory = figure.subplots(1, 2)
    tokens = [row.tokens for row in rows]
    ratio.plot(tokens, [row.ratio for row in rows], "o-", color=SERIES[0], label="study")
    ratio.axhline(1, color=INK, lw=0.8, ls=":", label="forward pass")
    ratio.axhline(AIM, color=SERIES[1], lw=0.8, ls="--", label="aim for long inputs")
    ratio.set(ylim=(0, 2.5), ylabel="times the forward pass")
    memory.plot(tokens, [row.memory for row in rows], "o-", color=SERIES[0], label="study")
    memory.plot(tokens, [row.forward_memory for row in rows], ":", color=INK, label="forward pass")
    memory.set(ylim=(0, 1.1 * memory.get_ylim()[1]), ylabel="peak memory, GB")
    for axes in (ratio, memory):
        axes.set_xscale("log", base=2)
        axes.set_xticks(tokens, [f"{count:,}" for count in tokens])
        axes.tick_params(axis="x", rotation=30)
        axes.set_xlabel("tokens of an input")
        axes.legend(frameon=False)
    return figure


def main() -> None:
    """Write the picture."""
    with style("lengths"):
        PICTURE.write_text(to_svg(draw(read_rows(TABLE.read_text("utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    main()
