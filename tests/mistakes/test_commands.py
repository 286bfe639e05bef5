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
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import unfinished_run, write_run

BROKEN = "1\tHello\t_\tX\t_\t_\t7\troot\t_\t_\n\n"

# What is typed after the name of a command, and a part of what is answered.
# `pipe` is a spaCy pipeline in the directory.
MISTAKES: dict[str, list[tuple[str, str]]] = {
    "": [
        ("chek mini-gpt2", "Did you mean 'check'?"),
        ("helm", "No such command 'helm'"),
        ("--nonsense", "--nonsense"),  # the words before it are those of the installed Click
        ("study caf\udce9 --model mini-gpt2", "is not UTF-8"),
    ],
    "annotate": [
        ("none.txt --out c.parquet", "no file or directory none.txt"),
        ("'' --out c.parquet", "is empty"),
        ("notes.txt --out ''", "--out is empty"),
        ("notes.txt --out=", "--out is empty"),
        ("notes.txt", "Missing option '--out'"),
        ("--out c.parquet", "Missing argument"),
        ("notes.txt --out c.csv", "c.csv; give a name in .parquet"),
        ("a.docx --out c.parquet --spacy pipe", "the ending '.docx', which no reader knows"),
        ("ending --out c.parquet --spacy pipe", "no ending"),
        ("latin.txt --out c.parquet --spacy pipe", "latin.txt is not UTF-8 at byte offset 3"),
        ("empty --out c.parquet --spacy pipe", "No file in empty ends in .parquet, .arrow"),
        ("blank.txt --out c.parquet --spacy pipe", "There is no text in blank.txt"),
        ("cut.txt.gz --out c.parquet --spacy pipe", "cut.txt.gz is cut short or damaged"),
        ("rows.parquet --column b --out c.parquet --spacy pipe", "no column 'b'; name one"),
        ("no/dataset --out c.parquet --spacy pipe", "no/dataset"),
        ("broken.conllu --out c.parquet --spacy pipe", "broken.conllu:1: the head '7'"),
        ("broken.jsonl --out c.parquet --spacy pipe", "broken.jsonl:1: not JSON"),
        ("notes.txt words.jsonl --out c.parquet", "notes.txt is raw text and words.jsonl a"),
        ("notes.txt --out c.parquet --spacy xx_none", "python -m spacy download xx_none"),
        ("notes.txt --out c.parquet --spacy notes.txt", "notes.txt"),
        ("notes.txt --out c.parquet --processes 0", "ask for at least one"),
        ("notes.txt --out c.parquet --processes -2", "ask for at least one"),
        ("notes.txt --out c.parquet --processes two", "Invalid value for '--processes'"),
        ("notes.txt --out c.parquet --engine slurm", "no engine 'slurm'"),
        ("notes.txt --out c.parquet --workers 2", "--engine ray"),
        ("notes.txt --out notes.txt/c.parquet --spacy pipe --processes 1", "cannot be written"),
        ("notes.txt --out nothing://c.parquet", "nothing://c.parquet cannot be reached"),
    ],
    "check": [
        ("none/model", "none/model"),
        ("''", "is empty"),
        ("notes.txt", "notes.txt"),
        ("empty", "empty"),
        ("mini-gtp2", "mini-gtp2"),
        ("mini-gpt2 --dtype float12", "float12"),
        ("mini-gpt2 --device nowhere", "nowhere"),
        ("mini-gpt2 mini-bert", "unexpected extra argument"),
        ("mini-gpt2 --revision ''", "--revision is empty"),
        ("mini-gpt2 --quantization int2", "no quantization 'int2'; choose one of int8"),
    ],
    "compare": [
        ("none other", "none has no result.nc"),
        ("none", "Missing argument"),
        ("empty empty --rows 0", "Invalid value for '--rows'"),
        ("empty empty --out ''", "--out is empty"),
        ("notes.txt notes.txt", "notes.txt"),
        ("empty empty --by name", "'name' is not one of 'auto', 'index'"),
        ("none other --json", "none has no result.nc"),
        ("none other third", "unexpected extra argument"),
        ("'' other", "is empty"),
        ("memory://none other", "none"),
        ("none other --rows two", "Invalid value for '--rows'"),
        ("run", "Missing argument 'RUN_B'"),
        ("run half", "half has no result.nc yet: 3 of 5 shards are done"),
        ("run luger", "run is a run of vig2019, luger of luger2026; compare runs of one study"),
        ("run run --out full", "full cannot be written"),
        ("run run --out nowhere/d.csv", "nowhere/d.csv cannot be written"),
    ],
    "demo": [
        ("--out ''", "--out is empty"),
        ("--out notes.txt", "notes.txt"),
        ("--out full", "full already has something else in it"),
        ("--sentences 0", "Invalid value for '--sentences'"),
        ("--sentences many", "Invalid value for '--sentences'"),
        ("--out run", "run already has something else in it; nothing was changed"),
        ("extra", "unexpected extra argument"),
    ],
    "report": [
        ("none", "none"),
        ("''", "is empty"),
        ("notes.txt", "notes.txt"),
        ("empty", "empty"),
        ("none --out ''", "--out is empty"),
        ("", "Missing argument"),
        ("none --json", "none"),
        ("none --quiet", "none"),
        ("none --width wide", "Invalid value for '--width'"),
        ("none --columns head", "none"),
        ("half", "half has no result.nc yet"),
        (
            "run --width 2",
            "cannot be 2 inches wide: their words would overlap; give a width of 3.2",
        ),
        ("run --width 1e9", "cannot be 1e+09 inches wide"),
        ("run --heads first", "'first' names no head; write it as L4H11"),
        ("run --formats docx", "not written as 'docx'; choose from svg, png, pdf"),
        ("run --font Tims", "no font 'Tims' on this machine"),
        ("run --study nothing:STUDY", "no study at 'nothing:STUDY'"),
    ],
    "heads": [
        ("", "Missing argument"),
        ("none", "none is not a run"),
        ("''", "is empty"),
        ("empty", "empty is not a run"),
        ("notes.txt", "notes.txt"),
        ("none --sort name", "'name' is not one of 'explained'"),
        ("none --layer five", "Invalid value for '--layer'"),
        ("none --json", "none is not a run"),
        ("none --quiet", "none is not a run"),
        ("run --role zzz", "No head is described by 'zzz'; the names in this run are"),
        ("run --layer 99", "There is no layer 99; there are 0 to 3"),
        ("half", "half has no result.nc yet"),
        ("luger", "This run has no portraits"),
    ],
    "export": [
        ("none", "Missing option '--out'"),
        ("none --out ''", "--out is empty"),
        ("none --out new", "none"),
        ("none --out full", "none"),
        ("none --out new --format xlsx", "xlsx"),
        ("none --out new --json", "none"),
        ("run --out full", "full already has something in it; nothing was changed"),
        ("run --out notes.txt", "cannot be written to notes.txt"),
        ("run --out new --format graph", "run luger2026 with --option composition=16"),
        ("run --out new --format kv", "does not measure retrieval with its error"),
        ("run luger --out new", "unexpected extra argument"),
        ("half --out new", "half has no result.nc yet"),
    ],
    "site": [
        ("none", "Missing option '--out'"),
        ("none --out ''", "--out is empty"),
        ("none --out new", "none"),
        ("empty --out new --json", "empty"),
        ("none --out full", "none"),
        ("run --out full", "full already has something else in it; nothing was changed"),
        ("run --out notes.txt", "The site cannot be written to notes.txt"),
        ("half --out new", "half has no result.nc yet"),
    ],
    "mcp": [
        ("none", "none is not a directory"),
        ("''", "is empty"),
        ("empty", "empty is not a run"),
        ("--model ''", "--model is empty"),
        ("--device", "requires an argument"),
    ],
    "serve": [
        ("none", "none"),
        ("''", "is empty"),
        ("--port 99999", "Invalid value for '--port'"),
        ("--port here", "Invalid value for '--port'"),
    ],
    "study": [
        ("vig2020 --model mini-gpt2 --corpus demo --out run", "vig2020"),
        ("vig2019 --model mini-gpt2 --corpus '' --out run", "--corpus is empty"),
        ("vig2019 --model mini-gpt2 --corpus demo --out ''", "--out is empty"),
        ("vig2019 --model none/model --corpus demo --out run", "none/model"),
        ("vig2019 --model mini-gpt2 --corpus none.conllu --out run", "none.conllu"),
        ("vig2019 --model mini-gpt2 --corpus a.docx --out run", "'.docx'"),
        ("vig2019 --model mini-gpt2 --corpus empty --out run", "No file in empty ends in"),
        ("vig2019 --model mini-gpt2 --corpus broken.conllu --out run", "broken.conllu:1:"),
        ("vig2019 --model mini-gpt2 --corpus rows.parquet --column b --out run", "no column 'b'"),
        ("vig2019 --model mini-gpt2 --corpus rows.parquet --layout x --out run", "layout='x' is"),
        ("vig2019 --model mini-gpt2 --corpus demo --out run --sentences 0", "'--sentences'"),
        ("vig2019 --model mini-gpt2 --corpus demo --out run --engine slurm", "'slurm'"),
        ("vig2019 --model mini-gpt2 --corpus demo --out run --dtype float12", "no dtype 'float12'"),
        ("vig2019 --model mini-gtp2 --corpus demo --out run --quiet", "did you mean"),
        ("vig2019 --model mini-gpt2 --corpus demo", "Missing option '--out'"),
        ("vig2019 --corpus demo --out run", "Missing option '--model'"),
        ("--model mini-gpt2 --corpus demo --out run", "Missing argument"),
        ("vig2019 --model mini-gpt2 --corpus demo --out run --option seed", "NAME=VALUE"),
        ("vig2019 --model mini-gpt2 --corpus demo --out run --option x=1", "has no option 'x'"),
        ("luger2026 --model mini-gpt2 --corpus demo --out run --option depths=[[1]]", "depths"),
        (f"luger2026 --model mini-gpt2 --corpus demo --out run --option points={10**30}", "points"),
        ("luger2026 --model mini-gpt2 --corpus demo --out run --context 1", "'--context'"),
        ("vig2019 --model mini-gpt2 --corpus demo --out new --segments 3", "draws sentences"),
        (
            "vig2019 --model mini-gpt2 --corpus demo --out new --texts 3",
            "draws sentences, not texts",
        ),
        (
            "clark2019 --model mini-gpt2 --corpus demo --out new --texts 3",
            "draws segments, not tex",
        ),
        (
            "luger2026 --model mini-gpt2 --corpus demo --out new --segments 3",
            "draws texts, not seg",
        ),
        (
            "clark2019 --model mini-gpt2 --corpus demo --out new --segments 3 --sentences 4",
            "not both",
        ),
        ("clark2019 --model mini-gpt2 --corpus demo --out new --segments 0", "'--segments'"),
        ("vig2019 --model mini-gpt2 --corpus demo --out new --weights none", "raw, norm or both"),
        ("vig2019 --model mini-gpt2 --corpus demo --out new --bos sometimes", "auto, never or al"),
        ("vig2019 --model mini-gpt2 --corpus demo --out new --workers 2", "add `--engine ray`"),
        ("vig2019 --model mini-gpt2 --corpus demo --out new --train a.conllu", "no option 'train'"),
        (
            "vig2019 --model mini-gpt2 --corpus demo --out new --device tpu",
            "The device 'tpu' cannot",
        ),
        ("nothing:STUDY --model mini-gpt2 --corpus demo --out new", "no study at 'nothing:STUDY'"),
    ],
    "view": [
        ("Birds", "Missing option '--out'"),
        ("Birds --out ''", "--out is empty"),
        ("'' --out v.html", "is empty"),
        ("--out v.html", "Give a text, or a chat (--chat FILE.json), and only one of them."),
        ("Birds --chat chat.json --out v.html", "Give a text, or a chat (--chat FILE.json)"),
        ("Birds --out v.docx", "a view can be saved as .html, .svg, .png, .pdf"),
        ("Birds --out v --model none/model", "the ending ''"),  # before the model is looked for
        ("Birds --out notes.txt/v.html", "notes.txt"),
        ("Birds --out v.html --kind tail", "choose head, model, neuron"),
        ("Birds --out v.html --layer 99", "has no layer 99; it has layers 0 to 7."),
        ("Birds --out v.html --layer -1", "-1"),
        ("Birds --out v.html --heads 99", "99"),
        ("Birds --out v.html --heads abc", "Heads are 'abc'; write them like 0,3 or 0-3."),
        ("Birds --out v.html --heads 1-", "Heads are '1-'; write them like 0,3 or 0-3."),
        ("Birds --out v.svg --heads 0,1 --kind neuron", "takes one head, not 2"),
        ("Birds --out v.svg --hide last", "hide is 'last'; choose first, special."),
        ("Birds --out v.svg --hide first --kind neuron", "has no setting 'hide'"),
        ("Birds --out v.html --heads L99H2", "has no layer 99; it has layers 0 to 7."),
        ("Birds --out v.html --heads L5H2,L4H3", "not heads of one layer"),
        ("Birds --out v.html --heads L5H2 --layer 4", "names the layer; leave --layer out"),
        ("Birds --out v.html --theme blue", "'blue' is not one of 'auto', 'light', 'dark'"),
        ("Birds --out v.html --top-p 2 --generate 3", "give a share above 0 and up to 1"),
        ("Birds --out v.html --target They", "mini-gpt2 has no decoder"),
        ("Birds --out v.html --generate 3 --model mini-bert", "not a causal language model"),
        ("Birds --out v.svg --summary sum", "summary is 'sum'; choose each, mean, max."),
        ("Birds --out v.svg --layout text --kind model", "no setting 'layout'"),
        ("Birds --out v.html --generate -1", "Invalid value for '--gener"),
        ("Birds --out v.html --pair 'They fly.'", "mini-gpt2 takes no pairs of texts"),
        ("none.txt --out v.html", "There is no file none.txt"),
        ("latin.txt --out v.html", "latin.txt is not UTF-8; convert it"),
        ("two.txt --out v.svg", "has 2 texts, one on each line, and an .svg file is for a single"),
        ("two.txt --out v.html --pair 'They fly.'", "--pair is for a single one"),
        ("many.txt --out v.html", "has 1,000 texts, one on each line; a page holds up to 200"),
        ("--chat none.json --out v.html", "none.json cannot be read: No such file"),
        ("--chat latin.txt --out v.html", "latin.txt is not UTF-8"),
        ("--chat broken.jsonl --out v.html", "broken.jsonl is not JSON"),
        ("--chat message.json --out v.html", "message.json: A chat is a list of messages, not"),
        ("--chat number.json --out v.html", "number.json: Message 1 is 1, not a message"),
        ("--chat silent.json --out v.html", "has the content None"),
        ("--chat chat.json --out v.html", "mini-gpt2 has no chat template"),
    ],
}
MODEL = " --model mini-gpt2"  # of `view`, where no other is named


def command_lines() -> list[tuple[str, str]]:
    """Every mistake as it is typed."""
    lines = []
    for command, mistakes in MISTAKES.items():
        for rest, part in mistakes:
            needs_model = command == "view" and "--model" not in rest
            lines.append((f"{command} {rest}{MODEL if needs_model else ''}", part))
    return lines


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
        "two.txt": "Birds sing\nBirds fly\n",
        "many.txt": "Birds sing\n" * 1000,
        "message.json": '{"role": "user"}',
        "number.json": "[1]",
        "silent.json": '[{"role": "user"}]',
        "chat.json": '[{"role": "user", "content": "Hi"}]',
    }
    folder = tmp_path_factory.mktemp("desk")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    write_run(folder / "run", "vig2019", described=True)
    write_luger_run(folder / "luger")
    unfinished_run(folder / "half")
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


@pytest.mark.parametrize(("line", "part"), command_lines(), ids=lambda text: text)
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
