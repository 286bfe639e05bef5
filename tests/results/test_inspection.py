"""Nothing outside a run directory is read through it, and nothing in it costs more than it says."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from headscope.errors import RunError
from headscope.results.inspection import Limits, inspect_folder, inspect_result


def refuse(path: Path, words: str, limits: Limits | None = None) -> None:
    with path.open("rb") as content, h5py.File(path) as file, pytest.raises(RunError, match=words):
        inspect_result(file, content, "result.nc", limits or Limits())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(b"s" * 800)
    with h5py.File(tmp_path / "result.nc", "w") as file:
        file["entropy"] = np.ones((4, 4))
    return tmp_path / "result.nc"


def test_a_plain_result_passes(path: Path) -> None:
    with path.open("rb") as content, h5py.File(path) as file:
        inspect_result(file, content, "result.nc")


def test_values_stored_in_another_file_are_refused(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file.create_dataset("x", (100,), "f8", external=[(str(path.parent / "secret"), 0, 800)])
    refuse(path, "x is stored in another file")


def test_virtual_datasets_are_refused(path: Path) -> None:
    layout = h5py.VirtualLayout((4, 4), "f8")
    layout[:] = h5py.VirtualSource(str(path.parent / "other.nc"), "y", (4, 4))
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("x", layout)
    refuse(path, "x is stored in another file")


@pytest.mark.parametrize("link", [h5py.ExternalLink("other.nc", "/y"), h5py.SoftLink("/entropy")])
def test_links_are_refused(path: Path, link: object) -> None:
    with h5py.File(path, "a") as file:
        file["x"] = link
    refuse(path, "x is a link")


def test_arrays_that_unpack_to_far_more_than_they_hold_are_refused(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file.create_dataset("x", (10**5, 10**4), "f8", chunks=(1000, 1000), compression="gzip")
    refuse(path, "x claims 8,000,000,000 bytes")


def test_texts_that_share_one_object_are_counted_as_often_as_they_occur(path: Path) -> None:
    with h5py.File(path, "a") as file:
        texts = file.create_dataset("texts", (100,), h5py.string_dtype())
        texts[:] = ["x" * 10] * 99 + ["x" * 1000]
    refuse(path, "texts has texts of 100,000 characters", Limits(array_texts=99_999))
    with h5py.File(path, "a") as file:
        file.create_dataset("spread", data=["x"], dtype=h5py.string_dtype(), chunks=(1,))
    refuse(path, "spread has texts that are not stored in a row")


def test_attributes_are_counted_together_and_are_single_texts(path: Path) -> None:
    with h5py.File(path, "a") as file:
        for name in "abc":
            file["entropy"].attrs[name] = "x" * 40
    refuse(path, "entropy: the attribute c is too large", Limits(texts=119))
    with h5py.File(path, "a") as file:
        file.attrs["list"] = ["x", "y"]
    refuse(path, "the attribute list is not one text")


def test_what_no_result_has_is_refused(path: Path) -> None:
    refuse(path, "more than 0 variables", Limits(variables=0))
    refuse(path, "unpacks to more than", Limits(values=100))
    refuse(path, "has 2 dimensions", Limits(dimensions=1))
    with h5py.File(path, "a") as file:
        file["entropy"].attrs["long"] = "x" * 100
    refuse(path, "1 attributes", Limits(attributes=0))
    with h5py.File(path, "a") as file:
        file.create_group("a/b/c/d/e")
    refuse(path, "a is no array")


@pytest.mark.parametrize("name", ["run.json", "result.nc", "report.html"])
def test_links_pipes_and_folders_in_place_of_files_are_refused(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    inspect_folder(tmp_path)
    place.symlink_to("/etc/hostname")
    with pytest.raises(RunError, match=f"{name} is not a plain file"):
        inspect_folder(tmp_path)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(RunError, match=f"{name} is not a plain file"):
        inspect_folder(tmp_path)
    place.unlink()
    place.mkdir()
    with pytest.raises(RunError, match=f"{name} is not a plain file"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("name", ["shards", "tables", "figures"])
def test_links_in_place_of_folders_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/etc")
    with pytest.raises(RunError, match=f"{name} is not a folder"):
        inspect_folder(tmp_path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}" * 100)
    with pytest.raises(RunError, match="200 bytes, more than the 100"):
        inspect_folder(tmp_path, Limits(settings=100))


def test_numbers_of_one_byte_are_counted_as_such(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file["levels"] = np.zeros(2**20, dtype=np.uint8)
    with path.open("rb") as content, h5py.File(path) as file:
        inspect_result(file, content, "result.nc")
