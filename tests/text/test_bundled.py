import shutil
from importlib.resources import files
from inspect import unwrap
from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import CorpusError
from headscope.text import read
from tests.tools.check_treebank import check_file


def test_the_bundled_corpus_has_all_annotations_and_equals_a_plain_parse_of_it() -> None:
    corpus = hs.demo_corpus()
    for field in ("upos", "xpos", "feats", "head", "deprel", "mentions", "paragraphs"):
        assert corpus.has(field)
    path = Path(str(files("headscope.text") / "bundled" / "demo.conllu"))
    assert check_file(path, corpus)["sentences"] == len(corpus)
    assert hs.read_corpus("demo").fingerprint == corpus.fingerprint


@pytest.mark.parametrize("content", [None, "1\tbroken\n", ""])
def test_a_broken_installation_says_how_to_repair_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    (tmp_path / "bundled").mkdir()
    if content is not None:
        (tmp_path / "bundled" / "demo.conllu").write_text(content)
    monkeypatch.setattr(read, "files", lambda package: tmp_path)
    monkeypatch.setattr(read, "demo_corpus", unwrap(read.demo_corpus))  # as in a new process
    with pytest.raises(CorpusError, match="pip install --force-reinstall headscope"):
        hs.demo_corpus()
    shutil.rmtree(tmp_path / "bundled")
