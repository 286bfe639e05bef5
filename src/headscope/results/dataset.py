"""The result of a study as a labelled Dataset: built, saved as sealed NetCDF, and loaded again.

The file is written and read by h5py alone: xarray and h5netcdf look every dimension up again for
every variable, which takes half a second for the result of a study. The layout is the one that the
NetCDF library reads: a dimension is a scale of HDF5, with the values of its coordinate if it has
one, and every axis of a variable is attached to the scale of its dimension.

What a result must look like: checked once, when a run is opened, and before one is saved.

Everything that shows a result trusts what is checked here: the axes of the heads, the kind and the
dimensions of every variable, its measure, and what is said of the whole.
"""

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import h5py
import numpy as np
import xarray as xr
from xarray.conventions import cf_encoder

from headscope.errors import RunError
from headscope.files import SHARDS, find_place, is_intact, seal, write_bytes
from headscope.results.inspection import (
    INTEGER,
    check_text,
    inspect_result,
    named,
    read_json,
    require_file,
)
from headscope.results.measure import (
    ATTRIBUTE,
    DIVERGENCE,
    GRID,
    MAP,
    Measure,
    heads_of,
    measure_names,
    measure_of,
    variable_along,
)
from headscope.results.statements import ATTRIBUTE as STATEMENTS
from headscope.results.statements import Statements, read_statements
from headscope.wording import said

MOST = 1e30  # of a number: its square can still be computed
HEADS = 32_768  # layers × heads; the largest open models have 16,128
LABELS = 2_000  # slices of all measures; a treebank with language-specific tags has 500
_JSON: dict[str, Any] = {
    "left_out": dict[str, str],
    "skipped": dict[str, int],
    "words": dict[str, int],
    "copies": dict[str, int],
    "portrait_texts": dict[str, int],
    "options": dict[str, Any],
}
_TEXTS = ("study", "model", "corpus", "shown_first")
_NUMBERS = (
    "is_causal",
    "sentences",
    "tokens",
    "mean_tokens",
    "shared_tokens",
    "documents",
    "groups",
)
# Dimensions of the variables that are read by name wherever a result is shown.
_SHAPES = {
    "behaviour": GRID,
    "portrait": GRID,
    "explained": GRID,
    "description": GRID,
    "explained_by": (*GRID, "explained_with"),
}
_OF_MEASURE = {"_se": (), "_by_layer": ("head",), "_by_layer_se": ("head",)}  # dimensions less
_ARE_NUMBERS = ("_numerator", "_denominator", "_se", "_q", "_even", "_untrained")  # ends of names
WITHOUT_VALUES = "This is a netCDF dimension but not a netCDF variable. {size:>10}"
PROPERTIES = "version=2,h5py={}"
KEPT_BY_FORMAT = (
    "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_NCProperties",
)  # fmt: skip
_TEXT = h5py.string_dtype("utf-8")


def build(variables: Mapping[str, xr.DataArray], attributes: Mapping[str, Any]) -> xr.Dataset:
    """A Dataset of the variables; a single number becomes an attribute."""
    single = {name: array.item() for name, array in variables.items() if array.ndim == 0}
    arrays = {name: array for name, array in variables.items() if array.ndim > 0}
    dataset = xr.Dataset(arrays)
    dataset.attrs = {**attributes, **single}
    return check(dataset)


def check(dataset: xr.Dataset) -> xr.Dataset:
    """Refuse a result in which a weight that is not finite has spoilt a sum."""
    for name in dataset.data_vars:
        array = dataset.variables[name]
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
    write_bytes(path, seal(to_netcdf(dataset)), kept=SHARDS)


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
    except MemoryError as error:  # the file may be sound: nobody should delete it
        raise RunError(
            f"{file} cannot be read, because the memory ran out; close other programs and "
            "try again."
        ) from error
    except Exception as error:  # h5py, h5netcdf and xarray each fail in ways of their own
        raise RunError(
            f"{file} cannot be read ({said(error)}); delete it and run the study again, "
            "which takes the finished shards."
        ) from error


def _read(file: Path) -> xr.Dataset:
    with file.open("rb") as content, h5py.File(content, "r") as inner:
        inspect_result(inner, cast(BinaryIO, content), file.name)
        if not is_ours(inner):
            raise RunError("it was not written by Headscope")
        return from_netcdf(inner)


def without_stack(dataset: xr.Dataset) -> xr.Dataset:
    """Without the dimension of stacks where there is one: a study reads the encoder alone."""
    return dataset.isel(stack=0) if dataset.sizes.get("stack") == 1 else dataset


def read_attribute(dataset: xr.Dataset, name: str) -> Any:
    """An attribute that holds JSON; an empty object where the result lacks it."""
    return read_json(dataset.attrs.get(name, "{}"), _JSON[name], f"{name} of the result")


