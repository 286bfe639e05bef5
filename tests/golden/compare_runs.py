"""Whether two demos computed the same: every variable of every result.nc, bit for bit.

python -m tests.golden.compare_runs BEFORE AFTER

Attributes are words, and may change; the numbers and labels may not. Exit code 1 if any differ.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr


def differences(before: Path, after: Path) -> Iterator[str]:
    """What differs between two folders of runs, in lines."""
    runs = [{path.parent.name for path in folder.glob("*/result.nc")} for folder in (before, after)]
    if not runs[0]:
        yield f"{before} has no runs"
    for name in sorted(runs[0] ^ runs[1]):
        yield f"{name}: only in {before if name in runs[0] else after}"
    for name in sorted(runs[0] & runs[1]):
        first, second = (_load(folder / name / "result.nc") for folder in (before, after))
        yield from (f"{name}: {line}" for line in _of_results(first, second))


def _load(path: Path) -> xr.Dataset:
    with path.open("rb") as file:
        return xr.load_dataset(file, engine="h5netcdf")


def _of_results(first: xr.Dataset, second: xr.Dataset) -> Iterator[str]:
    for name in sorted({*map(str, first.variables)} | {*map(str, second.variables)}):
        if name not in first.variables or name not in second.variables:
            yield f"{name} is only in the {'first' if name in first.variables else 'second'}"
        else:
            yield from _of_variables(name, first[name], second[name])


def _of_variables(name: str, first: xr.DataArray, second: xr.DataArray) -> Iterator[str]:
    if (first.dims, first.shape) != (second.dims, second.shape):
        yield f"{name} is {dict(first.sizes)}, then {dict(second.sizes)}"
    elif first.dtype.kind != second.dtype.kind:
        yield f"{name} is {first.dtype}, then {second.dtype}"
    elif not np.array_equal(first.values, second.values, equal_nan=first.dtype.kind == "f"):
        count = int((~_equal(first.values, second.values)).sum())
        yield f"{name} differs in {count} of {first.size} values"


def _equal(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    unknown = (first != first) & (second != second)
    return (first == second) | unknown


def main() -> int:
    """Print every difference."""
    found = list(differences(*map(Path, sys.argv[1:3])))
    print("\n".join(found) or "every variable is the same, bit for bit")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
