from pathlib import Path
from typing import Any

import pytest
import spacy
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    return str(tmp_path / "pipeline")


def test_raw_text_becomes_a_corpus_file(tmp_path: Path, pipeline: str) -> None:
    (tmp_path / "a.txt").write_text("One. Two.\n\nThree.\n")
    out = tmp_path / "corpus.parquet"
    options = ["--out", str(out), "--spacy", pipeline, "--processes", "1"]
    result = CliRunner().invoke(app, ["annotate", str(tmp_path / "a.txt"), *options])
    corpus = hs.read_corpus(out)
    assert result.exit_code == 0
    assert result.stdout == f"{out}: 3 sentences, fingerprint {corpus.fingerprint}\n"
    assert result.stderr.startswith("2 paragraphs, ")
    assert [sentence.text for sentence in corpus] == ["One.", "Two.", "Three."]


def test_one_sentence_is_singular(tmp_path: Path, pipeline: str) -> None:
    (tmp_path / "a.txt").write_text("One.\n")
    out = tmp_path / "corpus.parquet"
    options = ["--out", str(out), "--spacy", pipeline, "--processes", "1"]
    result = CliRunner().invoke(app, ["annotate", str(tmp_path / "a.txt"), *options])
    assert result.stdout.startswith(f"{out}: 1 sentence, fingerprint ")
    assert result.stderr.startswith("1 paragraph, ")


def test_a_corpus_of_any_format_can_be_completed(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    ruler: Any = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": "cats"}]], {"POS": "NOUN"})
    nlp.to_disk(tmp_path / "tagger")
    row = "1\tCats\t_\t_\tNNS\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllu").write_text(row)
    out = tmp_path / "corpus.parquet"
    options = ["--out", str(out), "--spacy", str(tmp_path / "tagger"), "--processes", "1"]
    result = CliRunner().invoke(app, ["annotate", str(tmp_path / "a.conllu"), *options])
    assert result.exit_code == 0, result.exception
    (word,) = hs.read_corpus(out)[0].words
    assert (word.upos, word.xpos, word.head, word.deprel) == ("NOUN", "NNS", -1, "root")
