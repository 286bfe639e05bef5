"""Two runs side by side: what differs, by how much, and by more than chance.

Runs of one lineage are compared head with head. Heads of different networks are compared with the
partner that does what they do (`matching`), and layers with the layer at the same relative
depth. Runs over the same texts are compared group by group of documents, so that what the texts
have in common cancels; others are independent. Intervals are those of `results.replicates`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.files import replacing
from headscope.results.compare.differences import By, Kind, difference_table
from headscope.results.compare.matching import Matching, Relation, match_heads, relate
from headscope.results.measure import GRID, measure_names
from headscope.results.replicates import CONFIDENCE, sums_of
from headscope.results.run import Run, find_run, read_run
from headscope.results.tables import to_csv
from headscope.wording import counted

EXPORTED = (
    "title", "measure", "at", "first_at", "second_at",
    "first", "second", "difference", "low", "high", "q", "effect",
)  # fmt: skip
LABELLED = {"deprel", "relation"}  # dimensions whose labels belong to a scheme of annotation
# Relations that one scheme has and the others have not.
SCHEMES = {
    "Universal Dependencies": {"obj", "obl", "nsubj:pass"},
    "Stanford dependencies": {"dobj", "pobj", "nsubjpass"},
}


@dataclass(frozen=True)
class Comparison:
    """All measures that two runs share, at heads, at layers, or at both."""

    first: str
    second: str
    confidence: float
    relation: Relation
    by: tuple[By, ...]  # how it was compared, never "auto"
    differences: xr.Dataset  # see `difference_table`
    matching: Matching | None
    notes: tuple[str, ...]  # what was compared how, and what could not be, in sentences

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What was compared: heads, layers, or both."""
        return tuple("layers" if way == "depth" else "heads" for way in self.by)


def compare(
    first: str | Path, second: str | Path, *, by: By = "auto", confidence: float = CONFIDENCE
) -> Comparison:
    """The differences of two run directories.

    `by` is how heads find each other: "index" head with head, "matched" by what they do, "depth"
    layers at the same depth. "auto" is "index" within one lineage, else "matched" and "depth".
    """
    runs = [read_run(find_run(each)) for each in (first, second)]
    return compare_runs(*runs, names=(str(first), str(second)), by=by, confidence=confidence)


def compare_runs(
    first: Run,
    second: Run,
    *,
    names: tuple[str, str],
    by: By = "auto",
    confidence: float = CONFIDENCE,
    only: str | None = None,
) -> Comparison:
    """The differences of two runs of one study; `only` asks for a single measure."""
    if by not in get_args(By):
        raise RunError(f"by is {by!r}; choose {', '.join(get_args(By))}.")
    _check_comparable(first, second, names)
    a, b, relation = first.data, second.data, relate(first, second)
    known = set(measure_names(b))
    shared = [name for name in measure_names(a) if name in known]
    if not shared:
        raise RunError(f"{names[0]} and {names[1]} share no measure of heads.")
    schemes = _schemes(a), _schemes(b)
    unlike: list[str] = []
    if None not in schemes and schemes[0] != schemes[1]:
        unlike = [name for name in shared if LABELLED & {*a[name].dims}]
    shared = [name for name in shared if name not in unlike]
    if by == "index" and not relation.same_shape:
        raise RunError(
            f"{names[0]} and {names[1]} cannot be compared by index. {relation.networks} "
            "Compare them with --by matched or --by depth."
        )
    ways, matching, doubts = _ways(by, a.drop_vars(unlike), b, relation)
    asked = [name for name in shared if only in (None, name)]
    differences = difference_table(
        a, b, asked, ways, matching, same_texts=relation.same_texts, confidence=confidence
    )
    if unlike:
        doubts.append(
            f"The corpora are annotated by {' and '.join(map(str, schemes))}, where equal labels "
            f"differ in meaning: {', '.join(unlike)} are not compared."
        )
    notes = (*_said(relation, ways, matching), *doubts, *_notes(a, b, names, shared, ways))
    return Comparison(*names, confidence, relation, ways, differences, matching, notes)


def rows_of(comparison: Comparison, kind: Kind, most: int | None = None) -> list[dict[str, Any]]:
    """The differences of heads or of layers, largest first; all of them if `most` is None.

    Large is what the interval guarantees: its end nearest to zero, in standard deviations over
    heads. So a rare label with a wild difference and a wide interval does not come first. What may
    be nothing, or has no interval, follows by the size of its effect.
    """
    table = comparison.differences
    listed = (table["kind"] == kind) & np.isfinite(table["difference"])
    table = table.isel(row=np.flatnonzero(listed))
    effect = np.abs(table["effect"].values)
    nearest = np.fmax(table["low"].values, -table["high"].values)  # to zero, of the ends
    with np.errstate(all="ignore"):
        sure = np.where(nearest > 0, nearest * effect / np.abs(table["difference"].values), 0.0)
    table = table.isel(row=np.lexsort((-effect, -np.nan_to_num(sure)))[:most])
    return cast("list[dict[str, Any]]", table.to_dataframe().to_dict("records"))


