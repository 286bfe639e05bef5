"""The measures of a result: every variable over layers and heads, one slice at a time.

A slice is written NAME~LABEL~LABEL with one label for each further dimension, in their order:
`entropy`, `pos_to~NOUN`, `relation_accuracy~dependent_to_head~nsubj`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from headscope.explorer.baselines import baseline_of
from headscope.explorer.jsonable import numbers
from headscope.explorer.published import published_of
from headscope.explorer.refusal import RefusedError
from headscope.explorer.titles import DIMENSIONS, title_of
from headscope.results.compare import GRID, measure_names

MARK = "~"


@dataclass(frozen=True)
class Slice:
    """One layer × head picture: the values, their standard errors and how they are chosen."""

    name: str
    at: dict[str, str]  # label by further dimension
    values: xr.DataArray  # layer head
    errors: xr.DataArray | None

    @property
    def spec(self) -> str:
        """The slice as it is written in a URL."""
        return MARK.join((self.name, *self.at.values()))

    @property
    def title(self) -> str:
        """The measure and what it is sliced at."""
        labels = ", ".join(map(plain_label, self.at.values()))
        title = title_of(self.name).title
        return f"{title}: {labels}" if labels else title


def plain_label(label: str) -> str:
    """A coordinate's label for readers."""
    return label.replace("_", " ")


def further(data: xr.Dataset, name: str) -> dict[str, list[str]]:
    """The dimensions beside layer and head, with the labels that have a value, as text."""
    known = data[name].notnull()
    axes: dict[str, list[str]] = {}
    for dim in (dim for dim in known.dims if dim not in GRID):
        present = known.any([other for other in known.dims if other != dim]).values
        labels = [str(label) for label in data[name][dim].values]
        axes[str(dim)] = [label for label, has in zip(labels, present, strict=True) if has]
    return axes


def cut(data: xr.Dataset, spec: str) -> Slice:
    """The slice that a spec names, or a RefusedError that lists what there is."""
    name, *labels = spec.split(MARK)
    if name not in measure_names(data):
        raise RefusedError(
            404, f"There is no measure of that name; there are {', '.join(measure_names(data))}."
        )
    axes = further(data, name)
    if len(labels) != len(axes):
        raise RefusedError(
            404, f"{name} needs a label for each of: {', '.join(axes) or 'nothing'}."
        )
    for label, (axis, known) in zip(labels, axes.items(), strict=True):
        if label not in known:
            raise RefusedError(404, f"{name} has no such {axis}; it has {', '.join(known)}.")
    return _slice(data, name, dict(zip(axes, labels, strict=True)))


def slices(data: xr.Dataset, name: str) -> Iterator[Slice]:
    """Every slice of a measure."""
    axes = further(data, name)
    for labels in product(*axes.values()):
        yield _slice(data, name, dict(zip(axes, labels, strict=True)))


def catalogue(data: xr.Dataset) -> list[dict[str, Any]]:
    """What the menus offer."""
    return [_entry(data, name) for name in measure_names(data)]


def picture(data: xr.Dataset, study: str, spec: str) -> dict[str, Any]:
    """One slice with everything that the overview shows beside it."""
    chosen = cut(data, spec)
    title = title_of(chosen.name, str(data[chosen.name].attrs.get("description", "")))
    baseline = baseline_of(data, chosen.name, chosen.at)
    return {
        "spec": chosen.spec,
        "title": chosen.title,
        "meaning": title.meaning,
        "unit": title.unit,
        "layers": [int(layer) for layer in data["layer"].values],
        "heads": [int(head) for head in data["head"].values],
        "values": numbers(chosen.values.values),
        "errors": None if chosen.errors is None else numbers(chosen.errors.values),
        "profile": profile(data, chosen),
        "baseline": None if baseline is None else baseline.as_json(),
        "published": published_of(study, chosen.name, chosen.at),
    }


def profile(data: xr.Dataset, chosen: Slice) -> dict[str, Any]:
    """One value a layer: pooled where the study pooled, otherwise the mean over heads."""
    pooled = f"{chosen.name}_by_layer"
    if pooled not in data:
        with np.errstate(invalid="ignore"):
            mean = chosen.values.mean("head", skipna=True)
        return {"values": numbers(mean.values), "errors": None, "pooled": False}
    errors = _at(data, f"{pooled}_se", chosen.at)
    values = _at(data, pooled, chosen.at)
    assert values is not None
    return {
        "values": numbers(values.values),
        "errors": None if errors is None else numbers(errors.values),
        "pooled": True,
    }


def _entry(data: xr.Dataset, name: str) -> dict[str, Any]:
    title = title_of(name, str(data[name].attrs.get("description", "")))
    axes = [
        {"name": axis, "title": DIMENSIONS.get(axis, axis), "labels": labels}
        for axis, labels in further(data, name).items()
    ]
    return {
        "name": name,
        "title": title.title,
        "meaning": title.meaning,
        "unit": title.unit,
        "errors": f"{name}_se" in data,
        "axes": axes,
    }


def _slice(data: xr.Dataset, name: str, at: dict[str, str]) -> Slice:
    values = _at(data, name, at)
    assert values is not None
    return Slice(name, at, values.transpose(*GRID), _at(data, f"{name}_se", at))


def _at(data: xr.Dataset, name: str, at: dict[str, str]) -> xr.DataArray | None:
    """The array at labels given as text, whatever type the coordinate has."""
    if name not in data:
        return None
    array = data[name]
    for axis, label in at.items():
        places = [str(known) for known in array[axis].values]
        array = array.isel({axis: places.index(label)})
    return array.transpose(*(dim for dim in GRID if dim in array.dims))
