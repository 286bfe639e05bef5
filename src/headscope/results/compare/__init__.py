"""Two runs side by side: what differs, by how much, and by more than chance.

Runs of one lineage are compared head with head. Heads of different networks are compared with the
partner that does what they do (`matching`), and layers with the layer at the same relative
depth. Runs over the same texts are compared group by group of documents, so that what the texts
have in common cancels; others are independent. Intervals are those of `results.replicates`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.files import replacing
from headscope.results.compare.differences import (
    KINDS,
    By,
    Kind,
    MeasureDifference,
    Part,
    Sides,
    make_part,
    with_q,
)
from headscope.results.compare.matching import Matching, Relation, match_heads, relate
from headscope.results.measure import GRID, MARK, measure_names, plain_label
from headscope.results.replicates import CONFIDENCE, sums_of
from headscope.results.run import Run, find_run, read_run
from headscope.results.tables import to_csv
from headscope.wording import counted

SMALL_Q = 0.05
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
    parts: tuple[Part, ...]
    matching: Matching | None
    notes: tuple[str, ...]  # what was compared how, and what could not be, in sentences

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(one.measure.name for part in self.parts for one in part.measures)
        )


@dataclass(frozen=True)
class Row:
    """One slice of a measure at one pair, as a line of the table."""

    title: str
    measure: str
    at: tuple[str, ...]  # labels of the further dimensions
    first_at: str  # the head or layer of the first run
    second_at: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    q: float
    effect: float

    @property
    def is_clear(self) -> bool:
        """Whether the difference stands after correction for everything that is listed."""
        return self.q < SMALL_Q

    @property
    def place(self) -> str:
        """Both places, once where they are the same."""
        same = self.first_at == self.second_at
        return self.first_at if same else f"{self.first_at} → {self.second_at}"

    @property
    def spec(self) -> str:
        """The slice as it is written in commands and addresses."""
        return MARK.join((self.measure, *self.at))


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
    ways = _ways(by, relation, names)
    matching, doubts = _match(a.drop_vars(unlike), b, by, ways, relation)
    if doubts:
        ways = ("depth",) if matching is None else ("matched", "depth")
    asked = [name for name in shared if only in (None, name)]
    sides = Sides(a, b, relation.same_texts, confidence, asked)
    parts = tuple(make_part(way, sides, matching) for way in ways)
    if unlike:
        doubts.append(
            f"The corpora are annotated by {' and '.join(map(str, schemes))}, where equal labels "
            f"differ in meaning: {', '.join(unlike)} are not compared."
        )
    notes = (*_said(relation, ways, matching), *doubts, *_notes(a, b, names, shared, ways))
    return Comparison(*names, confidence, relation, ways, with_q(parts), matching, notes)


def rows_of(comparison: Comparison, kind: Kind, most: int | None = None) -> list[Row]:
    """The differences of heads or of layers, largest first; all of them if `most` is None.

    Large is what the interval guarantees: its end nearest to zero, in standard deviations over
    heads. So a rare label with a wild difference and a wide interval does not come first. What may
    be nothing, or has no interval, follows by the size of its effect.
    """
    found = [
        (part, one, pair, item)
        for part in comparison.parts
        if part.kind == kind
        for one in part.measures
        for pair, item in np.argwhere(np.isfinite(one.found.difference))
    ]
    sure = [_sure(one, pair, item) for _, one, pair, item in found]
    effect = [abs(one.effect[pair, item]) for _, one, pair, item in found]
    order = np.lexsort((-np.nan_to_num(effect), -np.nan_to_num(sure)))[:most]
    return [_row(*found[place]) for place in order]


def largest(comparison: Comparison, most: int | None = None) -> list[Row]:
    """The differences of heads, largest first; those of layers where only these were compared."""
    kinds = [part.kind for part in comparison.parts]
    return rows_of(comparison, "heads" if "heads" in kinds else "layers", most)


def clear_and_all(comparison: Comparison) -> tuple[int, int]:
    """How many differences stand after correction, and how many have an interval."""
    q = [one.q for part in comparison.parts for one in part.measures]
    return sum(int((p < SMALL_Q).sum()) for p in q), sum(int(np.isfinite(p).sum()) for p in q)


def write_csv(comparison: Comparison, path: Path) -> int:
    """Write every row, heads before layers, largest effect first; the number of rows."""
    rows = [row for kind in KINDS for row in rows_of(comparison, kind)]
    content = to_csv([field.name for field in fields(Row)], map(_cells, rows))
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


def _ways(by: By, relation: Relation, names: tuple[str, str]) -> tuple[By, ...]:
    if by == "auto":
        return ("index",) if relation.one_lineage else ("matched", "depth")
    if by == "index" and not relation.same_shape:
        raise RunError(
            f"{names[0]} and {names[1]} cannot be compared by index. {relation.networks} "
            "Compare them with --by matched or --by depth."
        )
    return (by,)


def _match(
    a: xr.Dataset, b: xr.Dataset, by: By, ways: tuple[By, ...], relation: Relation
) -> tuple[Matching | None, list[str]]:
    """The matching of heads where it is asked for, and why heads are compared otherwise."""
    if "matched" not in ways and (by != "auto" or relation.same_network):
        return None, []
    try:
        matching = match_heads(a, b)
    except RunError as error:
        if by != "auto":
            raise
        return None, [f"{error} Layers are compared."] if "matched" in ways else []
    if "matched" in ways:
        return matching, []
    if matching.contradicts_numbers:
        return matching, [
            "By what they do most heads have a partner of another number, whatever the embeddings "
            "say: heads are compared with these. `--by index` goes by number."
        ]
    return None, []


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


def _sure(one: MeasureDifference, pair: int, item: int) -> float:
    """What the interval guarantees of the effect: 0 where it includes zero or does not exist."""
    low, high = one.found.low[pair, item], one.found.high[pair, item]
    difference = one.found.difference[pair, item]
    least = max(low, -high)
    if not least > 0 or difference == 0:
        return 0.0
    return float(least * abs(one.effect[pair, item] / difference))


def _row(part: Part, one: MeasureDifference, pair: int, item: int) -> Row:
    labels = one.labels[item]
    named = ", ".join(map(plain_label, labels))
    names = ("first", "second", "difference", "low", "high")
    return Row(
        title=f"{one.measure.title}: {named}" if named else one.measure.title,
        measure=one.measure.name,
        at=labels,
        first_at=part.pairs[pair][0],
        second_at=part.pairs[pair][1],
        **{name: float(getattr(one.found, name)[pair, item]) for name in names},
        q=float(one.q[pair, item]),
        effect=float(one.effect[pair, item]),
    )


def _cells(row: Row) -> list[Any]:
    values = vars(row) | {"at": ", ".join(row.at)}
    return ["" if value != value else value for value in values.values()]
