"""Where a model comes from: bundled, a directory, a GGUF file or the hub; and what fails there."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError

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
        return _bundled_source(text)
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


def _bundled_source(name: str) -> Source:
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


def is_reachable() -> bool:
    """Whether the hub's name resolves; behind a proxy only the proxy can tell, so we let it try."""
    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


def explain(error: Exception, source: Source, part: str) -> ModelError:
    """The error of transformers, the hub or the disk as one of ours."""
    causes = list(_chain(error))
    kinds = {kind for cause in causes for kind in type(cause).__mro__}
    words = " ".join(str(cause) for cause in causes)
    return ModelError(_sentence(kinds, words, source, part))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _sentence(kinds: set[type], words: str, source: Source, part: str) -> str:
    name = source.name
    if "trust_remote_code" in words:
        return f"{name} brings its own code; ask for it (trust_remote_code=True) if you trust it."
    if source.hub and GatedRepoError in kinds:
        return f"{name} is gated: accept its terms on the hub and log in with `hf auth login`."
    if source.hub and RevisionNotFoundError in kinds:
        return f"The hub has {name}, but not in the revision asked for."
    if source.hub and (RepositoryNotFoundError in kinds):
        return f"There is no model {name} on the hub, no such directory; bundled are {_bundled()}."
    if source.hub and _is_offline(kinds, words):
        return (
            f"The hub cannot be reached for {name}, and it is neither a local directory nor in the "
            f"cache; connect, or use a directory or one of the bundled models {_bundled()}."
        )
    if "model.safetensors" in words:
        return f"{name} has only pickled weights, which can run code; save it with safetensors."
    if SafetensorError in kinds or json.JSONDecodeError in kinds:
        return f"The {part} of {name} is damaged: {source.repair}."
    if part == "tokenizer":
        return f"{name} has no tokenizer that can be loaded; add its tokenizer.json."
    return f"The {part} of {name} cannot be loaded ({words.splitlines()[0][:200]})."


def _bundled() -> str:
    return " and ".join(BUNDLED)


def _is_offline(kinds: set[type], words: str) -> bool:
    offline = ("couldn't connect", "offline", "internet", "Max retries", "resolve")
    return OSError in kinds and (
        HfHubHTTPError in kinds or any(word.lower() in words.lower() for word in offline)
    )
