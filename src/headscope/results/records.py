"""What a run keeps of every head besides numbers: Parquet files that are read by head.

```
examples.parquet     inputs chosen by the head's largest weight, their weights kept sparsely
inputs.parquet       the tokens of every input that examples and maps name, once
top_tokens.parquet   the tokens a head looks from and at: by mass, and by mass for their frequency
maps.parquet         where queries, keys, values and outputs of sampled tokens lie
writes.parquet       the tokens that the head's output raises and lowers
```

A study has the files that it asks for. Rows lie in the order of their heads, so that one head is
read without the others. A run may come from a stranger: sizes and types are looked at before
anything is read, values when they are. Runs of older versions lack the columns with a default.
"""

import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar, cast, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xarray as xr

from headscope.errors import RunError
from headscope.files import SHARDS, checksum, write_atomically
from headscope.results.inspection import check_text, read_json, require_file
from headscope.wording import said

TOP_TOKENS, EXAMPLES, INPUTS = "top_tokens.parquet", "examples.parquet", "inputs.parquet"
MAPS, WRITES = "maps.parquet", "writes.parquet"
CHECKSUMS = "records_sha256"  # attribute of the result: the files it has, each with its checksum

SIDES, ORDERS = ("query", "key"), ("mass", "lift")
SPACES = ("query", "key", "value", "output")
DIRECTIONS = ("raises", "lowers")
WRITTEN = ("mean", "component")
BANDS = 5  # of equal frequency; the very top inputs have the number after the last
TOP_BAND = BANDS
REMEDY = "run the study again into the same RUN, which writes it again"

FileRows = Sequence[Mapping[str, Any]]  # of one group

# The most that a file may say that it holds. An encoding that is not listed may unpack without end.
_GROUPS, _ROWS, _GROUP_BYTES, _GROUP_VALUES = 2**15, 2**23, 2**27, 2**24
_ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"})
# The most that is read at once, of one head: rows, values of a column, characters.
_HEAD_ROWS, _HEAD_VALUES, _HEAD_CHARACTERS = 2**14, 2**22, 2**26

# What a column of a file holds, and what it is in Python.
Text = Annotated[str, pa.string()]
Number = Annotated[float, pa.float32()]
Tiny = Annotated[int, pa.int8()]
Small = Annotated[int, pa.int16()]
Middle = Annotated[int, pa.int32()]
Large = Annotated[int, pa.int64()]
Texts = Annotated[tuple[str, ...], pa.list_(pa.string())]
Places = Annotated[tuple[int, ...], pa.list_(pa.uint16())]
Numbers = Annotated[tuple[float, ...], pa.list_(pa.float32())]


@dataclass(frozen=True)
class TopToken:
    """A token that a head looks from (`query`) or at (`key`) more than at nearly all others."""

    side: Text
    by: Text  # the order that it is in: mass, or lift
    rank: Small
    token: Text
    share: Number  # of the head's attention
    lift: Number  # share / share that even attention would give it
    count: Large  # of its occurrences


@dataclass(frozen=True)
class BandExample:
    """An input of a band of the head's largest weight; weights of one row lie together.

    `attending` and `attended` are the query and the key of the largest weight.
    """

    band: Tiny
    rank: Small
    peak: Number
    input: Large
    query: Places = field(repr=False)
    key: Places = field(repr=False)
    weight: Numbers = field(repr=False)
    attending: Annotated[int | None, pa.uint16()] = None
    attended: Annotated[int | None, pa.uint16()] = None


@dataclass(frozen=True)
class KeptInput:
    """The tokens of an input, as they are shown, and where they are from."""

    input: Large
    document: Text
    start: Large  # of its first token in the document
    tokens: Texts = field(repr=False)
    id: Text = ""  # of the sentence in its corpus
    text: Text = field(default="", repr=False)
    null: Places = field(default=(), repr=False)  # tokens that the study leaves out of its values
    tags: Texts = field(default=(), repr=False)  # of the tokens; "" where one has none
    relations: Texts = field(default=(), repr=False)


@dataclass(frozen=True)
class Point:
    """A token in context, as one of the head's spaces sees it."""

    space: Text
    input: Large
    position: Middle
    token: Text
    component1: Number
    component2: Number
    x: Annotated[float | None, pa.float32()]  # of the map of queries and keys together
    y: Annotated[float | None, pa.float32()]
    cluster: Tiny


