"""As much of what a run keeps of a head as a small file of a site holds."""

from collections.abc import Sequence

from msgspec.structs import replace

from headscope.explorer.answers.card import head_records
from headscope.explorer.answers.runs import OpenRun
from headscope.explorer.wire import Band, HeadRecords, Space
from headscope.results.measure import heads_of

PLACES = 3  # digits of a place on a map
EXAMPLES, TOP_EXAMPLES = 2, 5  # of a band, and of the very top
EDGES, LEAST = 3, 20  # weights of a row, and the smallest in thousandths
TOKENS = 20  # of a list


def thinned(found: HeadRecords) -> HeadRecords:
    """As much of a head as a small file holds."""
    places = ("component1", "component2", "x", "y")
    return replace(
        found,
        tops=[replace(one, tokens=one.tokens[:TOKENS]) for one in found.tops],
        raises=found.raises[:TOKENS],
        lowers=found.lowers[:TOKENS],
        spaces=[_rounded(space, places, PLACES) for space in found.spaces],
        bands=[_thin(band) for band in found.bands],
    )


def _rounded(space: Space, names: Sequence[str], digits: int) -> Space:
    """The same with numbers as exact as they are drawn."""
    parts: dict[str, list[float]] = {}
    for name in names:
        parts[name] = [float(f"{place:.{digits}g}") for place in getattr(space, name)]
    return replace(space, **parts)


def _thin(band: Band) -> Band:
    """The first examples, and the largest weights of every row, as far as they can be seen."""
    most = TOP_EXAMPLES if band.name == "top" else EXAMPLES
    examples = [
        replace(one, rows=[_largest(row) for row in one.rows]) for one in band.examples[:most]
    ]
    return replace(band, examples=examples)


def _largest(row: list[int]) -> list[int]:
    pairs = zip(row[0 : 2 * EDGES : 2], row[1 : 2 * EDGES : 2], strict=True)
    return [part for key, weight in pairs if weight >= LEAST for part in (key, weight)]


def thin_inputs(opened: OpenRun) -> list[str]:
    """The inputs that thinned records of any head name."""
    if not opened.has_records:
        return []
    named: set[int] = set()
    for head in heads_of(opened.data):
        records = thinned(head_records(opened, str(head)))
        named |= {example.input for band in records.bands for example in band.examples}
        named |= set(records.samples.input)
    return [str(number) for number in sorted(named)]
