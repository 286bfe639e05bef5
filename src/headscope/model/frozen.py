"""A network as a linear map of what its parts write: what is not linear is held at its value.

```
embedding ─┬──────────────┬──────────┬─► …          written, each a number that stands by itself:
           └ norm ► q k v ► z W_O ─ + ─ norm ► MLP   embeddings, what heads found (z), MLPs
```

Norms are held at their size, attention at its weights, an MLP at its output. Then queries and keys
of every layer are linear in all that was written before: gradient × value is what a part adds, and
with what a network makes of nothing at all (biases) the parts sum to the whole.

What is a norm, what is linear and what has to be held is found on the probe, as with attention, and
the sums are proved there. No class is known here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.model.attention import Forward, LayerAttention, Stack, widen
from headscope.model.capture.backends import attention_call, bind, run_with, setting
from headscope.model.capture.dense import Expectation, Progress
from headscope.model.capture.modes import FAILURES
from headscope.model.capture.plan import Plan
from headscope.model.inputs.batch import vocabulary_size
from headscope.model.loading.network import evaluating
from headscope.model.norms import Norm, centre, find_norm

Kind = Literal["embedding", "position", "segment", "head", "mlp"]
SLACK = {torch.float32: 1e-4, torch.float64: 1e-6}  # of sums, by their size
_SLACK_OF_HALVES = 2e-2
_SPREAD = 3.0  # of the random numbers on which a module is tried: no activation is linear there


@dataclass(frozen=True)
class Parts:
    """Which modules are norms, and which write something that is held."""

    norms: Mapping[nn.Module, Norm]
    written: Mapping[nn.Module, Kind]


@dataclass(frozen=True)
class Written:
    """What one part of the network wrote, as a leaf of the graph of a pass."""

    kind: Kind
    values: Float[Tensor, "batch token *more"]  # of heads: what each found, batch token head width
    stack: Stack | None = None  # of heads
    layer: int | None = None  # of heads and MLPs; None before the first layer


@dataclass
class FrozenPass:
    """A pass in which everything but linear maps was held."""

    written: list[Written] = field(default_factory=list)
    calls: list[LayerAttention] = field(default_factory=list)  # queries and keys have a graph
    sizes: list[Tensor] = field(default_factory=list)  # of norms, in the order of their calls

    def with_values(self, values: Sequence[Tensor]) -> "FrozenPass":
        """The same with other numbers written."""
        changed = zip(self.written, values, strict=True)
        return FrozenPass([replace(p, values=v) for p, v in changed], sizes=self.sizes)

    def with_nothing(self) -> "FrozenPass":
        """The same with nothing written, so that what it computes are biases."""
        return self.with_values([torch.zeros_like(part.values) for part in self.written])

    def call(self, stack: Stack, layer: int) -> LayerAttention:
        """The attention of one layer."""
        return next(c for c in self.calls if (c.stack, c.layer) == (stack, layer))


_running: ContextVar["_Running | None"] = ContextVar("headscope_frozen", default=None)


class _Running:
    """Fills a pass. `like` a pass before, nothing is written: what is left are biases."""

    def __init__(self, parts: Parts, texts: int = 1, like: FrozenPass | None = None) -> None:
        self.parts = parts
        self.result = FrozenPass()
        self.stack: Stack | None = None
        self.layer: int | None = None  # of the latest attention
        self._texts = texts
        self._like = like

    def norm(self, norm: Norm, given: Tensor, gave: Tensor) -> Tensor:
        """The output of a norm whose size is held."""
        values = widen(given)
        number = len(self.result.sizes)
        size = norm.size(values.detach()) if self._like is None else self._like.sizes[number]
        self.result.sizes.append(size)
        return (norm.gain * centre(values, norm.is_centred) / size + norm.bias).to(gave.dtype)

    def write(self, kind: Kind, gave: Tensor) -> Tensor:
        """What goes on in the place of something written."""
        if self._like is not None:
            leaf = self._like.written[len(self.result.written)].values.detach()
        else:
            leaf = gave.detach()
            if len(leaf) == 1:  # positions, of all texts at once
                leaf = leaf.repeat(self._texts, *[1] * (leaf.ndim - 1))
            leaf.requires_grad_()
        layer = self.layer if kind in ("head", "mlp") else None
        self.result.written.append(Written(kind, leaf, self.stack, layer))
        return leaf.clone()  # networks add in place, which a leaf does not allow

    def look(self, module: nn.Module, args: Any, kwargs: dict[str, Any], gave: Any) -> Any:
        """A hook on norms and on modules that write."""
        if module in self.parts.norms:
            given = _numbers(args, kwargs)[0]
            return self.norm(self.parts.norms[module], given, gave)
        values = first_tensor(gave)
        assert values is not None
        written = self.write(self.parts.written[module], values)
        return written if values is gave else type(gave)([written, *gave[1:]])


@contextmanager
def _frozen(running: _Running) -> Iterator[None]:
    """Hold norms and what is written in the passes of this context; other threads see nothing."""

    def look(module: nn.Module, args: Any, kwargs: dict[str, Any], gave: Any) -> Any:
        active = _running.get()
        return running.look(module, args, kwargs, gave) if active is running else None

    modules = [*running.parts.norms, *running.parts.written]
    handles = [m.register_forward_hook(look, with_kwargs=True, prepend=True) for m in modules]
    try:
        with setting(_running, running):
            yield
    finally:
        for handle in handles:
            handle.remove()


def run_frozen(
    forward: Forward,
    plan: Plan,
    parts: Parts,
    expected: Mapping[Stack, Expectation],
    like: FrozenPass | None = None,
) -> FrozenPass:
    """Run the network with all held, at what it is itself or as in another pass."""
    progress, texts = Progress(plan, expected), len(next(iter(expected.values())).queries)
    running = _Running(parts, texts, like)

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with torch.no_grad():
            output, weights, *more = resolved(*args, **kwargs)
        if weights is None:
            return output, weights, *more
        call = attention_call(bind(resolved, args, kwargs), output, weights)
        slot = progress.next()
        if slot is not None:
            running.stack, running.layer = slot.stack, slot.layer
            running.result.calls.append(replace(call, stack=slot.stack, layer=slot.layer))
        return running.write("head", output), weights, *more

    with torch.set_grad_enabled(like is None), _frozen(running):
        run_with(forward, attend)
    progress.finish()
    return running.result


@dataclass
class _Call:
    """A module that ran on the probe, with what ran inside it."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    gave: Any = None
    inner: list["_Call"] = field(default_factory=list)
    attends: bool = False

    def everything(self) -> "Iterator[_Call]":
        """The calls inside it, at any depth."""
        for call in self.inner:
            yield call
            yield from call.everything()