def check_result(result: xr.Dataset) -> xr.Dataset:
    """The result itself; a RunError that says what no result has."""
    _check_grid(result)
    for name, array in result.variables.items():
        _check_variable(named(name), array)
    _check_attributes(result)
    _check_measures(result)
    _check_shapes(result)
    if STATEMENTS in result.attrs:
        _check_heads(read_statements(result), result)
    return result


def _check_grid(result: xr.Dataset) -> None:
    for dim in GRID:
        if dim not in result.dims or dim not in result.coords:
            raise RunError(f"The result has no {dim}s.")
        numbers = result[dim].values
        if numbers.dtype.kind not in "iu" or not len(numbers) or int(numbers[0]) < 0:
            raise RunError(f"The {dim}s of the result are not numbers from 0.")
        if (np.diff(numbers.astype(np.int64)) <= 0).any():
            raise RunError(f"The {dim}s of the result are not in order, each once.")
    if result.sizes["layer"] * result.sizes["head"] > HEADS:
        raise RunError(f"The result has more than {HEADS:,} heads, more than any model.")
    if int(result["head"][-1]) != result.sizes["head"] - 1:
        raise RunError("The heads of the result are not counted from 0.")


def _check_variable(name: str, array: xr.Variable) -> None:
    kind = array.dtype.kind
    if kind not in "biufUO" or (kind in "iuf" and array.dtype.itemsize > 8):
        raise RunError(f"{name} of the result holds neither numbers nor texts.")
    if kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > INTEGER:
        raise RunError(f"{name} of the result has a number of too many digits.")
    if kind not in "iuf" and name.endswith(_ARE_NUMBERS):
        raise RunError(f"{name} of the result are not numbers.")
    if kind == "f" and (np.abs(array.values) > MOST).any():
        raise RunError(f"{name} of the result is infinite, or as good as that, for some head.")
    if kind == "O":
        for text in array.values.flat:
            if not isinstance(text, str):
                raise RunError(f"{name} of the result holds neither numbers nor texts.")
            check_text(text, name)


def _check_attributes(result: xr.Dataset) -> None:
    attributes = result.attrs
    for name, value in attributes.items():
        if not isinstance(value, str | int | float | np.number | np.bool_):
            raise RunError(f"The attribute {named(name)} of the result is no text and no number.")
        if isinstance(value, np.integer) and abs(int(value)) > INTEGER:
            raise RunError(f"The attribute {named(name)} of the result has too many digits.")
    for name in _TEXTS:
        if not isinstance(attributes.get(name, ""), str):
            raise RunError(f"The {name} of the result is not a text.")
        check_text(attributes.get(name, ""), name)
    for name in _NUMBERS:
        value = attributes.get(name, 0)
        if isinstance(value, str) or not 0 <= float(value) < math.inf:
            raise RunError(f"{name} of the result is not a number from 0.")
    for name in _JSON:
        read_attribute(result, name)


def _check_measures(result: xr.Dataset) -> None:
    variables = result.variables
    for name in result.data_vars:
        if ATTRIBUTE in variables[name].attrs:
            _check_measure(result, measure_of(result, str(name)), str(name))
    slices = 0
    for name in measure_names(result):
        slices += math.prod(size for dim, size in variables[name].sizes.items() if dim not in GRID)
        _check_labels(result, name)
        _check_derived(result, name)
    most = LABELS + 4 * result.sizes["layer"] * result.sizes["head"]  # by the heads that feed one
    if slices > most:
        raise RunError(f"The measures of the result have {slices:,} slices, more than {most:,}.")


def _check_measure(result: xr.Dataset, measure: Measure, name: str) -> None:
    if measure.name != name:
        raise RunError(f"{named(name)} has the measure of {named(measure.name)}.")
    for baseline in measure.baselines:
        value = result.attrs.get(baseline.variable, 0.0)
        array = result[baseline.variable] if baseline.variable in result else xr.DataArray(0.0)
        over = baseline.best_over
        known = isinstance(value, int | float | np.number) and array.dtype.kind in "iuf"
        if (
            not known
            or baseline.variable == name
            or (over in array.dims and over not in array.coords)
        ):
            raise RunError(f"The baseline of {named(name)} is not a number.")


def _check_labels(result: xr.Dataset, name: str) -> None:
    for dim in set(result[name].dims) - set(GRID):
        labels = [] if dim not in result.coords else [str(one) for one in result[dim].values]
        if len(labels) != len(set(labels)) or not labels:
            raise RunError(f"{named(name)} has no labels for its {named(dim)}.")


