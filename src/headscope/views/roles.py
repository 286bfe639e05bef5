"""What heads do in one text: described by the rules of portraits, from this text alone.

Facts are those that a text shows without annotation: offsets, the first word, repetitions. They are
measured as in `headscope.portrait`, on one text instead of many: its rows take the place of
documents, so a head earns a name where its rows agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from headscope.head import Head
from headscope.results.describe import Description, Gains, HeadMeasures, Sink, describe, offsets_of
from headscope.results.fact_words import FIXED, FactName
from headscope.views.labels import label
from headscope.views.weights import checked_weights
from headscope.views.window import is_long

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace

CLEAR = 0.5  # share that what a head looks at must get to be worth a look
FEWEST = 2  # tokens that must have something to look at
FEWEST_KEYS = 3  # besides null tokens, that a row must see
STEPS, LONGEST_STEP, LARGEST = 12, 1.5, 8.0  # of Newton's method, and the largest weight
TINY = 1e-12

Mask = Bool[np.ndarray, "query key"]
OfHead = Float[np.ndarray, "*fact head"]
OfRows = Float[np.ndarray, "*fact head query"]


@dataclass(frozen=True, slots=True)
class Worth:
    """A head that this text shows well."""

    layer: int
    head: int
    sentence: str
    words: str  # what it looks at


@dataclass(frozen=True, slots=True)
class Role:
    """What a head does in a text, in a word or two."""

    name: str
    group: str  # of theme.ROLES, which has its colour


def worth_a_look(stack: "StackTrace") -> tuple[Worth, ...]:
    """Of every name the clearest head, repetitions first; nothing for long inputs."""
    clearest: dict[str, tuple[tuple[bool, float], Worth]] = {}
    for description in describe_text(stack):
        lead = description.lead
        if lead is None or lead.value is None or lead.baseline is None or lead.value < CLEAR:
            continue
        clarity = description.group == "repetition", lead.value - lead.baseline
        known = clearest.get(description.name)
        if known is None or clarity > known[0]:
            worth = Worth(*description.head, description.sentence, lead.words)
            clearest[description.name] = clarity, worth
    telling = sorted(clearest.values(), key=lambda entry: entry[0], reverse=True)
    return tuple(worth for _, worth in telling)


def roles(stack: "StackTrace") -> list[list[Role]]:
    """The role of every head by layer; all are unnamed in long inputs and between two sequences."""
    named = {each.head: Role(each.name, each.group) for each in describe_text(stack)}
    unnamed = Role("unnamed", "unnamed")
    return [[named.get(Head(layer, head), unnamed) for head in stack.heads]
            for layer in stack.layers]  # fmt: skip


def describe_text(stack: "StackTrace") -> list[Description]:
    """What every head looks at in this text; nothing for long inputs and between two sequences."""
    described: list[Description] = []
    for measures in measure_text(stack):
        description = describe(measures)
        described.append(replace(description, sentence=f"In this text {description.sentence}"))
    return described


def measure_text(stack: "StackTrace") -> list[HeadMeasures]:
    """What those descriptions follow from."""
    if is_long(stack) or stack.queries.labels != stack.keys.labels:
        return []
    seen = np.zeros((len(stack.queries), len(stack.keys)), dtype=bool)
    for layer in stack.layers:
        seen |= checked_weights(stack, layer).any(0)
    null = np.array(stack.keys.special, dtype=bool)
    is_causal = not np.triu(seen, 1).any()
    seen[:] = seen.any(0)  # a masked token gets nothing from anywhere
    if is_causal:
        null[:1] = True
        seen = np.tril(seen)
    keys = seen & ~null
    rows = ~null & (keys.sum(1) >= FEWEST_KEYS)
    if not rows.any():
        return []
    nulls = [stack.keys.labels[place].strip() if stack.keys.special[place] else "the first token"
             for place in np.flatnonzero(null).tolist()]  # fmt: skip
    names: list[FactName] = []
    masks: list[np.ndarray] = []
    for name, mask in facts_of(stack, null, is_causal):
        marked = mask[rows] & keys[rows]
        if marked.any(1).sum() >= FEWEST:
            names.append(name)
            masks.append(marked)
    read = keys[rows]
    of_facts = np.array(masks, dtype=np.float32).reshape(-1, *read.shape)  # a short text has none
    text = OneText(tuple(dict.fromkeys(nulls)), read, (seen & null)[rows], tuple(names), of_facts,
                   is_causal)  # fmt: skip
    measured: list[HeadMeasures] = []
    for layer in stack.layers:
        of_layer = text.measure(checked_weights(stack, layer)[:, rows])
        for head, measures in zip(stack.heads, of_layer, strict=True):
            measured.append(replace(measures, head=Head(layer, head)))
    return measured


def facts_of(
    stack: "StackTrace", null: np.ndarray, is_causal: bool
) -> Iterator[tuple[FactName, Mask]]:
    """What a text shows of every pair of tokens, by the keys that facts have in portraits."""
    place = np.arange(len(stack.keys))
    distance = place[None, :] - place[:, None]
    for key in FIXED:
        span = offsets_of(key)
        if span is not None:
            yield FactName("position", key), (distance >= span[0]) & (distance <= span[1])
        elif key.startswith("±"):
            yield FactName("position", key), (distance != 0) & (np.abs(distance) <= int(key[1:]))
    if not is_causal:
        yield FactName("position", "before"), distance < 0
        yield FactName("position", "after"), distance > 0
    first = place == np.flatnonzero(~null)[0]
    yield FactName("position", "first word"), np.broadcast_to(first, distance.shape)
    numbers = np.unique(list(map(label, stack.keys.labels)), return_inverse=True)[1].ravel()
    same = (numbers[:, None] == numbers[None, :]) & (distance != 0)
    follows = np.zeros_like(same)
    follows[:, 1:] = same[:, :-1]
    yield FactName("repetition", "same token", is_special=True), same
    yield FactName("repetition", "after the same", is_special=True), follows & (distance != 0)


@dataclass(frozen=True)
class OneText:
    """The rows of a text that are read: which keys they see, and which of them facts are about."""

    null_names: tuple[str, ...]
    keys: Mask  # besides null tokens
    nulls: Mask
    names: tuple[FactName, ...]
    masks: Float[np.ndarray, "fact query key"]
    is_causal: bool

    def measure(self, weights: Float[np.ndarray, "head query key"]) -> Iterator[HeadMeasures]:
        """What the descriptions of the heads of a layer follow from."""
        weights = weights / np.maximum(weights.sum(-1, keepdims=True), TINY)
        null = (weights * self.nulls).sum(-1)
        first = weights[:, :, self.nulls.any(0).argmax()] * self.nulls.any()
        rest, mass = weights * self.keys, 1 - null
        seen, even = self.keys.sum(1), self.nulls.sum(1) / (self.nulls | self.keys).sum(1)
        of_rest = xlogy(rest).sum(-1) - xlogy(mass) + mass * np.log(seen)
        of_null = xlogy(null) - null * np.log(np.maximum(even, TINY))
        of_null += xlogy(mass) - mass * np.log(1 - even)
        width, width_rest = -(of_rest + of_null).mean(1), -of_rest.sum(1) / (mass.sum(1) + TINY)
        column, column_error = ratio(self.gain_of_columns(rest, mass), of_rest)
        gains = self.gains(rest, mass, of_rest)
        for head in range(len(weights)):
            of_head = gains.of_head(head)
            yield replace(
                HeadMeasures.of_facts(self.names, of_head, of_head, of_head),
                is_causal=self.is_causal,
                sink=Sink.of(self.null_names, float(null[head].mean()), float(first[head].mean()),
                             float(even.mean())),
                width=float(np.exp(width[head])),
                width_rest=float(np.exp(width_rest[head])),
                column=float(column[head]),
                column_error=float(column_error[head]),
                fewest=FEWEST,
            )  # fmt: skip

    def gains(self, rest: np.ndarray, mass: OfRows, total: OfRows) -> Gains:
        """What every fact explains, and how much weight it gets."""
        given = np.einsum("hqk,fqk->fhq", rest, self.masks, optimize=True)
        applies = np.expand_dims(self.masks.any(-1), 1)
        of_rows = mass * applies
        even = (self.masks.sum(-1) / self.keys.sum(1))[:, None, :]
        weight = fit_weights(given, of_rows, even)
        odds = np.exp(weight)[..., None]
        gained = given * weight[..., None] - of_rows * np.log1p(even * (odds - 1))
        when, when_error = ratio(given, of_rows)
        return Gains(
            weight,
            *ratio(gained, total),
            share=ratio(given, mass)[0],
            even=ratio(of_rows * even, mass)[0],
            when=when,
            when_error=when_error,
            position=np.zeros_like(when),
            cases=applies.sum(-1) * np.ones_like(when),
        )

    def gain_of_columns(self, rest: np.ndarray, mass: OfRows) -> OfRows:
        """What the other rows of the text explain of every row."""
        seen = self.keys.sum(1)[:, None]
        relative = rest / np.maximum(mass[..., None], 1e-9) * seen
        others = relative.sum(1, keepdims=True) - relative + 1
        likely = others / np.maximum(self.keys.sum(0), 1) * self.keys
        likely = likely / likely.sum(-1, keepdims=True)
        return (rest * np.log(np.maximum(likely, TINY) * seen)).sum(-1)


def fit_weights(given: OfRows, mass: OfRows, even: OfRows) -> OfHead:
    """The weights with the largest gain, w·given − Σ mass·log(1 + even(exp(w) − 1)), by Newton."""
    weight = np.zeros(given.shape[:-1])
    for _ in range(STEPS):
        odds = np.exp(weight)[..., None]
        likely = even * odds / (1 + even * (odds - 1))
        slope = (given - mass * likely).sum(-1)
        curvature = (mass * likely * (1 - likely)).sum(-1) + 1e-3
        step = np.clip(slope / curvature, -LONGEST_STEP, LONGEST_STEP)
        weight = np.clip(weight + step, -LARGEST, LARGEST)
    return weight


def ratio(numerator: OfRows, denominator: OfRows) -> tuple[OfHead, OfHead]:
    """Σ numerator / Σ denominator, and its standard error, leaving out one row at a time."""
    total, whole = numerator.sum(-1), denominator.sum(-1)
    left_out = total[..., None] - numerator
    left_out = left_out / np.maximum(whole[..., None] - denominator, TINY)
    rows = numerator.shape[-1]
    spread = ((left_out - left_out.mean(-1, keepdims=True)) ** 2).sum(-1)
    return total / np.maximum(whole, TINY), np.sqrt(spread * (rows - 1) / rows)


def xlogy(shares: np.ndarray) -> np.ndarray:
    """Shares times their logarithms; 0 where there is none."""
    return shares * np.log(np.maximum(shares, TINY))
