"""Fingerprints of corpora do not move: an unfinished run resumes only on the corpus it began on."""

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headscope as hs

CONLLU = """\
# newdoc id = d
# newpar
# global.Entity = eid-etype-head-other
# sent_id = s1
# text = Du chat don't sit.
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tIN\t_\t3\tcase\t_\tEntity=(e1-a-1-
2\tle\tle\tDET\t_\tGender=Masc|Number=Sing\t3\tdet\t_\t_
3\tchat\tchat\tNOUN\t_\t_\t6\tnsubj\t_\tEntity=e1)
4-5\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
4\tdo\tdo\tAUX\t_\t_\t6\taux\t_\t_
5\tn't\tnot\tPART\t_\t_\t6\tadvmod\t_\t_
5.1\tx\t_\t_\t_\t_\t_\t_\t_\tEntity=(e2[1/2]-a-1-)
6\tsit\tsit\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No|Entity=(e2[2/2]-a-1-)
7\t.\t.\tPUNCT\t_\t_\t6\tpunct\t_\t_

# newpar
1\tNext\tnext\tADV\t_\t_\t_\t_\t_\tSpaceAfter=No
2\t!\t!\tPUNCT\t_\t_\t_\t_\t_\t_

# newdoc
# sent_id = s3
1\t雨\t_\tNOUN\t_\t_\t2\tnsubj\t_\tSpaceAfter=No
2\t停\t_\tVERB\t_\t_\t0\troot\t_\t_

"""
CONLL_2012 = """\
#begin document (a/b); part 001
a/b 0 0 The DT (S * - - - - * (1|(2
a/b 0 1 cat NN *) * - - - - * 1)
a/b 0 2 -LRB- -LRB- * * - - - - * 2)|(3)
a/b 0 3 /. * * * - - - - * -

a/b 0 0 Sat VBD * * - - - - * -
#end document
#begin document ()
x 0 0 Alone NN * * - - - - * (1)

#end document
"""
JSONL = """\
{"text": "A cat sat. It slept.", "document": "d", "paragraph": 1, "id": "s"}
{"words": ["A", "cat"], "upos": ["DET", null], "head": [1, -1], "deprel": ["det", "root"]}

{"words": ["It", "sat"], "text": " It  sat ", "mentions": [{"entity": "e", "spans": [[0, 1], [1, 2]]}]}
"""  # noqa: E501
TEXTS = ["It rained. Dr. Ito stayed in!\n  Then\x0bit stopped.  ", "下雨了。我们没走。", " ", "End"]
TEXT = "\ufeff" + "\n\n \n".join(TEXTS)
READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "conllu": ("a.conllu", {}),
    "conllu kept": ("a.conllu", {"fused": "keep"}),
    "conllu, one document": ("a.conllu.gz", {"documents": 1}),
    "conll": ("a.conll", {}),
    "jsonl": ("a.jsonl", {}),
    "jsonl running": ("text.jsonl", {"layout": "running"}),
    "jsonl documents": ("text.jsonl", {"layout": "documents"}),
    "txt": ("a.txt", {}),
    "txt running": ("a.txt", {"layout": "running"}),
    "txt paragraphs": ("a.txt.gz", {"layout": "paragraphs"}),
    "txt documents": ("a.txt", {"layout": "documents"}),
    "table": ("table.parquet", {"column": "body"}),
    "table sentences": ("table.parquet", {"column": "body", "layout": "sentences"}),
    "table paragraphs": ("table.arrow", {"column": "body", "layout": "paragraphs"}),
    "table documents": ("table.arrow", {"column": "body", "layout": "documents"}),
    "standard input": ("-", {}),
    "folder": ("folder", {}),
    "corpus": ("corpus.parquet", {}),
    "corpus, one document": ("corpus.parquet", {"documents": 1}),
    "demo": ("demo", {}),
}
FINGERPRINTS: dict[str, str] = {
    "conllu": "3c90245e5d8af343e6b9232ab77d3bb8",
    "conllu kept": "3e7dbb49a9e85543c507aa3a453a6114",
    "conllu, one document": "2c8d909f88fef0304a715959f57524e6",
    "conll": "3f6db61d98d8ba50d146098ee98f5b0d",
    "jsonl": "1038ca57f09357beeb38ab4208e81263",
    "jsonl running": "479c56d6e1e09168211677f53890fc65",
    "jsonl documents": "8aa4a000da42ceae6e49ddd7d46f0d35",
    "txt": "3720e2513d52ef21ab3faf543bf45b20",
    "txt running": "c03ea7328f582e06f788c379698530ca",
    "txt paragraphs": "e96e477145c1a8963003d72dec0149c5",
    "txt documents": "37c041dcb5b5b20eed5c1ec3a0ca5996",
    "table": "c43bc7f94d05580cae55982fd2a8e220",
    "table sentences": "0a7160c7448534e1876892c33e739300",
    "table paragraphs": "4fe4844762f7d611fca6cdb81f6bf5a6",
    "table documents": "e113000772bb2a798de401e46375240b",
    "standard input": "c03ea7328f582e06f788c379698530ca",
    "folder": "7578d197aec5357d5adfaec0c3cedb65",
    "corpus": "d6b32b6ae43f910da5c7e8a3469870a6",
    "corpus, one document": "8d9d9c6fbb26ea9abb5003df02ae6b47",
    "demo": "0fe6bacf6be7e97b0366d540cdeec1bb",
}
SAMPLE = "2724f0f2f5a2f63c0d24cd1231e4ad18"
SELECTION = "bc4ee8c7f41c71014b3c5e6b3e618211"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of every format; the cache lies in it."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    contents = {
        "a.conllu": CONLLU,
        "a.conll": CONLL_2012,
        "a.jsonl": JSONL,
        "text.jsonl": JSONL.splitlines()[0],
        "a.txt": TEXT,
        "folder/b.txt": "Second.\n",
        "folder/a.conllu": CONLLU,
        "folder/inner/c.jsonl": JSONL,
    }
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode())
    for name in ("a.conllu", "a.txt"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    table = pa.table({"body": [*TEXTS, None], "document": ["x", None, "z", "", "n"]})
    pq.write_table(table, tmp_path / "table.parquet")
    arrow = str(tmp_path / "table.arrow")
    with pa.OSFile(arrow, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    hs.Corpus.write(tmp_path / "corpus.parquet", list(hs.demo_corpus())[:40])
    wrapped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode())))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", wrapped)
    return tmp_path


@pytest.mark.parametrize("reader", READERS)
def test_every_way_of_reading_gives_the_sentences_it_always_gave(files: Path, reader: str) -> None:
    name, options = READERS[reader]
    path = name if name in ("-", "demo") else files / name
    corpus = hs.read_corpus(path, **options)
    assert corpus.fingerprint == FINGERPRINTS[reader]
    assert hs.Corpus.from_sentences(corpus).fingerprint == FINGERPRINTS[reader]


def test_views_of_a_corpus_have_the_fingerprints_they_always_had() -> None:
    demo = hs.demo_corpus()
    assert demo.sample(12, seed=3).fingerprint == SAMPLE
    assert demo.select([3, 1, 2]).fingerprint == SELECTION
