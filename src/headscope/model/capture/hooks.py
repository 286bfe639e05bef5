"""Attention of families outside the interface, from what their modules return.

Hooks: for each matrix that `output_attentions=True` returns on the probe, the innermost module
whose output carries that very tensor is hooked. The hook shows the weights and replaces them with
None, so that nothing accumulates.

Outputs: all layers at once, as the network reports them. This is the reference that every other
backend is proved against, and the last resort for families whose layers never return the matrices
one by one (XLNet).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from headscope.model.attention import Stack
from headscope.model.capture.call import BackendName, Call, Forward, Watch


@dataclass(frozen=True, slots=True)
class Site:
    """A module and the place of the attention weights in what it returns."""

    module: nn.Module
    place: int | str


class HooksBackend:
    """Observes the modules that return attention weights.

    The hooks are on the network while a pass of this backend runs in any thread, and silent in
    every other: threads that share a network do not disturb each other.
    """

    name: BackendName = "hooks"

    def __init__(self, sites: Sequence[Site]) -> None:
        self._watch: ContextVar[Watch | None] = ContextVar("headscope_hooks_watch", default=None)
        self._sites = sites
        self._lock = Lock()
        self._passes = 0
        self._handles: list[RemovableHandle] = []

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass with the hooks awake."""
        with self._hooked(), self._watched_by(watch):
            return forward(output_attentions=True)

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        with self._lock:
            if self._passes == 0:
                # transformers records outputs with hooks of its own: ours must come first to spare
                # the memory.
                self._handles = [
                    site.module.register_forward_hook(self._hook(site.place), prepend=True)
                    for site in self._sites
                ]
            self._passes += 1
        try:
            yield
        finally:
            with self._lock:
                self._passes -= 1
                if self._passes == 0:
                    for handle in self._handles:
                        handle.remove()

    @contextmanager
    def _watched_by(self, watch: Watch | None) -> Iterator[None]:
        token = self._watch.set(watch)
        try:
            yield
        finally:
            self._watch.reset(token)

    def _hook(self, place: int | str) -> Any:
        def hook(module: nn.Module, _args: Any, output: Any) -> Any:
            watch = self._watch.get()
            weights = dict(_entries(output)).get(place)
            if watch is None or weights is None:
                return None
            with self._watched_by(None):
                watch(Call(weights=weights, module=module))
            return _without(output, place)

        return hook


def find_sites(network: nn.Module, forward: Forward) -> Iterator[list[Site]]:
    """The modules that return the network's attention: the innermost ones, then those around them.

    The innermost may be part of the arithmetic (I-BERT's softmax), so that its output is needed.
    """
    seen: list[tuple[nn.Module, Any]] = []

    def remember(module: nn.Module, _args: Any, output: Any) -> None:
        seen.append((module, output))

    handles = [module.register_forward_hook(remember) for module in network.modules()]
    try:
        returned = reported(forward(output_attentions=True))
    finally:
        for handle in handles:
            handle.remove()
    found = [_sites(seen, matrix) for stack in returned.values() for matrix in stack]
    for depth in range(min(len(sites) for sites in found)):
        yield list(dict.fromkeys(sites[depth] for sites in found))


def _sites(seen: list[tuple[nn.Module, Any]], matrix: Tensor) -> list[Site]:
    """The first module to finish is the innermost one."""
    return [
        Site(module, place)
        for module, output in seen
        for place, entry in _entries(output)
        if entry is matrix
    ]


def _entries(output: Any) -> Iterable[tuple[int | str, Any]]:
    if type(output) is dict:
        return output.items()
    return enumerate(output) if type(output) in (tuple, list) else ()


def _without(output: Any, place: int | str) -> Any:
    if type(output) is dict:
        return {**output, place: None}
    return type(output)(None if index == place else entry for index, entry in _entries(output))


FIELDS: dict[str, Stack] = {
    "attentions": "self",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}


class OutputsBackend:
    """Shows the layers after the forward pass; memory grows with the number of layers."""

    name: BackendName = "outputs"

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass, then show what it reports."""
        output = forward(output_attentions=True)
        for matrices in reported(output).values():
            for weights in matrices:
                watch(Call(weights=weights))
        return output


def reported(output: Any) -> dict[Stack, tuple[Tensor, ...]]:
    """The attention matrices in a network's output, by stack, without the layers that have none."""
    found: dict[Stack, tuple[Tensor, ...]] = {}
    for field, stack in FIELDS.items():
        entries = getattr(output, field, None) or ()
        matrices = tuple(entry for entry in entries if isinstance(entry, Tensor))
        if matrices:
            found[stack] = matrices
    return found
