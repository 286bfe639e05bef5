"""The map of heads: what every head of a run looks at, at a glance.

Report, explorer and site draw it from the same answer, which follows from the portraits of the run.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.cost import cost_sentence
from headscope.results.describe import PORTRAIT, Description, read_description
from headscope.results.evidence import PROFILE
from headscope.results.measure import GRID, RoleGroup, heads_of, number
from headscope.results.replicates import margin_of
from headscope.wording import counted

# What the heads of a group do, of one head and of several; {} is what a sink is called.
GROUP_WORDS: Mapping[RoleGroup, tuple[str, str]] = {
    "sink": ("rests on {}", "rest on {}"),
    "position": ("looks at near or fixed positions", "look at near or fixed positions"),
    "marks": ("looks at punctuation or separators", "look at punctuation or separators"),
    "repetition": ("looks back to repetitions", "look back to repetitions"),
    "token": ("looks for kinds of tokens", "look for kinds of tokens"),
    "word class": ("looks for word classes", "look for word classes"),
    "syntax": ("follows syntax", "follow syntax"),
    "even": ("spreads evenly or widely", "spread evenly or widely"),
    "unnamed": ("has no name yet", "have no name yet"),
}
NO_TELLING = ("even", "unnamed")  # groups whose sentences tell little


@dataclass(frozen=True)
class MapCell:
    """A head on the map."""

    head: str  # L4H2
    layer: int
    number: int
    name: str  # "previous token"
    group: RoleGroup  # by which it is coloured
    share: float | None  # the number that belongs to the name; None where there is none
    explained: float | None  # of its attention, by its portrait; None of an even head
    margin: float | None  # half of the 95 % interval of that
    sentence: str
    bars: tuple[tuple[float, ...], ...]  # mean weight by ink and place; nothing in older runs
    cost: str | None = None  # what replacing the head by its mean costs, where that was measured


@dataclass(frozen=True)
class MapName:
    """A name in the legend, and how many heads have it."""

    name: str
    group: RoleGroup
    heads: int


@dataclass(frozen=True)
class HeadMap:
    """All heads of a run in the order of layers and heads, and what is said of them together."""

    layers: tuple[int, ...]
    heads: int  # of a layer
    summary: str
    names: tuple[MapName, ...]
    seen: tuple[int, ...]  # places of the bars (`evidence.PLACES`) that any head can look at
    cells: tuple[MapCell, ...]

    def telling(self, most: int = 10) -> list[MapCell]:
        """Of every name the head that is explained best, the best explained first."""
        best: dict[str, MapCell] = {}
        for cell in sorted(self.cells, key=lambda cell: -(cell.explained or 0.0)):
            if cell.group not in NO_TELLING:
                best.setdefault(cell.name, cell)
        return list(best.values())[:most]


def map_heads(result: xr.Dataset) -> HeadMap | None:
    """The map of a run; None where it has no portraits."""
    if PORTRAIT not in result:
        return None
    sentences, stored, explained = (
        result[name].transpose(*GRID).values.ravel().tolist()
        for name in ("description", PORTRAIT, "explained")
    )
    margin = margin_of(result, "explained")
    margins = [None] * len(stored) if margin is None else margin.transpose(*GRID).values.ravel()
    bars = bars_of(result)
    cells: list[MapCell] = []
    sinks: set[str] = set()
    for place, head in enumerate(heads_of(result)):
        description = read_description(head, str(sentences[place]), str(stored[place]))
        if description.group == "sink":
            sinks.add(sink_of(description))
        cells.append(
            MapCell(
                str(head),
                *head,
                description.name,
                description.group,
                number_of(description),
                number(explained[place]),
                None if margins[place] is None else number(margins[place]),
                description.sentence,
                () if bars is None else tuple(map(tuple, bars[place].tolist())),
                cost_sentence(result, head),
            )
        )
    return HeadMap(
        layers=tuple(result["layer"].values.tolist()),
        heads=result.sizes["head"],
        summary=summarise(cells, sinks),
        names=name_counts(cells),
        seen=() if bars is None else tuple(np.flatnonzero(bars.any((0, 1))).tolist()),
        cells=tuple(cells),
    )


def bars_of(result: xr.Dataset) -> Float[np.ndarray, "head ink place"] | None:
    """The mean weight of every head by ink and place; None of a run that has none."""
    if PROFILE not in result:
        return None
    bars = result[PROFILE].transpose(*GRID, "ink", "ink_place").values
    return np.nan_to_num(bars.reshape(-1, *bars.shape[2:]))


def number_of(description: Description) -> float | None:
    """The number that belongs to the name of a head: the share that goes where it says."""
    if description.group in NO_TELLING:
        return None
    is_sink = description.group == "sink"
    values = [fact.value for fact in description.facts if (fact.group == "sink") == is_sink]
    return values[0] if values else None


def sink_of(description: Description) -> str:
    """What a head rests on."""
    words = [fact.words for fact in description.facts if fact.group == "sink"]
    return words[0].removeprefix("rests on ") if words else "null tokens"


def name_counts(cells: list[MapCell]) -> tuple[MapName, ...]:
    """The names of heads, group by group, the most frequent first."""
    counts: Counter[tuple[str, RoleGroup]] = Counter((cell.name, cell.group) for cell in cells)
    groups = list(GROUP_WORDS)
    names = [MapName(name, group, count) for (name, group), count in counts.items()]
    return tuple(sorted(names, key=lambda name: (groups.index(name.group), -name.heads, name.name)))


def summarise(cells: list[MapCell], sinks: set[str]) -> str:
    """How many heads do what, and how much of a middling head is explained."""
    counts = Counter(cell.group for cell in cells)
    sink = sinks.pop() if len(sinks) == 1 else "null tokens"
    parts: list[str] = []
    for group, (one, several) in GROUP_WORDS.items():
        if counts[group] and group != "unnamed":
            words = one if counts[group] == 1 else several
            parts.append(f"{counts[group]} {words.replace('{}', sink)}")
    one, several = GROUP_WORDS["unnamed"]
    unnamed = f"{counts['unnamed']} {one if counts['unnamed'] == 1 else several}"
    tally = f"Of {counted(len(cells), 'heads')} {', '.join(parts) or 'none has a name'}; {unnamed}."
    shares = [cell.explained for cell in cells if cell.explained is not None]
    if not shares:
        return tally
    middle = float(np.median(shares))
    return (
        f"{tally} On texts that they were not fitted to, the portraits explain "
        f"{math.floor(100 * middle + 0.5)} % of the middle head’s attention."
    )
