"""Attention seen through transformers' `AttentionInterface`: weights, queries, keys and values.

Under `attn_implementation="eager"` the model asks the interface for a function and falls back to
its own. We hand it that same function inside an observer, so the model's own arithmetic runs and we
look at what goes in and what comes out. Nothing is computed twice and no softmax is rewritten.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from threading import Lock
from typing import Any

from torch import Tensor, nn
from transformers.modeling_utils import AttentionInterface

from headscope.model.capture.call import BackendName, Call, Forward, Watch

_watch: ContextVar[Watch | None] = ContextVar("headscope_interface_watch", default=None)
_installed: set[type[AttentionInterface]] = set()
_install_lock = Lock()

# What an attention function may be given that does not enter the scores.
_SILENT = {"dropout", "is_causal", "use_cache", "output_attentions", "output_hidden_states"}
_NAMED = {"module", "query", "key", "value", "attention_mask", "scaling"}


class InterfaceBackend:
    """Observes every function that the attention interface resolves."""

    name: BackendName = "interface"

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass with the interface observed."""
        install()
        with _watched_by(watch):
            return forward()


def install() -> None:
    """Wrap `AttentionInterface.get_interface`, once per process.

    Patching per forward pass lost calls between threads; the context variable says who observes.
    """
    with _install_lock:
        if AttentionInterface not in _installed:
            AttentionInterface.get_interface = _observed(AttentionInterface.get_interface)
            _installed.add(AttentionInterface)


@contextmanager
def _watched_by(watch: Watch | None) -> Iterator[None]:
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def _observed(original: Callable[..., Callable]) -> Callable[..., Callable]:
    @wraps(original)
    def get_interface(self: AttentionInterface, implementation: str, default: Callable) -> Callable:
        resolved = original(self, implementation, default)
        if implementation != "eager" or _watch.get() is None:
            return resolved
        return partial(_observe, resolved)

    return get_interface


def _observe(resolved: Callable, *args: Any, **kwargs: Any) -> Any:
    result = resolved(*args, **kwargs)
    watch = _watch.get()
    if watch is not None and result[1] is not None:
        # An observer may run another network: that must not be taken for a layer of this one.
        with _watched_by(None):
            watch(_call(_bind(resolved, args, kwargs), result[0], result[1]))
    return result


def _bind(function: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Name every argument as the attention function names it."""
    names = _positional(function)
    return {**dict(zip(names, args, strict=False)), **kwargs}


@lru_cache(maxsize=256)
def _positional(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _call(given: dict[str, Any], output: Tensor, weights: Tensor) -> Call:
    module: nn.Module = given["module"]
    query: Tensor = given["query"]
    scaling = given.get("scaling")
    extras = {k: v for k, v in given.items() if k not in _NAMED | _SILENT and v is not None}
    if isinstance(scaling, Tensor) and scaling.numel() > 1:
        extras["scaling"] = scaling
        scaling = None
    elif scaling is None:
        scaling = query.shape[-1] ** -0.5  # what bodies without an explicit scaling do
    return Call(
        weights=weights,
        module=module,
        query=query,
        key=given["key"],
        value=given["value"],
        scaling=None if scaling is None else float(scaling),
        mask=given.get("attention_mask"),
        extras=extras,
        output=output,
    )
