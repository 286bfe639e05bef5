"""One head's card: all its measures with ranks, what it attends to and from, and its exemplars."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from headscope.explorer.baselines import baseline_of
from headscope.explorer.exemplars import exemplars_of
from headscope.explorer.head_name import head_place
from headscope.explorer.jsonable import number
from headscope.explorer.measures import Slice, further, plain_label, slices
from headscope.explorer.nearest import nearest_heads
from headscope.explorer.runs import Run
from headscope.explorer.titles import DIMENSIONS, title_of
from headscope.results.compare import measure_names

ENOUGH = 20  # words of a relation: with fewer some head is right by chance
FEW = 3  # a measure with up to so many slices is listed, one with more is drawn as bars


@lru_cache(maxsize=512)  # a visitor steps back and forth between heads
def card(run: Run, name: str) -> dict[str, Any]:
    """Everything the run knows about one head."""
    data = run.data
    layer, head = head_place(data, name)
    listed = [one for one in measure_names(data) if _slice_count(data, one) <= FEW]
    drawn = [one for one in measure_names(data) if _slice_count(data, one) > FEW]
    return {
        "name": name,
        "layer": layer,
        "head": head,
        "behaviour": behaviour_of(data, layer, head),
        "measures": [_line(data, cut, layer, head) for one in listed for cut in slices(data, one)],
        "groups": [group for one in drawn for group in _groups(data, one, layer, head)],
        "best_relation": _best_relation(data, layer, head),
        "nearest": nearest_heads(data, layer, head),
        "exemplars": exemplars_of(run, layer, head),
    }


def behaviour_of(data: xr.Dataset, layer: int, head: int) -> str | None:
    """The label that the study gave the head, None where it gives none."""
    if "behaviour" not in data:
        return None
    return str(data["behaviour"].sel(layer=layer, head=head).values.item())


def _slice_count(data: xr.Dataset, name: str) -> int:
    return int(np.prod([len(labels) for labels in further(data, name).values()]))


def _line(data: xr.Dataset, cut: Slice, layer: int, head: int) -> dict[str, Any]:
    """A slice's value at the head, its error, its rank from the top and the mean over heads."""
    values = cut.values
    own = number(values.sel(layer=layer, head=head))
    errors = None if cut.errors is None else number(cut.errors.sel(layer=layer, head=head))
    baseline = baseline_of(data, cut.name, cut.at)
    finite = values.values[np.isfinite(values.values)]
    return {
        "spec": cut.spec,
        "title": cut.title,
        "unit": title_of(cut.name).unit,
        "value": own,
        "error": errors,
        "rank": None if own is None else int((finite > own).sum()) + 1,
        "of": int(finite.size),
        "mean": number(finite.mean()) if finite.size else None,
        "baseline": None if baseline is None else baseline.as_json(),
    }


def _groups(data: xr.Dataset, name: str, layer: int, head: int) -> Iterator[dict[str, Any]]:
    """The slices of a large measure, one group for each label of all but the longest dimension."""
    axes = further(data, name)
    longest = max(axes, key=lambda axis: len(axes[axis]))
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for cut in slices(data, name):
        key = tuple(label for axis, label in cut.at.items() if axis != longest)
        line = {"label": cut.at[longest], "rare": _is_rare(data, cut)}
        groups.setdefault(key, []).append(_line(data, cut, layer, head) | line)
    for key, lines in groups.items():
        labels = ", ".join(map(plain_label, key))
        title = title_of(name).title
        yield {
            "name": name,
            "title": f"{title}: {labels}" if labels else title,
            "axis": DIMENSIONS.get(longest, longest),
            "enough": ENOUGH,
            "lines": [line for line in lines if line["value"] is not None],
        }


def _best_relation(data: xr.Dataset, layer: int, head: int) -> dict[str, Any] | None:
    """The relation with enough words for which the head is furthest above its baseline."""
    if "relation_accuracy" not in data:
        return None
    cuts = (cut for cut in slices(data, "relation_accuracy") if not _is_rare(data, cut))
    lines = [_line(data, cut, layer, head) for cut in cuts]
    known = [line for line in lines if line["value"] is not None and line["baseline"] is not None]
    best = max(known, key=_margin, default=None)
    return best if best is not None and _margin(best) > 0 else None


def _is_rare(data: xr.Dataset, cut: Slice) -> bool:
    """Whether the slice is of a relation with too few words to say anything."""
    if "relation_count" not in data or "relation" not in cut.at:
        return False
    return float(data["relation_count"].sel(relation=cut.at["relation"])) < ENOUGH


def _margin(line: dict[str, Any]) -> float:
    return line["value"] - line["baseline"]["value"]
