"""Tracing a text and packing its view: what the model's process does with each request."""

import json
import re
import signal
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from msgspec import structs

from headscope.errors import HeadscopeError
from headscope.explorer.wire import Limits, ModelFacts, RefusedError, TextRequest
from headscope.head import Head
from headscope.views import window
from headscope.views.kinds import kind_of
from headscope.views.payload import Payload
from headscope.views.view import open_view
from headscope.wording import counted

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.model.difference import Difference
    from headscope.model.model import Model
    from headscope.model.trace import Trace
    from headscope.views import View

_CUE = re.compile(r"^(system|user|assistant|tool):[ \t]*", re.MULTILINE | re.IGNORECASE)

Capture = Callable[[int], "Trace"]


@dataclass(frozen=True)
class Traced:
    """A framed view, or why there is none: what the model's process sends back."""

    content: bytes = b""
    status: int = 200
    error: str = ""

    def unpack(self) -> bytes:
        """The framed view; raises the RefusedError where there is none."""
        if self.error:
            raise RefusedError(self.status, self.error)
        return self.content


def work(connection: Connection, load: Callable[[], "Model"], limits: Limits) -> None:
    """The model's process: load, say how that went, then answer one request after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    try:
        model = load()
    except BaseException as error:  # a tokenizer's panic is no Exception
        connection.send(sentence(error))
        return
    connection.send(facts_of(model))
    while True:
        try:
            connection.send(answer(model, connection.recv(), limits))
        except (EOFError, OSError):  # the server has ended
            return


def answer(model: "Model", request: TextRequest, limits: Limits) -> Traced:
    """The text's view, or a sentence: whatever a network raises, the next text must be served."""
    try:
        return Traced(b"".join(frame(trace_payload(model, request, limits))))
    except RefusedError as refusal:
        return Traced(status=refusal.status, error=refusal.message)
    except HeadscopeError as mistake:
        return Traced(status=422, error=str(mistake))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:
        said = f"The model failed on this text: {sentence(failure)}"
        return Traced(status=422, error=said)


def trace_payload(model: "Model", request: TextRequest, limits: Limits) -> Payload:
    """Trace the text and pack its view; of a long text the header and the blocks asked for."""
    if not check_size(model, request, limits):
        same_text = structs.replace(
            request, kind="", layer=None, head=None, blocks=None, why=None, difference=False
        )
        if request.difference:
            found = _difference_once(model, same_text)
            return Payload({"difference": say_difference(found, request.layer, request.head)}, ())
        trace = _trace_once(model, same_text)
        if request.why is None:
            return _view(trace, request).payload
        layer, head, query, key = request.why
        return Payload({"why": trace.why(layer, head, query, key).sentence}, ())
    if request.why is not None or request.difference:
        raise RefusedError(422, "This text is too long to take scores apart; shorten it.")
    trace = layerwise(model, lambda layer: _trace(model, request, [layer]))
    payload = _view(trace, request).payload
    return Payload(payload.header, _chosen(payload.blocks, request.blocks or []))


def _trace(model: "Model", request: TextRequest, layers: list[int] | None = None) -> "Trace":
    return model.trace(
        None if request.chat else request.text,
        request.pair,
        messages=parse_chat(request.text) if request.chat else None,
        target=request.target,
        generate=request.generate,
        layers=layers,
        without=request.without,
        replacement=request.replacement,
    )


_trace_once = lru_cache(maxsize=1)(_trace)  # head, model and neuron view of a text share its trace


@lru_cache(maxsize=1)
def _difference_once(model: "Model", request: TextRequest) -> "Difference":
    return _trace_once(model, request).difference()


def say_difference(difference: "Difference", layer: int | None, head: int | None) -> dict[str, Any]:
    """What the pages show of a text without some heads; one head's weights, or the most changed."""
    shown = difference.most if layer is None or head is None else Head(layer, head)
    place, number = shown
    if place not in difference.change or not 0 <= number < len(difference.change[place]):
        raise RefusedError(422, f"There is no head {shown}.")
    control = difference.control_change
    compared = difference.control_moved
    return {
        "sentence": difference.sentence,
        "without": [*map(str, difference.without)],
        "control": [*map(str, difference.control)],
        "layers": [*difference.change],
        "moved": difference.moved.round(4).tolist(),
        "control_moved": None if compared is None else compared.round(4).tolist(),
        "tokens": difference.labels,
        "head": str(shown),
        "plain": _rounded(difference.plain[place][number]),
        "change": _rounded(difference.change[place][number]),
        "control_change": None if control is None else _rounded(control[place][number]),
        "next_tokens": [asdict(token) for token in difference.next_tokens],
        "no_next_tokens": difference.no_next_tokens,
    }


