"""The runs named on the command line: found by their short name, never by a path from a request.

A slice of a measure is cut once into plain arrays over heads and read for every head.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.explorer.wire import ModelFacts, RefusedError, TextLimits
from headscope.head import Head
from headscope.results.heads import pool
from headscope.results.measure import (
    GRID,
    Baseline,
    BaselineValue,
    Slice,
    baseline_of,
    baseline_of_head,
    heads_of,
    measure_names,
    number,
    own_baseline,
    select,
    slices,
)
from headscope.results.records import EXAMPLES, TOP_TOKENS
from headscope.results.replicates import are_counts, margin_of
from headscope.results.run import RESULT, SETTINGS, Run, find_run, read_run
from headscope.results.statements import Statements, read_statements

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, eq=False)  # known by identity: a run that was read again is another one
class OpenRun:
    """A run under its short name."""

    slug: str
    run: Run

    @property
    def data(self) -> xr.Dataset:
        """The result; a RefusedError with the notes where there is none."""
        if self.run.result is None:
            raise RefusedError(
                409, f"The run {self.slug} has no result to show. {' '.join(self.run.remarks)}"
            )
        return self.run.result

    @property
    def has_records(self) -> bool:
        """Whether tokens, bands of examples, maps or writes are kept of every head."""
        return TOP_TOKENS in self.run.records.files

    @cached_property
    def statements(self) -> Statements:
        """The tables, judged claims and chosen heads that are stored with the result."""
        return read_statements(self.data)

    @cached_property
    def columns(self) -> "dict[str, tuple[Column, ...]]":
        """The slices of every measure, cut once for all heads."""
        return columns_of(self.data)


class Library:
    """The runs by short name; a run is read again when its files have changed."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths: dict[str, Path] = {}
        for path in map(find_run, paths):
            _require_run(path)
            self._paths[_slug(path, self._paths)] = path
        self._stamps: dict[str, Stamp] = {}
        self._read: dict[str, Run] = {}
        self._opened: dict[str, OpenRun] = {}

    @property
    def slugs(self) -> tuple[str, ...]:
        """The short names in the order of the command line."""
        return tuple(self._paths)

    def read_all(self) -> None:
        """Read every run that is new or has changed; all have one description of every head."""
        stamps = {slug: _stamp(path) for slug, path in self._paths.items()}
        changed = [slug for slug in stamps if stamps[slug] != self._stamps.get(slug)]
        if changed:
            self._read |= {slug: read_run(self._paths[slug]) for slug in changed}
            self._stamps = stamps
            pooled = pool([self._read[slug] for slug in self._paths])
            self._opened = {
                slug: OpenRun(slug, run) for slug, run in zip(self._paths, pooled, strict=True)
            }

    def run(self, slug: str) -> OpenRun:
        """The run of that name, or a RefusedError."""
        if slug not in self._paths:
            known = ", ".join(self._paths) or "none"
            raise RefusedError(404, f"There is no run of that name; the runs are: {known}.")
        self.read_all()
        return self._opened[slug]


@dataclass(frozen=True)
class Sources:
    """What answers are made of."""

    library: Library
    model: Callable[[], ModelFacts]  # as it is now
    limits: TextLimits


def _require_run(path: Path) -> None:
    if not path.is_dir():
        raise RunError(f"{path} is not a directory; give the --out of a `headscope study`.")
    if not any(_is_there(path / name) for name in (SETTINGS, RESULT)):
        raise RunError(f"{path} is not a run: it has neither {SETTINGS} nor {RESULT}.")


def _slug(path: Path, taken: dict[str, Path]) -> str:
    kept = (char if char.isalnum() or char in "-_." else "-" for char in path.resolve().name)
    name = "".join(kept).strip(".-") or "run"
    number, slug = 2, name
    while slug.casefold() in map(str.casefold, taken):  # also files of a site, on any disk
        number, slug = number + 1, f"{name}-{number}"
    return slug


def _stamp(path: Path) -> Stamp:
    """Changes when any of the files does; finished shards count for an unfinished run."""
    files = [path / SETTINGS, path / RESULT, path / EXAMPLES, path / "shards"]
    known = [(file.name, file.lstat()) for file in files if _is_there(file)]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in known)


def _is_there(file: Path) -> bool:
    """Whether anything is under that name, be it a link to nowhere."""
    return file.is_symlink() or file.exists()


@dataclass(frozen=True)
class Column:
    """One number for every head, its margin of error, and its rank among all that have one."""

    chosen: Slice
    values: np.ndarray  # layer head
    errors: np.ndarray | None
    ranks: np.ndarray  # 1 is the largest value
    of: int  # heads that have a value
    mean: float | None
    baseline: BaselineValue | None
    words: int | None  # that a label was scored on; None for other measures
    own: Baseline | None  # in which every head has a value of its own
    places: Mapping[Head, tuple[int, int]]  # of the heads in the arrays

    def baseline_at(self, data: xr.Dataset, head: Head) -> BaselineValue | None:
        if self.own is None:
            return self.baseline
        return baseline_of_head(data, self.chosen, self.own, head)


def columns_of(data: xr.Dataset) -> dict[str, tuple[Column, ...]]:
    """The columns of every measure of heads."""
    places = dict(
        zip(heads_of(data), np.ndindex(*(data.sizes[axis] for axis in GRID)), strict=True)
    )
    columns: dict[str, tuple[Column, ...]] = {}
    for name in measure_names(data):
        margin = margin_of(data, name)
        columns[name] = tuple(_column(data, each, margin, places) for each in slices(data, name))
    return columns


def _column(
    data: xr.Dataset,
    chosen: Slice,
    margin: xr.DataArray | None,
    places: Mapping[Head, tuple[int, int]],
) -> Column:
    values = np.asarray(chosen.values.values, float)
    known = np.isfinite(values)
    ranks = np.zeros(values.shape, int)
    ranks[known] = 1 + np.searchsorted(np.sort(-values[known]), -values[known])  # 1 is the largest
    return Column(
        chosen=chosen,
        values=values,
        errors=None if margin is None else select(margin, chosen.at).transpose(*GRID).values,
        ranks=ranks,
        of=int(known.sum()),
        mean=number(values[known].mean()) if known.any() else None,
        baseline=baseline_of(data, chosen),
        words=_words(data, chosen),
        own=own_baseline(data, chosen),
        places=places,
    )


def _words(data: xr.Dataset, chosen: Slice) -> int | None:
    """How many words a label was scored on; None where denominators are no counts of labels."""
    name = f"{chosen.measure.name}_denominator"
    labels = set(chosen.at) & set(data.variables[name].dims) if name in data else set()
    if not labels or set(GRID) & set(data.variables[name].dims):
        return None
    counts = select(data[name], chosen.at).values
    return int(counts.sum()) if are_counts(counts, counts) else None
