"""A run directory as it is read: what was run on what, what was found, and what is missing."""

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Literal

import xarray as xr

import headscope
from headscope.errors import RunError
from headscope.files import find_place
from headscope.results.dataset import load, without_stack
from headscope.results.exemplars import FILE as EXEMPLARS
from headscope.results.exemplars import Exemplar, read_exemplars

SETTINGS, RESULT = "run.json", "result.nc"
State = Literal["complete", "unfinished", "damaged"]


@dataclass(frozen=True, eq=False)  # known by identity: a run that was read again is another one
class Run:
    """A run directory as it was when it was read; what could not be read is said in the notes."""

    path: Path
    state: State
    notes: tuple[str, ...]  # in sentences, each with its remedy
    about: dict[str, Any]  # run.json
    result: xr.Dataset | None = None  # without the dimension of stacks
    exemplars: tuple[Exemplar, ...] = ()

    @property
    def data(self) -> xr.Dataset:
        """The result; a RunError with the notes where there is none."""
        if self.result is None:
            raise RunError(" ".join(self.notes))
        return self.result

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


def find_run(place: str | Path) -> Path:
    """The run directory that a user named, by itself or by its result.nc or run.json."""
    path = find_place(place)
    return path.parent if path.name in (RESULT, SETTINGS) and path.is_file() else path


def read_run(place: str | Path) -> Run:
    """Read what can be read; what cannot becomes a note that says how to repair it."""
    path = find_run(place)
    settings, notes = _settings(path)
    notes += _version_notes(settings)
    if not (path / RESULT).exists():
        return Run(path, "unfinished", (*notes, _how_to_finish(path, settings)), settings)
    try:
        result = without_stack(load(path))
    except (RunError, RuntimeError) as error:  # a damaged file can make HDF5 fail in its own ways
        return Run(path, "damaged", (*notes, str(error)), settings)
    exemplars, problems = _exemplars(path / EXEMPLARS)
    return Run(path, "complete", (*notes, *problems), settings, result, exemplars)


def read_finished(place: str | Path) -> Run:
    """A run with a result; a RunError that says what to do where it has none."""
    path = find_run(place)
    read_settings(path)  # a directory that is no run is refused as such
    run = read_run(path)
    if run.result is None:
        raise RunError(run.notes[-1])
    return run


def read_settings(path: Path) -> dict[str, Any]:
    """The content of run.json."""
    try:
        return json.loads((path / SETTINGS).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(
            f"{path} is not a run directory: it has no run.json. "
            "Make one with `headscope study NAME --model M --corpus C --out RUN`."
        ) from error
    except ValueError as error:
        raise RunError(f"{path / SETTINGS} is damaged; start again in a new directory.") from error


def _settings(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        settings = json.loads((path / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{SETTINGS} is missing: what was run on what is unknown."]
    except (OSError, ValueError) as error:
        return {}, [f"{SETTINGS} cannot be read ({error}): what was run on what is unknown."]
    if not isinstance(settings, dict):
        return {}, [f"{SETTINGS} is not a JSON object: what was run on what is unknown."]
    return settings, []


def _version_notes(settings: dict[str, Any]) -> list[str]:
    made_by = settings.get("headscope")
    if made_by is None or made_by == headscope.__version__:
        return []
    return [
        f"Made by headscope {made_by} and read by {headscope.__version__}: figures may be missing."
    ]


def _how_to_finish(path: Path, settings: dict[str, Any]) -> str:
    done = len(list((path / "shards").glob("*.npz")))
    model = settings.get("model")
    if "study" not in settings or not isinstance(model, dict):
        return (
            f"{path} has no {RESULT} yet ({done} {'shard' if done == 1 else 'shards'} done); run "
            "the same `headscope study` command again to finish it."
        )
    command = f"headscope study {settings['study']} --model {model.get('name')} --corpus CORPUS"
    return (
        f"{path} has no {RESULT} yet: {done} of {_shards(settings)} shards are done. "
        f"`{command} --out {path}` with the same options goes on from there."
    )


def _shards(settings: dict[str, Any]) -> str:
    try:
        return str(ceil(settings["corpus"]["sentences"] / settings["options"]["shard_sentences"]))
    except (KeyError, TypeError, ZeroDivisionError):
        return "an unknown number of"


def _exemplars(path: Path) -> tuple[tuple[Exemplar, ...], list[str]]:
    if not path.exists():
        return (), []
    try:
        return tuple(read_exemplars(path)), []
    except RunError as error:
        return (), [str(error)]
