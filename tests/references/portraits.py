"""Portraits made up by a seed, for runs that say what every head looks at."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.portrait.score import SHARES
from headscope.results.describe import PORTRAIT, Description, Fact, as_text
from headscope.results.evidence import (
    EVIDENCE,
    INKS,
    MATRIX,
    NULL_NAMES,
    PLACES,
    PROFILE,
    SIDE,
    Evidence,
    HeadExample,
    Surprise,
    as_bytes,
)

GRID = ("layer", "head")
# Name, group, sentence without the name of the head.
ROLES: tuple[tuple[str, Any, str], ...] = (
    ("previous token", "position", " looks at the previous token (97 % of its weight)."),
    ("first token", "sink", " rests on the first token (61 % of its weight)."),
    ("after the same", "repetition", ": where the same token stood before, 40 % goes there (2 %)."),
    ("verb → object", "syntax", " looks from a verb to its object (52 % of the weight there)."),
    ("evenly", "even", " spreads evenly over the tokens it sees."),
    ("unnamed", "unnamed", " looks at nothing that has a name."),
)
TAIL = " Position explains 60 % of it; 40 % has no name yet."
TOKENS = ("The", "old", "cat", "s", "saw", "<script>alert(1)</script>", "there", ".")


def with_portraits(data: xr.Dataset, seed: int = 0) -> xr.Dataset:
    """The result with made-up names, sentences, shares and evidence for every head."""
    random = np.random.default_rng(seed)
    shape = (data.sizes["layer"], data.sizes["head"])
    heads = [Head(int(n), int(h)) for n in data["layer"].values for h in data["head"].values]
    descriptions = [_description(head, place + seed) for place, head in enumerate(heads)]
    is_even = np.array([each.group == "even" for each in descriptions]).reshape(shape)
    by = random.dirichlet(np.ones(len(SHARES) + 1), shape)[..., :-1]
    texts = {
        "description": [each.sentence for each in descriptions],
        "behaviour": [each.name for each in descriptions],
        PORTRAIT: [as_text(each) for each in descriptions],
        EVIDENCE: [json.dumps(asdict(_evidence(place))) for place in range(len(heads))],
    }
    found: dict[str, Any] = {
        name: (GRID, np.array(values).reshape(shape)) for name, values in texts.items()
    }
    shares = {"explained": by.sum(-1), "explained_rest": by[..., 1:].sum(-1), "explained_by": by}
    for name, values in shares.items():
        dims = (*GRID, "explained_with")[: values.ndim]
        hidden = np.where(is_even.reshape(shape + (1,) * (values.ndim - 2)), np.nan, values)
        found[name] = (dims, hidden)
        found[f"{name}_se"] = (dims, np.full(values.shape, 0.01))
        found[f"{name}_numerator"] = (("group", *dims), np.stack([values] * data.sizes["group"]))
        total = np.ones((data.sizes["group"], *shape))
        found[f"{name}_denominator"] = (("group", *GRID), total)
    bars = random.dirichlet(np.ones(len(INKS) * len(PLACES)), shape)
    found[PROFILE] = ((*GRID, "ink", "ink_place"), bars.reshape(*shape, len(INKS), -1))
    matrix = random.random((*shape, len(INKS), SIDE, SIDE)) * np.tri(SIDE) / 3
    found[MATRIX] = ((*GRID, "ink", "ink_query", "ink_key"), as_bytes(matrix))
    axes = {"explained_with": list(SHARES), "ink": list(INKS), "ink_place": list(PLACES)}
    return data.assign(found).assign_coords(axes).assign_attrs({NULL_NAMES: '["first token"]'})


def _description(head: Head, place: int) -> Description:
    name, group, sentence = ROLES[place % len(ROLES)]
    fact = Fact(name, name, 0.5, 0.1, group=group)
    tail = "" if group in ("even", "unnamed") else TAIL
    return Description(head, (fact,), name, f"{head}{sentence}{tail}", group)


def _evidence(place: int) -> Evidence:
    arcs = ((4, 2, 0.8, 1), (6, 0, 0.4, 0), (5, 5, 0.3, 2))
    begins = (True, True, True, False, True, True, True, True)
    example = HeadExample(TOKENS, begins, (), (0,), (), arcs)
    surprise = Surprise(TOKENS, begins, True, False, 6, 5, 0.7, 0.02)
    return Evidence((example,) * (1 + place % 3), (surprise,))
