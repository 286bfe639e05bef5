"""What a network writes after a text, by its own `generate`.

Whatever the model's generation_config says counts as it does in transformers: penalties, beams,
drawing, the tokens that end a text. Only what a caller says goes before it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedTokenizerBase
from transformers.generation.streamers import BaseStreamer

from headscope.errors import ModelError
from headscope.model.attention import is_close
from headscope.model.capture.dense import TOLERANCE
from headscope.model.capture.modes import FAILURES
from headscope.model.inputs.encode import start_token
from headscope.model.inputs.labels import display_text
from headscope.model.inputs.tokens import Characters, Tokens
from headscope.model.loading.network import evaluating, quiet
from headscope.model.loading.source import in_short

if TYPE_CHECKING:
    from headscope.model.model import Model

Progress = Callable[[str], None]
ONE_PASS = "Generated tokens are traced by one pass over prompt and continuation"
EQUAL = (
    f"{ONE_PASS}; for a causal model this equals the attention of every generation step, stitched "
    "together."
)
RESCALED = (
    f"{ONE_PASS}; the model rescales positions with the length of the text ({{kind}}), so this is "
    "not what each generation step saw."
)
AS_CONFIGURED = (
    "The model's generation_config has its tokens {how}; temperature=0 takes the most probable "
    "one at each step."
)
_CONTEXT = 8  # tokens before new ones that decide how these read: a space, the rest of a character
_PART = "\ufffd"  # what a part of a character decodes to
_drawing = Lock()  # transformers draws from the random numbers of the whole process


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; where nothing is said the model's generation_config decides."""

    temperature: float | None = None  # 0 takes the most probable token at each step
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def check(self, steps: int) -> None:
        """Refuse numbers that mean nothing, and to draw where no token is written."""
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise ModelError(f"temperature={self.temperature}: give 0 (greedy) or more.")
        if self.top_k is not None and self.top_k < 1:
            raise ModelError(f"top_k={self.top_k}: draw from at least 1 token.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ModelError(f"top_p={self.top_p}: give a share above 0 and up to 1.")
        if steps < 0:
            raise ModelError(
                f"generate={steps}: the number of tokens to generate cannot be negative."
            )
        if steps == 0 and self.is_asked_for:
            raise ModelError(
                "temperature, top_k and top_p are for generated tokens: say how many with "
                "generate=."
            )

    @property
    def is_asked_for(self) -> bool:
        """Whether the caller wants tokens to be drawn."""
        if self.temperature is None:
            return self.top_k is not None or self.top_p is not None
        return self.temperature > 0

    def options(self, config: Any) -> dict[str, Any]:
        """The arguments of `generate` that say how a token is chosen."""
        if self.temperature == 0:
            return {"do_sample": False, "num_beams": 1}
        if not self.is_asked_for:
            return {}
        # transformers would draw from 50 tokens where nobody says from how many.
        options: dict[str, Any] = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
        for name in ("temperature", "top_k", "top_p"):
            for value in (getattr(config, name), getattr(self, name)):
                if value is not None:
                    options[name] = value
        return options | {"temperature": float(options["temperature"])}


def begin(model: "Model", source: Tokens, target: Tokens | None) -> Tokens:
    """What the written tokens follow: the text itself, or what a decoder has begun with."""
    if model.is_encoder_decoder:
        return target or start_token(model.network, model.tokenizer)
    if not model.is_causal:
        raise ModelError(
            f"{model.name} is not a causal language model, so it cannot continue a text; leave "
            "generate out."
        )
    if len(source.texts) > 1:
        raise ModelError("A pair of texts cannot be continued: give generate a single text.")
    return source


def continue_text(
    model: "Model",
    source: Tokens,
    begun: Tokens,
    steps: int,
    sampling: Sampling,
    progress: Progress | None = None,
) -> tuple[Tokens, tuple[str, ...]]:
    """What was begun with up to `steps` tokens that the network writes after it, and notes on it.

    `source` is what an encoder reads; without one it is the text that was begun.
    """
    if not isinstance(model.network, GenerationMixin):
        raise ModelError(
            f"{model.name} has no language-model head, so it cannot generate; leave generate out."
        )
    limit = model.max_length
    if limit is not None and len(begun) + steps > limit:
        raise ModelError(
            f"{len(begun)} tokens and {steps} generated ones are more than the {limit} that "
            f"{model.name} takes."
        )
    config: Any = model.network.generation_config
    choice = sampling.options(config)
    is_drawn = choice.get("do_sample", config.do_sample)
    beams = choice.get("num_beams", config.num_beams) or 1
    options = {**choice, "max_new_tokens": steps, "tokenizer": model.tokenizer}
    if not model.has_sound_cache:
        options["use_cache"] = False
    writing = Writing(model.tokenizer, begun.ids, progress)
    if beams == 1:  # of several beams the tokens are only known at the end
        options["streamer"] = writing
    with _seeded(sampling.seed, model.device) if is_drawn else nullcontext():
        try:
            ids = generate(model, source.ids, begun.ids, **options).sequences[0].tolist()
        except (ValueError, TypeError, NotImplementedError) as error:
            if writing.pieces:
                raise
            raise ModelError(
                f"{model.name} cannot write as its generation_config says "
                f"({in_short(str(error))}); correct model.network.generation_config."
            ) from error
    if tuple(ids[: len(begun)]) != begun.ids:
        raise ModelError(
            f"{model.name} changes the text that it continues; set token_healing=False in its "
            "generation_config."
        )
    new = ids[len(begun) :]
    if beams > 1:
        for index in new:
            writing.add(index)
        writing.end()
    kind = rescaling(model.network.config, len(begun), len(ids))
    notes = [EQUAL if kind is None else RESCALED.format(kind=kind)]
    if not choice and (is_drawn or beams > 1):
        how = "drawn" if is_drawn else f"found by {beams} beams"
        notes.append(AS_CONFIGURED.format(how=how))
    return _append(model.tokenizer, begun, new, writing), tuple(notes)


def generate(model: "Model", source: Sequence[int], begun: Sequence[int], **options: Any) -> Any:
    """The output of the network's own `generate`, with nothing in it but what is asked for."""
    network: Any = model.network
    ids = torch.tensor([list(source)], device=model.device)
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.is_encoder_decoder:
        given["decoder_input_ids"] = torch.tensor([list(begun)], device=model.device)
        given["decoder_start_token_id"] = begun[0]
    with evaluating(network), quiet():
        return network.generate(
            **given,
            num_return_sequences=1,
            return_dict_in_generate=True,
            output_attentions=False,
            output_hidden_states=False,
            output_scores=False,
            **options,
        )


def has_sound_cache(model: "Model") -> bool:
    """Whether a token written from the network's cache has the scores of a pass over all tokens.

    Tried with the second token after the probe; in transformers 5.22 ProphetNet fails.
    """
    probe = model._probe_batch()
    begun = probe.target or probe
    start = begun.ids[0, : 1 if model.is_encoder_decoder else None]  # a decoder begins with one
    given = (probe.ids[0].tolist(), start.tolist())
    greedy = Sampling(temperature=0).options(None)
    length = {"min_new_tokens": 2, "max_new_tokens": 2}
    try:
        output = generate(model, *given, **greedy, **length, output_logits=True)
    except (*FAILURES, LookupError):
        return False
    ids = output.sequences[:, :-1]
    text = replace(
        begun,
        ids=ids,
        mask=torch.ones_like(ids, dtype=torch.bool),
        segments=torch.zeros_like(ids),
        lengths=(ids.shape[1],),
    )
    batch = text if probe.target is None else replace(probe, target=text)
    expected = model.forward(batch).logits[0, -1]
    slack = TOLERANCE.get(expected.dtype, 1e-4) * float(expected.abs().max())
    return is_close(output.logits[-1][0], expected, slack)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from random numbers of this seed, and leave those of the process as they were."""
    with _drawing, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def rescaling(config: PreTrainedConfig, before: int, after: int) -> str | None:
    """The kind of rope whose scale changes while so many tokens become more, or None.

    Past its limit longrope has one scale, dynamic rope another for every length.
    """
    text = config.get_text_config(decoder=True)
    rope = getattr(text, "rope_parameters", None) or {}
    for parameters in (rope, *rope.values()):  # of all layers, or of each kind of layer
        kind = parameters.get("rope_type", "") if isinstance(parameters, dict) else ""
        if kind == "longrope" and before <= parameters["original_max_position_embeddings"] < after:
            return kind
        if "dynamic" in kind and text.max_position_embeddings < after:
            return kind
    return None


def _append(
    tokenizer: PreTrainedTokenizerBase, begun: Tokens, new: Sequence[int], writing: "Writing"
) -> Tokens:
    """What was begun with the new tokens; both are one text."""
    special = set(tokenizer.all_special_ids)
    places = [Characters(*span) for span in spans_of(writing.pieces, len(begun.text))]
    texts = (begun.text + "".join(writing.pieces),)
    return replace(
        begun,
        ids=(*begun.ids, *new),
        labels=(*begun.labels, *display_text(tokenizer, new, texts, places)),
        places=(*begun.places, *places),
        special=(*begun.special, *(index in special for index in new)),
        segments=(*begun.segments, *[begun.segments[-1]] * len(new)),
        texts=texts,
    )


def label_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    """One readable string per token of a text of which only the ids are known."""
    writing = Writing(tokenizer, (), None)
    for index in ids:
        writing.add(index)
    writing.end()
    places = [Characters(*span) for span in spans_of(writing.pieces, 0)]
    return display_text(tokenizer, ids, ("".join(writing.pieces),), places)


def spans_of(pieces: Sequence[str], start: int) -> list[tuple[int, int]]:
    """The characters of every token; one that completes no character has those of the next."""
    ends = list(accumulate(map(len, pieces), initial=start))
    spans: list[tuple[int, int]] = []
    shared = ends[-1]
    for first, end in reversed(list(pairwise(ends))):
        shared = end if end > first else shared
        spans.append((first, shared))
    return spans[::-1]


class Writing(BaseStreamer):
    """The text of tokens that come one by one; a part of a character has none until it is whole.

    New tokens are decoded together with some before them, for SentencePiece drops the first space
    of a text, and a character may consist of several tokens.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, prompt: Sequence[int], progress: Progress | None
    ) -> None:
        self._tokenizer = tokenizer
        self._progress = progress
        self._has_prompt = False
        self._ids = list(prompt[-_CONTEXT:])
        self._read = len(self._ids)  # tokens whose characters are complete
        self.pieces: list[str] = []  # the characters that each token completes

    def put(self, value: Tensor) -> None:
        """Take what transformers shows: the prompt, then the tokens that are written."""
        if self._has_prompt:
            for index in value.flatten().tolist():
                self.add(index)
        self._has_prompt = True

    def end(self) -> None:
        """Give out the bytes that became no character."""
        if self.pieces and self._read < len(self._ids):
            self.pieces[-1] += self._new_text()
            self._tell(self.pieces[-1])

    def add(self, index: int) -> None:
        """Read one token more."""
        self._ids.append(index)
        piece = self._new_text()
        if piece.endswith(_PART):
            piece = ""
        else:
            self._read = len(self._ids)
        self.pieces.append(piece)
        self._tell(piece)

    def _tell(self, piece: str) -> None:
        if self._progress is not None:
            self._progress(piece)

    def _new_text(self) -> str:
        first = max(0, self._read - _CONTEXT)
        before = self._decode(self._ids[first : self._read])
        return self._decode(self._ids[first:])[len(before) :]

    def _decode(self, ids: Sequence[int]) -> str:
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return str(self._tokenizer.decode(list(ids), **options))
