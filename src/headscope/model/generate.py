"""Continuing a text token by token, so that generated tokens can be traced too.

With a cache every new token costs one row of attention, which is observed on the way. A network
whose cache cannot be trusted reads the whole text again for each token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    NoRepeatNGramLogitsProcessor,
    PreTrainedTokenizerBase,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from headscope.errors import ModelError
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.encode import Encoded, start_with
from headscope.model.inputs.tokens import display_text
from headscope.model.steps import Observer, Steps, last_logits

if TYPE_CHECKING:
    from headscope.model.model import Model

Progress = Callable[[str], None]
_CONTEXT = 8  # tokens before new ones that decide how these read: a space, the rest of a character
_PART = "\ufffd"  # what a part of a character decodes to
_NOTHING = Encoded(
    text="", pair=None, ids=(), tokens=(), offsets=(), segments=(), special=(), sequence=()
)


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: the most probable one, or drawn."""

    temperature: float | None = None  # None: 1 where top_k or top_p is given, else greedy as with 0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def check(self) -> None:
        """Refuse numbers that mean nothing."""
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise ModelError(f"temperature={self.temperature}: give 0 (greedy) or more.")
        if self.top_k is not None and self.top_k < 1:
            raise ModelError(f"top_k={self.top_k}: draw from at least 1 token.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ModelError(f"top_p={self.top_p}: give a share above 0 and up to 1.")

    @property
    def is_greedy(self) -> bool:
        """Whether nothing is left to chance."""
        if self.temperature is None:
            return self.top_k is None and self.top_p is None
        return self.temperature == 0

    def chooser(self, config: Any) -> Callable[[Sequence[int], Tensor], int]:
        """Choose an id from the tokens so far and the logits of the next, as `generate` would.

        Penalties for repetition come from the model's own generation_config.json.
        """
        process = LogitsProcessorList(_penalties(config))
        process += [] if self.is_greedy else self._warpers()
        random = torch.Generator().manual_seed(self.seed)

        def choose(ids: Sequence[int], logits: Tensor) -> int:
            scores = process(torch.tensor([list(ids)]), logits[None])[0]  # pyright: ignore[reportArgumentType]
            if self.is_greedy:
                return int(scores.argmax())
            return int(torch.multinomial(scores.softmax(-1), 1, generator=random))

        return choose

    def _warpers(self) -> list[Any]:
        found: list[Any] = []
        if self.temperature not in (None, 1):
            found.append(TemperatureLogitsWarper(float(self.temperature or 1)))
        if self.top_k is not None:
            found.append(TopKLogitsWarper(self.top_k))
        if self.top_p is not None and self.top_p < 1:
            found.append(TopPLogitsWarper(self.top_p))
        return found


GREEDY = Sampling()


@dataclass(frozen=True)
class Request:
    """What to write: up to so many tokens, how they are chosen, and who is told."""

    steps: int
    sampling: Sampling = GREEDY
    progress: Progress | None = None


def continue_text(
    model: "Model", prompt: Encoded, request: Request, observer: Observer
) -> tuple[Encoded, bool]:
    """The prompt and what follows, and whether all of its attention was shown on the way."""
    if not model.is_causal:
        raise ModelError(
            f"{model.name} is not a causal language model, so it cannot continue a text; leave "
            "generate out."
        )
    if prompt.pair is not None:
        raise ModelError("A pair of texts cannot be continued: give generate a single text.")
    return _extend(model, prompt, request, None, observer)


def write_target(
    model: "Model", source: Encoded, begun: Encoded | None, request: Request, observer: Observer
) -> tuple[Encoded, bool]:
    """What the decoder writes for a source, after what it has begun with."""
    start = begun or start_with(model.network, model.tokenizer, _NOTHING)
    return _extend(model, start, request, model.batch([source]), observer)


def _extend(
    model: "Model", text: Encoded, request: Request, source: Batch | None, observer: Observer
) -> tuple[Encoded, bool]:
    request.sampling.check()
    limit = model.max_length
    if limit is not None and len(text) + request.steps > limit:
        raise ModelError(
            f"{len(text)} tokens and {request.steps} generated ones are more than the {limit} that "
            f"{model.name} takes."
        )
    choose = request.sampling.chooser(_config(model))
    writing = Writing(model.tokenizer, text.ids)
    ids, ends = list(text.ids), _ends(model)
    read = _reader(model, source, observer)
    logits = read(ids)
    for _ in range(request.steps):
        ids.append(choose(ids, logits))
        piece = writing.add(ids[-1])
        if request.progress is not None:
            request.progress(piece)
        if model.cache.reason is None or _goes_on(ids, text, request, ends):
            logits = read(ids)  # with a cache also the last token, whose row is still missing
        if ids[-1] in ends:
            break
    return _append(model.tokenizer, text, ids[len(text) :], writing), model.cache.reason is None


def _goes_on(ids: Sequence[int], text: Encoded, request: Request, ends: set[int]) -> bool:
    return len(ids) < len(text) + request.steps and ids[-1] not in ends


def _reader(
    model: "Model", source: Batch | None, observer: Observer
) -> Callable[[list[int]], Tensor]:
    """Reads all tokens so far and returns the logits of the next."""
    if model.cache.reason is None:
        steps, done = Steps(model, source), 0

        def read_on(ids: list[int]) -> Tensor:
            nonlocal done
            new, done = ids[done:], len(ids)
            return steps.feed(new, observer)

        return read_on

    def read_again(ids: list[int]) -> Tensor:
        text = replace(_NOTHING, ids=tuple(ids), segments=(0,) * len(ids))
        own = model.batch([text])
        batch = own if source is None else replace(source, target=own)
        return last_logits(model.name, model.forward(batch))

    return read_again


def _ends(model: "Model") -> set[int]:
    found: set[int] = set()
    for config in (_config(model), model.network.config.get_text_config()):
        end = getattr(config, "eos_token_id", None)
        found |= {end} if isinstance(end, int) else set(end or ())
    return found


def _config(model: "Model") -> Any:
    """What the model's makers say about generating; nothing in a network without a head."""
    return getattr(model.network, "generation_config", None)


def _penalties(config: Any) -> list[Any]:
    found: list[Any] = []
    penalty = getattr(config, "repetition_penalty", None)
    if penalty is not None and penalty != 1:
        found.append(RepetitionPenaltyLogitsProcessor(penalty))
    size = getattr(config, "no_repeat_ngram_size", None)
    if size:
        found.append(NoRepeatNGramLogitsProcessor(size))
    return found


def _append(
    tokenizer: PreTrainedTokenizerBase, text: Encoded, new: Sequence[int], writing: "Writing"
) -> Encoded:
    continuation, spans = writing.finish()
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


class Writing:
    """The text of tokens that come one by one; tokens of one character share its span.

    New tokens are decoded together with some before them, for SentencePiece drops the first space
    of a text, and a character may consist of several tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt[-_CONTEXT:])
        self._done = len(self._decode().rstrip(_PART))  # characters that were given out
        self._ends = [0]
        self._text = ""

    def add(self, index: int) -> str:
        """The characters that a token completes; none while it is a part of one."""
        self._ids.append(index)
        decoded = self._decode()
        whole = decoded.rstrip(_PART)
        piece = whole[self._done :]
        self._done = max(self._done, len(whole))
        self._text += piece
        self._ends.append(len(self._text))
        if decoded == whole and len(self._ids) > 4 * _CONTEXT:
            self._ids = self._ids[-_CONTEXT:]
            self._done = len(self._decode())
        return piece

    def finish(self) -> tuple[str, list[tuple[int, int]]]:
        """The whole continuation and the span of each token."""
        text = self._text + self._decode()[self._done :]
        spans: list[tuple[int, int]] = []
        end = len(text)
        for start, stop in reversed(list(pairwise(self._ends))):
            end = stop if stop > start else end
            spans.append((start, end))
        return text, spans[::-1]

    def _decode(self) -> str:
        return str(
            self._tokenizer.decode(
                self._ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )
