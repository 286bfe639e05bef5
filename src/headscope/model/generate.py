"""Greedy continuation of a text, so that generated tokens can be traced too."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.batch import Batch
from headscope.model.display import display_text
from headscope.model.encode import Encoded, start_with

if TYPE_CHECKING:
    from headscope.model.model import Model

MakeBatch = Callable[[Encoded], Batch]

_NOTHING = Encoded(
    text="", pair=None, ids=(), tokens=(), offsets=(), segments=(), special=(), sequence=()
)


def continue_greedily(model: "Model", prompt: Encoded, steps: int) -> Encoded:
    """The prompt and up to `steps` tokens more, each the most probable next one."""
    if not model.is_causal:
        raise ModelError(
            f"{model.name} is not a causal language model, so it cannot continue a text; leave "
            "generate out."
        )
    if prompt.pair is not None:
        raise ModelError("A pair of texts cannot be continued: give generate a single text.")
    return _extend(model, prompt, steps, lambda text: model.batch([text]))


def write_target(model: "Model", source: Encoded, begun: Encoded | None, steps: int) -> Encoded:
    """What the decoder writes for a source, after what it has begun with."""
    start = begun or start_with(model.network, model.tokenizer, _NOTHING)
    return _extend(model, start, steps, lambda text: model.batch([source], target=[text]))


def _extend(model: "Model", text: Encoded, steps: int, batch: MakeBatch) -> Encoded:
    limit = model.max_length
    if limit is not None and len(text) + steps > limit:
        raise ModelError(
            f"{len(text)} tokens and {steps} generated ones are more than the {limit} that "
            f"{model.name} takes."
        )
    new: list[int] = []
    for _ in range(steps):
        longer = _append(model.tokenizer, text, new)
        new.append(_next(model, longer, batch))
        if new[-1] in _ends(model):
            break
    return _append(model.tokenizer, text, new)


def _next(model: "Model", text: Encoded, batch: MakeBatch) -> int:
    output = model.forward(batch(text))
    logits = getattr(output, "logits", None)
    if not isinstance(logits, torch.Tensor):
        raise ModelError(
            f"{model.name} has no language-model head, so it cannot generate; leave generate out."
        )
    return int(logits[0, -1].argmax())


def _ends(model: "Model") -> set[int]:
    found: set[int] = set()
    for config in (model.network.generation_config, model.network.config.get_text_config()):
        end = getattr(config, "eos_token_id", None)
        found |= {end} if isinstance(end, int) else set(end or ())
    return found


def _append(tokenizer: PreTrainedTokenizerBase, text: Encoded, new: Sequence[int]) -> Encoded:
    continuation, spans = _spans(tokenizer, text.ids, new)
    shift = len(text.text)
    special = tuple(index in set(tokenizer.all_special_ids) for index in new)
    return replace(
        text,
        text=text.text + continuation,
        ids=(*text.ids, *new),
        tokens=(*text.tokens, *display_text(tokenizer, new)),
        offsets=(*text.offsets, *((start + shift, end + shift) for start, end in spans)),
        segments=(*text.segments, *(text.segments[-1] if text.segments else 0 for _ in new)),
        special=(*text.special, *special),
        sequence=(*text.sequence, *(None if is_special else 0 for is_special in special)),
    )


def _spans(
    tokenizer: PreTrainedTokenizerBase, prompt: Sequence[int], new: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """The continuation and the span of each token; tokens of one character share its span.

    Prompt and continuation are decoded together, for SentencePiece drops the first space of a text.
    """
    before = len(_decode(tokenizer, prompt))
    texts = [_decode(tokenizer, [*prompt, *new[:n]])[before:] for n in range(len(new) + 1)]
    ends = [len(text.rstrip("\ufffd")) for text in texts]
    spans: list[tuple[int, int]] = []
    for n in range(len(new)):
        start = ends[n]
        spans.append((start, next((end for end in ends[n + 1 :] if end > start), len(texts[-1]))))
    return texts[-1], spans


def _decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    text = tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return str(text)
