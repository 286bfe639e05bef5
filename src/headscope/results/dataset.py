"""The result of a study as a labelled Dataset: built, checked, saved as NetCDF and loaded again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.files import SHARDS, find_place, write_atomically


def build(variables: Mapping[str, xr.DataArray], attributes: Mapping[str, Any]) -> xr.Dataset:
    """A Dataset of the variables; a single number becomes an attribute."""
    single = {name: array.item() for name, array in variables.items() if array.ndim == 0}
    arrays = {name: array for name, array in variables.items() if array.ndim > 0}
    dataset = xr.Dataset(arrays)
    dataset.attrs = {**attributes, **single}
    return check(dataset)


def check(dataset: xr.Dataset) -> xr.Dataset:
    """Refuse a result in which a weight that is not finite has spoilt a sum."""
    for name, array in dataset.data_vars.items():
        if array.dtype.kind == "f" and np.isinf(array.values).any():
            raise RunError(
                f"{name} is infinite for some head: the model gave weights that are not numbers. "
                "Load it with dtype float32 and run the study again in a new directory."
            )
    return dataset


def save(dataset: xr.Dataset, path: Path) -> None:
    """Write a NetCDF file in one step."""
    with write_atomically(path, kept=SHARDS) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")


def load(path: str | Path) -> xr.Dataset:
    """The Dataset of a finished run: its directory, or result.nc itself."""
    path = find_place(path)
    file = path / "result.nc" if path.is_dir() else path
    if not file.exists():
        raise RunError(
            f"{path} has no result.nc yet; run the same `headscope study` command again "
            "to finish it."
        )
    try:
        with file.open("rb") as content:
            return xr.load_dataset(content, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise RunError(
            f"{file} cannot be read ({error}); delete it and run the study again, "
            "which takes the finished shards."
        ) from error


def without_stack(dataset: xr.Dataset) -> xr.Dataset:
    """Without the dimension of stacks where there is one: a study reads the encoder alone."""
    return dataset.isel(stack=0) if dataset.sizes.get("stack") == 1 else dataset


def left_out(dataset: xr.Dataset) -> dict[str, str]:
    """What the study left out, and why."""
    return json.loads(dataset.attrs.get("left_out", "{}"))


def skipped(dataset: xr.Dataset) -> dict[str, int]:
    """How many sentences were skipped, by reason."""
    return json.loads(dataset.attrs.get("skipped", "{}"))
