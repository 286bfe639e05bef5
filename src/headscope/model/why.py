"""Why a head looks there: its score as a sum over what earlier parts of the network wrote.

```
score(i, j) = Σ_a Σ_b  q_i^a · k_j^b · scaling        a, b: embedding, position, heads, MLPs, biases
```

q_i^a is what part a brought into the query of token i, k_j^b what b brought into the key of j, with
norms, weights of attention and outputs of MLPs held (`headscope.model.frozen`). Scores are those
before a soft-cap, a mask and a bias of positions (Elhage et al. 2021; Kamath et al. 2025).

Two readings. Of one weight, the *lift*: how much of the score's height above the mean of its row
every part of the key makes. Of a corpus, the *composition*: the covariance of a part with the score
over the keys of a row, of the score's variance there. Both leave out what is the same for all keys,
which moves no weight, and both sum to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.errors import ModelError
from headscope.head import Head
from headscope.model.attention import MASKED, LayerAttention, Stack, bias, widen
from headscope.model.capture.changes import Replacement
from headscope.model.difference import Difference, find_difference
from headscope.model.frozen import Kind, Written

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model
    from headscope.model.trace import StackTrace

Side = Literal["query", "key"]
SIDES: tuple[Side, ...] = ("query", "key")
SHOWN = 3  # parts that a sentence names
TOGETHER = 2**31  # bytes of slopes of several numbers that are held at once


@dataclass(frozen=True)
class Source:
    """A part of the network that wrote something."""

    kind: Kind | Literal["biases"]
    layer: int | None = None
    head: int | None = None
    stack: Stack | None = None  # in a network of several stacks

    def __str__(self) -> str:
        stack = "" if self.stack is None else f"{self.stack} "
        if self.kind == "head":
            return f"{stack}L{self.layer}H{self.head}"
        if self.kind == "mlp":
            return f"{stack}MLP {self.layer}" if self.layer is not None else "before attention"
        return self.kind


@dataclass(frozen=True)
class Why:
    """One score as a sum."""

    head: Head
    query: int
    key: int
    score: float  # scaling · q·k
    weight: float
    sources: tuple[Source, ...]
    parts: Float[np.ndarray, "query_source key_source"]  # they sum to the score
    lift: Float[np.ndarray, "key_source"]  # of each part of the key above its mean over the row
    moved: dict[str, tuple[tuple[int, float], ...]]  # by head: from which tokens, and their lift
    labels: tuple[str, ...]  # of the tokens that are looked at
    looking: str  # the token that looks

    @cached_property
    def lift_shares(self) -> dict[str, float]:
        """The share of every part in the height of the score above its row, largest first."""
        total = float(self.lift.sum())
        order = np.argsort(-np.abs(self.lift), kind="stable")
        return {str(self.sources[n]): float(self.lift[n]) / total if total else 0.0 for n in order}

    @cached_property
    def query_parts(self) -> dict[str, float]:
        """What every part of the query adds to the score, largest first."""
        return self._by_size(self.parts.sum(1))

    @cached_property
    def key_parts(self) -> dict[str, float]:
        """What every part of the key adds to the score, largest first."""
        return self._by_size(self.parts.sum(0))

    @property
    def sentence(self) -> str:
        """The parts of the key that lift it above its row most, and those that speak against it."""
        start = (
            f"{self.head} looks from {self.looking!r} ({self.query}) at "
            f"{self.labels[self.key]!r} ({self.key})"
        )
        if self.lift.sum() <= 0:
            return f"{start} with {self.weight:.2f}, but its score is not above the mean of its row"
        shares = self.lift_shares.items()
        reasons = [f"{self._wrote(name)} ({share:.0%})" for name, share in shares if share > 0]
        against = [f"{self._wrote(name)} (−{-share:.0%})" for name, share in shares if share < 0]
        text = f"{start} because of {', '.join(reasons[:SHOWN])}"
        return f"{text}, against {against[0]}" if against else text

    def _wrote(self, name: str) -> str:
        tokens = self.moved.get(name, ())
        return name if not tokens else f"what {name} moved there from {self.labels[tokens[0][0]]!r}"

    def _by_size(self, parts: np.ndarray) -> dict[str, float]:
        order = np.argsort(-np.abs(parts), kind="stable")
        return {str(self.sources[number]): float(parts[number]) for number in order}


def explain(
    model: "Model",
    batch: "Batch",
    labels: tuple[Sequence[str], Sequence[str]],
    head: Head,
    query: int,
    key: int,
    *,
    stack: Stack | None = None,
) -> Why:
    """Why the head looks from one token of the only text of a batch at another.

    `labels` are of the tokens that look and of those that are looked at.
    """
    name = stack or model.stacks[0].name
    check_places(model, name, head, query, key, (len(labels[0]), len(labels[1])))
    reasons = Reasons(model, batch, name)
    call, bare = reasons.calls(head.layer)
    scaling, (queries, keys) = _scaling(call), _of_head(call, head.head)
    bare_queries, bare_keys = _of_head(bare, head.head)
    parts = (
        scaling
        * reasons.vectors(queries[0, query], bare_queries[0, query])
        @ reasons.vectors(keys[0, key], bare_keys[0, key]).T
    )
    visible = visible_keys(call, batch)[:, 0]
    above_row = torch.zeros_like(visible, dtype=torch.float32)
    above_row[0, query] -= visible[0, query] / visible[0, query].sum().clamp(min=1)
    above_row[0, query, key] += 1
    slopes, lift = reasons.parts(head, "key", above_row)
    lift = lift[:, 0].double().cpu()

    is_part = ((parts != 0).any(1) | (parts != 0).any(0) | (lift != 0)).tolist()
    chosen = [number for number, is_there in enumerate(is_part) if is_there]
    largest = sorted(range(len(reasons.sources)), key=lambda number: -abs(float(lift[number])))
    moved: dict[str, tuple[tuple[int, float], ...]] = {}
    for source in (reasons.sources[number] for number in largest[:SHOWN]):
        tokens = reasons.moved(source, slopes)
        if tokens:
            moved[str(source)] = tokens
    return Why(
        head=head,
        query=query,
        key=key,
        score=scaling * float((widen(queries[0, query]) * widen(keys[0, key])).sum().detach()),
        weight=float(call.weights[0, head.head, query, key]),
        sources=tuple(reasons.sources[number] for number in chosen),
        parts=parts[chosen][:, chosen].numpy(),
        lift=lift[chosen].numpy(),
        moved=moved,
        labels=tuple(labels[1]),
        looking=labels[0][query],
    )


@dataclass(frozen=True)
class LiveInputs:
    """The model and the batch of a trace; where the trace is sent or stored, they stay behind."""

    model: "Model"
    batch: "Batch"
    replacement: Replacement = "zero"

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()

    def explain(self, stack: "StackTrace", head: Head, query: int, key: int) -> Why:
        """Why a head of this text looks from one token at another."""
        labels = (stack.queries.labels, stack.keys.labels)
        return explain(self.model, self.batch, labels, head, query, key, stack=stack.name)

    def difference(self, labels: Sequence[str], without: Sequence[Head], seed: int) -> Difference:
        """What changes in this text without some heads."""
        return find_difference(self.model, self.batch, labels, without, self.replacement, seed)


class Reasons:
    """The scores of one stack for a batch, taken apart."""

    def __init__(self, model: "Model", batch: "Batch", stack: Stack | None = None) -> None:
        self._frozen, self._nothing = model.freeze(batch)
        self._stack: Stack = stack or model.stacks[0].name
        stacks = {part.stack for part in self._frozen.written if part.kind == "head"}
        names = [_sources_of(part, len(stacks) > 1) for part in self._frozen.written]
        written = dict.fromkeys(source for part in names for source in part)
        self.sources = (*written, Source("biases"))
        numbers = {source: number for number, source in enumerate(self.sources)}
        self._numbers = [[numbers[source] for source in part] for part in names]

    def calls(self, layer: int) -> tuple[LayerAttention, LayerAttention]:
        """The attention of a layer, and the same if nothing was written."""
        return self._frozen.call(self._stack, layer), self._nothing.call(self._stack, layer)

    def parts(
        self, head: Head, side: Side, weighting: Float[Tensor, "batch query key"]
    ) -> tuple[list[Tensor | None], Float[Tensor, "source batch"]]:
        """What every part of one side adds to Σ weighting · score, text by text, and the slopes."""
        call, bare = self.calls(head.layer)
        queries, keys = _of_head(call, head.head)
        bare_queries, bare_keys = _of_head(bare, head.head)
        if side == "key":
            varied, rest, other = keys, bare_keys, weighting.mT @ widen(queries.detach())
        else:
            varied, rest, other = queries, bare_queries, weighting @ widen(keys.detach())
        other = _scaling(call) * other
        slopes, added = self._taken_apart((widen(varied) * other).sum()[None])
        added[0, :, -1] = (widen(rest) * other).sum((1, 2))
        return [None if slope is None else slope[0] for slope in slopes], added[0].T

    def vectors(
        self, vector: Float[Tensor, "width"], rest: Float[Tensor, "width"]
    ) -> Float[Tensor, "source width"]:
        """What every part brought into a vector of the only text."""
        most = max(1, TOGETHER // sum(part.values.nbytes for part in self._frozen.written))
        parts = torch.cat([self._taken_apart(some)[1][:, 0] for some in vector.split(most)]).T
        parts[-1] = widen(rest.detach())
        return parts.double().cpu()

    def moved(
        self, source: Source, slopes: Sequence[Tensor | None]
    ) -> tuple[tuple[int, float], ...]:
        """From which tokens a head moved what it added, largest first; nothing if that is unknown.

        What a head found is the sum of the values of tokens times their weights in most families.
        """
        if source.kind != "head" or source.head is None:
            return ()
        number = self.sources.index(source)
        place = next(n for n, numbers in enumerate(self._numbers) if number in numbers)
        part, slope = self._frozen.written[place], slopes[place]
        assert part.stack is not None and part.layer is not None
        call = self._frozen.call(part.stack, part.layer)
        if call.value is None or slope is None:
            return ()
        groups = call.weights.shape[1] // call.value.shape[1]
        weights = widen(call.weights[0, source.head].detach())
        values = widen(call.value[0, source.head // groups].detach())
        of_head = widen(slope[0, :, source.head])
        amounts = (weights * (of_head @ values.T)).sum(0)
        total = (of_head * widen(part.values[0, :, source.head].detach())).sum()
        if not torch.isclose(amounts.sum(), total, rtol=1e-2):
            return ()
        top = amounts.topk(min(SHOWN, len(amounts)))
        return tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))

    def _taken_apart(
        self, values: Float[Tensor, "value"]
    ) -> tuple[Sequence[Tensor | None], Float[Tensor, "value batch source"]]:
        """The slopes of some values by everything that was written, and slope × what was written.

        They are summed over all tokens of each text.
        """
        written, weights = self._frozen.written, self._frozen.calls[0].weights
        shape = (len(values), len(weights), len(self.sources))
        total = torch.zeros(shape, device=weights.device)
        if not values.requires_grad:
            return [None] * len(written), total
        each = torch.eye(len(values), dtype=values.dtype, device=values.device)
        slopes = torch.autograd.grad(
            values, [part.values for part in written], each,
            retain_graph=True, allow_unused=True, is_grads_batched=True,
        )  # fmt: skip
        for part, slope, numbers in zip(written, slopes, self._numbers, strict=True):
            if slope is None:
                continue
            products = widen(slope) * widen(part.values.detach())
            if part.kind == "head":  # value batch token head width
                added = products.sum((2, 4))
            else:  # some networks lay the tokens of all texts in one row
                added = products.reshape(*shape[:2], -1).sum(-1, keepdim=True)
            total[..., numbers[0] : numbers[-1] + 1] += added.to(total.device)
        return slopes, total


def source_names(model: "Model") -> tuple[str, ...]:
    """Every part that writes into the network of a model, in order."""
    batch = model.batch([model.encode("a b")])
    return tuple(map(str, Reasons(model, batch).sources))


@dataclass(frozen=True)
class Composition:
    """Sums over the rows of each text; covariance / variance is a part's share of the choice."""

    sources: tuple[Source, ...]
    covariance: Float[Tensor, "batch layer head side source"]
    variance: Float[Tensor, "batch layer head"]


