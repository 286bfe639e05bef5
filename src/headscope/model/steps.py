"""Passes over one text that go on where the last one stopped, by the network's own cache.

The keys and values of earlier tokens are kept, so that a new token costs one row of attention:

```
  prompt    x . . .          what is observed of every pass has the rows of its own tokens;
            x x . .          stitched together they are the attention of the whole text
            x x x .
  step 1    x x x x
```

Whether a network can do so is proved on the probe: rows that differ from those of a whole pass, or
a network that fails, and the cache is left alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.errors import HeadscopeError, ModelError
from headscope.model.attention import LayerAttention, Stack
from headscope.model.capture.dense import TOLERANCE, Expectation, capture, expect
from headscope.model.capture.plan import sliding_window
from headscope.model.inputs.batch import Batch
from headscope.model.loading.network import quiet

if TYPE_CHECKING:
    from headscope.model.model import Model

Observer = Callable[[LayerAttention], None]

# What a network may raise that is given a cache it has no use for.
_FAILURES = (
    TypeError, AttributeError, RuntimeError, ValueError, KeyError, IndexError, AssertionError,
    NotImplementedError, HeadscopeError,
)  # fmt: skip


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
        self._length = 0
        self._cache: Any = None
        self._encoded: Any = None

    def feed(self, ids: Sequence[int], observer: Observer) -> Tensor:
        """Read the next tokens, show their rows of every layer, return the logits of the last."""
        if self._source is not None and self._encoded is None:
            self._encoded = self._model.forward(self._source, observer)
        start, self._length = self._length, self._length + len(ids)
        run = self._model._evaluated(self._model.network, self._given(ids, start))
        with torch.no_grad():
            output = capture(run, self._model.plan, observer, self._expected(start))
        self._cache = output.past_key_values
        return last_logits(self._model.name, output)

    def _given(self, ids: Sequence[int], start: int) -> dict[str, Any]:
        new = torch.tensor([list(ids)], device=self._model.device)
        mask = torch.ones(1, self._length, dtype=torch.long, device=new.device)
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
            given["position_ids"] = torch.arange(start, self._length, device=new.device)[None]
        if entry.segments:
            given["token_type_ids"] = torch.zeros_like(new)
        return given | {"input_ids": new, "attention_mask": mask}

    def _expected(self, start: int) -> dict[Stack, Expectation]:
        """What the weights of the new rows must look like, in every stack that reads them."""
        model = self._model
        own = torch.ones(1, self._length, dtype=torch.bool, device=model.device)
        found: dict[Stack, Expectation] = {}
        for stack in model.stacks:
            if stack.name == "encoder":
                continue
            keys = own
            if stack.name == "cross" and self._source is not None:
                keys = self._source.mask
            whole = expect(
                model.name,
                stack.name,
                stack.heads,
                own,
                keys,
                causal=stack.causal,
                sink=stack.sink,
                whole=False,
            )
            window = sliding_window(model.network.config, stack.name) is not None
            found[stack.name] = whole.of_rows(start, self._length, window=window)
        return found


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
                agrees = _same_rows(steps, ids, whole)
            if agrees:
                return Cache(positions)
        except _FAILURES:
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
        same.append(_is_close(seen.weights[0], rows))

    for stop in (len(ids) - 2, len(ids) - 1, len(ids)):
        steps.feed(ids[start:stop], compare)
        start = stop
    return all(same)


def _is_close(one: Tensor, other: Tensor) -> bool:
    slack = TOLERANCE.get(one.dtype, 1e-4)
    return one.shape == other.shape and torch.allclose(
        one.float(), other.float(), rtol=0, atol=slack
    )
