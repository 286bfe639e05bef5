"""A Dataset as the bytes of a NetCDF file, made by h5py alone.

xarray and h5netcdf look every dimension up again for every variable, which takes half a second for
the result of a study. The layout is the one that the NetCDF library reads: a dimension is a scale
of HDF5, with the values of its coordinate if it has one, and every axis of a variable is attached
to the scale of its dimension.
"""

import io
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
import xarray as xr
from xarray.conventions import cf_encoder

WITHOUT_VALUES = "This is a netCDF dimension but not a netCDF variable. {size:>10}"
PROPERTIES = "version=2,h5py={}"
_TEXT = h5py.string_dtype("utf-8")


def to_netcdf(dataset: xr.Dataset) -> bytes:
    """The content of the file; `xarray.load_dataset` gives the same Dataset back."""
    variables, attributes = cf_encoder(dict(dataset.variables), dict(dataset.attrs))
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", track_order=True) as file:
        file.attrs["_NCProperties"] = PROPERTIES.format(h5py.__version__)
        _write_attributes(file, attributes)
        scales = _make_scales(file, dataset.sizes, variables)
        for name, variable in variables.items():
            _write_variable(file, name, variable, scales)
    return buffer.getvalue()


def _make_scales(
    file: h5py.File, sizes: Mapping[Any, int], variables: Mapping[Any, xr.Variable]
) -> dict[Any, h5py.Dataset]:
    scales: dict[Any, h5py.Dataset] = {}
    for number, (dim, size) in enumerate(sizes.items()):
        if dim in variables:
            scales[dim] = _create(file, dim, variables[dim])
            scales[dim].make_scale(str(dim))
        else:
            scales[dim] = file.create_dataset(dim, (size,), ">f4")
            scales[dim].make_scale(WITHOUT_VALUES.format(size=size))
        scales[dim].attrs["_Netcdf4Dimid"] = np.int32(number)
    return scales


def _write_variable(
    file: h5py.File, name: str, variable: xr.Variable, scales: Mapping[Any, h5py.Dataset]
) -> None:
    if name in scales:
        return
    made = _create(file, name, variable)
    for axis, dim in enumerate(variable.dims):
        h5py.h5ds.attach_scale(made.id, scales[dim].id, axis)


def _create(file: h5py.File, name: str, variable: xr.Variable) -> h5py.Dataset:
    values = variable.values
    is_text = values.dtype.kind in "UOS"
    made = file.create_dataset(
        name, data=values.astype(object) if is_text else values, dtype=_TEXT if is_text else None
    )
    _write_attributes(made, variable.attrs)
    return made


def _write_attributes(place: h5py.File | h5py.Dataset, attributes: Mapping[Any, Any]) -> None:
    for name, value in attributes.items():
        if name == "_FillValue":
            value = np.atleast_1d(value)  # as the NetCDF library has it
        place.attrs[name] = value