def _check_derived(result: xr.Dataset, name: str) -> None:
    variables = result.variables
    for ending, less in _OF_MEASURE.items():
        other = name + ending
        if other in variables:
            expected = {dim for dim in variables[name].dims if dim not in less}
            if set(variables[other].dims) != expected or variables[other].dtype.kind not in "iuf":
                raise RunError(f"{named(other)} is not of the same heads as {named(name)}.")


def _check_shapes(result: xr.Dataset) -> None:
    for name, dims in _SHAPES.items():
        if name in result and (
            set(result[name].dims) != set(dims) or not set(dims) <= set(result.coords)
        ):
            raise RunError(f"{name} is not one of {' and '.join(dims)}.")
    for dims in (MAP, DIVERGENCE):
        name = variable_along(result, *dims)
        if name is not None and result[name].dtype.kind not in "iuf":
            raise RunError(f"{named(name)} of the result are not numbers.")
        if name is not None and not set(dims) <= set(result.coords):
            raise RunError(f"{named(name)} is not one of {' and '.join(dims)}.")
    if variable_along(result, *MAP) is not None and result.sizes["axis"] != 2:
        raise RunError("The map of heads has not two axes.")
    for dim in ("unit", "other"):
        if dim in result.coords and {*result[dim].values.tolist()} != {*map(str, heads_of(result))}:
            raise RunError("The map is of other heads than the result.")


def _check_heads(said: Statements, result: xr.Dataset) -> None:
    if not {(choice.layer, choice.head) for choice in said.choices} <= {*heads_of(result)}:
        raise RunError("What is said of the result names a head that it does not have.")


def to_netcdf(dataset: xr.Dataset) -> bytes:
    """The content of the file; `xarray.load_dataset` gives the same Dataset back."""
    variables, attributes = cf_encoder(dict(dataset.variables), dict(dataset.attrs))
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", track_order=True) as file:
        file.attrs["_NCProperties"] = PROPERTIES.format(h5py.__version__)
        _write_attributes(file, attributes)
        scales = _make_scales(file, dataset.sizes, variables)
        for name, variable in variables.items():
            if name not in scales:
                made = _create(file, name, variable)
                for axis, dim in enumerate(variable.dims):
                    h5py.h5ds.attach_scale(made.id, scales[dim].id, axis)
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


def is_ours(file: h5py.File) -> bool:
    """Whether `to_netcdf` has written a file; others may have layouts that it does not use."""
    return str(file.attrs.get("_NCProperties", "")).startswith(PROPERTIES.format(""))


def from_netcdf(file: h5py.File) -> xr.Dataset:
    """The Dataset of such a file: what `xarray.load_dataset` gives, every array read once."""
    arrays = {name: each for name, each in file.items() if isinstance(each, h5py.Dataset)}
    scales = {each.id: name for name, each in arrays.items() if _is_scale(each)}
    own = set(scales.values())
    variables = {
        name: _read_variable(each, (name,) if name in own else _dims(each, scales))
        for name, each in sorted(arrays.items(), key=lambda item: item[0] in own)
        if not (name in own and _has_no_values(each))
    }
    raw = xr.Dataset(variables, attrs=_read_attributes(file))
    return xr.decode_cf(raw, decode_times=False).load()


def _read_variable(made: h5py.Dataset, dims: tuple[str, ...]) -> xr.Variable:
    is_text = h5py.check_string_dtype(made.dtype) is not None
    values = made.asstr()[()] if is_text else made[()]
    encoding = {"dtype": str if is_text else made.dtype}
    return xr.Variable(dims, values, _read_attributes(made), encoding)


def _dims(made: h5py.Dataset, scales: Mapping[Any, str]) -> tuple[str, ...]:
    """The names of the scales on which the axes hang, known by their ids."""
    hung: Any = made.attrs["DIMENSION_LIST"] if made.ndim else ()
    # What made.file[reference] does first; the object around the id takes longer than the id.
    return tuple(scales[h5py.h5r.dereference(each[0], made.id)] for each in hung)


def _is_scale(made: h5py.Dataset) -> bool:
    return _mark(made, "CLASS") == "DIMENSION_SCALE"


def _has_no_values(scale: h5py.Dataset) -> bool:
    return _mark(scale, "NAME").startswith(WITHOUT_VALUES.partition("{")[0])


def _mark(made: h5py.Dataset, name: str) -> str:
    """An attribute by which HDF5 knows scales."""
    found = made.attrs.get(name, b"")
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _read_attributes(place: h5py.File | h5py.Dataset) -> dict[str, Any]:
    """What the writer put there; what HDF5 and NetCDF keep for themselves is left out."""
    attributes = place.attrs
    found = {name: attributes[name] for name in attributes if name not in KEPT_BY_FORMAT}
    return {
        name: value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value
        for name, value in found.items()
    }
