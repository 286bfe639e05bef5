"""The backends that show attention while a forward pass runs, and what a probe records of them.

Interface: under `attn_implementation="eager"` a model asks transformers' `AttentionInterface` for a
function and falls back to its own. We hand it that same function inside an observer, so the model's
own arithmetic runs and we look at what goes in and what comes out: weights, queries, keys and
values. Nothing is computed twice and no softmax is rewritten.

Hooks, for families outside the interface: for each matrix that `output_attentions=True` returns on
the probe, the innermost module whose output carries that very tensor is hooked. The hook shows the
weights and replaces them with None, so that nothing accumulates.

Outputs: all layers at once, as the network reports them. This is the reference that every other
backend is proved against, and the last resort for families whose layers never return the matrices
one by one (XLNet).

What happens during a probe: attention calls, where they sit, which linear maps follow.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.modeling_utils import AttentionInterface
from transformers.pytorch_utils import Conv1D

from headscope.model.attention import BackendName, Forward, LayerAttention, Stack, Watch

FIELDS: dict[str, Stack] = {
    "attentions": "self",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}
Projection = nn.Linear | Conv1D

# What is done instead of calling the model's function: given that function and its arguments.
Attend = Callable[[Callable, tuple[Any, ...], dict[str, Any]], Any]

_attend: ContextVar[Attend | None] = ContextVar("headscope_interface_attend", default=None)

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
    with setting(_attend, attend):
        return forward()


@contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a variable of this context within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _observed(original: Callable[..., Callable]) -> Callable[..., Callable]:
    @wraps(original)
    def get_interface(self: AttentionInterface, implementation: str, default: Callable) -> Callable:
        resolved = original(self, implementation, default)
        if implementation != "eager" or _attend.get() is None:
            return resolved
        return partial(_dispatch, resolved)

    return get_interface


# Once per process: patched per forward pass, calls of other threads were lost. The context variable
# says who observes.
AttentionInterface.get_interface = _observed(AttentionInterface.get_interface)


def _dispatch(resolved: Callable, *args: Any, **kwargs: Any) -> Any:
    attend = _attend.get()
    if attend is None:
        return resolved(*args, **kwargs)
    # An observer may run another network: that must not be taken for a layer of this one.
    with setting(_attend, None):
        return attend(resolved, args, kwargs)


def _observe(
    watch: Watch, resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    result = resolved(*args, **kwargs)
    if result[1] is not None:
        watch(attention_call(bind(resolved, args, kwargs), result[0], result[1]))
    return result


def bind(function: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Name every argument as the attention function names it."""
    names = _positional(function)
    return {**dict(zip(names, args, strict=False)), **kwargs}


