"""The heads of runs in words: chosen, ordered, and as a table.

Names and sentences are those that a run stores, so that a head is called the same everywhere; the
map of heads (`headscope.results.head_map`) has them, too.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.dataset import left_out, read_attribute
from headscope.results.head_map import HeadMap, MapCell, map_heads
from headscope.results.measure import RoleGroup
from headscope.results.run import Run, read_finished

Order = Literal["explained", "layer", "role"]
GROUPS: tuple[str, ...] = get_args(RoleGroup)
COLUMNS = ("head", "layer", "number", "name", "group", "share", "explained", "margin", "sentence")


def heads(
    *runs: str | Path, role: str | None = None, layer: int | None = None, sort: Order = "layer"
) -> pd.DataFrame:
    """What each head looks at, as a table with a row for each head.

    Runs of one model are read together: every head has the description of the run whose portraits
    know most. `role` keeps the heads with this name, group or word, `layer` those of one layer;
    `sort` is layer, role or explained.
    """
    rows: list[dict[str, Any]] = []
    for model, described in describe_runs([read_finished(run) for run in runs]).items():
        chosen = choose_heads(described, role=role, layer=layer, order=sort)
        rows += [{"model": model, **row} for row in rows_of(chosen)]
    return pd.DataFrame(rows)


def describe_runs(runs: Sequence[Run]) -> dict[str, HeadMap]:
    """The heads of every model that the runs are of, by its name."""
    models: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        models.setdefault(identity_of(run), []).append(run)
    return {name: describe_heads(richest(of_model).data) for (name, _), of_model in models.items()}


def identity_of(run: Run) -> tuple[str, str]:
    """The name of the model that a run is of, and the fingerprint of its weights."""
    about = run.about.get("model")
    mark = about.get("fingerprint") if isinstance(about, dict) else None
    return run.model or "unknown", str(mark or run.model)


def richest(runs: Sequence[Run]) -> Run:
    """Of the runs of one model the one whose portraits have most features, then most texts."""

    def known(run: Run) -> tuple[int, int]:
        texts = read_attribute(run.data, "portrait_texts")
        return run.data.sizes.get("feature", 0), sum(texts.values())

    return max(runs, key=known)


def describe_heads(result: xr.Dataset) -> HeadMap:
    """All heads in words; a RunError that says why where a result has no portraits."""
    described = map_heads(result)
    if described is not None:
        return described
    reason = left_out(result).get("explained")
    if reason is None:
        raise RunError("This run has no portraits; run the study again in a new directory.")
    raise RunError(f"This run has no portraits: {reason}.")


def choose_heads(
    described: HeadMap,
    *,
    role: str | None = None,
    layer: int | None = None,
    order: Order = "layer",
) -> list[MapCell]:
    """The heads of a layer, and those with a name, a group or a word; none is refused."""
    if layer is not None and layer not in described.layers:
        first, last = described.layers[0], described.layers[-1]
        raise RunError(f"There is no layer {layer}; there are {first} to {last}.")
    chosen = [cell for cell in described.cells if layer in (None, cell.layer)]
    if role is not None:
        chosen = [cell for cell in chosen if fits(cell, role)]
    if not chosen:
        names = ", ".join(name.name for name in described.names)
        raise RunError(f"No head is described by {role!r}; the names in this run are {names}.")
    if order == "explained":
        chosen.sort(key=lambda cell: -(cell.explained or 0.0))
    elif order == "role":
        chosen.sort(key=lambda cell: (GROUPS.index(cell.group), cell.name))
    return chosen


@dataclass(frozen=True)
class ChangedHead:
    """Two heads that belong together and have different names."""

    first: MapCell
    second: MapCell

    @property
    def sentence(self) -> str:
        """What the first looks at, and what the second."""
        return f"{self.first.sentence} → {self.second.sentence}"


def changed_heads(
    first: HeadMap, second: HeadMap, pairs: Sequence[tuple[Head, Head]] | None = None
) -> list[ChangedHead]:
    """The pairs whose names differ, those first of which the portraits explain most.

    Without `pairs` heads of the same number belong together, as in a network and its fine-tuned
    copy.
    """
    cells = [{cell.head: cell for cell in described.cells} for described in (first, second)]
    if pairs is None:
        names = [(name, name) for name in cells[0] if name in cells[1]]
    else:
        names = [(str(one), str(other)) for one, other in pairs]
    both = [ChangedHead(cells[0][one], cells[1][other]) for one, other in names]
    changed = [pair for pair in both if pair.first.name != pair.second.name]
    return sorted(changed, key=lambda pair: -(pair.first.explained or 0.0))


def fits(cell: MapCell, role: str) -> bool:
    """Whether a head has this name or group, or a sentence with this word."""
    asked = role.lower().strip()
    return any(asked in text.lower() for text in (cell.name, cell.group, cell.sentence))


def rows_of(cells: Sequence[MapCell]) -> list[dict[str, Any]]:
    """A row of a table for every head."""
    rows: list[dict[str, Any]] = []
    for cell in cells:
        values = asdict(cell)
        rows.append({name: values[name] for name in COLUMNS})
    return rows
