"""The result of a study as a labelled Dataset: built, saved as sealed NetCDF, and loaded again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.files import SHARDS, find_place, write_bytes
from headscope.results.inspection import inspect_result, require_file
from headscope.results.received import said
from headscope.seal import is_intact, seal


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
    """Write a NetCDF file with its checksum in one step.

    It is made in memory, for HDF5 ends the process when a disk is full.
    """
    write_bytes(path, seal(bytes(dataset.to_netcdf(engine="h5netcdf"))), kept=SHARDS)


def load(path: str | Path) -> xr.Dataset:
    """The Dataset of a finished run: its directory, or result.nc itself."""
    path = find_place(path)
    file = path / "result.nc" if path.is_dir() else path
    if not (file.exists() or file.is_symlink()):
        raise RunError(
            f"{path} has no result.nc yet; run the same `headscope study` command again "
            "to finish it."
        )
    try:
        require_file(file)
        if not is_intact(file):
            raise RunError("its checksum is wrong or missing, so it is damaged or of an older run")
        return _read(file)
    except Exception as error:  # h5py, h5netcdf and xarray each fail in ways of their own
        raise RunError(
            f"{file} cannot be read ({said(error)}); delete it and run the study again, "
            "which takes the finished shards."
        ) from error


def _read(file: Path) -> xr.Dataset:
    with file.open("rb") as content:
        with h5py.File(content, "r") as inner:
            inspect_result(inner, file.name)
        content.seek(0)
        return xr.load_dataset(content, engine="h5netcdf", decode_times=False)


def without_stack(dataset: xr.Dataset) -> xr.Dataset:
    """Without the dimension of stacks where there is one: a study reads the encoder alone."""
    return dataset.isel(stack=0) if dataset.sizes.get("stack") == 1 else dataset


def left_out(dataset: xr.Dataset) -> dict[str, str]:
    """What the study left out, and why."""
    return json.loads(dataset.attrs.get("left_out", "{}"))


def skipped(dataset: xr.Dataset) -> dict[str, int]:
    """How many sentences were skipped, by reason."""
    return json.loads(dataset.attrs.get("skipped", "{}"))
