"""Where a model comes from: bundled, a directory, a GGUF file or the hub; and what fails there."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError

from headscope.errors import ModelError

BUNDLED = ("mini-gpt2", "mini-bert")
_BUNDLED_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_WANTED = (
    f"a directory with config.json, a hub id, or one of the bundled models {', '.join(BUNDLED)}"
)
_GGUF_PACKAGES = ("gguf", "accelerate")
_LONGEST = 240  # characters of another library's message
_ELSEWHERE = re.compile(r"\babove\b|\bbelow\b|https?://|ignore_mismatched_sizes", re.IGNORECASE)
INDEX = "model.safetensors.index.json"
_PLAIN_WEIGHTS = re.compile(r"(?!\.)[\w.-]+\.safetensors")
_LARGEST_JSON = 64 * 2**20  # bytes
_GROWTH = 256  # characters that a normalizer may make of one
_MOST = 2000  # layers, or heads of a layer
_COUNTS = {
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_encoder_layers",
    "num_decoder_layers", "encoder_layers", "decoder_layers", "num_attention_heads", "n_head",
    "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
}  # fmt: skip
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5")


@dataclass(frozen=True, slots=True)
class Source:
    """What `from_pretrained` is given, and what a user can do if it fails."""

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

    @property
    def lasting_name(self) -> str:
        """The name under which any process finds it."""
        if self.bundled or self.hub:
            return self.name
        path = Path(self.place).absolute()
        return str(path if self.gguf is None else path / self.gguf)


def find_source(name: str | Path) -> Source:
    """Resolve a bundled name, a local path or a hub id; what is not there is named."""
    text = str(name)
    if not text.strip():
        raise ModelError(f"The name of the model is empty; give {_WANTED}.")
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
            f"There is no model directory {text}; {_suggestion(text) or f'give {_WANTED}.'}"
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
        raise ModelError(f"There is no model file {name}; check its path.")
    missing = [package for package in _GGUF_PACKAGES if find_spec(package) is None]
    if missing:
        raise ModelError(
            f"Reading {name} needs {' and '.join(missing)}; install with "
            "`pip install 'headscope[gguf]'`."
        )
    return Source(name, str(path.parent), gguf=path.name)


def _check_directory(name: str, path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ModelError(f"The directory {name} has no config.json, so it holds no model.")
    for file in path.iterdir():  # a pipe would be waited for without end
        if not (file.is_file() or file.is_dir()):
            raise ModelError(f"{file} is not a file; the directory of a model holds only files.")
    if (path / INDEX).exists():
        check_index(name, path / INDEX)
    if (path / "tokenizer.json").exists():
        _check_growth(name, path / "tokenizer.json")
    if any(path.glob("*.safetensors")):
        return
    if any(file for pattern in _PICKLED for file in path.glob(pattern)):
        raise ModelError(
            f"The model {name} has only pickled weights, which can run code when opened; save it "
            "again with safetensors (save_pretrained does)."
        )
    raise ModelError(f"The directory {name} has a config.json but no .safetensors weights.")


def _check_growth(name: str, file: Path) -> None:
    """Refuse a tokenizer whose replacements, one after the other, turn a text into gigabytes."""
    waiting = [_read_json(name, file).get("normalizer")]
    growth = 1
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.get("normalizers") or []
            growth *= max(1, len(str(part.get("content") or part.get("prepend") or "")))
    if growth > _GROWTH:
        raise ModelError(
            f"The tokenizer.json of {name} replaces characters by texts up to {growth:.3g} times "
            f"as long; the most is {_GROWTH}: correct its normalizer."
        )


def check_index(name: str, index: Path) -> None:
    """Refuse an index of weights that names anything but .safetensors files beside it.

    transformers opens whatever is named there, and a pickle can run code when opened.
    """
    files = _read_json(name, index, "weight_map")["weight_map"].values()
    strange = sorted(str(file) for file in files if not _PLAIN_WEIGHTS.fullmatch(str(file)))
    if strange:
        raise ModelError(
            f"The {INDEX} of {name} names {shorten(strange[0], 80)!r}, which is no .safetensors "
            "file beside it; save the model again with save_pretrained."
        )


def _read_json(name: str, file: Path, part: str | None = None) -> dict[str, Any]:
    """The object in a file of a model, in which a part may be wanted that is an object, too."""
    try:
        if file.stat().st_size > _LARGEST_JSON:
            raise ValueError("it is too large")
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
        if part is not None and not isinstance(content.get(part), dict):
            raise ValueError(f"it has no {part}")
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"The {file.name} of {name} cannot be read ({shorten(str(error), 80)}); download or "
            "export the model again."
        ) from error
    return content


def check_sizes(name: str, config: object) -> None:
    """Refuse a configuration with more layers or heads than any network has, at any depth.

    Such a network would be built layer by layer before its weights are found missing.
    """
    waiting = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        if not isinstance(part, dict):
            continue
        waiting += part.values()
        for key in _COUNTS & part.keys():
            if isinstance(part[key], int | float) and part[key] > _MOST:
                raise ModelError(
                    f"The configuration of {name} has {key} = {part[key]:.10g}; the most is "
                    f"{_MOST:,}: correct it."
                )


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


def explain(error: BaseException, source: Source, part: str) -> ModelError:
    """The error of transformers, the hub or the disk as one of ours."""
    unknown = f"The {part} of {source.name} cannot be loaded ({in_short(str(error))})"
    return ModelError(_reason(error, source, part) or f"{unknown}: {source.repair}.")


def _reason(error: BaseException, source: Source, part: str) -> str | None:
    """What a user can do something about.

    Code or packages that are missing, a hub that does not give the model out, weights that may run
    code, and damaged files.
    """
    name = source.name
    causes = list(_chain(error))
    words = " ".join(map(str, causes))
    kinds = {kind for cause in causes for kind in type(cause).__mro__}
    if isinstance(error, ImportError):
        return f"{name} needs a package that is missing: {in_short(str(error))}."
    if "trust_remote_code" in words:
        return f"{name} brings its own code; ask for it (trust_remote_code=True) if you trust it."
    if source.hub and GatedRepoError in kinds:
        return f"{name} is gated: accept its terms on the hub and log in with `hf auth login`."
    if source.hub and RevisionNotFoundError in kinds:
        return f"The hub has {name}, but not in the revision asked for."
    if source.hub and RepositoryNotFoundError in kinds:
        other = _suggestion(name) or f"bundled are {' and '.join(BUNDLED)}."
        return f"There is no model {name} on the hub, and no such directory; {other}"
    if source.hub and kinds & {HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled}:
        return (
            f"The hub cannot be reached for {name}, and it is neither a local directory nor in the "
            f"cache; {_suggestion(name) or f'connect, or give {_WANTED}.'}"
        )
    if "model.safetensors" in words:
        return f"{name} has only pickled weights, which can run code; save it with safetensors."
    if kinds & {SafetensorError, json.JSONDecodeError}:
        be = "are" if part == "weights" else "is"
        return f"The {part} of {name} {be} damaged: {source.repair}."
    if part == "tokenizer":
        return f"{name} has no tokenizer that can be loaded; add its tokenizer.json."
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def in_short(message: str) -> str:
    """What another library says, in whole sentences and without what only its log could show."""
    sentences = re.split(r"(?<=[.!?])\s+", " ".join(message.split()))
    telling = [line for line in sentences if line and not _ELSEWHERE.search(line)] or sentences[:1]
    text = telling[0]
    for sentence in telling[1:]:
        if len(text) + len(sentence) > _LONGEST:
            break
        text = f"{text} {sentence}"
    return shorten(text, _LONGEST, placeholder=" …").rstrip(".!:")


def _suggestion(name: str) -> str | None:
    """The bundled model or directory beside it whose name is most alike, as a question."""
    path = Path(name).expanduser()
    try:
        beside = [str(config.parent) for config in path.parent.glob("*/config.json")]
    except OSError:
        beside = []
    alike = get_close_matches(name, [*BUNDLED, *beside], n=1)
    return f"did you mean {alike[0]}?" if alike else None
