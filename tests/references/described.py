"""Descriptions of heads made by hand, as a run stores them."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.metrics.metric import Axis, Grid
from headscope.portrait.score import SHARES
from headscope.results.describe import PORTRAIT, Description, Fact, as_text
from headscope.results.measure import RoleGroup, heads_of

NAMES: Mapping[str, tuple[RoleGroup, str]] = {
    "previous token": ("position", "looks at the previous token (98 % of its weight)"),
    "first token": ("sink", "rests on the first token (90 % of its weight)"),
    "verb → object": ("syntax", "looks from a verb to its object (61 % of the weight there)"),
    "evenly": ("even", "spreads evenly over the tokens it sees"),
    "unnamed": ("unnamed", "looks at nothing that has a name"),
}


def described(head: Head, name: str) -> Description:
    """The description of a head of this name."""
    group, words = NAMES[name]
    fact = Fact(name, words.partition(" (")[0], 0.9, group=group)
    return Description(head, (fact,), name, f"{head} {words}.", group)


def with_descriptions(
    result: xr.Dataset, names: Sequence[str], explained: Sequence[float] = ()
) -> xr.Dataset:
    """The result with a description for each head; the names begin again where they end."""
    heads = heads_of(result)
    grid = Grid(tuple(result["layer"].values.tolist()), result.sizes["head"])
    descriptions = [described(head, names[place % len(names)]) for place, head in enumerate(heads)]
    texts = [as_text(description) for description in descriptions]
    sentences = [description.sentence for description in descriptions]
    shares = np.resize(np.array(explained or [0.5]), len(heads)).reshape(grid.shape)
    by = np.stack([shares, *[np.zeros(grid.shape)] * (len(SHARES) - 1)], axis=-1)
    return result.assign(
        {
            "description": grid.array(np.array(sentences).reshape(grid.shape)),
            PORTRAIT: grid.array(np.array(texts).reshape(grid.shape)),
            "explained": grid.array(shares),
            "explained_se": grid.array(shares / 10),
            "explained_rest": grid.array(shares),
            "explained_by": grid.array(by, Axis("explained_with", SHARES)),
        }
    )