@dataclass(frozen=True)
class Written:
    """A token whose logit the head's output raises or lowers."""

    of: Text  # the mean output, or along its first principal component
    direction: Text
    rank: Small
    token: Text
    logit: Number


Row = TopToken | BandExample | KeptInput | Point | Written
RowKind = TypeVar("RowKind", TopToken, BandExample, KeptInput, Point, Written)


def _schema(kind: type[Row], *, of_heads: bool = True) -> pa.Schema:
    """The columns of a file: those of the head, if rows are of heads, and the fields of a row."""
    hints = get_type_hints(kind, include_extras=True)
    own = [(each.name, hints[each.name].__metadata__[0]) for each in fields(kind)]
    return pa.schema([("layer", pa.int16()), ("head", pa.int16()), *own] if of_heads else own)


SCHEMAS: dict[str, pa.Schema] = {
    TOP_TOKENS: _schema(TopToken),
    EXAMPLES: _schema(BandExample),
    INPUTS: _schema(KeptInput, of_heads=False),
    MAPS: _schema(Point),
    WRITES: _schema(Written),
}
ROWS: dict[str, type[Row]] = {
    TOP_TOKENS: TopToken, EXAMPLES: BandExample, INPUTS: KeptInput, MAPS: Point, WRITES: Written
}  # fmt: skip


@dataclass(frozen=True)
class Records:
    """The files of a run that are there; each is read by head."""

    folder: Path
    files: tuple[str, ...]

    def top_tokens(self, layer: int, head: int) -> tuple[TopToken, ...]:
        """100 of queries and 100 of keys, by mass and by lift, the first rank first."""
        return self._of_head(TOP_TOKENS, TopToken, layer, head)

    def examples(self, layer: int, head: int) -> tuple[BandExample, ...]:
        """The examples of all bands from low to high, then the very top ones."""
        return self._of_head(EXAMPLES, BandExample, layer, head)

    def points(self, layer: int, head: int) -> tuple[Point, ...]:
        """The sampled tokens in all spaces of a head."""
        return self._of_head(MAPS, Point, layer, head)

    def writes(self, layer: int, head: int, of: str = "mean") -> tuple[Written, ...]:
        """The tokens that the head raises most, and those that it lowers most.

        By its mean output, or (`of="component"`) along the first principal component of it.
        """
        return tuple(each for each in self._of_head(WRITES, Written, layer, head) if each.of == of)

    def inputs(self, numbers: Iterable[int]) -> dict[int, KeptInput]:
        """The inputs of some numbers; a RunError if one of them is not kept."""
        wanted = sorted(set(numbers))
        if not wanted:
            return {}
        bounds = {"input": (wanted[0], wanted[-1])}
        is_wanted = pc.field("input").isin(wanted)
        found = {each.input: each for each in self._read(INPUTS, KeptInput, bounds, is_wanted)}
        missing = [number for number in wanted if number not in found]
        if missing:
            raise RunError(f"{INPUTS} cannot be read (input {missing[0]} is not there); {REMEDY}.")
        return found

    def _of_head(
        self, name: str, kind: type[RowKind], layer: int, head: int
    ) -> tuple[RowKind, ...]:
        bounds = {"layer": (layer, layer), "head": (head, head)}
        is_wanted = (pc.field("layer") == layer) & (pc.field("head") == head)
        return tuple(self._read(name, kind, bounds, is_wanted))

    def _read(
        self, name: str, kind: type[RowKind], bounds: "Bounds", wanted: pc.Expression
    ) -> Iterator[RowKind]:
        """The rows of a file that are wanted; nothing where the run has no such file."""
        if name not in self.files:
            return
        try:
            about = (self.folder / name).stat()
            _check_metadata(self.folder / name, about.st_size, getattr(about, "st_mtime", 0.0))
            with (self.folder / name).open("rb") as content:
                columns, rows = _rows(cast(BinaryIO, content), name, bounds, wanted)
            names = [name for name in (column.name for column in fields(kind)) if name in columns]
            made = [kind(**{name: _frozen(row[name]) for name in names}) for row in rows]
            for row in made:
                _check(row)
        except Exception as error:  # Arrow fails on foreign content in many ways
            raise RunError(f"{name} cannot be read ({said(error)}); {REMEDY}.") from error
        yield from made


NO_RECORDS = Records(Path(), ())
Bounds = Mapping[str, tuple[int, int]]  # least and largest value of a column that is wanted


