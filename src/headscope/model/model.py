"""A loaded Transformer: its network, its tokenizer, and the proved way to see its attention."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from html import escape
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model import generate, record
from headscope.model.attention import Forward, LayerAttention, Stack
from headscope.model.capture.changes import Change, run_changed
from headscope.model.capture.dense import Expectation, Observer, Validation, capture
from headscope.model.capture.modes import (
    FAILURES,
    Modes,
    PlainObserver,
    agrees_end_to_end,
    capture_fused,
    prove_modes,
)
from headscope.model.capture.plan import (
    SOURCE_TOKENS,
    TARGET_TOKENS,
    StackPlan,
    check_family,
    make_plan,
)
from headscope.model.capture.rows import capture_rows
from headscope.model.frozen import (
    FrozenPass,
    Parts,
    find_parts,
    run_frozen,
    why_not_linear,
)
from headscope.model.inputs.batch import (
    Batch,
    Entry,
    Side,
    arguments,
    buckets,
    can_pad,
    entry,
    first_tokens,
    make_batch,
    max_positions,
    padding_position,
    probe_batch,
    vocabulary_size,
)
from headscope.model.inputs.chat import Chat, Message
from headscope.model.inputs.encode import decoder_start, encode, encode_target, is_parted
from headscope.model.inputs.frame import Bos
from headscope.model.inputs.tokens import Tokens
from headscope.model.loading.network import (
    evaluating,
    fingerprint,
    home_of,
    load_again,
    quiet,
    sketch,
    take_apart,
)
from headscope.model.loading.source import in_short

LONG_TABLE = 8192  # positions that a network may have a table of


class Model:
    """A network and its tokenizer. How attention is captured is proved here, on five tokens.

    During a forward pass the network is in evaluation mode with eager attention, the only
    implementation that computes the weights; its own settings come back afterwards, and Headscope's
    hooks are gone. What stays are hooks that transformers itself installs on a network when it is
    first asked for attentions: they are silent and change no number.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str | None = None,
        revision: str | None = None,
        origin: Mapping[str, Any] | None = None,
        remarks: tuple[str, ...] = (),
    ) -> None:
        self.name = name or network.config.name_or_path or type(network).__name__
        self.revision = revision
        self.origin = origin  # what `load` was given, with a path that holds in any folder
        self.remarks = remarks  # what is unusual about how the weights are held
        self.network = network
        self.tokenizer = tokenizer
        self._padding: dict[Side, bool] = {}
        check_family(self.name, network.config)
        with quiet():
            self._entry = entry(network, network.config)
            given = arguments(self._entry, self._probe_batch())
            self.plan = make_plan(self.name, network, self._evaluated(network, given))

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads what has a name, and is sent what was made here."""
        if self.origin is None:
            return take_apart(self)
        return load_again, (self.name, self.origin)

    def __repr__(self) -> str:
        shape = ", ".join(f"{s.name}: {s.layers} layers × {s.heads} heads" for s in self.stacks)
        return f"Model({self.name!r}, {shape})"

    def _repr_html_(self) -> str:
        """In a notebook a model says what it is, and how to see its attention."""
        shape = ", ".join(f"{s.layers} layers × {s.heads} heads ({s.name})" for s in self.stacks)
        sight = "only what came before" if self.is_causal else "the whole text"
        return (
            f"<p><strong>{escape(self.name)}</strong>: {shape}; every token sees {sight}.<br>"
            "<code>model.trace(text)</code> shows what its heads look at.</p>"
        )

    @property
    def stacks(self) -> tuple[StackPlan, ...]:
        """The stacks of layers and how each is captured."""
        return self.plan.stacks

    @property
    def layers(self) -> int:
        """Number of layers of the default stack (the only one, or the encoder)."""
        return self.stacks[0].layers

    @property
    def heads(self) -> int:
        """Number of heads per layer of the default stack."""
        return self.stacks[0].heads

    @property
    def is_causal(self) -> bool:
        """Whether tokens see only what came before them, as the probe showed."""
        return self.stacks[0].causal

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether there is a decoder that reads a target text."""
        return bool(self.network.config.is_encoder_decoder)

    @property
    def device(self) -> torch.device:
        """Where the network takes its inputs."""
        return home_of(self.network)

    @cached_property
    def max_length(self) -> int | None:
        """The most tokens the network has positions for; None if there is no such limit."""
        return max_positions(self.network)

    @property
    def fingerprint(self) -> str:
        """A hash of configuration, weights and tokenizer as they are now, wherever they lie."""
        return fingerprint(self.network, self.tokenizer)

    @property
    def sketch(self) -> str:
        """Some numbers of the input embeddings, by which networks of one lineage are known."""
        return sketch(self.network)

    @property
    def pad(self) -> int:
        """An id to pad with; it is masked, but RoBERTa-like networks also count positions by it."""
        table = padding_position(self.network)
        known = (
            None if table is None else table[1],
            getattr(self.network.config.get_text_config(), "pad_token_id", None),
            self.tokenizer.pad_token_id,
        )
        return next((index for index in known if isinstance(index, int) and index >= 0), 0)

    def can_pad(self, side: Side) -> bool:
        """Whether padding on this side leaves a text's attention alone; proved once, on the probe.

        BART counts positions from the first column, padding included; ConvBERT's convolutions reach
        into the padding.
        """
        if side not in self._padding:
            show = partial(self.forward, validate="shape")
            self._padding[side] = can_pad(show, self._probe_batch(), self.pad, side)
        return self._padding[side]

    def buckets(self, lengths: Sequence[int], budget: int) -> list[list[int]]:
        """Indices of texts to batch: of similar length, or of equal length if padding is out."""
        return buckets(lengths, budget, equal=not self.can_pad("right"))

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        special: bool = True,
        bos: Bos = "auto",
        truncate: bool = False,
    ) -> Tokens:
        """The tokens of a text or a pair of texts; a model that cannot part a pair refuses it."""
        tokens = encode(
            self.tokenizer,
            text,
            pair,
            special=special,
            bos=bos,
            limit=self.max_length,
            truncate=truncate,
        )
        if special and pair is not None and not is_parted(tokens):
            raise ModelError(
                f"{self.name} takes no pairs of texts: its tokenizer puts nothing between them; "
                "leave the pair out, or give both as one text."
            )
        self._check_vocabulary(tokens)
        return tokens

    def encode_chat(
        self,
        messages: Sequence[Message],
        template: Mapping[str, Any] | None = None,
        *,
        answer: bool = False,
        truncate: bool = False,
    ) -> Tokens:
        """The tokens of a chat as the model's own template writes it.

        With `answer` they end where the model goes on.
        """
        chat = Chat(self.name, self.tokenizer, messages, template)
        tokens = chat.encode(answer=answer, limit=self.max_length, truncate=truncate)
        self._check_vocabulary(tokens)
        return tokens

    def encode_target(self, text: str, *, truncate: bool = False) -> Tokens:
        """What the decoder reads to write `text`: its start token, then the text."""
        self._require_decoder()
        limit = self.max_length
        tokens = encode_target(self.network, self.tokenizer, text, limit=limit, truncate=truncate)
        self._check_vocabulary(tokens)
        return tokens

    def batch(
        self,
        texts: Sequence[Tokens],
        rows: Sequence[int] | None = None,
        *,
        target: Sequence[Tokens] | None = None,
        side: Side = "right",
    ) -> Batch:
        """The chosen texts as one batch, padded on one side; `rows` are indices into `texts`.

        Padding that would change a text's attention is refused.
        """
        chosen = range(len(texts)) if rows is None else rows
        batch = make_batch(texts, chosen, pad=self.pad, side=side, device=self.device)
        if len(set(batch.lengths)) > 1 and not self.can_pad(side):
            raise ModelError(
                f"Padding on the {side} changes the attention of {self.name}; "
                f"{'pad on the right, or ' if side == 'left' else ''}batch texts of equal length."
            )
        if target is None:
            return batch
        self._require_decoder()
        read = make_batch(target, chosen, pad=self.pad, device=self.device)
        return dataclasses.replace(batch, target=read)

    def forward(
        self,
        batch: Batch,
        observer: Observer | None = None,
        *,
        block: int | None = None,
        validate: Validation = "full",
        gradients: bool = False,
        logits: bool = True,
    ) -> Any:
        """Run the network and show its layers to the observer, in order and one at a time.

        With a `block` every layer is shown that many query rows at a time, computed by the model's
        own function, which takes memory for block × tokens instead of tokens × tokens.

        An encoder–decoder model runs its encoder alone if the batch has no target.
        `validate="shape"` leaves out the checks of values. `logits=False` leaves out the head of
        the language model, which can cost as much as all layers. Rows and columns of padding are
        for the caller to mask.
        """
        run, expected = self._bind(batch, logits), self._expectations(batch)
        with torch.set_grad_enabled(gradients):
            if observer is None:
                return run()
            if block is None:
                return capture(run, self.plan, observer, expected, validate)
            with self.modes.masks("rows"):
                return capture_rows(run, self.plan, observer, expected, block, validate)

    def forward_fused(
        self,
        batch: Batch,
        observer: PlainObserver,
        *,
        logits: bool = True,
        end_to_end: bool = False,
    ) -> Any:
        """The same by fused kernels, which give no weights but what is needed to find any of them.

        The batch must have no target. Output agrees with that of `forward` up to rounding; with
        `end_to_end`, which needs `lays_end_to_end`, it is that of one text made of all.
        """
        expected = self._expectations(batch)
        with torch.no_grad(), self.modes.masks("fused"):
            run, packing = self._bind(batch, logits, end_to_end), batch.find_packing()
            return capture_fused(
                run, self.plan, observer, expected, batch.spans, packing, end_to_end=end_to_end
            )

    @cached_property
    def lays_end_to_end(self) -> bool:
        """Whether texts laid end to end, without padding, give what they give apart; proved once.

        They do where kernels keep them apart in every layer and positions can be said.
        """
        if self.is_encoder_decoder or not (self._entry.takes_positions and self.can_pad("right")):
            return False
        lengths = (2, SOURCE_TOKENS, 1, 3)
        if self.max_length is not None and self.max_length <= LONG_TABLE:
            lengths *= 1 + self.max_length // sum(lengths)  # more than one text may have
        batch = first_tokens(self._probe_batch(), lengths, self.pad)
        run = partial(self.forward_fused, batch, lambda _: None, logits=False)
        return agrees_end_to_end(lambda laid: run(end_to_end=laid)[0], batch.find_packing())

    def forward_changed(
        self,
        batch: Batch,
        change: Change,
        observer: Observer | None = None,
        *,
        gradients: bool = False,
        logits: bool = True,
    ) -> Any:
        """Run the network with the heads of its default stack changed before they are joined.

        `headscope.model.capture.changes` says which networks allow it.
        """
        run, expected = self._bind(batch, logits), self._expectations(batch)
        with torch.set_grad_enabled(gradients):
            return run_changed(run, self.plan, change, expected, observer)

    def freeze(self, batch: Batch) -> tuple[FrozenPass, FrozenPass]:
        """A pass in which all but linear maps is held, and the same as if nothing was written.

        Queries and keys of the first are sums over what was written before, plus those of the
        second. A network of which that is not true is refused with the reason.
        """
        if isinstance(self._parts, str):
            raise ModelError(f"{self.name} does not say why a head looks there: {self._parts}.")
        run, expected = self._bind(batch, logits=False), self._expectations(batch)
        frozen = run_frozen(run, self.plan, self._parts, expected)
        nothing = frozen.with_nothing()
        return frozen, run_frozen(run, self.plan, self._parts, expected, nothing)

    @property
    def why_no_reasons(self) -> str | None:
        """Why scores cannot be taken apart, or None; proved on first use."""
        return self._parts if isinstance(self._parts, str) else None

    @cached_property
    def _parts(self) -> Parts | str:
        no_neurons = next((stack.no_neurons for stack in self.stacks if stack.no_neurons), None)
        if no_neurons is not None:
            return no_neurons
        batch = self._probe_batch()
        run, expected = self._bind(batch, logits=False), self._expectations(batch)
        plain: list[LayerAttention] = []
        try:
            parts = find_parts(self.network, run)
            frozen = run_frozen(run, self.plan, parts, expected)
            nothing = run_frozen(run, self.plan, parts, expected, frozen.with_nothing())
            self.forward(batch, plain.append, logits=False)
            return why_not_linear(frozen, nothing, FrozenPass(calls=plain)) or parts
        except FAILURES as error:
            return f"what it computes cannot be held ({in_short(str(error))})"

    @cached_property
    def modes(self) -> Modes:
        """Which modes besides dense are right for this network; proved on first use."""
        source = dataclasses.replace(self._probe_batch(), target=None)
        expected = self._expectations(source)
        run, packing = self._bind(source, logits=False), source.find_packing()
        return prove_modes(self.name, self.plan, run, expected, source.spans(), packing)

    @cached_property
    def has_sound_cache(self) -> bool:
        """Whether the network writes with its cache as without; tried when it first writes."""
        return generate.has_sound_cache(self)

    trace = record.trace

    def _bind(self, batch: Batch, logits: bool, end_to_end: bool = False) -> Forward:
        """The network, or as much of it as is needed, with a batch as its inputs."""
        is_whole = batch.target is not None if self.is_encoder_decoder else logits
        network, entry = (self.network, self._entry) if is_whole else self._inner
        return self._evaluated(network, arguments(entry, batch, end_to_end=end_to_end))

    def _evaluated(self, network: Any, given: dict[str, Any]) -> Forward:
        def forward(**more: Any) -> Any:
            with evaluating(self.network):
                return network(**given, **more)

        return forward

    @cached_property
    def _inner(self) -> tuple[Any, Entry]:
        """The encoder of an encoder–decoder model, else the network without its head."""
        inner = self.network.get_encoder() if self.is_encoder_decoder else self.network.base_model
        return inner, entry(inner, self.network.config)

    def _probe_batch(self) -> Batch:
        batch = probe_batch(self.network, SOURCE_TOKENS, self.device)
        if not self.is_encoder_decoder:
            return batch
        target = probe_batch(self.network, TARGET_TOKENS, self.device)
        return dataclasses.replace(batch, target=target)

    def _expectations(self, batch: Batch) -> dict[Stack, Expectation]:
        target = batch.target
        padded = batch.is_padded or (target is not None and target.is_padded)
        mask = None if target is None else target.mask
        return self.plan.expectations(self.name, batch.mask, mask, padded)

    def _check_vocabulary(self, tokens: Tokens) -> None:
        size = vocabulary_size(self.network)
        if max(tokens.ids) >= size:
            raise ModelError(
                f"The tokenizer gives id {max(tokens.ids)}, but {self.name} has only {size} "
                "embeddings; load the tokenizer that belongs to the model."
            )

    def _require_decoder(self) -> None:
        if not self.is_encoder_decoder:
            raise ModelError(
                f"{self.name} has no decoder, so it takes no target text; leave target out."
            )
        decoder_start(self.network)
