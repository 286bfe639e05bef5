"""Attention of families outside the interface: the modules that return weights are hooked.

Which modules these are is found on the probe: for each matrix that `output_attentions=True`
returns, the innermost module whose tuple output carries that very tensor. The hook shows the
weights and replaces them with None, so that nothing accumulates.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from headscope.model.capture.call import BackendName, Call, Forward, Watch
from headscope.model.capture.outputs import reported


@dataclass(frozen=True, slots=True)
class Site:
    """A module and the place of the attention weights in the tuple it returns."""

    module: nn.Module
    index: int


class HooksBackend:
    """Observes the modules that return attention weights.

    The hooks are set once and stay silent unless this backend runs in the current context, so
    threads that share a network do not disturb each other.
    """

    name: BackendName = "hooks"

    def __init__(self, sites: Sequence[Site]) -> None:
        self._watch: ContextVar[Watch | None] = ContextVar("headscope_hooks_watch", default=None)
        # transformers records outputs with hooks of its own: ours must come first to spare the
        # memory.
        self._handles = [
            site.module.register_forward_hook(self._hook(site.index), prepend=True)
            for site in sites
        ]

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass with the hooks awake."""
        with self._watched_by(watch):
            return forward(output_attentions=True)

    def remove(self) -> None:
        """Take the hooks off the network."""
        for handle in self._handles:
            handle.remove()

    @contextmanager
    def _watched_by(self, watch: Watch | None) -> Iterator[None]:
        token = self._watch.set(watch)
        try:
            yield
        finally:
            self._watch.reset(token)

    def _hook(self, index: int) -> Any:
        def hook(module: nn.Module, _args: Any, output: Any) -> Any:
            watch = self._watch.get()
            if watch is None or not isinstance(output, tuple) or output[index] is None:
                return None
            with self._watched_by(None):
                watch(Call(weights=output[index], module=module))
            return (*output[:index], None, *output[index + 1 :])

        return hook


def find_sites(network: nn.Module, forward: Forward) -> list[Site] | None:
    """The innermost modules that return the attention, or None if a matrix has no such module."""
    seen: list[tuple[nn.Module, tuple[Any, ...]]] = []

    def remember(module: nn.Module, _args: Any, output: Any) -> None:
        if isinstance(output, tuple):
            seen.append((module, output))

    handles = [module.register_forward_hook(remember) for module in network.modules()]
    try:
        returned = reported(forward(output_attentions=True))
    finally:
        for handle in handles:
            handle.remove()
    sites = [_site(seen, matrix) for stack in returned.values() for matrix in stack]
    return None if None in sites else list(dict.fromkeys(s for s in sites if s is not None))


def _site(seen: list[tuple[nn.Module, tuple[Any, ...]]], matrix: Tensor) -> Site | None:
    """The first module to finish is the innermost one."""
    for module, output in seen:
        for index, entry in enumerate(output):
            if entry is matrix:
                return Site(module, index)
    return None
