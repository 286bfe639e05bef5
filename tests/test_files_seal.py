"""A sealed file opens as before, and no bit of it can change unnoticed."""

import io
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.files import LENGTH, is_intact, seal


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    path = tmp_path / "x.npz"
    content = io.BytesIO()
    np.savez(content, values=np.arange(50.0))
    path.write_bytes(seal(content.getvalue()))
    return path


def test_archives_and_results_open_as_before(sealed: Path, tmp_path: Path) -> None:
    with np.load(sealed) as arrays:
        np.testing.assert_array_equal(arrays["values"], np.arange(50.0))
    plain = tmp_path / "x.nc"
    xr.Dataset({"a": ("b", [1.0, 2.0])}).to_netcdf(plain, engine="h5netcdf")
    plain.write_bytes(seal(plain.read_bytes()))
    assert xr.load_dataset(plain)["a"].values.tolist() == [1.0, 2.0]
    assert is_intact(plain)


def test_every_flipped_bit_is_noticed(sealed: Path) -> None:
    content = sealed.read_bytes()
    assert is_intact(sealed)
    random = np.random.default_rng(0)
    places = {*random.integers(0, len(content), 300).tolist(), *range(-LENGTH, 0)}
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(random.integers(8))
        sealed.write_bytes(bytes(changed))
        assert not is_intact(sealed), place


def test_a_file_that_is_cut_longer_or_without_a_seal_is_not_intact(sealed: Path) -> None:
    content = sealed.read_bytes()
    for other in (b"", content[:-1], content + b"\n", content[:-LENGTH], content[: LENGTH - 1]):
        sealed.write_bytes(other)
        assert not is_intact(sealed)
