"""The runs named on the command line: found by their short name, never by a path from a request."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

import headscope
from headscope.errors import RunError
from headscope.explorer.limits import RefusedError
from headscope.files import find_place
from headscope.results.dataset import load
from headscope.results.statements import Statements, read_statements

RUN, RESULT, EXEMPLARS = "run.json", "result.nc", "exemplars.parquet"
State = Literal["complete", "unfinished", "damaged"]
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Run:
    """One run directory as it is now: what it says about itself and what can be read of it."""

    path: Path
    state: State
    notes: tuple[str, ...]  # what a visitor should know, in sentences
    about: dict[str, Any]  # run.json
    result: xr.Dataset | None = None
    exemplars: tuple[dict[str, Any], ...] = ()

    @property
    def study(self) -> str:
        """The study's name, or "unknown"."""
        known = {} if self.result is None else self.result.attrs
        return str(self.about.get("study") or known.get("study") or "unknown")

    @property
    def model(self) -> str | None:
        """The model's name."""
        return self._said("model", "name")

    @property
    def corpus(self) -> str | None:
        """The corpus in words: how much of which, and where it lies."""
        count, mark = self._said("corpus", "sentences"), self._said("corpus", "fingerprint")
        name, path = self._said("corpus", "name"), self._said("corpus", "path")
        if count is None or (mark is None and name is None):
            return None
        which = name or f"corpus {str(mark)[:8]}"
        place = "" if path in (None, name) else f" ({path})"
        return f"{count} {'sentence' if count == '1' else 'sentences'} of {which}{place}"

    def _said(self, part: str, name: str) -> str | None:
        found = self.about.get(part)
        value = found.get(name) if isinstance(found, dict) else None
        return None if value is None else str(value)


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
                409, f"The run {self.slug} has no result to show. {' '.join(self.run.notes)}"
            )
        return self.run.result

    @cached_property
    def statements(self) -> Statements:
        """The tables, judged claims and chosen heads that are stored with the result."""
        return read_statements(self.data)


class Library:
    """The runs by short name; a run is read again when its files have changed."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths: dict[str, Path] = {}
        for path in map(_folder, paths):
            _require_run(path)
            self._paths[_slug(path, self._paths)] = path
        self._read: dict[str, tuple[Stamp, OpenRun]] = {}

    @property
    def slugs(self) -> tuple[str, ...]:
        """The short names in the order of the command line."""
        return tuple(self._paths)

    def read_all(self) -> None:
        """Read every run now, so that the first visitor need not wait."""
        for slug in self.slugs:
            self.run(slug)

    def run(self, slug: str) -> OpenRun:
        """The run of that name, or a RefusedError."""
        if slug not in self._paths:
            known = ", ".join(self._paths) or "none"
            raise RefusedError(404, f"There is no run of that name; the runs are: {known}.")
        path = self._paths[slug]
        stamp = _stamp(path)
        known = self._read.get(slug)
        if known is None or known[0] != stamp:
            known = (stamp, OpenRun(slug, read_run(path)))
            self._read[slug] = known
        return known[1]


def read_run(path: Path) -> Run:
    """Read what can be read; what cannot becomes a note that says how to repair it."""
    about, notes = _about(path)
    notes += _version_notes(about)
    if not (path / RESULT).exists():
        return Run(path, "unfinished", (*notes, _how_to_finish(path, about)), about)
    try:
        result = _only_stack(load(path))
    except (RunError, RuntimeError) as error:  # a damaged file can make HDF5 fail in its own ways
        return Run(path, "damaged", (*notes, str(error)), about)
    exemplars, problem = _exemplars(path / EXEMPLARS)
    return Run(path, "complete", (*notes, *problem), about, result, exemplars)


def _only_stack(result: xr.Dataset) -> xr.Dataset:
    """Without the dimension of stacks where there is one: a study reads the encoder alone."""
    return result.isel(stack=0) if result.sizes.get("stack") == 1 else result


def _folder(path: str | Path) -> Path:
    """The run's directory, also where its result.nc was named, which `study` prints."""
    place = find_place(path)
    return place.parent if place.name == RESULT else place


def _require_run(path: Path) -> None:
    if not path.is_dir():
        raise RunError(f"{path} is not a directory; give the --out of a `headscope study`.")
    if not ((path / RUN).exists() or (path / RESULT).exists()):
        raise RunError(f"{path} is not a run: it has neither {RUN} nor {RESULT}.")


def _slug(path: Path, taken: dict[str, Path]) -> str:
    kept = (char if char.isalnum() or char in "-_." else "-" for char in path.resolve().name)
    name = "".join(kept).strip(".-") or "run"
    number, slug = 2, name
    while slug in taken:
        number, slug = number + 1, f"{name}-{number}"
    return slug


def _stamp(path: Path) -> Stamp:
    """Changes when any of the files does; finished shards count for an unfinished run."""
    files = [path / RUN, path / RESULT, path / EXEMPLARS, path / "shards"]
    known = [(file.name, file.stat()) for file in files if file.exists()]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in known)


def _about(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        about = json.loads((path / RUN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{RUN} is missing: what was run on what is unknown."]
    except (OSError, ValueError) as error:
        return {}, [f"{RUN} cannot be read ({error}): what was run on what is unknown."]
    if not isinstance(about, dict):
        return {}, [f"{RUN} is not a JSON object: what was run on what is unknown."]
    return about, []


def _version_notes(about: dict[str, Any]) -> list[str]:
    made_by = about.get("headscope")
    if made_by is None or made_by == headscope.__version__:
        return []
    return [
        f"Made by headscope {made_by} and read by {headscope.__version__}: figures may be missing."
    ]


def _how_to_finish(path: Path, about: dict[str, Any]) -> str:
    done = len(list((path / "shards").glob("*.npz")))
    model = about.get("model")
    if "study" not in about or not isinstance(model, dict):
        return f"This run is not finished ({done} shards done); run its `headscope study` again."
    command = f"headscope study {about['study']} --model {model.get('name')} --corpus CORPUS"
    return (
        f"This run is not finished: {done} of {_shards(about)} shards are done. "
        f"`{command} --out {path}` with the same options goes on from there."
    )


def _shards(about: dict[str, Any]) -> str:
    try:
        return str(ceil(about["corpus"]["sentences"] / about["options"]["shard_sentences"]))
    except (KeyError, TypeError, ZeroDivisionError):
        return "an unknown number of"


def _exemplars(path: Path) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    if not path.exists():
        return (), []
    try:
        return tuple(pq.read_table(path).to_pylist()), []
    except (OSError, pa.ArrowException) as error:
        return (), [f"{path.name} cannot be read ({error}); run the study again into the same RUN."]
