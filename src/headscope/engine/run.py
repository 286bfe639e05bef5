"""A run directory: what is computed on what, the finished shards, and the result.

run.json          model, corpus, options, versions, what was counted
shards/00000.npz  partial results, each complete or absent
result.nc         the Dataset
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial as bind
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import headscope
from headscope.engine import partial
from headscope.engine.partial import Counts
from headscope.errors import RunError
from headscope.files import clear_unfinished, names_in, reading, write_bytes, write_text
from headscope.metrics.metric import Metric, Records, Sums
from headscope.results.run import read_settings
from headscope.workers.ahead import ahead

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")

RECORDS_AHEAD = 3

# What must be the same for a run to be continued, in words for the person who changed it.
IDENTITY = ("headscope", "study", "model", "corpus", "options")


@dataclass(frozen=True)
class Run:
    """An opened run directory."""

    path: Path
    settings: Mapping[str, Any]

    @property
    def result(self) -> Path:
        """Where the Dataset lies once the run is finished."""
        return self.path / "result.nc"

    def shard(self, index: int) -> Path:
        """Where a finished shard lies."""
        return self.path / "shards" / f"{index:05d}.npz"

    def keep(self, index: int, content: bytes) -> None:
        """Write the file of a finished shard."""
        write_bytes(self.shard(index), content)

    def discard(self, index: int) -> None:
        """Remove the file of a shard that cannot be trusted."""
        with reading(self.path):
            self.shard(index).unlink()

    def damaged(self, count: int) -> list[int]:
        """Shards whose file is there but cannot be trusted."""
        missing = set(self.missing(count))
        with reading(self.path):
            present = (index for index in range(count) if index not in missing)
            return [index for index in present if not partial.is_intact(self.shard(index))]

    def missing(self, count: int) -> list[int]:
        """Shards still to be computed."""
        with reading(self.path):
            present = names_in(self.path / "shards")
        return [index for index in range(count) if self.shard(index).name not in present]

    def merge(self, metrics: Mapping[str, Metric], count: int) -> tuple[dict[str, Sums], Counts]:
        """The sums of all shards, added in shard order."""
        total = {name: metric.zero(0).sums for name, metric in metrics.items()}
        counts = Counts()
        for index in range(count):
            with reading(self.path):
                sums, counted = partial.load_sums(self.shard(index))
            total = {name: metrics[name].merge(total[name], sums[name]) for name in metrics}
            counts += counted
        return total, counts

    def records(self, metric: str, count: int) -> Records:
        """The records of a metric, read one shard at a time."""
        return bind(self._read_records, metric, count)

    def record(self, more: Mapping[str, Any]) -> "Run":
        """The run with more facts in its run.json."""
        settings = {**self.settings, **more}
        _write_settings(self.path, settings)
        return replace(self, settings=settings)

    def _read_records(self, metric: str, count: int) -> Iterator[dict[str, np.ndarray]]:
        """A few shards ahead in threads, for their checksums take as long as their use."""
        for _, records in ahead(bind(self._load_records, metric), range(count), RECORDS_AHEAD):
            yield records

    def _load_records(self, metric: str, index: int) -> dict[str, np.ndarray]:
        with reading(self.path):
            return partial.load_records(self.shard(index), metric)


def open_run(path: Path, settings: Mapping[str, Any]) -> Run:
    """Start a run, or continue the one that is there if it is the same."""
    described = {"headscope": headscope.__version__, **settings}
    with reading(path):
        (path / "shards").mkdir(parents=True, exist_ok=True)
        clear_unfinished(path)
        clear_unfinished(path / "shards")
        if (path / "run.json").exists():
            _refuse_changes(path, read_settings(path), described)
        else:
            _refuse_orphans(path)
            _write_settings(path, {**described, "versions": _versions()})
        return Run(path, read_settings(path))


def _refuse_changes(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changes = [
        change for key in IDENTITY for change in _differences(key, before.get(key), now.get(key))
    ]
    if changes:
        raise RunError(
            f"{path} holds a run with another setting: {'; '.join(changes)}. "
            "Repeat the command as it was to continue, or choose another directory."
        )


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    """What changed, down to the single value."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from _differences(f"{name} {key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name} was {before!r}, is now {now!r}"


def _refuse_orphans(path: Path) -> None:
    if names_in(path / "shards"):
        raise RunError(
            f"{path} has finished shards but no run.json that says of what; "
            "choose another directory."
        )


def _write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    write_text(path / "run.json", json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
