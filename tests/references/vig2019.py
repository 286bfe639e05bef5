"""Every equation of the vig2019 study as plain loops, to be slow and obviously right."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tests.references.random_attention import RELATIONS, TAGS, Input


def pairs(each: Input) -> Iterator[tuple[int, int]]:
    """Pairs (i, j) that the null filter keeps."""
    for i in range(each.length):
        for j in range(i + 1 if each.is_causal else each.length):
            if not each.null[i] and not each.null[j]:
                yield i, j


def evenly(each: Input) -> Input:
    """The input with one head that gives every token it sees the same, null tokens included."""
    weights = np.zeros((1, 1, each.length, each.length))
    for i in range(each.length):
        visible = i + 1 if each.is_causal else each.length
        weights[0, 0, i, :visible] = 1 / visible
    return replace(each, weights=weights)


def ratio_and_error(terms: list[tuple[float, float]]) -> tuple[float, float]:
    """Σx/Σy and its standard error: the spread of the ratio without each of the inputs."""
    total = sum(y for _, y in terms)
    if total <= 0:
        return math.nan, math.nan
    value = sum(x for x, _ in terms) / total
    places = [place for place, (_, y) in enumerate(terms) if y > 0]
    if len(places) < 2:
        return value, math.nan
    without = []
    for place in places:
        rest = [*terms[:place], *terms[place + 1 :]]
        below = sum(y for _, y in rest)
        without.append(sum(x for x, _ in rest) / below if below > 1e-12 * total else math.nan)
    mean = sum(without) / len(without)
    spread = sum((each - mean) ** 2 for each in without)
    return value, math.sqrt((len(places) - 1) / len(places) * spread)


def weighted(each: Input, head: int, feature: Callable[[int, int], float]) -> tuple[float, float]:
    """Σ a[i,j]·f(i,j) and Σ a[i,j] over the kept pairs."""
    a = each.weights[0, head].astype(float)
    kept = list(pairs(each))
    return sum(a[i, j] * feature(i, j) for i, j in kept), sum(a[i, j] for i, j in kept)


def tag_of(each: Input, token: int) -> str | None:
    return TAGS[each.tag[each.word[token]]] if each.word[token] >= 0 else None


def relation_of(each: Input, token: int) -> str | None:
    return RELATIONS[each.relation[each.word[token]]] if each.word[token] >= 0 else None


def is_parent(each: Input, parent: int, token: int) -> bool:
    if each.word[parent] < 0 or each.word[token] < 0:
        return False
    return each.parent[each.word[token]] == each.word[parent]


def null_terms(each: Input, head: int, all_queries: bool) -> tuple[float, float]:
    a = each.weights[0, head].astype(float)
    queries = [i for i in range(each.length) if all_queries or not each.null[i]]
    to_null = sum(a[i, j] for i in queries for j in range(each.length) if each.null[j])
    return to_null, sum(a[i, j] for i in queries for j in range(each.length))


def entropy_terms(each: Input, head: int) -> tuple[float, float]:
    a, nats, counted = each.weights[0, head].astype(float), 0.0, 0
    for i in range(each.length):
        keys = [j for q, j in pairs(each) if q == i]
        null = sum(np.float32(a[i, j]) for j in range(each.length) if each.null[j])
        total = sum(a[i, j] for j in keys)
        if each.null[i] or null > 0.9 or total == 0:
            continue
        nats -= sum(a[i, j] / total * math.log(a[i, j] / total) for j in keys if a[i, j] > 0)
        counted += 1
    return nats, counted


def variability(inputs: list[Input], head: int, size: int) -> tuple[float, float]:
    corners = [
        {(i, j): float(each.weights[0, head, i, j]) for i, j in pairs(each) if max(i, j) < size}
        for each in inputs
    ]
    cells = {cell for corner in corners for cell in corner}
    mean = {cell: float(np.mean([c[cell] for c in corners if cell in c])) for cell in cells}
    terms = [(sum(abs(c[k] - mean[k]) for k in c), 2 * sum(c.values())) for c in corners]
    return ratio_and_error(terms)


def exemplars(inputs: list[Input], head: int, with_self: bool) -> list[tuple[float, int, int, int]]:
    """(weight, input, query, key) of each input's largest weight, the largest first."""
    best = []
    for number, each in enumerate(inputs):
        a = each.weights[0, head]
        found = [(float(a[i, j]), number, i, j) for i, j in pairs(each) if with_self or i != j]
        found = [item for item in found if item[0] > 0]
        if found:
            best.append(min(found, key=lambda item: (-item[0], item[2], item[3])))
    return sorted(best, key=lambda item: (-item[0], item[1]))