def _rounded(weights: "Tensor") -> list[list[float]]:
    return weights.double().numpy().round(4).tolist()


def parse_chat(text: str) -> list[dict[str, str]]:
    """Messages written as a play: a line that begins with a role and a colon begins a message.

    What stands before the first role is the user's.
    """
    found = list(_CUE.finditer(text))
    ends = [*(cue.start() for cue in found), len(text)]
    opening = text[: ends[0]].strip()
    messages: list[dict[str, str]] = [{"role": "user", "content": opening}] if opening else []
    for cue, end in zip(found, ends[1:], strict=True):
        messages.append({"role": cue[1].lower(), "content": text[cue.end() : end].strip()})
    return messages


def _view(trace: "Trace", request: TextRequest) -> "View":
    one = "head" if "head" in kind_of(request.kind).settings else "heads"
    shown: dict[str, Any] = {"layer": request.layer, one: request.head}
    return open_view(trace, request.kind, **shown)


def _chosen(blocks: Sequence[bytes], wanted: Sequence[int]) -> tuple[bytes, ...]:
    unknown = [number for number in wanted if not 0 <= number < len(blocks)]
    if unknown:
        raise RefusedError(
            422, f"There is no block {unknown[0]}; this text has {counted(len(blocks), 'blocks')}."
        )
    return tuple(blocks[number] for number in wanted)


def check_size(model: "Model", request: TextRequest, limits: Limits) -> bool:
    """Count the weights that will lie in memory at once, before the network runs; is it long?

    Those of the whole trace; of a text too long for one window those of one layer.
    """
    source, target = token_counts(model, request)
    can_be_long = "tiles" in kind_of(request.kind).parts
    is_long = can_be_long and max(source, target) > window.SPAN * window.TILE
    weights = count_weights(model, source, target, whole=not is_long)
    if weights > limits.weights:
        read = counted(source, "tokens") + (f" and {target} of the target" if target else "")
        raise RefusedError(
            413,
            f"This text has {read}, so {model.name} computes {weights:,} weights; the explorer "
            f"takes {limits.weights:,}. Shorten it.",
        )
    return is_long


def token_counts(model: "Model", request: TextRequest) -> tuple[int, int]:
    """Tokens of the source and of what the decoder reads, those to be generated included."""
    if request.chat:
        answer = request.generate > 0
        source = len(model.encode_chat(parse_chat(request.text), answer=answer).ids)
    else:
        source = len(model.encode(request.text, request.pair).ids)
    if not model.is_encoder_decoder:
        if request.target is not None:
            model.encode_target(request.target)  # refused, in the model's words
        return source + request.generate, 0
    begun = 0 if request.target is None else len(model.encode_target(request.target).ids)
    if not request.generate:
        return source, begun
    return source, max(1, begun) + request.generate  # the decoder starts with one token


def count_weights(model: "Model", source: int, target: int, *, whole: bool) -> int:
    """Weights of all stacks: a matrix of queries × keys for every head, of one layer or all."""
    sides = {"decoder": (target, target), "cross": (target, source)}
    total = 0
    for stack in model.stacks:
        queries, keys = sides.get(stack.name, (source, source))
        total += (len(stack.attending) if whole else 1) * stack.heads * queries * keys
    return total


def facts_of(model: "Model") -> ModelFacts:
    """What the pages are told of a model that is ready."""
    return ModelFacts(
        model.name,
        "ready",
        layers=model.layers,
        heads=model.heads,
        causal=model.is_causal,
        encoder_decoder=model.is_encoder_decoder,
        max_length=model.max_length,
        chat=bool(model.tokenizer.chat_template),
    )


def sentence(error: BaseException) -> str:
    """The first line of an error, as a sentence for a visitor."""
    lines = str(error).strip().splitlines()
    return lines[0][:500] if lines else type(error).__name__


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
            **{
                part: Layers(plans[stack.name].attending, _captured(once, name, part))
                for part in ("weights", "value_norms")
                if getattr(stack, part) is not None
            },
            **dict.fromkeys(("query", "key", "value", "bias")),
        )
        for name, stack in first.stacks.items()
    }
    return replace(first, stacks=stacks)


def _captured(capture: Capture, stack: str, part: str) -> Callable[[int], "Tensor"]:
    return lambda layer: getattr(capture(layer).stacks[stack], part)[layer]


def frame(payload: Payload) -> Iterator[bytes]:
    """A view's payload on the wire: length of the header, the header as JSON, the blocks.

    The length has 4 bytes, little-endian; the header is `{"header": …, "blocks": [sizes]}`.
    """
    sizes = [len(block) for block in payload.blocks]
    head = json.dumps({"header": payload.header, "blocks": sizes}, allow_nan=False).encode()
    yield struct.pack("<I", len(head))
    yield head
    yield from payload.blocks
