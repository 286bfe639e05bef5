"""Reading a .gguf file once.

transformers parses the file for the configuration, for the weights and for the tokenizer, and makes
the table of names anew for every module of the network. Both take longer than the weights.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from headscope.progress import show_progress

_lock = Lock()  # what is put into the modules is there for all threads


@contextmanager
def parsed_once(file: Path) -> Iterator[None]:
    """Keep what is parsed while a model is loaded, and say how far that is."""

    def parse_once(parse: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def parse_aloud(*given: Any) -> Any:
            size = file.stat().st_size / 1e6
            print(f"Reading {file.name}, {size:,.0f} MB", file=sys.stderr, flush=True)
            return parse(*given)

        return parse_aloud

    def show(_: Any) -> Callable[..., Iterable[Any]]:
        return lambda tensors, **_: show_progress(tensors, len(tensors), "tensors", label=file.name)

    with (
        _lock,
        _replaced("gguf", "GGUFReader", parse_once),
        _replaced("gguf", "get_tensor_name_map", cache),
        _replaced("transformers.modeling_gguf_pytorch_utils", "tqdm", show),
    ):
        yield


@contextmanager
def _replaced(module: str, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Put something else in the place of what a module has; nothing where it has no such name."""
    owner = import_module(module) if find_spec(module) is not None else None
    original = getattr(owner, name, None)
    if original is None:
        yield
        return
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)