def find_parts(network: PreTrainedModel, forward: Forward) -> Parts:
    """What is a norm and what writes, as a pass over the probe shows."""
    with evaluating(network):  # modules are called on their own here, and dropout is not linear
        return _hold(_follow(network, forward), vocabulary_size(network))


def _hold(call: _Call, words: int) -> Parts:
    """What has to be held in a module, such that all else in it is linear.

    It is as little as can be: of a module that adds to its input, not the sum but what is added.
    """
    given, gave = _numbers(call.args, call.kwargs), first_tensor(call.gave)
    if isinstance(call.module, nn.Embedding):
        if gave is None or gave.ndim != 3:  # such as a bias of relative positions
            return Parts({}, {})
        return Parts({}, {call.module: _kind_of(call.module, gave, words)})
    tables = [part for part in call.everything() if isinstance(part.module, nn.Embedding)]
    if call.attends or not given or tables:
        return _together(call, words)
    inside = _together(call, words)
    if gave is None or is_linear(call, inside, passes_on=bool(inside.written)):
        return inside
    norm = _norm_of(call)
    return Parts({}, {call.module: "mlp"}) if norm is None else Parts({call.module: norm}, {})


def _together(call: _Call, words: int) -> Parts:
    norms: dict[nn.Module, Norm] = {}
    written: dict[nn.Module, Kind] = {}
    for inner in call.inner:
        parts = _hold(inner, words)
        norms.update(parts.norms)
        written.update(parts.written)
    return Parts(norms, written)


