"""clark2019 read plainly: one segment at a time, lists and loops, nothing shared with the study."""

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from torch import Tensor

from headscope.model.model import Model
from headscope.text.segments import Segment

CLS, SEP, PUNCT, OTHER = "cls", "sep", "punct", "other"


@dataclass(frozen=True)
class Reading:
    """One segment: the kind of every token, and a[i][j] of every layer and head."""

    kinds: list[str]
    maps: list[list[list[list[float]]]]  # layer head query key
    group: int = 0  # of documents, for errors


def read(model: Model, segment: Segment, longest: int, seed: int = 0, group: int = 0) -> Reading:
    """Tokens as the tokenizer gives them, weights as the network reports them."""
    ids, types = read_ids(model, segment, longest, seed)
    return Reading(_kinds(model, ids), _maps(model, ids, types), group)


def read_ids(
    model: Model, segment: Segment, longest: int, seed: int = 0
) -> tuple[list[int], list[int]]:
    """[CLS] A [SEP] B [SEP], both halves cut, and in which half every token is."""
    tokenizer: Any = model.tokenizer
    texts = (segment.first, segment.second)
    a, b = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)
    a, b = cut_pair(a, b, longest - 3, Random(f"{seed} {segment.number}"))
    has_cls = tokenizer.cls_token_id is not None
    begin = tokenizer.cls_token_id if has_cls else tokenizer.bos_token_id
    end = tokenizer.sep_token_id if has_cls else tokenizer.eos_token_id
    return [begin, *a, end, *b, end], [0] * (len(a) + 2) + [1] * (len(b) + 1)


def cut_pair(a: list[int], b: list[int], room: int, coin: Random) -> tuple[list[int], list[int]]:
    """Drop tokens of the longer half, from its front or its back, until both fit."""
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        if coin.random() < 0.5:
            del longer[0]
        else:
            longer.pop()
    return a, b


def _kinds(model: Model, ids: list[int]) -> list[str]:
    tokenizer = model.tokenizer
    begin = (tokenizer.cls_token_id, tokenizer.bos_token_id)
    end = (tokenizer.sep_token_id, tokenizer.eos_token_id)
    kinds = []
    for place, index in enumerate(ids):
        text = str(tokenizer.decode([index])).strip()
        if place == 0 and index in begin:
            kinds.append(CLS)
        elif index in end:
            kinds.append(SEP)
        else:
            kinds.append(PUNCT if text in (".", ",") else OTHER)
    return kinds


def _maps(model: Model, ids: list[int], types: list[int]) -> list:
    import torch

    given = {"input_ids": torch.tensor([ids])}
    if model.tokenizer.cls_token_id is not None:
        given["token_type_ids"] = torch.tensor([types])
    model.network.set_attn_implementation("eager")  # others report no weights
    model.network.eval()
    with torch.no_grad():
        attentions: tuple[Tensor, ...] = model.network(**given, output_attentions=True).attentions
    return [layer[0].double().tolist() for layer in attentions]


def offset_share(reading: Reading, rows: list[list[float]], offset: int) -> float:
    n = len(rows)
    return sum(rows[i][i + offset] for i in range(n) if 0 <= i + offset < n) / n


def special_share(reading: Reading, rows: list[list[float]], kind: str) -> float:
    n = len(rows)
    return sum(rows[i][j] for i in range(n) for j in range(n) if reading.kinds[j] == kind) / n


def to_sep(reading: Reading, rows: list[list[float]], from_sep: bool) -> float:
    n = len(rows)
    queries = [i for i in range(n) if (reading.kinds[i] == SEP) == from_sep]
    paid = sum(rows[i][j] for i in queries for j in range(n) if reading.kinds[j] == SEP)
    return paid / len(queries)


def entropy(row: list[float]) -> float:
    n = len(row)
    smoothed = [0.9999 * p + 0.0001 / n for p in row]
    return -sum(p * math.log(p) for p in smoothed)


def mean_entropy(reading: Reading, rows: list[list[float]]) -> float:
    return sum(entropy(row) for row in rows) / len(rows)


def cls_entropy(reading: Reading, rows: list[list[float]]) -> float:
    return entropy(rows[reading.kinds.index(CLS)])


def confidence(reading: Reading, rows: list[list[float]]) -> float:
    return sum(max(row) for row in rows) / len(rows)


def first_share(reading: Reading, rows: list[list[float]]) -> float:
    return sum(row[0] for row in rows) / len(rows)


def over_documents(readings: list[Reading], measure, *more) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN001, ANN002
    """Every document's value, then the mean and its error, per layer and head.

    The error is that of leaving out one group after the other, over the groups that have data.
    """
    values = np.array(
        [[[measure(r, rows, *more) for rows in layer] for layer in r.maps] for r in readings]
    )
    groups = np.array([reading.group for reading in readings])
    known = np.isfinite(values).all((1, 2))
    used = sorted(set(groups[known].tolist()))
    left = [values[known & (groups != group)].mean(0) for group in used]
    squares = sum((each - np.mean(left, 0)) ** 2 for each in left)
    return values[known].mean(0), np.sqrt((len(used) - 1) / len(used) * squares)


def divergence(readings: list[Reading]) -> np.ndarray:
    """Σ over all rows of JS(p, q), for all pairs of heads in the order of layers and heads."""
    heads = len(readings[0].maps) * len(readings[0].maps[0])
    total = np.zeros((heads, heads))
    for reading in readings:
        maps = np.array(reading.maps).reshape(heads, len(reading.kinds), -1)
        p = 0.999 * maps + 0.001 / len(reading.kinds)
        for a in range(heads):
            for b in range(heads):
                m = (p[a] + p[b]) / 2
                total[a, b] += (p[a] * np.log(p[a] / m) + p[b] * np.log(p[b] / m)).sum() / 2
    return total


def plain_map(weights: np.ndarray, pieces: list[int], words: int, row: str) -> np.ndarray:
    """Sum over key pieces, then mean over query pieces or the first of them, word by word."""
    result = np.zeros((len(weights), words, words))
    for head in range(len(weights)):
        for i in range(words):
            queries = [t for t, word in enumerate(pieces) if word == i]
            queries = queries if row == "mean" else queries[:1]
            for j in range(words):
                keys = [t for t, word in enumerate(pieces) if word == j]
                sums = [sum(weights[head, q, k] for k in keys) for q in queries]
                result[head, i, j] = sum(sums) / len(sums)
    return result
