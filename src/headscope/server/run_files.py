"""Reading the files of a run directory: the Dataset, the exemplars, the tables."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

LARGEST_TABLE = 2_000_000  # bytes


def read_result(path: Path) -> "xr.Dataset":
    """The whole Dataset in memory, so that the file is free to be replaced by a resumed run."""
    import xarray as xr

    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dataset.load()


def read_exemplars(path: Path) -> tuple[tuple[dict[str, Any], ...], str | None]:
    """The exemplars as records, and a sentence if they cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return (), None
    try:
        return tuple(pq.read_table(path).to_pylist()), None
    except (OSError, pa.ArrowException) as error:
        return (), f"{path.name} cannot be read: {error}"


def read_tables(folder: Path) -> dict[str, list[list[str]]]:
    """The CSV tables by file name without ending; rows of text, the header first."""
    files = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    return {file.stem: _rows(file) for file in files if file.stat().st_size <= LARGEST_TABLE}


def _rows(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="", errors="replace") as lines:
        return list(csv.reader(lines))
