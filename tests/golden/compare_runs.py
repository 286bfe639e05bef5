"""Whether two demos computed the same: every variable of every result.nc, bit for bit.

python -m tests.golden.compare_runs BEFORE AFTER [--close] [--files]

Attributes are words, and may change; the numbers and labels may not. Exit code 1 if any differ.
With --close numbers may differ by 2e-5 of the largest value of their variable; variables that moved
at all are listed. With --files the other files of a run, such as its exemplars, are compared, too,
by the checksums in its result.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

TOLERANCE = 2e-5  # of the largest absolute value of a variable
CHECKSUM = "_sha256"  # ends the name of an attribute that holds the checksum of a file, or several


@dataclass
class Closeness:
    """Which variables are the same bit for bit, and how far the others moved."""

    equal: int
    moved: dict[str, float]  # relative to the largest value of the variable
    differences: list[str]  # what is beyond the tolerance, in lines


def differences(before: Path, after: Path) -> Iterator[str]:
    """What differs between two folders of runs, in lines."""
    yield from missing_runs(before, after)
    for name, first, second in _shared_runs(before, after):
        yield from (f"{name}: {line}" for line in _of_results(first, second))


def closeness(before: Path, after: Path) -> Closeness:
    """How far the variables of two folders of runs are apart."""
    found = Closeness(0, {}, list(missing_runs(before, after)))
    for run, first, second in _shared_runs(before, after):
        differing: dict[str, list[str]] = {}
        for name, line in _by_variable(first, second):
            differing.setdefault(name, []).append(line)
        found.equal += len(set(first.variables).intersection(second.variables) - set(differing))
        for name, lines in differing.items():
            change = _relative_change(name, first, second)
            if change is not None:
                found.moved[f"{run}: {name}"] = change
            if change is None or change > TOLERANCE:
                found.differences += [f"{run}: {line}" for line in lines]
    return found


def changed_files(before: Path, after: Path) -> Iterator[str]:
    """Files beside the results that differ by their checksums, in lines."""
    for run, first, second in _shared_runs(before, after):
        sums = [_checksums(result.attrs) for result in (first, second)]
        for file in sorted({*sums[0], *sums[1]}):
            if sums[0].get(file) != sums[1].get(file):
                yield f"{run}: {file} differs"


def missing_runs(before: Path, after: Path) -> Iterator[str]:
    """Runs that only one of two folders has, in lines."""
    runs = [_names(folder) for folder in (before, after)]
    if not runs[0]:
        yield f"{before} has no runs"
    for name in sorted(runs[0] ^ runs[1]):
        yield f"{name}: only in {before if name in runs[0] else after}"


def _shared_runs(before: Path, after: Path) -> Iterator[tuple[str, xr.Dataset, xr.Dataset]]:
    for name in sorted(_names(before) & _names(after)):
        yield name, _load(before / name / "result.nc"), _load(after / name / "result.nc")


def _names(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/result.nc")}


def _load(path: Path) -> xr.Dataset:
    with path.open("rb") as file:
        return xr.load_dataset(file, engine="h5netcdf")


def _of_results(first: xr.Dataset, second: xr.Dataset) -> Iterator[str]:
    yield from (line for _, line in _by_variable(first, second))


def _by_variable(first: xr.Dataset, second: xr.Dataset) -> Iterator[tuple[str, str]]:
    """The name of every variable that differs, with a line that says how."""
    for name in sorted({*map(str, first.variables)} | {*map(str, second.variables)}):
        if name not in first.variables or name not in second.variables:
            yield name, f"{name} is only in the {'first' if name in first.variables else 'second'}"
        else:
            yield from ((name, line) for line in _of_variables(name, first[name], second[name]))


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


def _relative_change(name: str, first: xr.Dataset, second: xr.Dataset) -> float | None:
    """The largest difference relative to the largest value; None if it is not one of numbers."""
    if name not in first.variables or name not in second.variables:
        return None
    x, y = first.variables[name], second.variables[name]
    if (x.dims, x.shape) != (y.dims, y.shape) or (x.dtype.kind, y.dtype.kind) != ("f", "f"):
        return None
    a, b = x.values.astype(np.float64), y.values.astype(np.float64)
    if (np.isnan(a) != np.isnan(b)).any():
        return None
    largest = float(np.nanmax(np.abs(a), initial=0))
    absolute = float(np.nanmax(np.abs(a - b), initial=0))
    return absolute / largest if largest else np.inf


def _checksums(attributes: Mapping[str, object]) -> dict[str, str]:
    """The checksum of every file that the attributes of a result name."""
    sums: dict[str, str] = {}
    for name, value in attributes.items():
        if not name.endswith(CHECKSUM):
            continue
        text = str(value)
        if text.startswith("{"):
            sums |= json.loads(text)
        else:
            sums[name.removesuffix(CHECKSUM)] = text
    return sums


def main(arguments: list[str]) -> int:
    """Print every difference."""
    before, after, *flags = arguments
    folders = Path(before), Path(after)
    if "--close" in flags:
        close = closeness(*folders)
        lines = close.differences
        print(f"{close.equal} variables are the same, bit for bit; {len(close.moved)} moved")
        for name, change in sorted(close.moved.items(), key=lambda item: -item[1]):
            print(f"  {name} by {change:.1e}")
        same = f"no variable moved by more than {TOLERANCE:g} of its largest value"
    else:
        lines = list(differences(*folders))
        same = "every variable is the same, bit for bit"
    if "--files" in flags:
        lines += changed_files(*folders)
        same += ", and every other file is the same"
    print("\n".join(lines) or same)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