def compose(
    model: "Model", batch: "Batch", rows: Bool[Tensor, "batch query"] | None = None
) -> Composition:
    """What every part makes of the choice of every head of the first stack, in all or some rows.

    On the side of the keys, a part's covariance with the score over the keys of a row; on the side
    of the queries, what the part brought into the query adds to the variance of its row.
    """
    plan, reasons = model.stacks[0], Reasons(model, batch)
    covariances: list[Tensor] = []
    variances: list[Tensor] = []
    for layer in plan.attending:
        call, _ = reasons.calls(layer)
        visible = visible_keys(call, batch)[:, 0]
        if rows is not None:
            visible = visible & rows[..., None]
        for number in range(plan.heads):
            above, variance = _above_rows(call, number, visible)
            variances.append(variance)
            for side in SIDES:
                covariances.append(reasons.parts(Head(layer, number), side, above)[1].T)
    shape = (len(plan.attending), plan.heads)
    return Composition(
        reasons.sources,
        torch.stack(covariances, dim=1).unflatten(1, (*shape, len(SIDES))),
        torch.stack(variances, dim=1).unflatten(1, shape),
    )


def _above_rows(
    call: LayerAttention, head: int, visible: Bool[Tensor, "batch query key"]
) -> tuple[Float[Tensor, "batch query key"], Float[Tensor, "batch"]]:
    """Scores above the mean of their row, over the number of its keys; and the rows' variances."""
    queries, keys = (widen(side.detach()) for side in _of_head(call, head))
    scores = _scaling(call) * queries @ keys.mT
    count = visible.sum(-1, keepdim=True).clamp(min=1)
    mean = torch.where(visible, scores, 0).sum(-1, keepdim=True) / count
    above = torch.where(visible, scores - mean, 0)
    return above / count, (above.square() / count).sum((1, 2))


