"""What a head's value is to be held against: the baseline that the same run measured."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr


@dataclass(frozen=True)
class Baseline:
    """A number and where it comes from."""

    value: float
    name: str

    def as_json(self) -> dict[str, Any]:
        """Plain fields."""
        return asdict(self)


def baseline_of(data: xr.Dataset, measure: str, at: dict[str, str]) -> Baseline | None:
    """The baseline of one slice of a measure, None where the study has none."""
    if measure == "relation_accuracy":
        return _best_offset(data, at)
    if measure == "coref_accuracy":
        return _best_system(data, at)
    for name, said in _CANDIDATES.get(measure, ()):
        value = _lookup(data, name, at)
        if value is not None:
            return Baseline(value, said)
    return None


_CANDIDATES: dict[str, tuple[tuple[str, str], ...]] = {
    "dependency_alignment": (("dependency_baseline", "every pair weighs the same"),),
    "pos_to": (("pos_to_even", "even attention"), ("tag_frequency", "frequency of the tag")),
    "pos_from": (("pos_from_even", "even attention"), ("tag_frequency", "frequency of the tag")),
    "deprel_to": (("deprel_to_even", "even attention"), ("deprel_frequency", "frequency")),
    "tree_accuracy": (("tree_baseline", "joining neighbours"),),
    "entropy": (("uniform_entropy", "uniform attention"),),
    "entropy_from_cls": (("uniform_entropy", "uniform attention"),),
}


def _lookup(data: xr.Dataset, name: str, at: dict[str, str]) -> float | None:
    if name not in data and name not in data.attrs:
        return None
    if name not in data:
        return float(data.attrs[name])
    array = _pick(data[name], at)
    if array.ndim or not np.isfinite(array):
        return None
    return float(array)


def _best_offset(data: xr.Dataset, at: dict[str, str]) -> Baseline | None:
    names = (
        "offset_accuracy_scored",
        "offset_accuracy",
    )  # on the words a head could see, or on all
    name = next((name for name in names if name in data), None)
    if name is None:
        return None
    by_offset = _pick(data[name], at)
    if by_offset.ndim != 1 or not np.isfinite(by_offset).any():
        return None
    axis = by_offset.dims[0]
    best = by_offset.isel({axis: int(np.nanargmax(by_offset.values))})
    offset = f"{int(best[axis]):+d}".replace("-", "−")
    return Baseline(float(best), f"always the word at offset {offset}")


def _best_system(data: xr.Dataset, at: dict[str, str]) -> Baseline | None:
    if "coref_baseline" not in data:
        return None
    by_system = _pick(data["coref_baseline"], at)
    if by_system.dims != ("system",) or not np.isfinite(by_system).any():
        return None
    best = by_system.isel(system=int(np.nanargmax(by_system.values)))
    return Baseline(float(best), str(best["system"].values).replace("_", " "))


def _pick(array: xr.DataArray, at: dict[str, str]) -> xr.DataArray:
    """Select the labels that the array knows."""
    for axis, label in at.items():
        places = [str(known) for known in array[axis].values] if axis in array.dims else []
        if label in places:
            array = array.isel({axis: places.index(label)})
    return array
