"""Attention of heads wired by hand, and what the measures of it are, as sums over groups."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr

from headscope.metrics import even_of, labels, surface
from headscope.results.replicates import GROUPS
from headscope.studies.clark2019.probes.relations import RELATION_ACCURACY
from tests.references.grouped import with_sums

TAGS = ("DET", "NOUN", "VERB", "ADP")
OFFSETS = (-1, 0, 1)
DOCUMENTS, TOKENS = 96, 40

Weights = np.ndarray  # query key
Wire = Callable[[np.ndarray, np.random.Generator], Weights]


def previous(tags: np.ndarray, random: np.random.Generator) -> Weights:
    return np.eye(len(tags), k=-1) + 0.02 * random.random((len(tags), len(tags)))


def first(tags: np.ndarray, random: np.random.Generator) -> Weights:
    weights = 0.02 * random.random((len(tags), len(tags)))
    weights[:, 0] += 1
    return weights


def even(tags: np.ndarray, random: np.random.Generator) -> Weights:
    return np.ones((len(tags), len(tags))) + 0.01 * random.random((len(tags), len(tags)))


def to_verbs(tags: np.ndarray, random: np.random.Generator) -> Weights:
    verbs = (tags == TAGS.index("VERB")).astype(float)
    return np.tile(verbs, (len(tags), 1)) + 0.02 * random.random((len(tags), len(tags)))


def scattered(tags: np.ndarray, random: np.random.Generator) -> Weights:
    """On a few tokens anywhere: neither broad nor at anything in particular."""
    return random.random((len(tags), len(tags))) ** 16


def result_of(wires: tuple[Wire, ...], *, seed: int = 0, shuffled: bool = False) -> xr.Dataset:
    """One layer with a head for each wire; shuffled labels have nothing to do with the tokens."""
    random, heads = np.random.default_rng(seed), len(wires)
    sums = {
        name: np.zeros((GROUPS, 1, heads, items))
        for name, items in (("offset", 3), ("first", 1), ("tag", 4), ("entropy", 1))
    }
    even_sums = {name: np.zeros((GROUPS, each.shape[-1])) for name, each in sums.items()}
    total = np.zeros(GROUPS)
    for document in range(DOCUMENTS):
        group = document % GROUPS
        tags = random.integers(len(TAGS), size=TOKENS)
        seen = random.permutation(tags) if shuffled else tags
        total[group] += 1
        for head, wire in enumerate(wires):
            weights = wire(tags, random)
            for name, values in _measured(weights / weights.sum(1, keepdims=True), seen).items():
                sums[name][group, 0, head] += values
        for name, values in _measured(np.full((TOKENS, TOKENS), 1 / TOKENS), seen).items():
            even_sums[name][group] += values
    return _labelled(sums, even_sums, total)


def _measured(weights: Weights, tags: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "offset": np.array([np.trace(weights, offset) for offset in OFFSETS]) / len(tags),
        "first": weights[:, :1].mean(0),
        "tag": np.array([weights[:, tags == tag].sum() for tag in range(len(TAGS))]) / len(tags),
        "entropy": -(weights * np.log(weights.clip(1e-12))).sum(1).mean(keepdims=True),
    }


def _labelled(
    sums: dict[str, np.ndarray], even_sums: dict[str, np.ndarray], total: np.ndarray
) -> xr.Dataset:
    heads = sums["first"].shape[2]
    grid = {"layer": [0], "head": range(heads)}
    offset, tag = {"offset": list(OFFSETS)}, {"tag": list(TAGS)}
    made = (
        ("offset", surface.OFFSET_SHARE, even_of(surface.OFFSET_SHARE), offset),
        ("first", surface.FIRST_TOKEN_SHARE, even_of(surface.FIRST_TOKEN_SHARE), {}),
        ("tag", labels.POS_TO, even_of(labels.POS_TO), tag),
        ("entropy", surface.ENTROPY, even_of(surface.ENTROPY), {}),
    )
    data = xr.Dataset(attrs={"study": "mine"})
    for name, measure, evenly, further in made:
        x, even_x = sums[name], even_sums[name]
        if not further:
            x, even_x = x[..., 0], even_x[..., 0]
        shape = [-1] + [1] * (x.ndim - 1)
        data = with_sums(data, measure, x, total.reshape(shape), {**grid, **further})
        even_total = total.reshape([-1] + [1] * (even_x.ndim - 1))
        data = with_sums(data, evenly, even_x, even_total, further)
    return data


def relations_of(
    right: np.ndarray, words: np.ndarray, baseline: np.ndarray, relations: tuple[str, ...]
) -> xr.Dataset:
    """Heads that find so many of the words of each relation, in every group, and a best offset."""
    heads = right.shape[1]
    axes = {"layer": [0], "head": range(heads), "direction": ["dependent_to_head"],
            "relation": list(relations)}  # fmt: skip
    data = with_sums(
        xr.Dataset(attrs={"study": "mine"}),
        RELATION_ACCURACY,
        right[:, None, :, None].astype(float),
        words[:, None, None, None].astype(float),
        axes,
    )
    offsets = {"direction": ["dependent_to_head"], "offset": [-1, 1], "relation": list(relations)}
    hits = np.stack([baseline // 2, baseline], 1)[:, None].astype(float)
    measure = replace(RELATION_ACCURACY, name="offset_accuracy_scored", role=None)
    return with_sums(data, measure, hits, words[:, None, None].astype(float), offsets)
