"""What each head of a finished run looks at, as a table; chosen by role or layer."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from headscope.errors import RunError
from headscope.results.roles import HeadRole, HeadRoles
from headscope.results.run import read_finished
from headscope.results.slices import MARK
from headscope.results.statements import read_statements

COLUMNS = ["head", "layer", "number", "role", "kind", "slice", "value", "low", "high", "baseline",
           "strength", "q", "share", "sentence"]  # fmt: skip


def heads(run: str | Path, *, role: str | None = None, layer: int | None = None) -> pd.DataFrame:
    """What each head of a finished run looks at, as a table: a row for each head and role.

    A head without a clear role has one row, without a role. `role` keeps the roles whose kind,
    words or slice has this text in it, `layer` the heads of one layer.
    """
    found = choose(read_statements(read_finished(run).data).heads, role=role, layer=layer)
    return pd.DataFrame([row for one in found for row in _rows(one, role)], columns=COLUMNS)


def choose(
    found: Iterable[HeadRoles], *, role: str | None = None, layer: int | None = None
) -> list[HeadRoles]:
    """The heads of a layer, and those with a role; a layer or role that none has is refused."""
    every = list(found)
    kept = [one for one in every if layer in (None, one.layer)]
    if every and not kept:
        layers = sorted({one.layer for one in every})
        raise RunError(f"There is no layer {layer}; there are {layers[0]} to {layers[-1]}.")
    kept = [one for one in kept if role is None or any(fits(each, role) for each in one.roles)]
    if every and not kept:
        kinds = sorted({each.kind for one in every for each in one.roles})
        raise RunError(
            f"No head has a role {role!r}; the kinds in this run are {', '.join(kinds) or 'none'}."
        )
    return kept


def fits(role: HeadRole, text: str) -> bool:
    """Whether a role is of this kind, or has this label or these words."""
    labels = role.spec.lower().split(MARK)
    asked = text.lower()
    return asked == role.kind or asked in labels or asked in role.words.lower()


def _rows(one: HeadRoles, asked: str | None) -> Iterator[dict[str, object]]:
    about = {"head": one.name, "layer": one.layer, "number": one.head, "share": one.share,
             "sentence": one.sentence}  # fmt: skip
    for each in one.roles:
        if asked is None or fits(each, asked):
            numbers = {name: getattr(each, name) for name in COLUMNS[6:12]}
            yield about | {"role": each.words, "kind": each.kind, "slice": each.spec} | numbers
    if not one.roles:
        yield about