def largest(comparison: Comparison, most: int | None = None) -> list[dict[str, Any]]:
    """The differences of heads, largest first; those of layers where only these were compared."""
    return rows_of(comparison, comparison.kinds[0], most)


def clear_and_all(comparison: Comparison) -> tuple[int, int]:
    """How many differences stand after correction, and how many have an interval."""
    table = comparison.differences
    return int(table["clear"].sum()), int(table["q"].notnull().sum())


def exported(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The columns of rows that CSV and JSON have."""
    return [{name: row[name] for name in EXPORTED} for row in rows]


def write_csv(comparison: Comparison, path: Path) -> int:
    """Write every row, heads before layers, largest effect first; the number of rows."""
    rows = exported([row for kind in comparison.kinds for row in rows_of(comparison, kind)])
    cells = (
        ["" if value != value else value for value in (row | {"at": ", ".join(row["at"])}).values()]
        for row in rows
    )
    content = to_csv(EXPORTED, cells)
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}.") from error
    return len(rows)


def _check_comparable(first: Run, second: Run, names: tuple[str, str]) -> None:
    studies = [str(run.data.attrs.get("study", run.study)) for run in (first, second)]
    if studies[0] != studies[1]:
        raise RunError(
            f"{names[0]} is a run of {studies[0]}, {names[1]} of {studies[1]}; "
            "compare runs of one study."
        )
    for run, name in zip((first, second), names, strict=True):
        estimated = any(f"{each}_se" in run.data for each in measure_names(run.data))
        if estimated and not sums_of(run.data):
            raise RunError(
                f"{name} holds no sums over groups of documents, from which the errors of "
                "differences follow: it was made by an older headscope. Run the same "
                "`headscope study` command again with a new --out."
            )


def _ways(
    by: By, a: xr.Dataset, b: xr.Dataset, relation: Relation
) -> tuple[tuple[By, ...], Matching | None, list[str]]:
    """How heads and layers are compared, by which matching, and why not as they relate."""
    if by == "matched":
        return (by,), match_heads(a, b), []
    if by != "auto":
        return (by,), None, []
    if relation.same_network:
        return ("index",), None, []
    try:
        matching = match_heads(a, b)
    except RunError as error:
        if relation.one_lineage:
            return ("index",), None, []
        return ("depth",), None, [f"{error} Layers are compared."]
    if not relation.one_lineage:
        return ("matched", "depth"), matching, []
    if not matching.contradicts_numbers:
        return ("index",), None, []
    reason = (
        "By what they do most heads have a partner of another number, whatever the embeddings "
        "say: heads are compared with these. `--by index` goes by number."
    )
    return ("matched", "depth"), matching, [reason]


def _schemes(result: xr.Dataset) -> str | None:
    """The scheme of annotation that the relations of a result are of, where they tell."""
    labels: set[str] = set()
    for dim in LABELLED & {*map(str, result.coords)}:
        labels.update(map(str, result[dim].values))
    likely = [scheme for scheme, relations in SCHEMES.items() if relations & labels]
    return likely[0] if len(likely) == 1 else None


def _said(relation: Relation, ways: tuple[By, ...], matching: Matching | None) -> Iterator[str]:
    yield relation.networks
    yield relation.texts
    if ways == ("index",) and not relation.one_lineage:
        yield "Compared by index as asked: of such networks the numbers of heads mean nothing."
    if matching is not None:
        good = sum(match.is_good for match in matching.matches)
        yield (
            f"{good} of {len(matching.matches)} heads have a partner that is nearer than "
            f"partners among strangers are; the mean distance is {matching.mean_distance:.2f} "
            f"standard deviations, of arbitrary pairs {matching.arbitrary:.2f}. Partners are "
            "chosen for being alike, so their differences are smaller than those of other pairs."
        )
        alone = len(matching.first_alone) + len(matching.second_alone)
        if alone:
            verb = "is" if alone == 1 else "are"
            yield f"{counted(alone, 'heads')} of the larger network {verb} left alone."
    if "depth" in ways:
        yield "Layers are compared at the same relative depth, in between by a straight line."


def _notes(
    a: xr.Dataset, b: xr.Dataset, names: tuple[str, str], shared: list[str], ways: tuple[By, ...]
) -> Iterator[str]:
    for data, name in ((a, names[0]), (b, names[1])):
        alone = sorted(set(measure_names(data)) - set(shared))
        if alone:
            yield f"Only {name} has {', '.join(alone)}."
    for dim in sorted({str(dim) for name in shared for dim in a[name].dims if dim not in GRID}):
        apart = sorted({*map(str, a[dim].values)} ^ {*map(str, b[dim].values)})
        if apart:
            yield f"Only one of the runs has {dim} {', '.join(apart)}."
    kept = set(sums_of(a)) & set(sums_of(b))
    bare = [name for name in shared if name not in kept]
    if bare and ways != ("depth",):
        yield f"Without sums over groups, hence without interval: {', '.join(bare)}."
