"""The second part of clark2019 from corpus to report, on tiny models."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine.question import InputKind
from headscope.errors import CorpusError, RunError
from headscope.head import Head
from headscope.model.inputs.frame import find_frame
from headscope.reports.tables import show_table
from headscope.results.examples import Exemplar, exemplars_of
from headscope.results.run import read_run
from headscope.results.tables import tabulate
from headscope.studies.clark2019.probes.inputs import tree_inputs, window_inputs, window_reach
from headscope.studies.clark2019.probes.mentions import phrases
from headscope.studies.clark2019.probes.tables import (
    TABLES,
    table1_rows,
    table2_rows,
    table3_rows,
)
from headscope.studies.clark2019.probes.trained_probes import Learner
from headscope.studies.clark2019.probes.training import PROBES
from headscope.studies.clark2019.probes.trees import ALL
from headscope.studies.shared.words import WordTokens, encode_words
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt, join
from headscope.text.sentence import ROOT, Mention, Sentence
from tests.references.clark2019 import plain_map
from tests.references.tiny_models import MODELS, annotated, make_sentences
from tests.references.treebank import read_tokens
from tests.studies.clark2019.corpora import CHEAP, FAST, make_setup


def attention(kind: str, tokens: WordTokens) -> np.ndarray:
    """Word maps of every layer and head, made word by word."""
    model = MODELS[kind]()
    layers: list[np.ndarray] = []
    batch = model.batch([tokens.tokens])
    model.forward(batch, lambda seen: layers.append(seen.weights[0].numpy()))
    pieces, words = list(tokens.word_of_token), len(tokens.sentence.words)
    return np.stack([plain_map(layer, pieces, words, "mean") for layer in layers])


@pytest.mark.parametrize("kind", list(MODELS))
def test_relation_accuracy_of_a_run_equals_a_plain_reading(kind: str) -> None:
    sentences = make_sentences(30)
    result = hs.study(
        "clark2019", MODELS[kind](), Corpus.from_sentences(sentences), **FAST, probes=False
    )
    is_causal = MODELS[kind]().is_causal
    hits, scored = np.zeros(result["relation_accuracy"].shape[:2]), 0
    for tokens in encode_words(MODELS[kind](), sentences):
        assert isinstance(tokens, WordTokens)
        maps = attention(kind, tokens)
        for index, word in enumerate(tokens.sentence.words):
            if word.head is None or (is_causal and not 0 <= word.head < index):
                continue
            scored += 1
            row = maps[:, :, index].copy()
            row[..., index] = 0
            hits += row.argmax(-1) == word.head
    measured = result["relation_accuracy"].sel(direction="dependent_to_head", relation=ALL)
    # A near tie may fall the other way in another order of summation.
    np.testing.assert_allclose(measured, hits / scored, atol=1.01 / scored)
    words = sum(len(each.words) for each in sentences)
    assert result["relation_count"].sel(relation=ALL) == words
    coverage = result["relation_coverage"].sel(direction="dependent_to_head", relation=ALL)
    assert float(coverage) == pytest.approx(scored / words)


def test_coref_accuracy_of_a_run_equals_a_plain_reading() -> None:
    corpus = annotated(30)
    model = MODELS["bidirectional"]()
    result = hs.study("clark2019", model, corpus, **FAST, probes=False, window=40)
    setup = make_setup(corpus, "bidirectional", window=40)
    hits, scored = np.zeros(result["coref_accuracy"].shape[:2]), 0
    for example in window_inputs(setup, Excerpt(list(corpus)), 0).examples:
        assert example.sentence is not None
        (tokens,) = encode_words(model, [example.sentence])
        assert isinstance(tokens, WordTokens)
        maps, found = attention("bidirectional", tokens), phrases(example.sentence)
        for place, phrase in enumerate(found):
            targets = {p.head for p in found[:place] if p.entity == phrase.entity}
            if targets:
                scored += 1
                row = maps[:, :, phrase.head].copy()
                row[..., phrase.head] = 0
                hits += np.isin(row.argmax(-1), list(targets))
    assert scored > 0
    measured = result["coref_accuracy"].sel(candidates="words", mention="all")
    np.testing.assert_allclose(measured, hits / scored, atol=1.01 / scored)
    assert int(result["coref_count"].sel(mention="all")) == scored


def test_windows_are_whole_sentences_of_one_document_and_the_same_for_any_shard() -> None:
    corpus = annotated(60)
    setup = make_setup(corpus, "bidirectional", window=40)
    kind = InputKind(window_inputs, (), reach=window_reach)
    whole = window_inputs(setup, Excerpt(list(corpus)), 0).examples
    pieces = [
        example
        for shard in corpus.shards(7)
        for example in kind.read(setup, shard, corpus.read(shard)).examples
    ]
    assert [each.number for each in pieces] == [each.number for each in whole]
    assert [each.sentence for each in pieces] == [each.sentence for each in whole]
    for example in whole:
        assert example.sentence is not None
        assert len(example.tokens) <= 40
        roots = sum(word.head == ROOT for word in example.sentence.words)
        first = example.number
        assert example.sentence == join(list(corpus)[first : first + roots])
    assert [each.group for each in pieces] == [each.group for each in whole]
    assert len({each.group for each in whole}) > 1


def test_windows_are_made_of_the_sentences_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, other = annotated(20), annotated(40)
    given = Excerpt(list(other)[20:40])
    setup = make_setup(corpus, "bidirectional", window=40)
    monkeypatch.setattr(Corpus, "read", lambda *_: pytest.fail("the corpus was read again"))
    made = window_inputs(setup, given, 20).examples
    assert made
    for each in made:
        assert each.sentence is not None
        assert each.sentence.text.startswith(given[each.number - 20].text)


def test_the_paper_cuts_documents_off_after_the_first_window() -> None:
    corpus = annotated(60)
    setup = make_setup(corpus, "bidirectional", window=40, windows="first")
    numbers = [each.number for each in window_inputs(setup, Excerpt(list(corpus)), 0).examples]
    assert set(numbers) <= {start * 10 for start in range(6)}


@pytest.mark.parametrize("kind", list(MODELS))
def test_documents_can_be_cut_after_so_many_tokens_as_in_the_paper(kind: str) -> None:
    corpus = annotated(60)
    setup = make_setup(corpus, kind, window=32, windows="cut")
    made = window_inputs(setup, Excerpt(list(corpus)), 0).examples
    documents = [list(run) for run in corpus.documents()]
    scored = {each.number: each for each in made}
    assert len(scored) > 2
    for number, example in scored.items():
        assert example.sentence is not None
        text = join(documents[number // 10])
        kept = len(example.sentence.words)
        room = 32 - len(find_frame(setup.model.tokenizer))
        spans = read_tokens(setup.model, text, apart=False, framed=False).spans
        fitting = [word for word in text.words if word.end <= spans[:room][-1][1]]
        assert kept == len(fitting) < len(text.words)
        assert len(example.tokens) <= 32 < len(spans)
        for word, old in zip(example.sentence.words, text.words[:kept], strict=True):
            assert word.text == old.text
            assert word.head == (ROOT if old.head is not None and old.head >= kept else old.head)
        inside = [m for m in text.mentions if all(stop <= kept for _, stop in m.spans)]
        assert list(example.sentence.mentions) == inside


def test_sentences_that_are_no_trees_are_counted_and_skipped() -> None:
    good, cyclic, double = make_sentences(3, seed=4)
    words = tuple(
        replace(word, head=(i + 1) % len(cyclic.words)) for i, word in enumerate(cyclic.words)
    )
    roots = tuple(replace(word, head=ROOT) for word in double.words)
    corpus = Corpus.from_sentences(
        [good, replace(cyclic, words=words), replace(double, words=roots)]
    )
    made = tree_inputs(make_setup(corpus, "causal"), list(corpus), 0)
    assert [each.number for each in made.examples] == [0]
    assert made.skipped == {"trees: cycle": 1, "trees: several roots": 1}


def test_what_a_corpus_lacks_is_left_out_with_the_reason() -> None:
    plain = Corpus.from_sentences(
        Sentence(each.text, document=each.document) for each in make_sentences(20)
    )
    result = hs.study("clark2019", MODELS["causal"](), plain, **FAST)
    missing = json.loads(result.attrs["left_out"])
    assert "no dependency relations" in missing["relation_accuracy"]
    assert "no dependency relations" in missing["parsing_uas"]
    assert "no mentions" in missing["coref_accuracy"]
    assert "relation_accuracy" not in result and "parsing_uas" not in result


def test_a_corpus_without_a_scored_mention_says_so() -> None:
    alone = [
        replace(each, mentions=(Mention(f"e{n}", ((0, 1),)),))
        for n, each in enumerate(make_sentences(20))
    ]
    result = hs.study(
        "clark2019", MODELS["causal"](), Corpus.from_sentences(alone), **FAST, probes=False
    )
    assert "no window" in json.loads(result.attrs["left_out"])["coref_accuracy"]
    assert "coref_accuracy" not in result


def test_files_that_are_missing_are_named_before_the_work_begins(tmp_path: Path) -> None:
    for option in ("train", "vectors"):
        given: dict[str, Any] = {**FAST, option: str(tmp_path / "none")}
        with pytest.raises(CorpusError, match=f"check the option {option}"):
            hs.study("clark2019", MODELS["causal"](), annotated(10), tmp_path / option, **given)
    with pytest.raises(RunError, match="no option"):
        hs.study("vig2019", MODELS["causal"](), annotated(10), train="x")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """A run with everything."""
    folder = tmp_path_factory.mktemp("run") / "run"
    return folder, hs.study("clark2019", MODELS["bidirectional"](), annotated(), folder, **CHEAP)


def test_the_result_has_the_names_and_labels_of_the_design(whole: tuple[Path, xr.Dataset]) -> None:
    result = whole[1]
    dims = {
        "relation_accuracy": ("layer", "head", "direction", "relation"),
        "offset_accuracy": ("offset", "relation"),
        "relation_count": ("relation",),
        "coref_accuracy": ("layer", "head", "candidates", "mention"),
        "coref_baseline": ("system", "mention"),
        "parsing_uas": ("probe",),
    }
    assert {name: result[name].dims for name in dims} == dims
    assert result["direction"].values.tolist() == ["dependent_to_head", "head_to_dependent"]
    assert result["candidates"].values.tolist() == ["words", "mentions"]
    assert result["mention"].values.tolist() == ["all", "pronoun", "proper", "nominal"]
    assert result["system"].values.tolist() == ["nearest", "head_match", "rules"]
    assert result["probe"].values.tolist() == list(PROBES)
    assert np.isfinite(result["parsing_uas"]).all()
    assert result.attrs["parsing_vectors"] == "input embeddings of tiny-bidirectional (12-d)"


def test_a_finished_training_is_not_repeated(
    whole: tuple[Path, xr.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, result = whole
    (folder / "result.nc").unlink()

    def fail(*_: object) -> None:
        raise AssertionError("a probe was trained again")

    monkeypatch.setattr(Learner, "learn", fail)
    again = hs.study("clark2019", MODELS["bidirectional"](), annotated(), folder, **CHEAP)
    xr.testing.assert_identical(again, result)


def test_the_report_has_the_three_tables_and_figure_5(whole: tuple[Path, xr.Dataset]) -> None:
    folder = whole[0]
    page = hs.report(folder, formats=["svg"]).read_text(encoding="utf-8")
    for name in ("table1", "table2", "table3", "trees"):
        assert (folder / "tables" / f"{name}.csv").is_file()
    assert (folder / "figures" / "figure05.svg").is_file()
    assert (folder / "figures" / "probe_weights.svg").is_file()
    assert (folder / "figures" / "learning.svg").is_file()
    assert all(table.title in page for table in TABLES)
    assert "(paper 1-" in page or "(paper 2-" in page


def test_tables_2_and_3_end_with_what_the_paper_reports_of_others(
    whole: tuple[Path, xr.Dataset],
) -> None:
    neural = table2_rows(whole[1])[-2]
    assert (neural["system"].partition(",")[0], neural["published"]) == ("neural system", 0.83)
    structural = table3_rows(whole[1])[-1]
    assert structural["probe"] == "structural probe, undirected (as remembered)"
    assert np.isnan(structural["UAS"]) and structural["published"] == 0.8


def test_root_and_punctuation_are_rows_of_table_1_only_if_asked_for(
    whole: tuple[Path, xr.Dataset],
) -> None:
    result = whole[1]
    options = {**json.loads(result.attrs["options"]), "every_relation": True}
    every = table1_rows(result.assign_attrs(options=json.dumps(options)))
    hidden = [row for row in every if row["relation"] in ("root", "punct")]
    assert len(hidden) == 2
    assert table1_rows(result) == [row for row in every if row not in hidden]


def test_relations_with_few_words_are_shown_in_grey(whole: tuple[Path, xr.Dataset]) -> None:
    rows = table1_rows(whole[1])
    few = [row for row in rows if row["words"] < 20]
    assert all(row["note"] == "few words" for row in few)
    assert sum(row.is_faint for row in show_table(*tabulate(rows), "Table 1").rows) == len(few)


@pytest.mark.parametrize("trees", [True, False], ids=["trees", "plain text"])
@pytest.mark.parametrize("kind", list(MODELS))
def test_every_head_keeps_the_sentences_in_which_it_is_surest(
    kind: str, trees: bool, tmp_path: Path
) -> None:
    sentences = make_sentences(12)
    if not trees:
        sentences = [replace(sentence, words=()) for sentence in sentences]
    model, corpus = MODELS[kind](), Corpus.from_sentences(sentences)
    hs.study("clark2019", model, corpus, tmp_path / "run", **FAST, probes=False, exemplars=2)
    records = read_run(tmp_path / "run").records
    exemplars: list[tuple[Head, Exemplar]] = []
    for layer, head in np.ndindex(model.layers, model.heads):
        exemplars += [(Head(layer, head), one) for one in exemplars_of(records, Head(layer, head))]
    assert len(exemplars) == 2 * model.layers * model.heads
    for head, one in exemplars[::3]:
        trace = model.trace(one.text)
        weights = trace.weights[head.layer][head.head].clone()
        assert weights[one.query, one.key] == pytest.approx(one.weight, abs=1e-6)
        null = [0, len(trace.tokens) - 1] if kind == "bidirectional" else [0]
        weights[:, null] = 0
        weights[null] = 0
        weights.fill_diagonal_(0)  # a token's attention to itself is no exemplar
        assert weights.max() == pytest.approx(one.weight, abs=1e-6)
