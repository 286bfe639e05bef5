import json
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import headscope as hs
from headscope.errors import CorpusError
from headscope.text.documents import DocumentFiles, Paragraph, RawDocument
from headscope.text.pipeline import Paragraphs, _in_order
from headscope.text.sentence import ROOT, Sentence


@Language.component("headscope_test_chain")
def chain(doc: Doc) -> Doc:
    """Every token hangs on the next of its sentence, the last is the root."""
    last = [sentence.end - 1 for sentence in doc.sents for _ in sentence]
    return Doc(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=[bool(token.whitespace_) for token in doc],
        pos=[token.pos_ for token in doc],
        tags=[token.tag_ for token in doc],
        morphs=[str(token.morph) for token in doc],
        heads=[min(token.i + 1, last[token.i]) for token in doc],
        deps=["ROOT" if token.i == last[token.i] else "NSUBJ" for token in doc],
    )


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> str:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler: Any = nlp.add_pipe("attribute_ruler")
    tags = {"POS": "NOUN", "TAG": "NN", "MORPH": "Number=Sing|Gender=Fem"}
    ruler.add([[{"LOWER": "cat"}]], tags)
    nlp.add_pipe("headscope_test_chain")
    path = tmp_path_factory.mktemp("pipeline")
    nlp.to_disk(path)
    return str(path)


def test_documents_become_sentences_with_tags_and_trees(pipeline: str) -> None:
    corpus = hs.annotate(["The cat sat. It purred.\nAgain!", "Other."], spacy=pipeline, processes=1)
    found = [(s.text, s.document, s.paragraph, s.id) for s in corpus]
    assert found == [
        ("The cat sat.", "1", 0, "1-1-1"),
        ("It purred.", "1", 0, "1-1-2"),
        ("Again!", "1", 1, "1-2-1"),
        ("Other.", "2", 0, "2-1-1"),
    ]
    assert [(w.text, w.head, w.deprel) for w in corpus[0].words] == [
        ("The", 1, "nsubj"),
        ("cat", 2, "nsubj"),
        ("sat", 3, "nsubj"),
        (".", ROOT, "root"),
    ]
    cat = corpus[0].words[1]
    assert (cat.upos, cat.xpos, cat.feats) == ("NOUN", "NN", "Gender=Fem|Number=Sing")
    assert corpus[0].words[0].upos is None
    assert all(s.text[w.start : w.end] == w.text for s in corpus for w in s.words)


def test_space_is_no_word_and_heads_pass_through_it(pipeline: str) -> None:
    (sentence,) = hs.annotate("The   cat \t sat", spacy=pipeline, processes=1)
    assert sentence.text == "The   cat \t sat"
    assert [(w.text, w.start, w.head, w.deprel) for w in sentence.words] == [
        ("The", 0, 1, "nsubj"),
        ("cat", 6, 2, "nsubj"),
        ("sat", 12, ROOT, "root"),
    ]


def test_several_processes_give_what_one_gives(pipeline: str, tmp_path: Path) -> None:
    texts = [f"Sentence {n} here. And more of it.\nA paragraph." for n in range(150)]
    one = hs.annotate(texts, spacy=pipeline, processes=1)
    several = hs.annotate(texts, spacy=pipeline, processes=2, out=tmp_path / "c.parquet")
    assert len(one) == 450
    assert several.fingerprint == one.fingerprint
    assert hs.read_corpus(tmp_path / "c.parquet").fingerprint == one.fingerprint


def test_a_pipeline_without_a_tree_leaves_heads_out(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "plain")
    corpus = hs.annotate(["One two."], spacy=str(tmp_path / "plain"), processes=1)
    assert not corpus.has("head") and not corpus.has("upos") and corpus.has("words")


def test_a_pipeline_that_does_not_split_sentences_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(CorpusError, match="does not split sentences"):
        hs.annotate(["One two."], spacy=str(tmp_path / "blank"), processes=1)


def test_a_package_that_can_be_imported_is_a_pipeline(
    pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"import spacy\n\ndef load():\n    return spacy.load({pipeline!r})\n"
    (tmp_path / "xx_test_pipeline.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(hs.annotate("One.", spacy="xx_test_pipeline", processes=1)) == 1


def test_a_pipeline_that_is_not_installed_names_the_command() -> None:
    with pytest.raises(CorpusError, match="`python -m spacy download xx_none_sm`"):
        hs.annotate(["One."], spacy="xx_none_sm")


def test_spacy_that_is_not_installed_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(CorpusError, match=r"`pip install 'headscope\[parse\]'`"):
        hs.annotate(["One."])


def test_a_paragraph_too_long_for_spacy_is_named(pipeline: str) -> None:
    with pytest.raises(CorpusError, match="Paragraph 2 of document 1 has 1,000,001 characters"):
        hs.annotate(["One.\n" + "x" * 1_000_001], spacy=pipeline, processes=1)


@pytest.mark.parametrize(
    ("options", "part"),
    [({"out": "corpus.csv"}, "give a name in .parquet"), ({"processes": 0}, "at least one")],
)
def test_options_are_checked_before_the_work(options: dict, part: str) -> None:
    with pytest.raises(CorpusError, match=part):
        hs.annotate(["One."], **options)


def test_files_hold_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("P one.\nP two.\n\n \nSecond.\n")
    records = [{"text": "Third.", "document": "wiki/3"}, {"text": "Fourth."}]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert list(DocumentFiles([tmp_path / "a.txt", tmp_path / "b.jsonl"])) == [
        RawDocument("P one.\nP two."),
        RawDocument("Second."),
        RawDocument("Third.", "wiki/3"),
        RawDocument("Fourth."),
    ]


def test_files_that_are_not_raw_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a\.conllu is not raw text"):
        DocumentFiles([tmp_path / "a.conllu"])
    with pytest.raises(CorpusError, match=r"no file .*none\.txt"):
        DocumentFiles([tmp_path / "none.txt"])
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n[1]\n')
    with pytest.raises(CorpusError, match=r"a\.jsonl:2: not a JSON object"):
        list(DocumentFiles([tmp_path / "a.jsonl"]))


def test_batches_that_come_early_wait_for_their_turn() -> None:
    batches = [Paragraphs(number, (Paragraph(f"{number}", "d", number),)) for number in range(5)]
    done = [(batches[n], [[Sentence(f"{n}")]]) for n in (1, 3, 0, 2, 4)]
    found = [sentence.text for parsed in _in_order(done) for each in parsed for sentence in each]
    assert found == ["0", "1", "2", "3", "4"]


def test_processes_and_workers_exclude_each_other() -> None:
    with pytest.raises(CorpusError, match="ask Ray for workers"):
        hs.annotate(["One."], processes=2, engine="ray")
