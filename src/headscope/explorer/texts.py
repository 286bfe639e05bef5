"""Tracing typed texts: one model, one worker thread, a bounded queue, a time limit.

The model is loaded by the worker, so that the explorer is up at once and works without it. A text
that fails, times out or comes while the queue is full gets an answer; the next one is served.
"""

import asyncio
import json
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError
from headscope.explorer.limits import BusyError, Limits, RefusedError
from headscope.explorer.schemas import ModelFacts, TextLimits, TextRequest
from headscope.explorer.typed import check_limits
from headscope.views import window
from headscope.views.payload import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.model.model import Model
    from headscope.model.trace import Trace
    from headscope.views import View

HANDOVER = 0.0005  # seconds
Capture = Callable[[int], "Trace"]


class Texts:
    """The model and the queue before it; `load` runs in the worker thread."""

    def __init__(
        self, name: str | None, load: Callable[[], "Model"] | None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._name = name or ""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="headscope-model")
        self._free = threading.BoundedSemaphore(self.limits.waiting)
        self._model: Future[Model] | None = (
            None if load is None else self._worker.submit(gently, load)
        )

    def offered(self) -> TextLimits:
        """What may be asked of the model."""
        return TextLimits(self.limits.text, self.limits.generate, self.limits.weights)

    def facts(self) -> ModelFacts:
        """The state of the model now; never waits."""
        if self._model is None:
            return ModelFacts("", "none", "Start `headscope serve` with --model to trace texts.")
        if not self._model.done():
            return ModelFacts(self._name, "loading")
        error = self._model.exception()
        if error is not None:
            return ModelFacts(self._name, "failed", sentence(error))
        return _facts(self._model.result())

    async def trace(self, request: TextRequest) -> Payload:
        """The payload of the view; raises RefusedError where there is none."""
        if self._model is None:
            raise RefusedError(409, "No model is loaded; start `headscope serve` with --model.")
        check_request(request, self.limits)
        if not self._free.acquire(blocking=False):
            raise BusyError(
                f"{self.limits.waiting} texts are waiting for the model; try again soon."
            )
        job = self._worker.submit(self._trace, self._model, request)
        job.add_done_callback(lambda _: self._free.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self.limits.seconds)
        except TimeoutError:
            raise BusyError(
                f"The model took longer than {self.limits.seconds:g} seconds."
            ) from None

    def _trace(self, loading: "Future[Model]", request: TextRequest) -> Payload:
        error = loading.exception()
        if error is not None:
            raise RefusedError(
                409, f"The model {self._name} could not be loaded: {sentence(error)}"
            )
        try:
            return trace_payload(loading.result(), request, self.limits)
        except RefusedError:
            raise
        except HeadscopeError as mistake:
            raise RefusedError(422, str(mistake)) from mistake
        except Exception as failure:  # whatever a network raises, the next text must be served
            raise RefusedError(
                422, f"The model failed on this text: {sentence(failure)}"
            ) from failure

    def close(self) -> None:
        """Forget what is waiting and let the worker end."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def gently(load: Callable[[], "Model"]) -> "Model":
    """Load a model so that visitors are answered meanwhile: importing torch takes seconds, and a
    thread that computes hands over only so often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(HANDOVER)
    try:
        return load()
    finally:
        sys.setswitchinterval(before)


def trace_payload(model: "Model", request: TextRequest, limits: Limits) -> Payload:
    """Trace the text and pack its view; of a long text the header and the blocks asked for."""
    is_long = _check_size(model, request, limits)
    trace = partial(
        model.trace,
        request.text,
        request.pair,
        target=request.target,
        generate=request.generate,
    )
    if not is_long:
        return _view(trace(), request).payload
    payload = _view(layerwise(model, lambda layer: trace(layers=[layer])), request).payload
    return Payload(payload.header, _chosen(payload.blocks, request.blocks or []))


def _view(trace: "Trace", request: TextRequest) -> "View":
    if request.kind == "head":
        heads = None if request.head is None else [request.head]
        return trace.head_view(layer=request.layer, heads=heads)
    view = trace.model_view if request.kind == "model" else trace.neuron_view
    return view(layer=request.layer, head=request.head)


