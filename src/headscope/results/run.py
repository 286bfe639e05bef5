"""A run directory as it is read: what was run on what, what was found, and what is missing.

This is the one place that opens a run. Everything that is read of it is checked here, so that
report, comparison and explorer can trust it: links and pipes, sizes, checksums, types, dimensions.
`result.nc` has the checksums of the files of examples, so that those of another run, or rotten
ones, are noticed.
"""

import hashlib
import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import xarray as xr

import headscope
from headscope.errors import RunError
from headscope.files import find_place, names_only, write_text
from headscope.results.dataset import check_result, load, without_stack
from headscope.results.inspection import (
    LIMITS,
    inspect_folder,
    read_as,
    read_json,
    require_file,
)
from headscope.results.records import NO_RECORDS, REMEDY, Records, records_of
from headscope.wording import counted, plain, said

SETTINGS, RESULT = "run.json", "result.nc"
State = Literal["complete", "unfinished", "damaged"]
CHECKSUM = "sha256"  # in run.json, of everything else in it


Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(ge=1)]


class ModelNamed(msgspec.Struct):
    """What is read of the model in run.json."""

    name: str | None = None


class CorpusNamed(msgspec.Struct):
    """What is read of the corpus in run.json."""

    name: str | None = None
    path: str | None = None
    fingerprint: str | None = None
    sentences: Count | None = None


class Sizes(msgspec.Struct):
    """What is read of the options of every study in run.json."""

    shard_sentences: Size | None = None
    batch_tokens: Size | None = None


class Settings(msgspec.Struct):
    """What is read of run.json by name; it may say more."""

    headscope: str = ""
    study: str = ""
    model: ModelNamed = msgspec.field(default_factory=ModelNamed)
    corpus: CorpusNamed = msgspec.field(default_factory=CorpusNamed)
    options: Sizes = msgspec.field(default_factory=Sizes)
    left_out: dict[str, str] = msgspec.field(default_factory=dict)
    threads: int = 0
    shard_threads: int = 0


@dataclass(frozen=True, eq=False)  # known by identity: a run that was read again is another one
class Run:
    """A run directory as it was when it was read; what could not be read is said in the notes."""

    path: Path
    state: State
    notes: tuple[str, ...]  # in sentences, each with its remedy
    about: dict[str, Any]  # run.json
    result: xr.Dataset | None = None  # without the dimension of stacks
    records: Records = NO_RECORDS  # examples, top tokens and maps, where a study keeps any

    @property
    def data(self) -> xr.Dataset:
        """The result; a RunError with the last note where there is none."""
        if self.result is None:
            raise RunError(self.notes[-1])
        return self.result

    @property
    def study(self) -> str:
        """The study's name, or "unknown"."""
        known = {} if self.result is None else self.result.attrs
        return str(self.about.get("study") or known.get("study") or "unknown")

    @property
    def settings(self) -> dict[str, Any]:
        """run.json for others to read."""
        return names_only(self.about)

    @property
    def remarks(self) -> list[str]:
        """The notes for others to read."""
        return [note.replace(str(self.path), self.path.name) for note in self.notes]

    @property
    def model(self) -> str | None:
        return names_only(self._said("model", "name"))

    @property
    def corpus(self) -> str | None:
        """The corpus in words: how much of which."""
        count, mark = self._said("corpus", "sentences"), self._said("corpus", "fingerprint")
        name = self._said("corpus", "name")
        if count is None or (mark is None and name is None):
            return None
        which = name or f"corpus {str(mark)[:8]}"
        many = counted(int(count), "sentences") if count.isdecimal() else f"{count} sentences"
        return f"{many} of {which}"

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
    try:
        inspect_folder(path)
    except (RunError, OSError) as error:
        return Run(path, "damaged", (str(error),), {})
    settings, notes = _settings(path)
    notes += _version_notes(settings)
    if not (path / RESULT).exists():
        return Run(path, "unfinished", (*notes, _how_to_finish(path, settings)), settings)
    try:
        result = _result(path)
    except RunError as error:
        return Run(path, "damaged", (*notes, str(error)), settings)
    records = NO_RECORDS
    try:
        records = records_of(result, path)
    except RunError as error:
        notes.append(str(error))
    except Exception as error:  # a run that cannot be read is listed, for whatever reason
        notes.append(f"Its examples cannot be read ({said(error)}); {REMEDY}.")
    return Run(path, "complete", tuple(notes), settings, result, records)


def read_finished(place: str | Path) -> Run:
    """A run with a result; a RunError that says what to do where it has none."""
    path = find_run(place)
    read_settings(path)  # a directory that is no run is refused as such
    run = read_run(path)
    if run.result is None:
        raise RunError(run.notes[-1])
    return run


def read_settings(path: Path) -> dict[str, Any]:
    """The content of run.json, checked."""
    try:
        return _read_settings(path / SETTINGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunError(
            f"{path} is not a run directory: it has no run.json. "
            "Make one with `headscope study NAME --model M --corpus C --out RUN`."
        ) from error
    except (RunError, OSError, ValueError) as error:
        raise RunError(
            f"{path / SETTINGS} is damaged ({said(error)}); start again in a new directory."
        ) from error


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write run.json with the checksum of its content."""
    sealed = seal_settings(settings)
    write_text(path / SETTINGS, json.dumps(sealed, indent=2, ensure_ascii=False) + "\n")


def seal_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the checksum of all the others among them."""
    content = {name: value for name, value in settings.items() if name != CHECKSUM}
    return {**content, CHECKSUM: _digest(content)}


def _read_settings(file: Path) -> dict[str, Any]:
    require_file(file, LIMITS.settings)
    settings = read_json(file.read_text(encoding="utf-8"), dict[str, Any], SETTINGS)
    if settings.pop(CHECKSUM, None) != _digest(settings):
        raise RunError("its checksum is wrong, or missing as in older versions")
    read_as(Settings, settings, SETTINGS)
    return settings


def _digest(settings: Mapping[str, Any]) -> str:
    written = json.loads(json.dumps(settings))  # as it is read again: every name a text
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _settings(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        return _read_settings(path / SETTINGS), []
    except FileNotFoundError:
        return {}, [f"{SETTINGS} is missing: what was run on what is unknown."]
    except (RunError, OSError, ValueError) as error:
        return {}, [f"{SETTINGS} cannot be read ({said(error)}): what was run on what is unknown."]


def _result(path: Path) -> xr.Dataset:
    try:
        return check_result(without_stack(load(path)))
    except Exception as error:  # a run that cannot be read is listed, for whatever reason
        if isinstance(error, RunError) and RESULT in str(error):
            raise
        reason = str(error) if isinstance(error, RunError) else f"{said(error)}."
        raise RunError(
            f"{path / RESULT} is not the result of a study: {reason} Delete it and run the study "
            "again, which takes the finished shards."
        ) from error


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
    study, name, out = (
        shlex.quote(plain(str(each))) for each in (settings["study"], model.get("name"), path)
    )
    return (
        f"{path} has no {RESULT} yet: {done} of {_shards(settings)} shards are done. "
        f"`headscope study {study} --model {name} --corpus CORPUS --out {out}` with the same "
        "options goes on from there."
    )


def _shards(settings: dict[str, Any]) -> str:
    try:
        return str(
            math.ceil(settings["corpus"]["sentences"] / settings["options"]["shard_sentences"])
        )
    except (KeyError, TypeError, ZeroDivisionError):
        return "an unknown number of"
