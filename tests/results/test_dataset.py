"""A result written and read by h5py alone is the Dataset that xarray would have made of it."""

import io

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headscope.results.dataset import from_netcdf, is_ours, to_netcdf

DTYPES = (np.float64, np.float32, np.int64, np.int32, np.bool_)
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)


def read(content: bytes) -> xr.Dataset:
    return xr.load_dataset(io.BytesIO(content), engine="h5netcdf", decode_times=False)


@st.composite
def datasets(draw: st.DrawFn) -> xr.Dataset:
    sizes = {dim: draw(st.integers(1, 4)) for dim in ("layer", "head", "label", "place")}
    variables = {}
    for number in range(draw(st.integers(1, 5))):
        dims = draw(st.permutations(list(sizes)))[: draw(st.integers(1, 3))]
        dtype = draw(st.sampled_from(DTYPES))
        shape = tuple(sizes[dim] for dim in dims)
        values = draw(arrays.arrays(dtype, shape))
        named = {"long_name": draw(TEXTS), "measure": '{"title": "ö"}'} if number % 2 else {}
        variables[f"v{number}"] = (dims, values, named)
    labels = draw(st.lists(TEXTS, min_size=sizes["label"], max_size=sizes["label"], unique=True))
    coords = {"layer": range(sizes["layer"]), "label": labels}
    return xr.Dataset(variables, coords, {"study": draw(TEXTS), "sentences": 7, "share": 0.5})


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_what_is_read_is_what_xarray_writes(data: xr.Dataset) -> None:
    ours, theirs = read(to_netcdf(data)), read(bytes(data.to_netcdf(engine="h5netcdf")))
    xr.testing.assert_identical(ours, theirs)
    assert {n: v.dtype for n, v in ours.variables.items()} == {
        n: v.dtype for n, v in theirs.variables.items()
    }


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_what_we_read_is_what_xarray_reads(data: xr.Dataset) -> None:
    content = to_netcdf(data)
    with h5py.File(io.BytesIO(content)) as file:
        assert is_ours(file)
        ours = from_netcdf(file)
    theirs = read(content)
    xr.testing.assert_identical(ours, theirs)
    for kind in ("data_vars", "coords", "sizes", "attrs"):
        assert list(getattr(ours, kind)) == list(getattr(theirs, kind))
    for name, variable in theirs.variables.items():
        assert ours[name].dtype == variable.dtype
        assert list(map(type, ours[name].attrs.values())) == list(
            map(type, variable.attrs.values())
        )


def test_a_file_of_another_writer_is_not_ours() -> None:
    data = xr.Dataset({"a": ("layer", [1.0, 2.0])}, {"layer": [0, 1]})
    with h5py.File(io.BytesIO(bytes(data.to_netcdf(engine="h5netcdf")))) as file:
        assert not is_ours(file)


def test_every_axis_hangs_on_the_scale_of_its_dimension() -> None:
    data = xr.Dataset({"a": (("layer", "pair"), np.zeros((2, 3)))}, {"layer": [0, 4]})
    with h5py.File(io.BytesIO(to_netcdf(data))) as file:
        a, layer = file["a"], file["layer"]
        assert isinstance(a, h5py.Dataset) and isinstance(layer, h5py.Dataset)
        assert [axis.keys() for axis in a.dims] == [["layer"], [_dimension(3)]]
        assert np.asarray(layer).tolist() == [0, 4]
        assert [file[name].attrs["_Netcdf4Dimid"] for name in ("layer", "pair")] == [0, 1]


def _dimension(size: int) -> str:
    return f"This is a netCDF dimension but not a netCDF variable. {size:>10}"


@pytest.mark.parametrize("length", [100, 300_000])
def test_long_attributes_are_kept(length: int) -> None:
    data = xr.Dataset({"a": ("b", [1.0])}, attrs={"statements": "ü" * length})
    assert read(to_netcdf(data)).attrs["statements"] == "ü" * length
