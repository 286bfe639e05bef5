"""Attention seen through transformers' `AttentionInterface`: weights, queries, keys and values.

Under `attn_implementation="eager"` the model asks the interface for a function and falls back to
its own. We hand it that same function inside an observer, so the model's own arithmetic runs and we
look at what goes in and what comes out. Nothing is computed twice and no softmax is rewritten.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from threading import Lock
from typing import Any

from torch import Tensor, nn
from transformers.modeling_utils import AttentionInterface

from headscope.model.attention import BackendName, Call, Forward, Watch

# What is done instead of calling the model's function: given that function and its arguments.
Attend = Callable[[Callable, tuple[Any, ...], dict[str, Any]], Any]

_attend: ContextVar[Attend | None] = ContextVar("headscope_interface_attend", default=None)
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
        return run_with(forward, partial(_observe, watch))


def run_with(forward: Forward, attend: Attend) -> Any:
    """Run the forward pass with `attend` in place of the model's own attention function."""
    install()
    with _attended_by(attend):
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
def _attended_by(attend: Attend | None) -> Iterator[None]:
    token = _attend.set(attend)
    try:
        yield
    finally:
        _attend.reset(token)


def _observed(original: Callable[..., Callable]) -> Callable[..., Callable]:
    @wraps(original)
    def get_interface(self: AttentionInterface, implementation: str, default: Callable) -> Callable:
        resolved = original(self, implementation, default)
        if implementation != "eager" or _attend.get() is None:
            return resolved
        return partial(_dispatch, resolved)

    return get_interface


def _dispatch(resolved: Callable, *args: Any, **kwargs: Any) -> Any:
    attend = _attend.get()
    if attend is None:
        return resolved(*args, **kwargs)
    # An observer may run another network: that must not be taken for a layer of this one.
    with _attended_by(None):
        return attend(resolved, args, kwargs)


def _observe(
    watch: Watch, resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    result = resolved(*args, **kwargs)
    if result[1] is not None:
        watch(_call(bind(resolved, args, kwargs), result[0], result[1]))
    return result


def bind(function: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Name every argument as the attention function names it."""
    names = _positional(function)
    return {**dict(zip(names, args, strict=False)), **kwargs}


@lru_cache(maxsize=256)
def _positional(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _call(given: dict[str, Any], output: Tensor, weights: Tensor) -> Call:
    module: nn.Module = given["module"]
    query: Tensor = given["query"]
    scaling = scale(given)
    extras = {k: v for k, v in given.items() if k not in _NAMED | _SILENT and v is not None}
    if scaling is None:
        extras["scaling"] = given["scaling"]
    return Call(
        weights=weights,
        module=module,
        query=query,
        key=given["key"],
        value=given["value"],
        scaling=scaling,
        mask=given.get("attention_mask"),
        extras=extras,
        output=output,
    )


def scale(given: Mapping[str, Any]) -> float | None:
    """What the scores are multiplied with; None where every head has a factor of its own."""
    scaling = given.get("scaling")
    if scaling is None:
        return given["query"].shape[-1] ** -0.5  # what bodies without an explicit scaling do
    if isinstance(scaling, Tensor) and scaling.numel() > 1:
        return None
    return float(scaling)
