"""The heads of runs in words: chosen, ordered, and as a table.

Names and sentences are those that a run stores, so that a head is called the same everywhere; the
map of heads (`headscope.results.head_map`) has them, too.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.cost import REPLACED, SAID, said_costs
from headscope.results.dataset import read_attribute
from headscope.results.describe import PORTRAIT
from headscope.results.evidence import EVIDENCE, MATRIX, NULL_NAMES, PROFILE
from headscope.results.fact_words import RELATIONS
from headscope.results.head_map import HeadMap, MapCell, map_heads
from headscope.results.measure import RoleGroup
from headscope.results.run import Run, read_finished
from headscope.results.statements import read_statements

Order = Literal["explained", "layer", "role"]
GROUPS: tuple[str, ...] = get_args(RoleGroup)
COLUMNS = ("head", "layer", "number", "name", "group", "share", "explained", "margin", "sentence",
           "cost")  # fmt: skip
# What is said of heads, and what shows it.
POOLED = (
    PORTRAIT, "description", "behaviour", PROFILE, MATRIX, EVIDENCE,
    *(f"{name}{end}" for name in ("explained", "explained_rest", "explained_by", "explained_only")
      for end in ("", "_se", "_numerator", "_denominator")),
)  # fmt: skip


def heads(
    *runs: str | Path, role: str | None = None, layer: int | None = None, sort: Order = "layer"
) -> pd.DataFrame:
    """What each head looks at, as a table with a row for each head.

    Runs of one model are read together: every head has the description of the run whose portraits
    know most; `cost` says what replacing it by its mean costs, where a run measured it. `role`
    keeps the heads with this name, group or word, `layer` those of one layer; `sort` is layer, role
    or explained.
    """
    rows: list[dict[str, Any]] = []
    for model, described in describe_runs([read_finished(run) for run in runs]):
        chosen = choose_heads(described, role=role, layer=layer, order=sort)
        rows += [{"model": model, **row} for row in rows_of(chosen)]
    return pd.DataFrame(rows)


def describe_runs(runs: Sequence[Run]) -> list[tuple[str, HeadMap]]:
    """The heads of every model that the runs are of, with its name."""
    models: list[tuple[str, HeadMap]] = []
    for of_model in by_model(runs):
        heads = describe_heads(richest(of_model).data.assign(shared_by(of_model)))
        models.append((of_model[0].model or "unknown", heads))
    return models


def shared_by(runs: Sequence[Run]) -> dict[str, xr.DataArray]:
    """What the runs of one model say of its heads, and what it costs to lose them."""
    source = richest(runs).data
    shared = {name: source[name] for name in POOLED if name in source} if PORTRAIT in source else {}
    measured = next((run.data for run in runs if REPLACED in run.data), None)
    if measured is not None:
        shared[SAID] = said_costs(measured)
    return shared


def pool(runs: Sequence[Run]) -> list[Run]:
    """The runs in their order, the heads of each described by what describes those of its model.

    So a head is called the same on every page, whichever run the page is of.
    """
    pooled: dict[Run, Run] = {}
    for of_model in by_model([run for run in runs if run.result is not None]):
        shared = shared_by(of_model)
        nulls = {NULL_NAMES: richest(of_model).data.attrs.get(NULL_NAMES, "[]")}
        for run in of_model:
            if shared and len(of_model) > 1:
                replaced = [*shared, *(POOLED if PORTRAIT in shared else ())]
                data = run.data.drop_vars(replaced, errors="ignore").assign(shared)
                pooled[run] = replace(run, result=data.assign_attrs(nulls))
    return [pooled.get(run, run) for run in runs]


def by_model(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of every model, told by its weights; those with weighted attention are apart."""
    models: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        about = run.about.get("model")
        mark = about.get("fingerprint") if isinstance(about, dict) else None
        reading = str(run.data.attrs.get("weights", "raw"))
        models.setdefault((str(run.model), str(mark or run.model), reading), []).append(run)
    return list(models.values())


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
    reason = read_attribute(result, "left_out").get("explained")
    if reason is None:
        raise RunError("This run has no portraits; run the study again in a new directory.")
    raise RunError(f"This run has no portraits: {reason}.")


def choose_heads(
    described: HeadMap,
    *,
    role: str | None = None,
    layer: int | None = None,
    order: Order = "layer",
    is_answered: bool = False,
) -> list[MapCell]:
    """The heads of a layer, and those with a name, a group or a word.

    None is refused, unless the role `is_answered` elsewhere. A relation finds the heads whose name
    has its word: nsubj those of subjects.
    """
    if layer is not None and layer not in described.layers:
        first, last = described.layers[0], described.layers[-1]
        raise RunError(f"There is no layer {layer}; there are {first} to {last}.")
    chosen = [cell for cell in described.cells if layer in (None, cell.layer)]
    if role is not None:
        word = RELATIONS[role][-1] if role in RELATIONS else role
        chosen = [cell for cell in chosen if fits(cell, role) or fits(cell, word)]
    if not chosen and not is_answered:
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


def tell_rows(data: xr.Dataset, label: str) -> list[str]:
    """What the tables of a run say of a head under a label, such as a relation."""
    lines = []
    for table in read_statements(data).tables:
        for row in table.rows:
            if table.narrow and label in row.values() and row.get("head"):
                cells = (f"{name} {_cell(row[name])}" for name in table.narrow if name in row)
                lines.append(f"{table.title}: {', '.join(cells)}.")
    return lines


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def rows_of(cells: Sequence[MapCell]) -> list[dict[str, Any]]:
    """A row of a table for every head."""
    rows: list[dict[str, Any]] = []
    for cell in cells:
        values = asdict(cell)
        rows.append({name: values[name] for name in COLUMNS})
    return rows