def records_of(result: xr.Dataset, folder: Path) -> Records:
    """The records that belong to a result; none of them if its study keeps none."""
    check_files(result, folder, tuple(SCHEMAS))
    # Others are of an older version.
    return Records(folder, tuple(name for name in _checksums(result) if name in SCHEMAS))


def check_files(result: xr.Dataset, folder: Path, names: Sequence[str]) -> None:
    """Refuse files of a result, of those names, that are missing or are not what it says."""
    for name, expected in _checksums(result).items():
        if name in names:
            _require_own(folder / name, expected)
            _inspect(folder / name, name)


def _checksums(result: xr.Dataset) -> dict[str, str]:
    return read_json(result.attrs.get(CHECKSUMS, "{}"), dict[str, str], CHECKSUMS)


def _require_own(path: Path, expected: object) -> None:
    """Refuse a file that is missing, or has another checksum than the result says."""
    if not (path.exists() or path.is_symlink()):
        raise RunError(f"{path.name} is missing; {REMEDY}.")
    require_file(path)
    if checksum(path) != expected:
        raise RunError(
            f"{path.name} cannot be read (it is damaged, or not of this result); {REMEDY}."
        )


def write_records(path: Path, groups: Iterable[FileRows]) -> str:
    """Write the file of that name, each group of rows apart, and return its checksum.

    Only one group is held at a time. Groups must come in the order of their heads or inputs.
    """
    schema = SCHEMAS[path.name]
    with write_atomically(path, kept=SHARDS) as temporary:
        # Numbers that hardly repeat only grow in a dictionary.
        words: Any = [column.name for column in schema if pa.types.is_string(column.type)]
        with pq.ParquetWriter(
            temporary, schema, compression="zstd", use_dictionary=words
        ) as writer:
            for rows in groups:
                writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))
        return checksum(temporary)


def with_checksums(result: xr.Dataset, checksums: Mapping[str, str]) -> xr.Dataset:
    """The result that says that these files are its own, too."""
    checksums = {**_checksums(result), **checksums}
    return result.assign_attrs({CHECKSUMS: json.dumps(checksums, sort_keys=True)})


def _inspect(path: Path, name: str) -> None:
    """Refuse what is of other types, or says that it unpacks to far too much."""
    try:
        with path.open("rb") as content, pq.ParquetFile(content) as file:
            _check_columns(file, name)
    except Exception as error:
        raise RunError(f"{name} cannot be read ({said(error)}); {REMEDY}.") from error


def _check_columns(file: pq.ParquetFile, name: str) -> None:
    about, schema = file.metadata, file.schema_arrow
    if about.num_row_groups > _GROUPS or about.num_rows > _ROWS:
        raise RunError(f"it has more than {_ROWS:,} rows or {_GROUPS:,} groups of them")
    newer = {column.name for column in fields(ROWS[name]) if column.default is not MISSING}
    for column in SCHEMAS[name]:
        if column.name not in schema.names:
            if column.name in newer:
                continue
            raise RunError(f"it has no {column.name}")
        if not _is_same(schema.field(column.name).type, column.type):
            raise RunError(f"its {column.name} is of another type")


def _is_same(found: pa.DataType, expected: pa.DataType) -> bool:
    """Lists are compared by what they hold: writers name the items in different ways."""
    if isinstance(found, pa.ListType) and isinstance(expected, pa.ListType):
        return found.value_type == expected.value_type
    return found == expected


