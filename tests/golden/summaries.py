"""What is stored of a result: every number of its small variables, and a draw from the large ones.

A large variable is stored as some of its values, drawn once and for all, with its sum, its sum of
squares and its number of NaN. Of the attributes only the numbers are stored: words may change.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

MOST_VALUES = 2048  # of a variable, all of which are stored; of a larger one so many are drawn
TOLERANCE = 2e-5  # of the largest absolute value of a variable
SMALLEST = 1e-12  # differences up to this are rounding, however small the variable is
COUNTS = ("skipped", "words")  # attributes that hold counts by reason, as JSON


@dataclass(frozen=True)
class Summary:
    """What is stored of one variable."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    kind: str  # of its dtype: f, i, b or U
    values: np.ndarray  # all of them, flat, or those at the drawn places
    largest: float = 0.0  # absolute value of the whole variable
    sum: float = 0.0
    squares: float = 0.0
    unknown: int = 0  # how many are NaN


def summarise(result: xr.Dataset) -> dict[str, Summary]:
    """A summary of every variable and coordinate, and of every attribute that is a number."""
    summaries = {str(name): summarise_variable(array) for name, array in result.variables.items()}
    for name, value in result.attrs.items():
        if name in COUNTS:
            counts = sorted(json.loads(value).values())
            summaries[f"attribute {name}"] = summarise_variable(xr.Variable("count", counts))
        elif not isinstance(value, str):
            summaries[f"attribute {name}"] = summarise_variable(xr.Variable((), value))
    return summaries


def summarise_variable(array: xr.Variable) -> Summary:
    """The summary of one variable."""
    values = array.values
    if values.dtype.kind in "OU":
        values = values.astype(np.str_)
    flat = values.ravel()
    dims = tuple(map(str, array.dims))
    stored = flat[draw_places(flat.size)]
    if flat.dtype.kind == "U":
        return Summary(dims, array.shape, "U", stored)
    numbers = flat.astype(np.float64)
    unknown = np.isnan(numbers)
    finite = numbers[~unknown]
    return Summary(
        dims,
        array.shape,
        flat.dtype.kind,
        stored,
        float(np.abs(finite).max(initial=0)),
        float(finite.sum()),
        float((finite**2).sum()),
        int(unknown.sum()),
    )


def draw_places(size: int) -> np.ndarray:
    """Which of the flat places of a variable are stored; the same for every variable of a size."""
    if size <= MOST_VALUES:
        return np.arange(size)
    return np.sort(np.random.RandomState(size % 2**32).permutation(size)[:MOST_VALUES])


def differences(stored: Mapping[str, Summary], computed: Mapping[str, Summary]) -> Iterator[str]:
    """What moved by more than the tolerance, a line for every variable, the worst first."""
    for name in sorted(stored.keys() - computed.keys()):
        yield f"{name} is gone"
    for name in sorted(computed.keys() - stored.keys()):
        yield f"{name} is new"
    moved: list[tuple[float, str]] = []
    for name in sorted(stored.keys() & computed.keys()):
        moved += [(size, f"{name} {line}") for size, line in _compare(stored[name], computed[name])]
    yield from (line for _, line in sorted(moved, reverse=True))


def _compare(stored: Summary, computed: Summary) -> Iterator[tuple[float, str]]:
    """How far a variable moved, relative to its largest value, and a line that says it."""
    before = dict(zip(stored.dims, stored.shape, strict=True))
    after = dict(zip(computed.dims, computed.shape, strict=True))
    if list(before.items()) != list(after.items()):
        yield np.inf, f"has dimensions {after}, was {before}"
    elif stored.kind != computed.kind:
        yield np.inf, f"is of kind {computed.kind}, was {stored.kind}"
    elif stored.kind != "f":
        count = int((stored.values != computed.values).sum())
        if count:
            yield np.inf, f"differs in {count} of {stored.values.size} stored values"
        elif (stored.sum, stored.squares) != (computed.sum, computed.squares):
            yield np.inf, f"sums to {computed.sum:g}, was {stored.sum:g}"
    elif stored.unknown != computed.unknown:
        yield np.inf, f"has {computed.unknown} NaN, had {stored.unknown}"
    elif (np.isnan(stored.values) != np.isnan(computed.values)).any():
        yield np.inf, "has NaN in other places"
    else:
        yield from _compare_numbers(stored, computed)


def _compare_numbers(stored: Summary, computed: Summary) -> Iterator[tuple[float, str]]:
    difference = np.abs(stored.values.astype(np.float64) - computed.values.astype(np.float64))
    absolute = float(np.nanmax(difference, initial=0))
    relative = absolute / stored.largest if stored.largest else np.inf
    if absolute > max(TOLERANCE * stored.largest, SMALLEST):
        yield relative, f"moved by {relative:.1e} of its largest value, {stored.largest:.4g}"
        return
    # Of n values that each moved by the tolerance, the sum moves by no more than n times that.
    count = int(np.prod(stored.shape)) - stored.unknown
    spread = float(np.sqrt(count * stored.squares))  # at least the sum of the absolute values
    for name, reach in (("sum", spread), ("squares", 2 * stored.squares)):
        apart = abs(getattr(stored, name) - getattr(computed, name))
        if apart > max(TOLERANCE * reach, count * SMALLEST):
            relative = apart / reach if reach else np.inf
            yield relative, f"moved by {relative:.1e} in its {name} over all values"


def write(path: Path, summaries: Mapping[str, Summary]) -> None:
    """Store summaries in one compressed file.

    Numbers are stored one behind the other: an array for each would double the file.
    """
    facts: list[dict[str, Any]] = []
    numbers: dict[str, list[np.ndarray]] = {"f": [], "i": []}
    for name, summary in summaries.items():
        facts.append({"name": name, **vars(summary), "values": None})
        values = summary.values
        if summary.kind == "U":
            facts[-1]["values"] = values.tolist()
        elif summary.kind == "f":
            numbers["f"].append(round_values(values, summary.largest))
        else:
            numbers["i"].append(values.astype(np.int64))
    header = zlib.compress(json.dumps(facts, ensure_ascii=False).encode())
    np.savez_compressed(
        path,
        facts=np.frombuffer(header, dtype=np.uint8),
        f=np.concatenate([np.empty(0, np.float32), *numbers["f"]]),
        i=np.concatenate([np.empty(0, np.int64), *numbers["i"]]),
    )


def round_values(values: np.ndarray, largest: float) -> np.ndarray:
    """Values to a twentieth of the tolerance: shorter numbers make smaller files."""
    step = 2.0 ** np.floor(np.log2(TOLERANCE * largest / 10)) if largest else 1.0
    return (np.round(values.astype(np.float64) / step) * step).astype(np.float32)


def read(path: Path) -> dict[str, Summary]:
    """The summaries that were stored in a file."""
    with np.load(path) as file:
        facts = json.loads(zlib.decompress(file["facts"].tobytes()))
        numbers = {"f": file["f"], "i": file["i"]}
    summaries: dict[str, Summary] = {}
    begin = {"f": 0, "i": 0}
    for fact in facts:
        kind = "f" if fact["kind"] == "f" else "i"
        if fact["kind"] == "U":
            values = np.array(fact["values"], dtype=np.str_)
        else:
            size = min(int(np.prod(fact["shape"])), MOST_VALUES)
            values = numbers[kind][begin[kind] : begin[kind] + size]
            begin[kind] += size
        described = {name: value for name, value in fact.items() if name not in ("name", "values")}
        described |= {"dims": tuple(fact["dims"]), "shape": tuple(fact["shape"])}
        summaries[fact["name"]] = Summary(values=values, **described)
    return summaries
