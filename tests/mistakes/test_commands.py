"""The careless user: a bad value is one sentence and exit code 2, and nothing is written.

The options of a study have a list of their own beside the studies.
"""

import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy

from headscope import cli

BROKEN = "1\tHello\t_\tX\t_\t_\t7\troot\t_\t_\n\n"

# What is typed, and a part of what is answered. `pipe` is a spaCy pipeline in the directory.
CARELESS = [
    ("chek mini-gpt2", "Did you mean 'check'?"),
    ("--nonsense", "--nonsense"),  # the words before it are those of the installed Click
    ("study caf\udce9 --model mini-gpt2", "is not UTF-8"),
    # annotate
    ("annotate none.txt --out c.parquet", "no file or directory none.txt"),
    ("annotate '' --out c.parquet", "is empty"),
    ("annotate notes.txt --out ''", "--out is empty"),
    ("annotate notes.txt --out=", "--out is empty"),
    ("annotate notes.txt", "Missing option '--out'"),
    ("annotate --out c.parquet", "Missing argument"),
    ("annotate notes.txt --out c.csv", "c.csv; give a name in .parquet"),
    ("annotate a.docx --out c.parquet --spacy pipe", "the ending '.docx', which no reader knows"),
    ("annotate ending --out c.parquet --spacy pipe", "no ending"),
    ("annotate latin.txt --out c.parquet --spacy pipe", "latin.txt is not UTF-8 at byte offset 3"),
    ("annotate empty --out c.parquet --spacy pipe", "No file in empty ends in .parquet, .arrow"),
    ("annotate blank.txt --out c.parquet --spacy pipe", "There is no text in blank.txt"),
    ("annotate cut.txt.gz --out c.parquet --spacy pipe", "cut.txt.gz is cut short or damaged"),
    ("annotate rows.parquet --column b --out c.parquet --spacy pipe", "no column 'b'; name one"),
    ("annotate no/dataset --out c.parquet --spacy pipe", "no/dataset"),
    ("annotate broken.conllu --out c.parquet --spacy pipe", "broken.conllu:1: the head '7'"),
    ("annotate broken.jsonl --out c.parquet --spacy pipe", "broken.jsonl:1: not JSON"),
    ("annotate notes.txt words.jsonl --out c.parquet", "notes.txt is raw text and words.jsonl a"),
    ("annotate notes.txt --out c.parquet --spacy xx_none", "python -m spacy download xx_none"),
    ("annotate notes.txt --out c.parquet --spacy notes.txt", "notes.txt"),
    ("annotate notes.txt --out c.parquet --processes 0", "ask for at least one"),
    ("annotate notes.txt --out c.parquet --processes -2", "ask for at least one"),
    ("annotate notes.txt --out c.parquet --processes two", "Invalid value for '--processes'"),
    ("annotate notes.txt --out c.parquet --engine slurm", "no engine 'slurm'"),
    ("annotate notes.txt --out c.parquet --workers 2", "--engine ray"),
    ("annotate notes.txt --out notes.txt/c.parquet --spacy pipe --processes 1", "Cannot write"),
    ("annotate notes.txt --out nothing://c.parquet", "nothing://c.parquet cannot be reached"),
    # check
    ("check none/model", "none/model"),
    ("check ''", "is empty"),
    ("check notes.txt", "notes.txt"),
    ("check empty", "empty"),
    ("check mini-gtp2", "mini-gtp2"),
    ("check mini-gpt2 --dtype float12", "float12"),
    ("check mini-gpt2 --device nowhere", "nowhere"),
    # compare
    ("compare none other", "none has no result.nc"),
    ("compare none", "Missing argument"),
    ("compare empty empty --rows 0", "Invalid value for '--rows'"),
    ("compare empty empty --out ''", "--out is empty"),
    ("compare notes.txt notes.txt", "notes.txt"),
    # demo
    ("demo --out ''", "--out is empty"),
    ("demo --out notes.txt", "notes.txt"),
    ("demo --out full", "full already has something else in it"),
    ("demo --sentences 0", "Invalid value for '--sentences'"),
    ("demo --sentences many", "Invalid value for '--sentences'"),
    # report
    ("report none", "none"),
    ("report ''", "is empty"),
    ("report notes.txt", "notes.txt"),
    ("report empty", "empty"),
    ("report none --out ''", "--out is empty"),
    ("report", "Missing argument"),
    # serve
    ("serve none", "none"),
    ("serve ''", "is empty"),
    ("serve --port 99999", "Invalid value for '--port'"),
    ("serve --port here", "Invalid value for '--port'"),
    # study
    ("study vig2020 --model mini-gpt2 --corpus demo --out run", "vig2020"),
    ("study vig2019 --model mini-gpt2 --corpus '' --out run", "--corpus is empty"),
    ("study vig2019 --model mini-gpt2 --corpus demo --out ''", "--out is empty"),
    ("study vig2019 --model none/model --corpus demo --out run", "none/model"),
    ("study vig2019 --model mini-gpt2 --corpus none.conllu --out run", "none.conllu"),
    ("study vig2019 --model mini-gpt2 --corpus a.docx --out run", "'.docx'"),
    ("study vig2019 --model mini-gpt2 --corpus empty --out run", "No file in empty ends in"),
    ("study vig2019 --model mini-gpt2 --corpus broken.conllu --out run", "broken.conllu:1:"),
    ("study vig2019 --model mini-gpt2 --corpus rows.parquet --column b --out run", "no column 'b'"),
    ("study vig2019 --model mini-gpt2 --corpus rows.parquet --layout x --out run", "layout='x' is"),
    ("study vig2019 --model mini-gpt2 --corpus demo --out run --sentences 0", "'--sentences'"),
    ("study vig2019 --model mini-gpt2 --corpus demo --out run --engine slurm", "'slurm'"),
    # view
    ("view 'A cat.' --model mini-gpt2", "Missing option '--out'"),
    ("view 'A cat.' --model mini-gpt2 --out ''", "--out is empty"),
    ("view '' --model mini-gpt2 --out v.html", "is empty"),
    ("view 'A cat.' --model mini-gpt2 --out v.docx", ".docx"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --kind tail", "choose head, model, neuron"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --layer 99", "99"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --layer -1", "-1"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --heads 99", "99"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --heads abc", "abc"),
    ("view 'A cat.' --model mini-gpt2 --out v.html --generate -1", "Invalid value for '--gener"),
    ("view 'A cat.' --model mini-gpt2 --out notes.txt/v.html", "notes.txt"),
]


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the list names."""
    files = {
        "notes.txt": "One. Two.\n",
        "blank.txt": "\n\n",
        "a.docx": "x",
        "ending": "x",
        "broken.conllu": BROKEN,
        "broken.jsonl": "{\n",
        "words.jsonl": '{"words": ["Hello"]}\n',
        "full/kept.txt": "mine",
    }
    folder = tmp_path_factory.mktemp("desk")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "latin.txt").write_bytes("Caf\u00e9.\n".encode("latin-1"))
    (folder / "cut.txt.gz").write_bytes(gzip.compress(b"One. Two.")[:-6])
    pq.write_table(pa.table({"text": ["One. Two."]}), folder / "rows.parquet")
    (folder / "empty").mkdir()
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(folder / "pipe")
    return folder


@pytest.fixture
def desk(laid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that the user is in, and a cache of nobody else's."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(laid)
    return laid


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def typed(line: str) -> list[str]:
    """The line as a shell would split it; shlex knows no bytes that are not UTF-8."""
    pieces = line.split("'")
    quoted = [[piece] if at % 2 else piece.split() for at, piece in enumerate(pieces)]
    return [word for words in quoted for word in words]


@pytest.mark.parametrize(("line", "part"), CARELESS, ids=[line for line, _ in CARELESS])
def test_a_careless_command_is_one_sentence_and_writes_nothing(
    line: str,
    part: str,
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = contents(desk)
    monkeypatch.setattr(sys, "argv", ["headscope", *typed(line)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err.strip().splitlines()
    assert stopped.value.code == 2
    assert said[-1].startswith("headscope: ") and part in said[-1]
    assert len([text for text in said if text.startswith("headscope: ")]) == 1
    assert said[-1].endswith((".", "?", "`"))
    assert "Traceback" not in "\n".join(said)
    assert contents(desk) == before
