from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headscope.errors import CorpusError, RunError
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence


def write(path: Path) -> bytes:
    Corpus.write(path, [Sentence(f"A sentence with the number {n}.") for n in range(500)])
    return path.read_bytes()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no file .*none\.parquet"):
        Corpus.open(tmp_path / "none.parquet")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(write(path)[:-20])
    with pytest.raises(CorpusError, match="not a readable Parquet file"):
        Corpus.open(path)


def test_a_flipped_byte_among_the_sentences_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    content = bytearray(write(path))
    content[len(content) // 8] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CorpusError, match="write it again from its source"):
        list(Corpus.open(path))


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(CorpusError, match="not a Headscope corpus"):
        Corpus.open(tmp_path / "other.parquet")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    table = pa.table({"text": ["a"]}).replace_schema_metadata({"headscope": '{"format": 99}'})
    pq.write_table(table, tmp_path / "new.parquet")
    with pytest.raises(CorpusError, match="has corpus format 99"):
        Corpus.open(tmp_path / "new.parquet")


def test_writing_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    def broken() -> Iterator[Sentence]:
        yield Sentence("fine")
        raise CorpusError("line 2 is not")

    path = tmp_path / "c.parquet"
    before = write(path)
    with pytest.raises(CorpusError, match="line 2 is not"):
        Corpus.write(path, broken())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        Corpus.write(tmp_path / "file" / "c.parquet", [Sentence("a")])
