"""Continuing a text token by token, so that generated tokens can be traced too.

With the network's own cache, which has the keys and values of earlier tokens, a new token costs one
row of attention:

```
  prompt    x . . .          what is observed of every pass has the rows of its own tokens;
            x x . .          stitched together they are the attention of the whole text
            x x x .
  step 1    x x x x
```

Whether a network can do so is proved on the probe: where rows differ from those of a whole pass, or
the network fails, the whole text is read again for each token.
"""

from collections.abc import Callable, Mapping, Sequence
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
from headscope.model.attention import LayerAttention, Stack, is_close
from headscope.model.capture.dense import TOLERANCE, Expectation, Observer, capture
from headscope.model.capture.modes import FAILURES
from headscope.model.capture.plan import sliding_window
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.encode import Encoded, start_with
from headscope.model.inputs.tokens import display_text
from headscope.model.loading.network import quiet

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
        process = self._processors(config)
        random = torch.Generator().manual_seed(self.seed)

        def choose(ids: Sequence[int], logits: Tensor) -> int:
            scores = process(torch.tensor([list(ids)]), logits[None])[0]  # pyright: ignore[reportArgumentType]
            if self.is_greedy:
                return int(scores.argmax())
            return int(torch.multinomial(scores.softmax(-1), 1, generator=random))

        return choose

    def _processors(self, config: Any) -> LogitsProcessorList:
        penalty = getattr(config, "repetition_penalty", None)
        temperature = None if self.temperature is None else float(self.temperature)
        known: list[tuple[Any, Any, Any]] = [  # with its setting, and the one that changes nothing
            (RepetitionPenaltyLogitsProcessor, penalty, 1),
            (NoRepeatNGramLogitsProcessor, getattr(config, "no_repeat_ngram_size", None), 0),
            (TemperatureLogitsWarper, temperature, 1),
            (TopKLogitsWarper, self.top_k, None),
            (TopPLogitsWarper, self.top_p, 1),
        ]
        chosen = known[:2] if self.is_greedy else known
        return LogitsProcessorList(kind(n) for kind, n, idle in chosen if n not in (None, idle))


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
        is_done = ids[-1] in ends or len(ids) == len(text) + request.steps
        if model.cache.reason is None or not is_done:
            logits = read(ids)  # with a cache also the last token, whose row is still missing
        if is_done:
            break
    return _append(model.tokenizer, text, ids[len(text) :], writing), model.cache.reason is None


def _reader(
    model: "Model", source: Batch | None, observer: Observer
) -> Callable[[list[int]], Tensor]:
    """Reads all tokens so far and returns the logits of the next."""
    if model.cache.reason is None:
        steps = Steps(model, source)
        return lambda ids: steps.feed(ids[steps.length :], observer)

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
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self._tokenizer.decode(self._ids, **options))


@dataclass(frozen=True, slots=True)
class Cache:
    """What the probe found out about a network's cache."""

    positions: bool = False  # whether the network must be told where the new tokens stand
    reason: str | None = None  # why there is no going on from it


class Steps:
    """One text, read some tokens at a time; `source` is what an encoder reads first."""

    def __init__(
        self, model: "Model", source: Batch | None = None, *, positions: bool | None = None
    ) -> None:
        self._model = model
        self._source = source
        self._positions = model.cache.positions if positions is None else positions
        self.length = 0  # of what was read
        self._cache: Any = None
        self._encoded: Any = None

    def feed(self, ids: Sequence[int], observer: Observer) -> Tensor:
        """Read the next tokens, show their rows of every layer, return the logits of the last."""
        if self._source is not None and self._encoded is None:
            self._encoded = self._model.forward(self._source, observer)
        start, self.length = self.length, self.length + len(ids)
        run = self._model._evaluated(self._model.network, self._given(ids, start))
        with torch.no_grad():
            output = capture(run, self._model.plan, observer, self._expected(start))
        self._cache = output.past_key_values
        return last_logits(self._model.name, output)

    def _given(self, ids: Sequence[int], start: int) -> dict[str, Any]:
        new = torch.tensor([list(ids)], device=self._model.device)
        mask = torch.ones(1, self.length, dtype=torch.long, device=new.device)
        entry = self._model._entry
        given: dict[str, Any] = {"use_cache": True, "return_dict": True}
        if self._cache is not None:
            given["past_key_values"] = self._cache
        if "logits_to_keep" in entry.accepts:
            given["logits_to_keep"] = 1
        if self._source is not None:
            return given | {
                "encoder_outputs": self._encoded,
                "attention_mask": self._source.mask.long(),
                "decoder_input_ids": new,
                "decoder_attention_mask": mask,
            }
        if self._positions:
            given["position_ids"] = torch.arange(start, self.length, device=new.device)[None]
        if entry.segments:
            given["token_type_ids"] = torch.zeros_like(new)
        return given | {"input_ids": new, "attention_mask": mask}

    def _expected(self, start: int) -> dict[Stack, Expectation]:
        """What the weights of the new rows must look like, in every stack that reads them."""
        model = self._model
        own = torch.ones(1, self.length, dtype=torch.bool, device=model.device)
        masks = (own, None) if self._source is None else (self._source.mask, own)
        whole = model.plan.expectations(model.name, *masks, whole=False)
        windows = {name: sliding_window(model.network.config, name) is not None for name in whole}
        return {
            name: expected.of_rows(start, self.length, window=windows[name])
            for name, expected in whole.items()
            if name != "encoder"
        }


def last_logits(name: str, output: Any) -> Tensor:
    """The scores of all tokens that may come next."""
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise ModelError(
            f"{name} has no language-model head, so it cannot generate; leave generate out."
        )
    return logits[0, -1].float().cpu()


def prove_cache(model: "Model") -> Cache:
    """Read the probe token by token and hold every row against a pass over all of it."""
    probe = model._probe_batch()
    text = probe.target or probe
    whole: dict[tuple[Stack, int], Tensor] = {}

    def keep(seen: LayerAttention) -> None:
        whole[seen.stack, seen.layer] = seen.weights[0].clone()

    model.forward(probe, keep)
    ids = text.ids[0].tolist()
    reason = "its network cannot go on from a cache"
    for positions in (False, True):
        if positions and "position_ids" not in model._entry.accepts:
            continue
        source = None if probe.target is None else replace(probe, target=None)
        steps = Steps(model, source, positions=positions)
        try:
            with quiet():
                if _same_rows(steps, ids, whole):
                    return Cache(positions)
        except (*FAILURES, LookupError):
            continue
        reason = "going on from its cache gives other weights than a pass over the whole text"
    return Cache(reason=reason)


def _same_rows(steps: Steps, ids: Sequence[int], whole: Mapping[tuple[Stack, int], Tensor]) -> bool:
    same: list[bool] = []
    start = 0

    def compare(seen: LayerAttention) -> None:
        rows = whole[seen.stack, seen.layer]
        if seen.stack != "encoder":
            rows = rows[:, start : start + seen.weights.shape[2]]
        if seen.stack in ("self", "decoder"):  # a window may have left the last keys alone
            stop = start + seen.weights.shape[2]
            rows = rows[..., stop - seen.weights.shape[3] : stop]
        slack = TOLERANCE.get(seen.weights.dtype, 1e-4)
        same.append(is_close(seen.weights[0], rows, slack))

    for stop in (len(ids) - 2, len(ids) - 1, len(ids)):
        steps.feed(ids[start:stop], compare)
        start = stop
    return all(same)
