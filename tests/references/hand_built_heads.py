"""Attention made by hand: what every head looks at is known, so its description is known too.

Every rule gives each query of each text the keys that it looks at; a head gives them all but a
little of its weight, evenly, and the little evenly to all keys. Where a rule has no key, the head
rests on the first token, if it has a sink, and else looks evenly.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from headscope.portrait.pairs import Attention, Pairs
from headscope.portrait.tables import Look

LITTLE = 0.002
Rule = Callable[[Look, int, Sequence[int]], list[int]]


def previous(look: Look, query: int, keys: Sequence[int]) -> list[int]:
    return [key for key in keys if key == query - 1]


def same_token(look: Look, query: int, keys: Sequence[int]) -> list[int]:
    ids = look.text.tokens.ids
    return [key for key in keys if key != query and ids[key] == ids[query]]


def after_the_same(look: Look, query: int, keys: Sequence[int]) -> list[int]:
    ids = look.text.tokens.ids
    return [key for key in keys if key != query and key > 1 and ids[key - 1] == ids[query]]


def object_to_verb(look: Look, query: int, keys: Sequence[int]) -> list[int]:
    words = look.text.sentence.words
    word = look.text.word[query]
    if word < 0 or words[word].deprel not in ("dobj", "obj"):
        return []
    return [key for key in keys if look.text.word[key] == words[word].head]


def nothing(look: Look, query: int, keys: Sequence[int]) -> list[int]:
    return []


def attention_by(pairs: Pairs, rules: Sequence[tuple[Rule, bool]]) -> Attention:
    """The attention of a head for every rule; true: it rests where the rule has no key."""
    weights = np.zeros((len(pairs.key), len(rules)), dtype=np.float32)
    null = np.zeros((len(pairs), len(rules)), dtype=np.float32)
    looks = [Look(text, pairs.vocabulary) for text in pairs.texts]
    start = 0
    for row in range(len(pairs)):
        stop = start + int(pairs.keys[row])
        keys = pairs.key[start:stop].tolist()
        even = 1 / (len(keys) + int(pairs.nulls[row]))
        for head, (rule, rests) in enumerate(rules):
            chosen = rule(looks[pairs.row_text[row]], int(pairs.query[row]), keys)
            share = np.full(len(keys), LITTLE * even)
            at_null = LITTLE * even * int(pairs.nulls[row])
            if chosen:
                share[np.isin(keys, chosen)] += (1 - LITTLE) / len(chosen)
            elif rests:
                at_null += 1 - LITTLE
            else:
                share += (1 - LITTLE) * even
                at_null += (1 - LITTLE) * even * int(pairs.nulls[row])
            weights[start:stop, head] = share
            null[row, head] = at_null
        start = stop
    null_tensor = torch.from_numpy(null)
    return Attention(torch.from_numpy(weights), null_tensor, null_tensor)


def attention_of_words(pairs: Pairs, strength: float, seed: int) -> Attention:
    """One head that looks at the same words from everywhere: words that no feature tells apart."""
    rng = np.random.default_rng(seed)
    size = max(len(text) for text in pairs.texts)
    drawn = rng.random((len(pairs.texts), size)) < 0.15
    liking = torch.from_numpy(np.where(drawn, strength, 0.0)).float()
    text = torch.from_numpy(pairs.row_text)[pairs.design.row_of_pair]
    logits = liking[text, torch.from_numpy(pairs.key)][:, None]
    return _without_sink(pairs, logits)


def attention_at_random(pairs: Pairs, heads: int, sharpness: float, seed: int) -> Attention:
    """Heads whose scores are noise."""
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(len(pairs.key), heads, generator=generator)
    return _without_sink(pairs, logits)


def _without_sink(pairs: Pairs, logits: torch.Tensor) -> Attention:
    nulls = torch.from_numpy(pairs.nulls / (pairs.nulls + pairs.keys)).float()[:, None]
    null = nulls.expand(-1, logits.shape[1])
    shares = pairs.design.log_softmax(logits).exp()
    weights = shares * (1 - null)[pairs.design.row_of_pair]
    return Attention(weights, null, null)