def _chosen(blocks: Sequence[bytes], wanted: Sequence[int]) -> tuple[bytes, ...]:
    unknown = [number for number in wanted if not 0 <= number < len(blocks)]
    if unknown:
        raise RefusedError(
            422, f"There is no block {unknown[0]}; this text has {len(blocks)} blocks."
        )
    return tuple(blocks[number] for number in wanted)


def check_request(request: TextRequest, limits: Limits) -> None:
    """Refuse what is empty or too long, before it takes a place in the queue."""
    if not request.text.strip():
        raise RefusedError(422, "The text is empty; type at least one word.")
    check_limits(request, limits)


def sentence(error: BaseException) -> str:
    """The first line of an error, as a sentence for a visitor."""
    lines = str(error).strip().splitlines()
    return lines[0][:500] if lines else type(error).__name__


def _facts(model: "Model") -> ModelFacts:
    return ModelFacts(
        model.name,
        "ready",
        layers=model.layers,
        heads=model.heads,
        causal=model.is_causal,
        encoder_decoder=model.is_encoder_decoder,
        max_length=model.max_length,
    )


def _check_size(model: "Model", request: TextRequest, limits: Limits) -> bool:
    """Count the weights that will lie in memory at once, before the network runs; is it long?

    Those of the whole trace; of a text too long for one window those of a layer.
    """
    encoded = model.encode(request.text, request.pair)
    tokens = len(encoded.ids) + request.generate
    target = 0 if request.target is None else len(model.encode_target(request.target).ids)
    is_long = max(tokens, target) > window.SPAN * window.TILE and request.kind != "neuron"
    layers = [1 if is_long else stack.layers for stack in model.stacks]
    heads = sum(n * stack.heads for n, stack in zip(layers, model.stacks, strict=True))
    if heads * tokens**2 > limits.weights:
        most = int((limits.weights / heads) ** 0.5)
        raise RefusedError(
            413,
            f"This text has {tokens} tokens; with the {heads} heads of {model.name} the explorer "
            f"takes {most}. Shorten it.",
        )
    return is_long


@dataclass(frozen=True)
class Layers(Mapping[int, "Tensor"]):
    """Something of every layer by its number, captured when it is asked for."""

    numbers: tuple[int, ...]
    read: Callable[[int], "Tensor"]

    def __getitem__(self, layer: int) -> "Tensor":
        return self.read(layer)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def layerwise(model: "Model", capture: Capture) -> "Trace":
    """A long text's trace, captured layer by layer as its layers are looked at.

    One layer is in memory at a time; `capture` traces the layers of one number. Queries and keys
    are not part of it: the views of long texts need weights and norms alone.
    """
    once = lru_cache(maxsize=1)(capture)
    first = once(min(layer for stack in model.stacks for layer in stack.attending))
    plans = {stack.name: stack for stack in model.stacks}
    stacks = {
        name: replace(
            stack,
            layers=plans[stack.name].attending,
            weights=Layers(plans[stack.name].attending, _weights(once, name)),
            query=None,
            key=None,
            value=None,
            bias=None,
            value_norms=None
            if stack.value_norms is None
            else Layers(plans[stack.name].attending, _norms(once, name)),
        )
        for name, stack in first.stacks.items()
    }
    return replace(first, stacks=stacks)


def _weights(capture: Capture, stack: str) -> Callable[[int], "Tensor"]:
    return lambda layer: capture(layer).stacks[stack].weights[layer]


def _norms(capture: Capture, stack: str) -> Callable[[int], "Tensor"]:
    def read(layer: int) -> "Tensor":
        norms = capture(layer).stacks[stack].value_norms
        assert norms is not None  # the first layer had them
        return norms[layer]

    return read


def frame(payload: Payload) -> Iterator[bytes]:
    """A view's payload on the wire: length of the header, the header as JSON, the blocks.

    The length has 4 bytes, little-endian; the header is `{"header": …, "blocks": [sizes]}`.
    """
    sizes = [len(block) for block in payload.blocks]
    head = json.dumps({"header": payload.header, "blocks": sizes}, allow_nan=False).encode()
    yield struct.pack("<I", len(head))
    yield head
    yield from payload.blocks
