"""From a text to its trace: passes that keep the chosen layers and heads."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headscope.errors import ModelError
from headscope.model.attention import Stack
from headscope.model.chat import Message
from headscope.model.encode import Encoded, words_of_tokens
from headscope.model.generate import Progress, Request, Sampling, continue_text, write_target
from headscope.model.memory import check_memory, needed, within_memory
from headscope.model.recording import Recording
from headscope.model.trace import Side, Trace

if TYPE_CHECKING:
    from headscope.model.model import Model

STITCHED = (
    "Generated tokens were traced as they were written, each with the row of attention that chose "
    "the next; stitched together this equals one pass over prompt and continuation."
)
ONE_PASS = (
    "Generated tokens are traced by one pass over prompt and continuation, because {reason}; for a "
    "causal model this equals the attention of every generation step, stitched together."
)
_LESS = (
    "choose fewer layers and heads, a shorter text, a two-byte dtype, quantization=int8, or "
    "device_map=auto"
)


def trace(
    model: "Model",
    text: str | None = None,
    pair: str | None = None,
    *,
    messages: Sequence[Message] | None = None,
    template: Mapping[str, Any] | None = None,
    special: bool = True,
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    generate: int = 0,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    truncate: bool = False,
) -> Trace:
    """The attention of a text, a pair of texts or a chat, in the chosen layers and heads.

    `messages` are written by the model's own chat template; `template` has further arguments for
    it, such as `tools`. `special=False` adds no special tokens: for a text that has its own.
    An encoder–decoder model needs `target` (or `generate`) to show its decoder; else its encoder is
    traced alone. Only the chosen layers and heads are kept; a trace that does not fit into memory
    is refused before the pass.

    `generate` continues the text by up to that many tokens, until its end: the most probable ones,
    or drawn if `temperature`, `top_k` or `top_p` is given, with a `seed`. `progress` is called with
    each new piece of text.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    request = _request(generate, sampling, progress)
    recording = Recording(model.plan, layers, heads)
    if messages is None:
        source = model.encode(_given(text), pair, special=special, truncate=truncate)
    else:
        _check_alone(text=text, pair=pair)
        answer = generate > 0 and not model.is_encoder_decoder
        source = model.encode_chat(messages, template, answer=answer, truncate=truncate)
    written = None if target is None else model.encode_target(target, truncate=truncate)
    _check_memory(model, source, written, layers, heads, more=generate)
    notes: tuple[str, ...] = ()
    with within_memory(model.name, "was traced", _LESS):
        if request is None:
            prompt = None
            _pass(model, source, written, recording)
        else:
            prompt = _prompt_length(model, source, written)
            source, written, notes = _generate(model, source, written, request, recording)
    stacks = recording.stacks(*_sides(source, written))
    if not stacks:
        raise ModelError("Nothing was traced: no stack has all of the chosen layers and heads.")
    return Trace(
        model=model.name,
        stacks=stacks,
        is_causal=model.is_causal,
        prompt_length=prompt,
        no_neurons=next((s.no_neurons for s in model.stacks if s.no_neurons), None),
        notes=notes,
    )


def side(encoded: Encoded) -> Side:
    """One axis of the attention; the texts of a pair become two lines of one text."""
    shift = len(encoded.text) + 1
    text = encoded.text if encoded.pair is None else f"{encoded.text}\n{encoded.pair}"
    offsets = tuple(
        (start + shift, end + shift) if which == 1 else (start, end)
        for (start, end), which in zip(encoded.offsets, encoded.sequence, strict=True)
    )
    words, word_of_token = words_of_tokens(text, offsets, encoded.special)
    return Side(
        text=text,
        tokens=encoded.tokens,
        special=encoded.special,
        segments=encoded.segments,
        offsets=offsets,
        word_of_token=word_of_token,
        words=words,
        turns=encoded.turns,
    )


def _given(text: str | None) -> str:
    if text is None:
        raise ModelError("There is nothing to trace: give a text, or messages=.")
    return text


def _check_alone(**others: str | None) -> None:
    for name, value in others.items():
        if value is not None:
            raise ModelError(f"messages= are the whole input; leave the {name} out.")


def _request(steps: int, sampling: Sampling, progress: Progress | None) -> Request | None:
    if steps < 0:
        raise ModelError(f"generate={steps}: the number of tokens to generate cannot be negative.")
    sampling.check()
    if steps == 0 and not sampling.is_greedy:
        raise ModelError(
            "temperature, top_k and top_p are for generated tokens: say how many with generate=."
        )
    return Request(steps, sampling, progress) if steps else None


def _pass(model: "Model", source: Encoded, written: Encoded | None, recording: Recording) -> None:
    batch = model.batch([source], target=None if written is None else [written])
    model.forward(batch, recording, logits=False)


def _prompt_length(model: "Model", source: Encoded, begun: Encoded | None) -> int:
    """Where generated tokens begin; a decoder that has begun nothing reads its start token."""
    if not model.is_encoder_decoder:
        return len(source)
    return 1 if begun is None else len(begun)


def _generate(
    model: "Model", source: Encoded, begun: Encoded | None, request: Request, recording: Recording
) -> tuple[Encoded, Encoded | None, tuple[str, ...]]:
    """Source and target with what was written, traced on the way or else by one pass more."""
    if model.is_encoder_decoder:
        written, is_traced = write_target(model, source, begun, request, recording)
    else:
        source, is_traced = continue_text(model, source, request, recording)
        written = None
    if is_traced:
        return source, written, (STITCHED,)
    _pass(model, source, written, recording)
    return source, written, (ONE_PASS.format(reason=model.cache.reason),)


def _check_memory(
    model: "Model",
    source: Encoded,
    target: Encoded | None,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
    more: int = 0,
) -> None:
    """Refuse what does not fit, with as many tokens `more` as may be generated."""
    own = len(source) if model.is_encoder_decoder else len(source) + more
    lengths: dict[Stack, tuple[int, int]] = {"self": (own, own), "encoder": (own, own)}
    if target is not None or (more and model.is_encoder_decoder):
        other = (1 if target is None else len(target)) + more
        lengths |= {"decoder": (other, other), "cross": (other, own)}
    longest = max(max(sides) for sides in lengths.values())
    check_memory(needed(model.plan, lengths, layers, heads), longest, model.device)


def _sides(source: Encoded, target: Encoded | None) -> tuple[dict[Stack, Side], dict[Stack, Side]]:
    """The tokens on both axes, by stack."""
    own = side(source)
    queries: dict[Stack, Side] = {"self": own, "encoder": own}
    keys: dict[Stack, Side] = {"self": own, "encoder": own}
    if target is not None:
        other = side(target)
        queries |= {"decoder": other, "cross": other}
        keys |= {"decoder": other, "cross": own}
    return queries, keys