def _rows(
    content: BinaryIO, name: str, bounds: Bounds, wanted: pc.Expression
) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the columns, and the rows that are wanted.

    Texts stay what they are in the file, a number for each and every text once, until it is known
    how long they are together: a kilobyte may hold one text a million times.
    """
    with pq.ParquetFile(content) as file:
        _check_columns(file, name)
        about, schema = file.metadata, file.schema
        columns = [column for column in SCHEMAS[name].names if column in file.schema_arrow.names]
    leaves = (schema.column(number) for number in range(len(schema)))
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    rows: list[dict[str, Any]] = []
    with pq.ParquetFile(content, metadata=about, read_dictionary=texts) as file:
        values, characters = Counter[str](), 0
        for number in range(about.num_row_groups):
            if _may_have(file, number, bounds):
                _check_group(about.row_group(number))
                # Threads of Arrow that live on may end the process in an error.
                table = file.read_row_group(number, columns=columns, use_threads=False)
                table = table.filter(wanted)
                for column in columns:
                    leaf = _leaf(table[column])
                    values[column] += len(leaf)
                    characters += _characters(leaf)
                if len(rows) + len(table) > _HEAD_ROWS or characters > _HEAD_CHARACTERS:
                    raise RunError("it has more of one head than a run can have")
                if max(values.values()) > _HEAD_VALUES:
                    raise RunError("it has longer lists of one head than a run can have")
                rows += table.to_pylist()
    return columns, rows


class _Blank(io.BytesIO):
    """A file of zeros that knows whether it was read."""

    was_read = False

    def read(self, size: int | None = -1, /) -> bytes:
        self.was_read = True
        return super().read(size)


@lru_cache(maxsize=64)
def _check_metadata(path: Path, size: int, changed: float) -> None:
    """Refuse metadata of columns that Arrow cannot read: asked for it, it ends the process.

    Where a column is read, its metadata is understood first, and a fault in it is an error. Zeros
    are no column either, but that is found only after they were read.
    """
    with path.open("rb") as content:
        metadata = pq.read_metadata(content)
    leaves = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    blank = _Blank(bytes(size))
    with pq.ParquetFile(blank, metadata=metadata) as file:
        for group, leaf in product(range(metadata.num_row_groups), leaves):
            blank.was_read = False
            try:
                file.read_row_group(group, columns=[leaf], use_threads=False)
            except Exception as error:
                if not blank.was_read:
                    raise RunError(f"its metadata is damaged: {said(error)}") from error


def _check_group(group: pq.RowGroupMetaData) -> None:
    """Refuse rows that would unpack to far too much."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    if group.total_byte_size > _GROUP_BYTES or any(c.num_values > _GROUP_VALUES for c in chunks):
        raise RunError("it says that it holds more than a run can have")
    if not {encoding for chunk in chunks for encoding in chunk.encodings} <= _ENCODINGS:
        raise RunError("it is encoded as no run is")


def _leaf(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column, those of lists one after the other."""
    array = column.combine_chunks()
    return array.flatten() if pa.types.is_list(array.type) else array


def _characters(leaf: pa.Array) -> int:
    """The bytes of all texts, each as often as it occurs."""
    if not pa.types.is_dictionary(leaf.type):
        return 0
    lengths = pc.call_function("binary_length", [leaf.dictionary])
    return pc.call_function("sum", [lengths.take(leaf.indices)]).as_py() or 0


def _may_have(file: pq.ParquetFile, number: int, bounds: Bounds) -> bool:
    """Whether the statistics of a group of rows let it hold what is wanted."""
    group, names = file.metadata.row_group(number), file.schema_arrow.names
    for name, (least, most) in bounds.items():
        about = group.column(names.index(name)).statistics
        if about is None or not about.has_min_max:
            continue
        if about.min > most or about.max < least:
            return False
    return True


_WORDS: dict[str, tuple[str, ...]] = {
    "side": SIDES,
    "by": ORDERS,
    "space": SPACES,
    "direction": DIRECTIONS,
    "of": WRITTEN,
}
_MAY_LACK: dict[type[Row], tuple[str, ...]] = {
    Point: ("x", "y"),
    BandExample: ("attending", "attended"),
}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check(row: Row) -> None:
    may_lack = _MAY_LACK.get(type(row), ())
    for each in fields(row):
        value = getattr(row, each.name)
        if value is None and each.name in may_lack:
            continue
        for part in value if isinstance(value, tuple) else (value,):
            _check_value(each.name, part)
    if isinstance(row, BandExample):
        _check_weights(row)
    if isinstance(row, KeptInput):
        _check_labels(row)


def _check_value(name: str, value: Any) -> None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise RunError(f"a {name} of it is missing or not a number")
    if isinstance(value, str):
        check_text(value, "it")
        if name in _WORDS and value not in _WORDS[name]:
            raise RunError(f"a {name} of it is none of {', '.join(_WORDS[name])}")
    elif isinstance(value, int) and value < 0:
        raise RunError(f"a {name} of it is below 0")


def _check_weights(row: BandExample) -> None:
    if not len(row.query) == len(row.key) == len(row.weight):
        raise RunError("an example of it has weights without places")
    if row.band > TOP_BAND:
        raise RunError(f"a band of it is above {TOP_BAND}")


def _check_labels(row: KeptInput) -> None:
    for labels in (row.tags, row.relations):
        if labels and len(labels) != len(row.tokens):
            raise RunError("an input of it has not one label for every token")
    if not row.tokens:
        raise RunError("an input of it has no tokens")