def _sources_of(part: Written, several: bool) -> list[Source]:
    """The sources that one part of a pass is; all heads of a layer write together."""
    stack = part.stack if several else None
    if part.kind == "head":
        return [Source("head", part.layer, head, stack) for head in range(part.values.shape[2])]
    if part.kind == "mlp":  # that of a decoder follows attention to the source
        return [Source("mlp", part.layer, stack="decoder" if stack == "cross" else stack)]
    return [Source(part.kind)]


def check_places(
    model: "Model", stack: Stack, head: Head, query: int, key: int, tokens: tuple[int, int]
) -> None:
    """Refuse a head, or a token that looks or is looked at, that is not there."""
    plan = model.plan.stack(stack)
    if head.layer not in plan.attending:
        layers = ", ".join(map(str, plan.attending))
        raise ModelError(f"{model.name} has no attention layer {head.layer}; it has {layers}.")
    if not 0 <= head.head < plan.heads:
        raise ModelError(f"{model.name} has heads 0 to {plan.heads - 1}, not {head.head}.")
    for place, count in zip((query, key), tokens, strict=True):
        if not 0 <= place < count:
            raise ModelError(f"The text has tokens 0 to {count - 1}, not {place}.")


def _of_head(call: LayerAttention, head: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of one head, text by text; heads may share keys."""
    assert call.query is not None and call.key is not None
    groups = call.query.shape[1] // call.key.shape[1]
    return call.query[:, head], call.key[:, head // groups]


def _scaling(call: LayerAttention) -> float:
    assert call.scaling is not None
    return call.scaling


def visible_keys(call: LayerAttention, batch: "Batch") -> Bool[Tensor, "batch 1 query key"]:
    """Which keys a query may look at; padding, and what looks from it, is left out."""
    target = batch.mask if batch.target is None else batch.target.mask
    queries = target if call.stack in ("decoder", "cross") else batch.mask
    keys = target if call.stack == "decoder" else batch.mask
    visible = queries[:, None, :, None] & keys[:, None, None, :]
    added = bias(call)
    if added is None:
        return visible
    return visible & (added[..., : call.weights.shape[-1]] > MASKED)[:, :1]
