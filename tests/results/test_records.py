"""Records are read by head, and nothing of the wrong kind gets further."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.examples import exemplars_of
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    MAPS,
    SCHEMAS,
    TOP_BAND,
    WRITES,
    Records,
    write_records,
)
from headscope.results.run import read_run
from tests.references.luger2026_run import INPUTS_KEPT, LENGTH, POINTS, WORDS, write_luger_run
from tests.references.runs import write_examples

PLACE = {"layer": 0, "head": 0}
WRITTEN = PLACE | {"of": "mean", "direction": "raises", "rank": 0, "token": "a", "logit": 0.5}
EXAMPLE = PLACE | {"band": 0, "rank": 0, "peak": 0.5, "input": 0}
WEIGHTS = {"query": [1], "key": [0], "weight": [0.5]}
INPUT = {
    "input": 0, "document": "d", "start": 0, "tokens": ["a"], "id": "", "text": "a", "null": [],
    "tags": ["DET"], "relations": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_luger_run(tmp_path_factory.mktemp("luger"))


def test_every_head_has_its_own_rows(run: Path) -> None:
    records = read_run(run).records
    assert len(records.files) == len(SCHEMAS)
    for layer in range(2):
        for head in range(3):
            assert len(records.top_tokens(layer, head)) == 4 * len(WORDS)
            assert [each.band for each in records.examples(layer, head)] == [
                band for band in range(6) for _ in range(10 if band == 5 else 3)
            ]
            assert len(records.points(layer, head)) == 4 * POINTS
            assert len(records.writes(layer, head)) == 2 * len(WORDS)
            assert len(records.writes(layer, head, "component")) == 2 * len(WORDS)
            inputs = {each.input for each in records.examples(layer, head)}
            assert list(records.inputs(inputs)) == sorted(inputs)
    first, other = records.points(0, 0), records.points(1, 2)
    assert {each.token for each in first} <= set(WORDS)
    assert [each.component1 for each in first] != [each.component1 for each in other]
    assert records.top_tokens(7, 0) == ()


def test_inputs_are_found_by_their_number(run: Path) -> None:
    records = read_run(run).records
    found = records.inputs([5, 2, 5])
    assert [each.input for each in found.values()] == [2, 5]
    assert all(len(each.tokens) == LENGTH for each in found.values())
    assert found[5].start == 2 * LENGTH
    with pytest.raises(RunError, match=f"input {INPUTS_KEPT} is not there"):
        records.inputs([INPUTS_KEPT])


def test_a_changed_file_is_noticed_and_the_rest_is_read(tmp_path: Path) -> None:
    run = write_luger_run(tmp_path / "run", 1, 1)
    (run / MAPS).write_bytes((run / EXAMPLES).read_bytes())
    opened = read_run(run)
    assert opened.state == "complete" and opened.records.files == ()
    assert "maps.parquet cannot be read (it is damaged" in opened.notes[-1]
    (run / MAPS).unlink()
    assert "maps.parquet is missing" in read_run(run).notes[-1]


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (WRITES, WRITTEN | {"direction": "up"}, "none of raises, lowers"),
        (WRITES, WRITTEN | {"logit": float("nan")}, "not a number"),
        (WRITES, WRITTEN | {"rank": -1}, "below 0"),
        (WRITES, WRITTEN | {"token": None}, "missing"),
        (WRITES, WRITTEN | {"token": "a" * 30_000}, "characters"),
        (EXAMPLES, EXAMPLE | WEIGHTS | {"query": [1, 2]}, "weights without places"),
        (EXAMPLES, EXAMPLE | WEIGHTS | {"band": 6}, "above 5"),
        (EXAMPLES, EXAMPLE | WEIGHTS | {"weight": [float("inf")]}, "not a number"),
        (INPUTS, INPUT | {"tags": ["DET", "NOUN"]}, "one label for every token"),
        (INPUTS, INPUT | {"tokens": [], "tags": []}, "no tokens"),
        (INPUTS, INPUT | {"text": None}, "missing"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(
    tmp_path: Path, name: str, row: dict, message: str
) -> None:
    write_records(tmp_path / name, [[row]])
    records = Records(tmp_path, (name,))
    read = {
        WRITES: lambda: records.writes(0, 0),
        EXAMPLES: lambda: records.examples(0, 0),
        INPUTS: lambda: records.inputs([0]),
    }[name]
    with pytest.raises(RunError, match=message):
        read()


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    rows = [{"input": 0, "document": "d", "start": 0, "tokens": [b"a"]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / INPUTS)
    with pytest.raises(RunError, match="its tokens is of another type"):
        Records(tmp_path, (INPUTS,)).inputs([0])


def test_files_of_older_versions_are_read_without_the_columns_that_are_new(tmp_path: Path) -> None:
    for name, row in ((EXAMPLES, EXAMPLE | WEIGHTS), (INPUTS, INPUT)):
        newer = ["attending", "attended", "id", "text", "null", "tags", "relations"]
        kept = pa.schema([column for column in SCHEMAS[name] if column.name not in newer])
        pq.write_table(pa.Table.from_pylist([row], schema=kept), tmp_path / name)
    records = Records(tmp_path, (EXAMPLES, INPUTS))
    (example,), shown = records.examples(0, 0), records.inputs([0])[0]
    assert (example.attending, example.query, shown.tokens, shown.tags) == (None, (1,), ("a",), ())


@pytest.mark.parametrize(
    ("changed", "name"),
    [({"query": [9]}, EXAMPLES), ({"attended": 9}, EXAMPLES), ({"null": [9]}, INPUTS)],
)
def test_a_place_behind_the_end_of_an_input_is_refused(
    tmp_path: Path, changed: dict, name: str
) -> None:
    example = EXAMPLE | {"band": TOP_BAND, "attending": 0, "attended": 0}
    example |= {"query": [0], "key": [0], "weight": [0.5]}
    for file, row in ((EXAMPLES, example), (INPUTS, INPUT)):
        write_records(tmp_path / file, [[row | changed if file == name else row]])
    with pytest.raises(RunError, match=f"{name} cannot be read .*behind the end"):
        exemplars_of(Records(tmp_path, (EXAMPLES, INPUTS)), Head(0, 0))


def test_no_flipped_bit_of_the_metadata_ends_the_process(tmp_path: Path) -> None:
    write_examples(tmp_path, (0,), 1)
    content, refused = (tmp_path / INPUTS).read_bytes(), 0
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for place in range(begin, len(content) - 8, 2):
        flipped = bytearray(content)
        flipped[place] ^= 2
        (tmp_path / INPUTS).write_bytes(flipped)
        try:
            Records(tmp_path, (INPUTS,)).inputs([0])
        except RunError:
            refused += 1
    assert refused > 100
