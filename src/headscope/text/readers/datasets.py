"""Datasets of the Hugging Face hub: directories that `save_to_disk` made, and names.

A directory is Arrow files with two small JSON files that list them, so it is read without the
library. A name needs it.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from headscope.errors import CorpusError
from headscope.text.readers.columns import NAMES, Row, check_column
from headscope.wording import shorten

_DICTIONARY = "dataset_dict.json"
_STATE = "state.json"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(:[\w.-]*){0,2}")
_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE")
_SAID = 200  # characters of what the library says


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` of the library `datasets` made a directory."""
    return (folder / _STATE).exists() or (folder / _DICTIONARY).exists()


def saved_files(folder: Path) -> list[Path]:
    """The Arrow files of a saved dataset, those of every split in order."""
    if (folder / _DICTIONARY).exists():
        splits = _load(folder / _DICTIONARY, "splits")
        return [file for split in splits for file in saved_files(folder / str(split))]
    return [folder / _file_name(each, folder) for each in _load(folder / _STATE, "_data_files")]


@dataclass(frozen=True)
class HubDataset:
    """A dataset by its name on the hub, read over the network as it is used."""

    name: str
    configuration: str | None = None
    split: str = "train"

    def read(self, column: str) -> Iterator[Row]:
        """The texts of one column."""
        rows = iter(self._rows())
        try:
            for row in rows:
                check_column(column, list(row), self.name)
                name = row.get(NAMES)
                yield Row(self._text(row[column], column), "" if name is None else str(name))
        except CorpusError:
            raise
        except Exception as error:
            raise self._unreachable(error) from error

    def _rows(self) -> Any:
        try:
            library: Any = import_module("datasets")  # this file has the same name
        except ImportError as error:
            raise CorpusError(
                f"There is no file or directory {self.name}; check the path, or install "
                "`pip install 'headscope[hub]'` if it is the name of a dataset on the hub."
            ) from error
        # Without the network only what was downloaded before can be read, and that not as a stream.
        streaming = not any(os.environ.get(name, "0") not in ("", "0") for name in _OFFLINE)
        try:
            return library.load_dataset(
                self.name, self.configuration, split=self.split, streaming=streaming
            )
        except Exception as error:
            raise self._unreachable(error) from error

    def _text(self, value: object, column: str) -> str:
        if value is not None and not isinstance(value, str):
            raise CorpusError(
                f"The column {column!r} of {self.name} holds {type(value).__name__}, not text; "
                "name another column."
            )
        return value or ""

    def _unreachable(self, error: Exception) -> CorpusError:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = shorten(lines[0], _SAID).removesuffix(".")
        return CorpusError(
            f"{self.name} is no file or directory here, and the hub gave no dataset of that name "
            f"({said}); check the name and the network, or give a file."
        )


def find_dataset(name: str) -> HubDataset | None:
    """A dataset by NAME, NAME:CONFIGURATION or NAME:CONFIGURATION:SPLIT; None if it is no name."""
    if not _NAME.fullmatch(name) or set(name) <= {".", "/"}:
        return None
    whole, configuration, split, *_ = [*name.split(":"), "", ""]
    return HubDataset(whole, configuration or None, split or "train")


def _file_name(listed: Any, folder: Path) -> str:
    match listed:
        case {"filename": str(name)}:
            return name
        case _:
            raise _unlisted(folder / _STATE, "a file has no name")


def _load(path: Path, key: str) -> list[Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))[key]
        if not isinstance(value, list):
            raise TypeError(f"{key} is no list")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unlisted(path, repr(error)) from error
    return value


def _unlisted(path: Path, problem: str) -> CorpusError:
    return CorpusError(
        f"{path} does not say which files belong to the dataset ({shorten(problem, _SAID)}); "
        "save it again with save_to_disk."
    )