@lru_cache(maxsize=256)
def _positional(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def attention_call(given: dict[str, Any], output: Tensor, weights: Tensor) -> LayerAttention:
    """What the arguments of an attention function and what it gave show of a layer."""
    scaling = scale(given)
    extras = {k: v for k, v in given.items() if k not in _NAMED | _SILENT and v is not None}
    if scaling is None:
        extras["scaling"] = given["scaling"]
    return LayerAttention(
        weights=weights,
        module=given["module"],
        query=given["query"],
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


@dataclass(frozen=True, slots=True)
class Site:
    """A module and the place of the attention weights in what it returns."""

    module: nn.Module
    place: int | str


class HooksBackend:
    """Observes the modules that return attention weights.

    A pass has its own hooks, which are silent in the passes of other threads: threads that share a
    network do not disturb each other.
    """

    name: BackendName = "hooks"

    def __init__(self, sites: Sequence[Site]) -> None:
        self._watch: ContextVar[Watch | None] = ContextVar("headscope_hooks_watch", default=None)
        self._sites = sites

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass with hooks on the modules."""
        # transformers records outputs with hooks of its own: ours must come first to spare the
        # memory.
        handles = [
            site.module.register_forward_hook(self._hook(site.place, watch), prepend=True)
            for site in self._sites
        ]
        try:
            with setting(self._watch, watch):
                return forward(output_attentions=True)
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, place: int | str, watch: Watch) -> Any:
        def hook(module: nn.Module, _args: Any, output: Any) -> Any:
            weights = dict(_entries(output)).get(place)
            if self._watch.get() is not watch or weights is None:
                return None
            with setting(self._watch, None):
                watch(LayerAttention(weights=weights, module=module))
            return _without(output, place)

        return hook


@contextmanager
def hooked(modules: Iterable[nn.Module], look: Callable[..., None]) -> Iterator[None]:
    """Show what goes in and out of modules, in the order in which they finish."""
    handles = [module.register_forward_hook(look) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def find_sites(network: nn.Module, forward: Forward) -> Iterator[list[Site]]:
    """The modules that return the network's attention: the innermost ones, then those around them.

    The innermost may be part of the arithmetic (I-BERT's softmax), so that its output is needed.
    """
    seen: list[tuple[nn.Module, Any]] = []

    def remember(module: nn.Module, _args: Any, output: Any) -> None:
        seen.append((module, output))

    with hooked(network.modules(), remember):
        returned = reported(forward(output_attentions=True))
    sites_of = [_sites(seen, matrix) for stack in returned.values() for matrix in stack]
    for depth in range(min(len(sites) for sites in sites_of)):
        yield list(dict.fromkeys(sites[depth] for sites in sites_of))


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


class OutputsBackend:
    """Shows the layers after the forward pass; memory grows with the number of layers."""

    name: BackendName = "outputs"

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass, then show what it reports."""
        output = forward(output_attentions=True)
        for matrices in reported(output).values():
            for weights in matrices:
                watch(LayerAttention(weights=weights))
        return output


def reported(output: Any) -> dict[Stack, tuple[Tensor, ...]]:
    """The attention matrices in a network's output, by stack, without the layers that have none."""
    by_stack: dict[Stack, tuple[Tensor, ...]] = {}
    for name, stack in FIELDS.items():
        entries = getattr(output, name, None) or ()
        matrices = tuple(entry for entry in entries if isinstance(entry, Tensor))
        if matrices:
            by_stack[stack] = matrices
    return by_stack


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a list of layers."""

    layers: nn.ModuleList
    index: int


@dataclass
class Event:
    """One attention call, where it happened, and which linear maps ran between it and the next."""

    call: LayerAttention
    place: Place | None
    linears: list[tuple[nn.Module, Tensor]] = field(default_factory=list)

    def projection(self) -> Projection | None:
        """W_O of the attention layer, if its matrix can be read."""
        receiver = self.receiver()
        return receiver if isinstance(receiver, Projection) and self._is_plain(receiver) else None

    def receiver(self) -> nn.Module | None:
        """The linear map that received exactly the call's output."""
        output = self.call.output
        if output is None:
            return None
        flat = output.flatten(-2)
        for linear, given in self.linears:
            if given.shape == flat.shape and torch.equal(given, flat):
                return linear
        return None

    def _is_plain(self, receiver: Projection) -> bool:
        """Quantised layers hold bytes, packed blocks, or a tensor class of their own."""
        weight, output = receiver.weight, self.call.output
        plain = type(weight) in (Tensor, nn.Parameter)
        return plain and output is not None and weight.dtype == output.dtype and weight.ndim == 2


class Recorder:
    """Collects the events of one forward pass of a network."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._places: list[Place] = []
        self.events: list[Event] = []

    def watch(self, call: LayerAttention) -> None:
        """Record an attention call; the outermost list of layers is the one that counts."""
        self.events.append(Event(call, self._places[0] if self._places else None))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Follow the forward pass through the layers and linear maps of the network."""
        handles = [*self._follow_layers(), *self._follow_linears()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _follow_layers(self) -> Iterator[RemovableHandle]:
        for module in self._network.modules():
            if isinstance(module, nn.ModuleList):
                for index, layer in enumerate(module):
                    yield from self._follow(layer, Place(module, index))

    def _follow(self, layer: nn.Module, place: Place) -> Iterator[RemovableHandle]:
        def enter(*_: Any) -> None:
            self._places.append(place)

        def leave(*_: Any) -> None:
            self._places.remove(place)

        yield layer.register_forward_pre_hook(enter)
        yield layer.register_forward_hook(leave)

    def _follow_linears(self) -> Iterator[RemovableHandle]:
        def heard(module: nn.Module, args: tuple[Any, ...]) -> None:
            if self.events and args:
                self.events[-1].linears.append((module, args[0]))

        for module in self._network.modules():
            # Quantised layers need not be nn.Linear, but they keep its attributes.
            if isinstance(module, Projection) or hasattr(module, "in_features"):
                yield module.register_forward_pre_hook(heard)
