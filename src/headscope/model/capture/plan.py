"""How a network's attention is captured: decided and proved on a probe when the model is loaded.

Five source and three target tokens tell the stacks apart by shape alone, without module names:
encoder or only stack 5×5, decoder 3×3, cross 3×5.

What no probe of five tokens can show is decided by a model's family. BigBird, for one, computes
dense attention on short inputs and blocks of it on long ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headscope.errors import CaptureError
from headscope.model.attention import Backend, BackendName, Forward, Stack, is_close, rebuilds, sink
from headscope.model.capture.backends import (
    Event,
    HooksBackend,
    InterfaceBackend,
    OutputsBackend,
    Projection,
    Recorder,
    find_sites,
    reported,
)
from headscope.model.capture.dense import TOLERANCE, Expectation

_BANDED = "computes attention only in a band around each token"
_BLOCKS = "computes attention in blocks and leaves out the rest"
_APPROXIMATE = "only approximates attention weights"
_NONE = "has no attention"

REASONS: dict[str, str] = {
    "longformer": _BANDED,
    "led": f"{_BANDED} in its encoder",
    "longt5": f"{_BANDED} in its encoder",
    "pegasus_x": f"{_BLOCKS} in its encoder",
    "big_bird": f"{_BLOCKS} (block_sparse; original_full is supported)",
    "bigbird_pegasus": f"{_BLOCKS} in its encoder (block_sparse; original_full is supported)",
    "canine": f"{_BANDED} and on a shortened input",
    "reformer": f"{_APPROXIMATE} by hashing",
    "yoso": f"{_APPROXIMATE} by hashing",
    "mra": f"{_APPROXIMATE} at several resolutions",
    "nystromformer": f"{_APPROXIMATE} by landmarks",
    "funnel": "pools its queries, so that later layers have fewer tokens than the input",
    "fnet": f"{_NONE}: it mixes tokens by Fourier transform",
    "mamba": f"{_NONE}: it is a state-space model",
    "mamba2": f"{_NONE}: it is a state-space model",
    "falcon_mamba": f"{_NONE}: it is a state-space model",
    "rwkv": f"{_NONE}: it is a recurrent network",
    "xlstm": f"{_NONE}: it is a recurrent network",
}

# These are welcome with dense attention (attention_type="original_full").
_WITH_OPTION = {"big_bird", "bigbird_pegasus"}
SOURCE_TOKENS = 5
TARGET_TOKENS = 3
SHAPES: dict[Stack, tuple[int, int]] = {
    "self": (SOURCE_TOKENS, SOURCE_TOKENS),
    "encoder": (SOURCE_TOKENS, SOURCE_TOKENS),
    "decoder": (TARGET_TOKENS, TARGET_TOKENS),
    "cross": (TARGET_TOKENS, SOURCE_TOKENS),
}

Reference = Mapping[Stack, tuple[Tensor, ...]]
Mask = Bool[Tensor, "batch token"]


def check_family(name: str, config: PreTrainedConfig) -> None:
    """Refuse a family whose attention is not a dense matrix, with the reason."""
    has_option = config.model_type in _WITH_OPTION
    is_dense = has_option and getattr(config, "attention_type", None) == "original_full"
    reason = None if is_dense else REASONS.get(config.model_type)
    if reason is not None:
        raise CaptureError(
            f"{name} is a {config.model_type} model, which {reason}; Headscope shows dense softmax "
            "attention only, see docs/models.md."
        )


# Names of the window, of the list of layers, and of a layer that has the window.
_WINDOWS = (
    ("sliding_window", "layer_types", "sliding_attention"),
    ("window_size", "attention_layers", "local"),
)

# What these report as attention is what enters the softmax, mask included.
_REPORTS_SCORES = {"prophetnet", "squeezebert"}


def sliding_window(config: PreTrainedConfig, stack: Stack) -> tuple[int, tuple[int, ...]] | None:
    """The tokens that a window shows and the layers that have it; no layers listed means all.

    Windows are longer than the probe, so only the configuration knows of them.
    """
    if stack == "cross" or getattr(config, "use_sliding_window", True) is False:
        return None
    part = getattr(config, stack, None)
    text = part if isinstance(part, PreTrainedConfig) else config.get_text_config()
    for window, layers, kind in _WINDOWS:
        size, kinds = getattr(text, window, None), getattr(text, layers, None)
        if isinstance(size, int) and size > 0 and (kinds is None or kind in kinds):
            return size, tuple(i for i, each in enumerate(kinds or ()) if each == kind)
    return None


@dataclass(frozen=True, slots=True)
class Slot:
    """What one attention call of the forward pass is."""

    stack: Stack
    layer: int
    projection: Projection | None = None
    streams: int = 1  # how often the queries hold the text; the first time is the text itself
    scores: bool = False  # what is seen still has to go through the softmax


@dataclass(frozen=True, slots=True)
class StackPlan:
    """What the probe found out about one stack of layers."""

    name: Stack
    layers: int  # all layers of the stack, also those without attention
    heads: int
    key_heads: int
    backend: BackendName
    plain: bool  # softmax(scaling·q·k + bias) gives the weights
    attending: tuple[int, ...]  # the numbers of the layers that have attention
    causal: bool
    sink: bool  # part of each row goes to a learned sink: rows sum to less than 1
    no_neurons: str | None  # why queries and keys cannot be shown
    no_norms: str | None  # why the output projection is unknown


@dataclass(frozen=True, slots=True)
class Plan:
    """The proved way to capture a network: what every call of the backend stands for."""

    backend: Backend
    slots: tuple[Slot | None, ...]  # None: a call that is no layer of its own (DiffLlama)
    stacks: tuple[StackPlan, ...]

    def __repr__(self) -> str:
        stacks = ", ".join(f"{s.name}: {s.layers} layers × {s.heads} heads" for s in self.stacks)
        return f"Plan({self.backend.name}, {stacks})"

    def stack(self, name: Stack) -> StackPlan:
        """The plan of one stack."""
        return next(stack for stack in self.stacks if stack.name == name)

    def projection(self, stack: Stack, layer: int) -> Projection | None:
        """W_O of a layer, if its matrix can be read."""
        own = [slot for slot in self.slots if slot is not None and slot.stack == stack]
        return next(slot.projection for slot in own if slot.layer == layer)

    def expectations(
        self, model: str, source: Mask, target: Mask | None, padded: bool
    ) -> dict[Stack, Expectation]:
        """What must be true of the weights of every stack that runs, by what is padding."""
        expectations: dict[Stack, Expectation] = {}
        for stack in self.stacks:
            name, heads = stack.name, stack.heads
            queries = target if name in ("decoder", "cross") else source
            keys = target if name == "decoder" else source
            if queries is not None and keys is not None:
                expectations[name] = Expectation(
                    model, name, heads, queries, keys, stack.causal, stack.sink, padded
                )
        return expectations


def make_plan(name: str, network: PreTrainedModel, forward: Forward) -> Plan:
    """Find the first backend whose weights are those that the network itself reports."""
    with torch.no_grad():
        reference = _reference(name, network.config, forward)
        for backend in _backends(network, forward):
            events = _attempt(network, backend, forward)
            matched = _match(events, reference)
            if matched is not None:
                return _plan(backend, events, matched)
    raise CaptureError(
        f"{name} reports attention that cannot be traced to its layers; see docs/models.md."
    )


def _reference(name: str, config: PreTrainedConfig, forward: Forward) -> Reference:
    reference = reported(forward(output_attentions=True))
    # ProphetNet's decoder looks at the source once for the text, which comes first, and once more
    # for every n-gram it predicts.
    streams = 1 + getattr(config, "ngram", 0) if config.model_type == "prophetnet" else 1
    if not reference:
        raise CaptureError(
            f"{name} reports no attention weights: it has no attention layers, or none that can be "
            "seen; Headscope needs a Transformer with softmax attention."
        )
    for stack, matrices in reference.items():
        for matrix in matrices:
            if not _fits(matrix, stack, streams):
                raise CaptureError(
                    f"{name} computes banded, pooled or approximate attention of shape "
                    f"{tuple(matrix.shape)}, not batch × head × query × key; such layers are not "
                    "supported, see docs/models.md."
                )
            if not _are_weights(matrix) and config.model_type not in _REPORTS_SCORES:
                raise CaptureError(
                    f"{name} reports numbers as attention that are negative or sum to more than 1; "
                    "such weights cannot be trusted, see docs/models.md."
                )
        if len({matrix.shape[1] for matrix in matrices}) > 1:
            raise CaptureError(
                f"{name} has a different number of heads from layer to layer, which is not "
                "supported."
            )
    return reference


def _fits(matrix: Tensor, stack: Stack, streams: int) -> bool:
    queries, keys = SHAPES[stack]
    known = {queries, queries * streams} if stack == "cross" else {queries}
    return matrix.ndim == 4 and matrix.shape[2] in known and matrix.shape[3] == keys


def _are_weights(matrix: Tensor) -> bool:
    sums = matrix.float().sum(-1)
    return bool((matrix >= 0).all()) and bool((sums <= 1 + TOLERANCE[matrix.dtype]).all())


def _backends(network: nn.Module, forward: Forward) -> Iterator[Backend]:
    yield InterfaceBackend()
    yield from map(HooksBackend, find_sites(network, forward))
    yield OutputsBackend()


def _attempt(network: nn.Module, backend: Backend, forward: Forward) -> list[Event]:
    recorder = Recorder(network)
    try:
        with recorder.listening():
            backend.run(forward, recorder.watch)
    except (TypeError, AttributeError, RuntimeError):
        # A network that goes on computing with the weights fails without them: not its backend.
        return []
    return recorder.events


def _match(events: Sequence[Event], reference: Reference) -> list[Stack | None] | None:
    """The stack of every call, if the calls are the reference in order, else None."""
    found: dict[Stack, int] = dict.fromkeys(reference, 0)
    stacks: list[Stack | None] = []
    for weights in (event.call.weights for event in events):
        waiting: list[Stack] = [name for name, n in found.items() if n < len(reference[name])]
        slack = _tolerance(weights)
        stack: Stack | None = next(
            (s for s in waiting if is_close(weights, reference[s][found[s]], slack)), None
        )
        if stack is not None:
            found[stack] += 1
        stacks.append(stack)
    complete = all(count == len(reference[stack]) for stack, count in found.items())
    return stacks if complete else None


def _tolerance(weights: Tensor) -> float:
    return 1e-5 if weights.dtype == torch.float32 else TOLERANCE[weights.dtype]


def _plan(backend: Backend, events: Sequence[Event], stacks: Sequence[Stack | None]) -> Plan:
    names: list[Stack] = [name for name in SHAPES if name in stacks]
    slots: list[Slot | None] = [None] * len(events)
    plans: list[StackPlan] = []
    for name in names:
        positions = [i for i, stack in enumerate(stacks) if stack == name]
        own = [events[i] for i in positions]
        layers, attending = _numbers(own)
        for position, layer, event in zip(positions, attending, own, strict=True):
            streams = event.call.weights.shape[2] // SHAPES[name][0]
            scores = not _are_weights(event.call.weights)
            slots[position] = Slot(name, layer, event.projection(), streams, scores)
        plans.append(_stack_plan(name, own, layers, attending, backend.name))
    return Plan(backend, tuple(slots), tuple(plans))


def _numbers(events: Sequence[Event]) -> tuple[int, tuple[int, ...]]:
    """How many layers there are, and which of them these calls are.

    The position in the list of layers counts, so that hybrid models keep their numbers; where one
    layer object serves several times (ALBERT) only the order of the calls is left.
    """
    places = [event.place for event in events]
    first = places[0]
    if first is not None and all(p is not None and p.layers is first.layers for p in places):
        indices = [p.index for p in places if p is not None]
        if all(before < after for before, after in pairwise(indices)):
            return len(first.layers), tuple(indices)
    return len(events), tuple(range(len(events)))


def _stack_plan(
    name: Stack,
    events: Sequence[Event],
    layers: int,
    attending: tuple[int, ...],
    backend: BackendName,
) -> StackPlan:
    calls = [event.call for event in events]
    heads = calls[0].weights.shape[1]
    key = calls[0].key
    tolerance = _tolerance(calls[0].weights)
    return StackPlan(
        name=name,
        layers=layers,
        heads=heads,
        key_heads=heads if key is None else key.shape[1],
        backend=backend,
        plain=all(rebuilds(call, tolerance=tolerance, plain=True) for call in calls),
        attending=attending,
        causal=name != "cross" and all(not call.weights.triu(1).any() for call in calls),
        sink=any(sink(call) is not None for call in calls),
        no_neurons=_why_no_neurons(events, tolerance),
        no_norms=_why_no_norms(events),
    )


def _why_no_neurons(events: Sequence[Event], tolerance: float) -> str | None:
    if any(event.call.query is None for event in events):
        return "this family computes attention outside the attention interface"
    if not all(rebuilds(event.call, tolerance=tolerance) for event in events):
        return "its weights are not softmax(scaling·q·k + bias)"
    return None


def _why_no_norms(events: Sequence[Event]) -> str | None:
    if any(event.call.value is None for event in events):
        return "this family computes attention outside the attention interface"
    receivers = [event.receiver() for event in events if event.projection() is None]
    if any(receiver is None for receiver in receivers):
        return "no linear map receives the heads' output directly"
    if receivers:
        kind = type(receivers[0]).__name__
        return f"the matrix of its output projection ({kind}) is quantised and cannot be read"
    return None
