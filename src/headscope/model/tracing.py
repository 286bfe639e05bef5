"""From a text to its trace."""

from collections.abc import Sequence

from headscope.errors import ModelError
from headscope.model.attention import Stack
from headscope.model.encode import Encoded
from headscope.model.generate import continue_greedily, write_target
from headscope.model.model import Model
from headscope.model.recording import Recording
from headscope.model.trace import Side, Trace
from headscope.model.words import words_of_tokens

STITCHED = (
    "Generated tokens are traced by one pass over prompt and continuation; for a causal model "
    "this equals the attention of every generation step, stitched together."
)


def trace(
    model: Model,
    text: str,
    pair: str | None = None,
    *,
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    generate: int = 0,
    truncate: bool = False,
) -> Trace:
    """The attention of a text or a pair of texts, in the chosen layers and heads.

    An encoder–decoder model needs `target` (or `generate`) to show its decoder; else its encoder is
    traced alone. `generate` continues the text greedily by that many tokens.
    """
    recording = Recording(model.plan, layers, heads)
    source = model.encode(text, pair, truncate=truncate)
    source, written, prompt = _texts(model, source, target, generate, truncate=truncate)
    batch = model.batch([source], target=None if written is None else [written])
    model.forward(batch, recording)
    stacks = recording.stacks(*_sides(source, written))
    if not stacks:
        raise ModelError("Nothing was traced: no stack has all of the chosen layers and heads.")
    return Trace(
        model=model.name,
        stacks=stacks,
        is_causal=model.is_causal,
        prompt_length=prompt,
        no_neurons=next((s.no_neurons for s in model.stacks if s.no_neurons), None),
        notes=(STITCHED,) if generate else (),
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
    )


def _texts(
    model: Model, source: Encoded, target: str | None, generate: int, *, truncate: bool
) -> tuple[Encoded, Encoded | None, int | None]:
    """Source, what the decoder reads, and where generated tokens begin."""
    if generate < 0:
        raise ModelError(
            f"generate={generate}: the number of tokens to generate cannot be negative."
        )
    written = None if target is None else model.encode_target(target, truncate=truncate)
    if not generate:
        return source, written, None
    if model.is_encoder_decoder:
        longer = write_target(model, source, written, generate)
        return source, longer, 1 if written is None else len(written)
    return continue_greedily(model, source, generate), None, len(source)


def _sides(source: Encoded, target: Encoded | None) -> tuple[dict[Stack, Side], dict[Stack, Side]]:
    """Who looks and who is looked at, by stack."""
    own = side(source)
    queries: dict[Stack, Side] = {"self": own, "encoder": own}
    keys: dict[Stack, Side] = {"self": own, "encoder": own}
    if target is not None:
        other = side(target)
        queries |= {"decoder": other, "cross": other}
        keys |= {"decoder": other, "cross": own}
    return queries, keys
