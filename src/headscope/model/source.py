"""Where a model comes from: bundled with Headscope, a directory, a GGUF file, or the hub."""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from headscope.errors import ModelError

BUNDLED = ("mini-gpt2", "mini-bert")
_BUNDLED_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5")


@dataclass(frozen=True, slots=True)
class Source:
    """What `from_pretrained` is given, and whom to blame if it fails."""

    name: str  # as the user wrote it
    place: str  # a directory or a hub id
    gguf: str | None = None
    bundled: bool = False
    hub: bool = False

    @property
    def repair(self) -> str:
        """What a user can do about damaged files."""
        if self.bundled:
            return (
                "the installation is broken, repair it with "
                "`pip install --force-reinstall headscope`"
            )
        return "download or export the model again"


def find_source(name: str | Path) -> Source:
    """Resolve a bundled name, a local path or a hub id; what is not there is named."""
    text = str(name)
    if text in BUNDLED:
        return _bundled(text)
    path = Path(text).expanduser()
    if path.suffix == ".gguf":
        return _gguf(text, path)
    if path.is_dir():
        _check_directory(text, path)
        return Source(text, str(path))
    if path.is_file():
        raise ModelError(
            f"{text} is a file, not a model: give the directory that holds config.json."
        )
    if path.is_absolute() or text.startswith((".", "~")) or not _HUB_ID.fullmatch(text):
        raise ModelError(
            f"There is no model directory {text}; give a directory with config.json, a hub id, or "
            f"one of the bundled models {', '.join(BUNDLED)}."
        )
    return Source(text, text, hub=True)


def _bundled(name: str) -> Source:
    place = Path(str(files("headscope") / "model" / "bundled" / name))
    source = Source(name, str(place), bundled=True)
    for needed in _BUNDLED_FILES:
        if not (place / needed).is_file():
            raise ModelError(f"The bundled model {name} lacks its {needed}: {source.repair}.")
    return source


def _gguf(name: str, path: Path) -> Source:
    if not path.is_file():
        raise ModelError(f"There is no model file {name}.")
    return Source(name, str(path.parent), gguf=path.name)


def _check_directory(name: str, path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ModelError(f"The directory {name} has no config.json, so it holds no model.")
    if any(path.glob("*.safetensors")):
        return
    if any(found for pattern in _PICKLED for found in path.glob(pattern)):
        raise ModelError(
            f"The model {name} has only pickled weights, which can run code when opened; save it "
            "again with safetensors (save_pretrained does)."
        )
    raise ModelError(f"The directory {name} has a config.json but no .safetensors weights.")
