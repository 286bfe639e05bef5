"""What went wrong while loading, in one sentence for the person who can fix it."""

import json
from collections.abc import Iterator

from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError

from headscope.errors import ModelError
from headscope.model.source import BUNDLED, Source


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
