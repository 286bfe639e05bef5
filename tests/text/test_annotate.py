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
from headscope.text.annotate import Batch, _in_order, find_inputs
from headscope.text.sentence import ROOT, Sentence
from headscope.text.sources import Document, read_documents


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
    with pytest.raises(CorpusError, match="Text '2' of document '1' has 1,000,001 characters"):
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
    assert list(read_documents([tmp_path / "a.txt", tmp_path / "b.jsonl"])) == [
        Document("P one.\nP two.", "1"),
        Document("Second.", "2"),
        Document("Third.", "wiki/3"),
        Document("Fourth.", "4"),
    ]


def test_what_cannot_be_annotated_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no file or directory .*none\.txt"):
        find_inputs([tmp_path / "none.txt"])
    (tmp_path / "a.docx").write_text("x")
    with pytest.raises(CorpusError, match=r"a\.docx has the ending '\.docx'"):
        find_inputs([tmp_path / "a.docx"])
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n[1]\n')
    with pytest.raises(CorpusError, match=r"a\.jsonl:2: not a JSON object"):
        list(read_documents(tmp_path / "a.jsonl"))
    (tmp_path / "b.jsonl").write_text('{"words": ["a"]}\n')
    with pytest.raises(CorpusError, match=r"a\.jsonl is raw text and .*b\.jsonl a corpus"):
        find_inputs([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])


CONLL_2012 = (
    "#begin document (news); part 000\n"
    "d 0 0 The DT * - - - - * (1\n"
    "d 0 1 cat NN * - - - - * 1)\n"
    "d 0 2 do VBP * - - - - * -\n"
    "d 0 3 n't RB * - - - - * -\n"
    "d 0 4 purr. VB * - - - - * -\n\n"
    "d 0 0 It PRP * - - - - * (1)\n"
    "d 0 1 sat. VB * - - - - * -\n\n"
    "#end document\n"
)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_corpus_without_trees_gets_them_and_keeps_the_rest(
    pipeline: str, tmp_path: Path, processes: int
) -> None:
    (tmp_path / "a.conll").write_text(CONLL_2012)
    before = hs.read_corpus(tmp_path / "a.conll")
    after = hs.annotate(before, spacy=pipeline, processes=processes)
    assert not before.has("head") and after.has("head") and after.has("upos")
    for old, new in zip(before, after, strict=True):
        assert (new.text, new.mentions, new.document, new.id) == (
            old.text, old.mentions, old.document, old.id,
        )  # fmt: skip
        assert [(w.text, w.start, w.end, w.xpos) for w in new.words] == [
            (w.text, w.start, w.end, w.xpos) for w in old.words
        ]
    assert [(w.head, w.deprel) for w in after[0].words] == [
        (1, "nsubj"), (2, "nsubj"), (3, "nsubj"), (4, "nsubj"), (ROOT, "root"),
    ]  # fmt: skip
    cat = after[0].words[1]
    assert (cat.upos, cat.xpos, cat.feats) == ("NOUN", "NN", "Gender=Fem|Number=Sing")


def test_gold_tags_and_trees_stay_what_they_are(pipeline: str, tmp_path: Path) -> None:
    tree = '"head": [-1, 0], "deprel": ["root", "dep"]'
    (tmp_path / "a.jsonl").write_text(
        f'{{"words": ["cat", "naps"], "xpos": ["GOLD", null], {tree}}}\n'
        '{"words": ["cat", "naps"], "head": [1, -1]}\n'
    )
    corpus = hs.annotate(hs.read_corpus(tmp_path / "a.jsonl"), spacy=pipeline, processes=1)
    first, second = ([(w.upos, w.xpos, w.head, w.deprel) for w in s.words] for s in corpus)
    assert first == [("NOUN", "GOLD", ROOT, "root"), (None, None, 0, "dep")]
    assert second == [("NOUN", "NN", 1, None), (None, None, ROOT, None)]


def test_a_sentence_without_words_gets_them_and_stays_one(pipeline: str, tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    hs.Corpus.write(path, [hs.Sentence(" One. Two.", document="d", id="7")])
    corpus = find_inputs([path])
    (sentence,) = hs.annotate(corpus, spacy=pipeline, processes=1)
    assert (sentence.text, sentence.document, sentence.id) == (" One. Two.", "d", "7")
    assert [(w.text, w.start, w.head) for w in sentence.words] == [
        ("One", 1, 1), (".", 4, 2), ("Two", 6, 3), (".", 9, ROOT),
    ]  # fmt: skip


def test_words_that_share_their_characters_are_annotated_one_by_one(
    pipeline: str, tmp_path: Path
) -> None:
    (tmp_path / "a.conllu").write_text(
        "# text = Prix du cat\n1\tPrix\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "2-3\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n2\tde\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "3\tle\t_\t_\t_\t_\t_\t_\t_\t_\n4\tcat\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    )
    kept = hs.read_corpus(tmp_path / "a.conllu", fused="keep")
    (sentence,) = hs.annotate(kept, spacy=pipeline, processes=1)
    assert [(w.text, w.start, w.head) for w in sentence.words] == [
        ("Prix", 0, 1), ("de", 5, 2), ("le", 5, 3), ("cat", 8, ROOT),
    ]  # fmt: skip


def test_a_pipeline_that_adds_nothing_is_refused_and_nothing_is_written(
    pipeline: str, tmp_path: Path
) -> None:
    corpus = hs.annotate(["The cat sat."], spacy=pipeline, processes=1)
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "c.parquet"
    with pytest.raises(CorpusError, match="adds nothing to memory; use the corpus as it is"):
        hs.annotate(corpus, spacy=pipeline, out=out, processes=1)
    bare = hs.Corpus.from_sentences([hs.Sentence("Hm", (hs.Word("Hm", 0, 2),))])
    with pytest.raises(CorpusError, match="use a pipeline that gives upos, xpos, feats, head, dep"):
        hs.annotate(bare, spacy=str(tmp_path / "blank"), out=out, processes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["blank"]


def test_batches_that_come_early_wait_for_their_turn() -> None:
    batches = [Batch(number, (Sentence(f"{number}"),)) for number in range(5)]
    done = [(batches[n], [[Sentence(f"{n}")]]) for n in (1, 3, 0, 2, 4)]
    found = [sentence.text for parsed in _in_order(done) for each in parsed for sentence in each]
    assert found == ["0", "1", "2", "3", "4"]


def test_processes_and_workers_exclude_each_other() -> None:
    with pytest.raises(CorpusError, match="ask Ray for workers"):
        hs.annotate(["One."], processes=2, engine="ray")