def _follow(network: nn.Module, forward: Forward) -> _Call:
    """Every module that runs, inside the one that calls it."""
    root = _Call(network, (), {})
    open_calls = [root]

    def enter(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        call = _Call(module, args, kwargs)
        open_calls[-1].inner.append(call)
        open_calls.append(call)

    def leave(module: nn.Module, args: Any, gave: Any) -> None:
        open_calls.pop().gave = gave

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for call in open_calls:
            call.attends = True
        return resolved(*args, **kwargs)

    handles: list[Any] = []
    for module in network.modules():
        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(module.register_forward_hook(leave))
    try:
        with torch.no_grad():
            run_with(forward, attend)
    finally:
        for handle in handles:
            handle.remove()
    return root


def _kind_of(table: nn.Embedding, gave: Tensor, words: int) -> Kind:
    """What an embedding is of: tokens, positions, or the segments of a pair."""
    if table.num_embeddings >= words:
        return "embedding"
    return "segment" if torch.equal(gave, gave[:, :1].expand_as(gave)) else "position"


def _norm_of(call: _Call) -> Norm | None:
    given, gave = _numbers(call.args, call.kwargs), call.gave
    if len(given) != 1 or not isinstance(gave, Tensor) or gave.shape != given[0].shape:
        return None
    if gave.ndim < 2 or call.inner:
        return None
    try:
        return find_norm(call.module, given[0], gave)
    except FAILURES:
        return None


def is_linear(call: _Call, parts: Parts, *, passes_on: bool = False) -> bool:
    """Whether a module is linear, up to a bias, in what it is given and what its parts write.

    With `passes_on` it also has to depend on what it is given if its parts write nothing.
    """
    generator = torch.Generator().manual_seed(0)

    def run(given: Sequence[Tensor], like: FrozenPass | None) -> tuple[Tensor, FrozenPass]:
        left, running = iter(given), _Running(parts, like=like)
        args = [next(left) if _is_number(part) else part for part in call.args]
        named = {n: next(left) if _is_number(v) else v for n, v in call.kwargs.items()}
        with torch.no_grad(), _frozen(running):
            values = first_tensor(call.module(*args, **named))
        assert values is not None
        return widen(values), running.result

    try:
        given = _numbers(call.args, call.kwargs)
        _, held = run(given, None)
        inputs = [*given, *(part.values.detach() for part in held.written)]
        one, other = (_random(inputs, generator) for _ in range(2))
        both = [left + right for left, right in zip(one, other, strict=True)]
        nothing = [torch.zeros_like(part) for part in inputs]
        count = len(given)
        first, second, sums, rest, silent = (
            run(values[:count], held.with_values(values[count:]))[0]
            for values in (one, other, both, nothing, [*one[:count], *nothing[count:]])
        )
    except FAILURES:
        return False
    slack = SLACK.get(given[0].dtype, _SLACK_OF_HALVES) * sums.square().mean().sqrt()
    if passes_on and (silent - rest).square().mean() <= slack * slack:
        return False
    return bool((first + second - sums - rest).square().mean() <= slack * slack)


def _random(like: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
    numbers = [torch.randn(part.shape, generator=generator) * _SPREAD for part in like]
    return [made.to(part.device, part.dtype) for made, part in zip(numbers, like, strict=True)]


def _numbers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of numbers that are given to a module."""
    return [part for part in (*args, *kwargs.values()) if _is_number(part)]


def _is_number(part: Any) -> bool:
    return isinstance(part, Tensor) and part.is_floating_point()


def first_tensor(gave: Any) -> Tensor | None:
    """What a module gives, or the first of several."""
    first: Any = gave[0] if isinstance(gave, tuple | list) and gave else gave
    return first if _is_number(first) else None


def why_not_linear(frozen: FrozenPass, nothing: FrozenPass, plain: FrozenPass) -> str | None:
    """Why queries and keys are not the sums of what was written, or None if they are.

    All are summed with random signs, so that no error is made up for by another.
    """
    generator = torch.Generator().manual_seed(0)
    total = parts = scale = 0.0
    sums: list[Tensor] = []
    for call, rest, own in zip(frozen.calls, nothing.calls, plain.calls, strict=True):
        for name in ("query", "key"):
            values, bare, expected = (getattr(each, name) for each in (call, rest, own))
            slack = SLACK.get(values.dtype, _SLACK_OF_HALVES) * float(expected.abs().max())
            if float((values - expected).detach().abs().max()) > 10 * slack:
                return "its norms are not known"
            signs = torch.randn(values.shape, generator=generator).to(values.device)
            sums.append((widen(values) * signs).sum())
            total += float(sums[-1].detach())
            parts += float((widen(bare) * signs).sum())
            scale += float((widen(values) * signs).detach().abs().sum())
    leaves = [part.values for part in frozen.written]
    slopes = torch.autograd.grad(sum(sums[1:], sums[0]), leaves, allow_unused=True)
    for slope, leaf in zip(slopes, leaves, strict=True):
        if slope is not None:
            parts += float((widen(slope) * widen(leaf.detach())).sum())
    if not abs(total - parts) <= SLACK.get(leaves[0].dtype, _SLACK_OF_HALVES) * scale / 10:
        return "its queries and keys are not sums of what earlier parts wrote"
    return None
