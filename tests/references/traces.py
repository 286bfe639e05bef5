"""Small traces with everything a view can show, made from a seed."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from headscope.model.attention import Stack
from headscope.model.inputs.tokens import Characters, Tokens
from headscope.model.trace import StackTrace, Trace, label_tokens

WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "."]
HOSTILE = (
    '</script><img src=x onerror="window.hacked=1">',
    "<!--<script>",
    "'\"`${alert(1)}",
    "\u202eevil\u200f",
    "\x00\x07\n\t",
    "x" * 5000,
    "👩\u200d👩\u200d👧",
    "$\\frac{1}{0}$",
    "&amp;&lt;",
)


def side(tokens: Sequence[str]) -> Tokens:
    """Tokens that are words."""
    return label_tokens(tokens)


def pair_side() -> Tokens:
    """Two sentences as BERT reads them: special tokens, and one word in three pieces."""
    texts = ("the cat sat unbelievably", "it was tired")
    pieces = [["the", "cat", "sat", "un", "##believ", "##ably"], ["it", "was", "tired"]]
    separator = Tokens((), ("[SEP]",), (None,), (True,), (0,))
    tokens = replace(separator, labels=("[CLS]",))
    for segment, (text, labels) in enumerate(zip(texts, pieces, strict=True)):
        places, end = [], 0
        for label in labels:
            start = text.index(label.removeprefix("##"), end)
            end = start + len(label.removeprefix("##"))
            places.append(Characters(start, end))
        flags, segments = (False,) * len(labels), (segment,) * len(labels)
        tokens += Tokens((), tuple(labels), tuple(places), flags, segments, (text,))
        tokens += replace(separator, segments=(segment,))
    return tokens


def known_trace() -> Trace:
    """One layer, one head, three tokens, weights one can check by eye."""
    weights = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.1, 0.3, 0.6]])
    return Trace.from_weights(weights, ["one", "two", "three"], model="known")


def random_trace(
    *,
    layers: int = 3,
    heads: int = 4,
    key_heads: int | None = None,
    dim: int = 8,
    tokens: Tokens | None = None,
    causal: bool = True,
    softcap: float | None = None,
    sink: bool = False,
    position_bias: bool = False,
    prompt_length: int | None = None,
    seed: int = 0,
) -> Trace:
    """Weights that really come from queries and keys, with the extras some models have."""
    random = torch.Generator().manual_seed(seed)
    queries = tokens or side(WORDS)
    made = [
        _layer(
            random,
            heads,
            key_heads or heads,
            dim,
            len(queries),
            causal,
            softcap,
            sink,
            position_bias,
        )
        for _ in range(layers)
    ]
    names = ("weights", "query", "key", "bias", "sink", "value_norms")
    parts = {
        name: dict(enumerate(values))
        for name, values in zip(names, zip(*made, strict=True), strict=True)
    }
    stack = StackTrace(
        name="self",
        layers=tuple(range(layers)),
        heads=tuple(range(heads)),
        weights=parts["weights"],
        queries=queries,
        keys=queries,
        query=parts["query"],
        key=parts["key"],
        key_head_of=tuple(_groups(heads, key_heads or heads)),
        scaling=dict.fromkeys(range(layers), 1 / math.sqrt(dim)),
        bias=parts["bias"] if causal or position_bias else None,
        softcap=softcap,
        sink=parts["sink"] if sink else None,
        value_norms=parts["value_norms"],
        no_norms=None,
    )
    return Trace("random-model", {"self": stack}, causal, prompt_length=prompt_length)


def patterned_trace() -> Trace:
    """Two layers of three heads: L0H1 looks at the previous token, L1H2 at what followed the same
    token before where there is such a token and else rests on the first; the others are even."""
    words = ["The", "cat", "sat", "here", "and", "cat", "sat", "there", "and", "cat", "ran"]
    count = len(words)
    even = np.tril(np.ones((count, count)))
    even /= even.sum(-1, keepdims=True)
    previous = 0.1 * even + 0.9 * np.eye(count, k=-1)
    previous[0] = even[0]
    induction = np.zeros((count, count))
    for query in range(count):
        after = [key + 1 for key in range(query) if words[key] == words[query]]
        induction[query, after or [0]] = 1 / len(after or [0])
    weights = np.stack([[even, previous, even], [even, even, induction]])
    return Trace.from_weights(weights, words, model="patterned")


def encoder_decoder_trace() -> Trace:
    """Three stacks, source of five and target of three tokens."""
    source, target = side(["a", "b", "c", "d", "e"]), side(["x", "y", "z"])
    random = torch.Generator().manual_seed(1)
    stacks = [
        _bare("encoder", random, source, source),
        _bare("decoder", random, target, target),
        _bare("cross", random, target, source),
    ]
    return Trace(
        "translator", {stack.name: stack for stack in stacks}, False, no_neurons="it is made up."
    )


def _bare(name: Stack, random: torch.Generator, queries: Tokens, keys: Tokens) -> StackTrace:
    scores = torch.randn(2, 2, len(queries), len(keys), generator=random)
    weights = dict(enumerate(scores.softmax(-1)))
    return StackTrace(name, (0, 1), (0, 1), weights, queries, keys)


def _groups(heads: int, key_heads: int) -> list[int]:
    return [head * key_heads // heads for head in range(heads)]


def _layer(
    random: torch.Generator,
    heads: int,
    key_heads: int,
    dim: int,
    count: int,
    causal: bool,
    softcap: float | None,
    sink: bool,
    position_bias: bool,
) -> tuple[Tensor, ...]:
    query = torch.randn(heads, count, dim, generator=random) * 1.5
    key = torch.randn(key_heads, count, dim, generator=random)
    scores = torch.einsum("hqd,hkd->hqk", query, key[_groups(heads, key_heads)]) * dim**-0.5
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    bias = (
        torch.randn(heads, count, count, generator=random)
        if position_bias
        else torch.zeros(1, count, count)
    )
    if causal:
        bias = bias.masked_fill(torch.ones(count, count, dtype=torch.bool).triu(1), -torch.inf)
    sinks = torch.randn(heads, generator=random)
    logits = scores + bias
    if sink:
        logits = torch.cat([logits, sinks[:, None, None].expand(-1, count, 1)], -1)
    weights = logits.softmax(-1)[..., :count]
    norms = torch.rand(heads, count, generator=random) * 4
    return weights, query, key, bias, sinks, norms
