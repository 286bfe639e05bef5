"""A study of a tiny model: equal to plain loops, however it is cut, interrupted or batched."""

import json
import logging
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine import measure
from headscope.errors import CorpusError, HeadscopeError, RunError
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.results.run import read_run, read_settings, write_settings
from headscope.studies.draw import count_copies
from headscope.studies.option import say_errors
from headscope.text.corpus import Corpus
from headscope.text.readers.raw import Document, cut_documents
from headscope.text.sentence import Sentence, Word
from tests.references.numbers import same_numbers, without_words
from tests.references.tiny_models import MODELS, causal_model, make_sentences, treebank

Finished = Callable[[int], tuple[Path, xr.Dataset]]


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 16)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Calm runs of the causal model over so many sentences, each made once."""

    @cache
    def run(count: int) -> tuple[Path, xr.Dataset]:
        out = tmp_path_factory.mktemp("calm") / "run"
        return out, hs.study("vig2019", causal_model(), treebank(count), out)

    return run


@pytest.fixture
def finished(kept: Finished, tmp_path: Path) -> Finished:
    """A copy of such a run in a folder of one's own, and its result."""

    def copy(count: int) -> tuple[Path, xr.Dataset]:
        calm, result = kept(count)
        return Path(shutil.copytree(calm, tmp_path / "run")), result

    return copy


@pytest.mark.parametrize("kind", MODELS)
def test_a_study_equals_plain_loops_over_traced_sentences(kind: str, tmp_path: Path) -> None:
    model, sentences = MODELS[kind](), make_sentences(24)
    found = hs.study("vig2019", model, Corpus.from_sentences(sentences), tmp_path / "run")
    distance, tags = plain_study(model, sentences)
    np.testing.assert_allclose(found["distance"], distance, atol=1e-6)
    for tag in ("DET", "NOUN"):
        np.testing.assert_allclose(found["pos_to"].sel(tag=tag), tags[tag], atol=1e-6)


def plain_study(model: Model, sentences: list[Sentence]) -> tuple[np.ndarray, dict]:
    """Mean distance and tag shares, one sentence and one pair at a time."""
    shape = (model.layers, model.heads)
    far, total = np.zeros(shape), np.zeros(shape)
    tags = {tag: np.zeros(shape) for tag in ("DET", "NOUN", "VERB", "ADJ", "PUNCT")}
    for sentence in sentences:
        encoded = model.encode(sentence.text, special=not model.is_causal)
        weights = observe_alone(model, encoded)
        null = [i == 0 if model.is_causal else s for i, s in enumerate(encoded.special)]
        for i in range(len(encoded)):
            for j in range(len(encoded)):
                if null[i] or null[j]:
                    continue
                total += weights[:, :, i, j]
                far += weights[:, :, i, j] * abs(i - j)
                start, end = encoded.offsets[j]
                owner = next(w for w in sentence.words if w.start < end and start < w.end)
                tags[owner.upos or ""] += weights[:, :, i, j]
    return far / total, {tag: share / total for tag, share in tags.items()}


def observe_alone(model: Model, encoded) -> np.ndarray:  # noqa: ANN001
    layers = []
    model.forward(model.batch([encoded]), lambda seen: layers.append(seen.weights[0].numpy()))
    return np.stack(layers).astype(float)


@pytest.mark.parametrize("kind", MODELS)
def test_the_batch_size_does_not_change_the_result(kind: str, tmp_path: Path) -> None:
    corpus = treebank(80)
    small = hs.study("vig2019", MODELS[kind](), corpus, tmp_path / "a", batch_tokens=1)
    large = hs.study("vig2019", MODELS[kind](), corpus, tmp_path / "b", batch_tokens=5000)
    texts = [name for name in small.data_vars if small[name].dtype.kind == "U"]
    assert texts == ["description", "behaviour", "portrait", "portrait_evidence"]
    xr.testing.assert_equal(small[texts], large[texts])
    for name in small.drop_vars(texts).data_vars:
        # Rounding grows with a sum that is not normalised, and with the slope of a q-value; a
        # single weight has no others to even it out.
        loose = ("_numerator", "_denominator", "_q", "example_peak")
        rtol = 1e-5 if str(name).endswith(loose) else 1e-7
        np.testing.assert_allclose(
            small[name], large[name], rtol=rtol, atol=1e-6, err_msg=str(name)
        )


def test_the_shard_size_does_not_change_the_result(
    kept: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, many = kept(60)
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 1000)
    one = hs.study("vig2019", causal_model(), treebank(60), tmp_path / "one")
    xr.testing.assert_allclose(without_words(many), without_words(one), atol=1e-6)


def test_a_second_call_loads_the_finished_result(finished: Finished) -> None:
    path, first = finished(40)
    written = (path / "shards" / "00000.npz").stat().st_mtime_ns
    again = hs.study("vig2019", causal_model(), treebank(40), path)
    same_numbers(first, again)
    same_numbers(first, results.load(path))
    assert (path / "shards" / "00000.npz").stat().st_mtime_ns == written


def test_a_damaged_shard_is_computed_again_and_said(
    finished: Finished, caplog: pytest.LogCaptureFixture
) -> None:
    path, first = finished(60)
    shard = path / "shards" / "00002.npz"
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    (path / "result.nc").unlink()
    with caplog.at_level(logging.WARNING, logger="headscope"):
        same_numbers(first, hs.study("vig2019", causal_model(), treebank(60), path))
    assert "Shard 2" in caplog.text
    assert "computed again" in caplog.text


def test_a_changed_option_is_refused_with_what_changed(tmp_path: Path) -> None:
    hs.study("vig2019", causal_model(), treebank(8), tmp_path, exemplars=2)
    with pytest.raises(RunError, match="options exemplars was 2, is now 3"):
        hs.study("vig2019", causal_model(), treebank(8), tmp_path, exemplars=3)
    with pytest.raises(RunError, match="options seed was 0, is now 1"):
        hs.study("vig2019", causal_model(), treebank(8), tmp_path, seed=1, exemplars=2)


def test_a_changed_corpus_or_model_is_refused(finished: Finished) -> None:
    path, _ = finished(40)
    with pytest.raises(RunError, match="corpus fingerprint was"):
        hs.study("vig2019", causal_model(), treebank(41), path)
    with pytest.raises(RunError, match="model fingerprint was"):
        hs.study("vig2019", MODELS["bidirectional"](), treebank(40), path)


@pytest.mark.parametrize("times", [1, 3])
def test_copied_sentences_are_counted_and_said_of_the_errors(
    times: int, caplog: pytest.LogCaptureFixture
) -> None:
    texts = list(treebank(8)) * times
    copies = (times - 1) * sum(len(sentence.text) >= 40 for sentence in treebank(8))
    corpus = hs.Corpus.from_sentences(texts)
    with caplog.at_level(logging.WARNING, logger="headscope"):
        result = hs.study("vig2019", causal_model(), corpus, portrait=False)
    assert results.read_attribute(result, "copies")["sentences"] == copies
    remark = f"{copies} sentences repeat an earlier one word for word"
    assert (remark in caplog.text) == (remark in say_errors(result)) == (times > 1)


def test_copied_documents_are_counted_apart_from_their_sentences() -> None:
    long = "A sentence that is long enough to be hardly ever written twice."
    texts = [f"{long} {number}." for number in range(3)]
    assert count_copies(documents_of(*texts)) == {"sentences": 0, "documents": 0}
    assert count_copies(documents_of(*texts, texts[1], "Short.", "Short.")) == {
        "sentences": 1,
        "documents": 2,
    }
    shared = [f"{long}\nIn one.", f"{long}\nIn another."]
    assert count_copies(documents_of(*shared)) == {"sentences": 1, "documents": 0}


def documents_of(*texts: str) -> hs.Corpus:
    documents = [Document(text, str(number)) for number, text in enumerate(texts)]
    return hs.Corpus.from_sentences(cut_documents(documents, "sentences"))


def test_models_and_corpora_may_be_names_and_texts(tmp_path: Path) -> None:
    texts = ["A cat sat on a mat. It slept.", "A dog ran after the cat."]
    (tmp_path / "texts.txt").write_text("\n\n".join(texts), encoding="utf-8")
    named = hs.study("vig2019", "mini-gpt2", str(tmp_path / "texts.txt"), portrait=False)
    given = hs.study("vig2019", "mini-gpt2", texts, portrait=False)
    assert (named.attrs["sentences"], given.attrs["sentences"]) == (2, 3)  # a line is a sentence
    assert given.attrs["model"] == "mini-gpt2"


@pytest.mark.parametrize(
    ("model", "corpus", "sentence"),
    [
        ("mini-gtp2", "demo", "did you mean"),
        ("mini-gpt2", "demos.conllu", "demos.conllu"),
        ("mini-gpt2", [], "or a list of texts"),
        ("mini-gpt2", [1], "or a list of texts"),
        ("mini-gpt2", 7, "or a list of texts"),
    ],
)
def test_a_wrong_model_or_corpus_is_a_sentence(model: Any, corpus: Any, sentence: str) -> None:
    with pytest.raises(HeadscopeError, match=sentence):
        hs.study("vig2019", model, corpus)


def test_weights_that_were_changed_in_place_are_another_model(tmp_path: Path) -> None:
    model = causal_model()
    hs.study("vig2019", model, treebank(8), tmp_path / "a", portrait=False)
    before = read_settings(tmp_path / "a")["model"]["fingerprint"]
    next(model.network.parameters()).data[3, 1] *= 1.5  # one number, by no optimizer
    with pytest.raises(RunError, match=f"model fingerprint was '{before}'"):
        hs.study("vig2019", model, treebank(8), tmp_path / "a", portrait=False)
    hs.study("vig2019", model, treebank(8), tmp_path / "b", portrait=False)
    assert read_settings(tmp_path / "b")["model"]["fingerprint"] == model.fingerprint != before


def test_a_run_of_another_version_is_refused_in_one_sentence(finished: Finished) -> None:
    path, _ = finished(40)
    settings = read_settings(path)
    write_settings(path, {name: fact for name, fact in settings.items() if name != "pieces"})
    with pytest.raises(RunError, match="another headscope, whose files this one does not continue"):
        hs.study("vig2019", causal_model(), treebank(40), path)
    assert read_run(path).state == "complete"  # it is still read


def test_an_unknown_option_or_study_is_refused_by_name() -> None:
    with pytest.raises(RunError, match="no option 'exemplar'; did you mean exemplars"):
        hs.study("vig2019", causal_model(), treebank(40), exemplar=1)
    with pytest.raises(RunError, match="did you mean vig2019"):
        hs.study("vig2018", causal_model(), treebank(40))


def test_a_sample_is_drawn_with_the_seed(tmp_path: Path) -> None:
    first = hs.study("vig2019", causal_model(), treebank(90), sentences=30, seed=1)
    again = hs.study("vig2019", causal_model(), treebank(90), sentences=30, seed=1)
    other = hs.study("vig2019", causal_model(), treebank(90), sentences=30, seed=2)
    assert first.attrs["sentences"] == 30
    same_numbers(first, again)
    assert not np.allclose(first["distance"], other["distance"], atol=1e-6)


def test_sentences_that_cannot_be_used_are_counted_by_reason(tmp_path: Path) -> None:
    usable = make_sentences(10)
    long = Sentence(" ".join(["gardener"] * 60), (Word("gardener", 0, 8, upos="NOUN"),))
    wrong = Sentence("the cat", (Word("dog", 4, 7, upos="NOUN", head=-1, deprel="root"),))
    blank = Sentence("  ")
    corpus = Corpus.from_sentences([*usable, long, wrong, blank])
    found = hs.study("vig2019", causal_model(), corpus, tmp_path)
    reasons = {"alignment: differs": 1, "empty": 1, "too long": 1}
    assert results.read_attribute(found, "skipped") == reasons
    assert json.loads((tmp_path / "run.json").read_text())["counts"]["skipped"] == reasons
    assert found.attrs["sentences"] == 10


def test_an_empty_corpus_and_one_without_usable_sentences_are_refused() -> None:
    with pytest.raises(CorpusError, match="no sentences"):
        hs.study("vig2019", causal_model(), Corpus.from_sentences([]))
    with pytest.raises(RunError, match=r"No sentence of the corpus could be used \(1 × empty\)"):
        hs.study("vig2019", causal_model(), Corpus.from_sentences([Sentence(" ")]))


@pytest.mark.parametrize("kind", MODELS)
def test_one_sentence_gives_values_without_errors(kind: str) -> None:
    corpus = Corpus.from_sentences(make_sentences(1, seed=3))
    found = hs.study("vig2019", MODELS[kind](), corpus)
    assert np.isfinite(found["distance"]).all()
    assert np.isnan(found["distance_se"]).all()
    assert (np.nan_to_num(found["variability"]) == 0).all()


def test_sentences_of_one_token_have_nothing_to_look_at() -> None:
    word = Word("a", 0, 1, upos="DET", head=-1, deprel="root")
    found = hs.study("vig2019", causal_model(), Corpus.from_sentences([Sentence("a", (word,))] * 3))
    assert np.isnan(found["distance"]).all()
    assert (found["null_share_all_queries"] == 1).all()
    assert (found["example_input"] == -1).all()


def test_a_corpus_without_annotation_leaves_out_what_needs_it() -> None:
    corpus = Corpus.from_sentences([Sentence(sentence.text) for sentence in make_sentences(12)])
    found = hs.study("vig2019", causal_model(), corpus)
    missing = results.read_attribute(found, "left_out")
    assert {"pos_to", "deprel_to", "dependency_alignment"} <= set(missing)
    assert "headscope annotate" in missing["pos_to"]
    assert "pos_to" not in found
    assert np.isfinite(found["entropy"]).all()


def test_an_unknown_tag_set_is_taken_as_it_is() -> None:
    words = (Word("the", 0, 3, xpos="ARTICLE"), Word("cat", 4, 7, xpos="BEAST"))
    found = hs.study("vig2019", causal_model(), Corpus.from_sentences([Sentence("the cat", words)]))
    assert found["tag"].values.tolist() == ["ARTICLE", "BEAST"]
    assert "dependency_alignment" in results.read_attribute(found, "left_out")


def test_more_tags_than_a_result_holds_are_refused_before_anything_is_computed() -> None:
    texts = [f"w{number}" for number in range(801)]
    many = [Sentence(t, (Word(t, 0, len(t), upos=t.upper()),), document="d") for t in texts]
    with pytest.raises(CorpusError, match="801 different values of tag, more than 800"):
        hs.study("vig2019", causal_model(), Corpus.from_sentences(many))


def test_a_full_disk_is_one_plain_sentence_and_keeps_finished_shards(
    kept: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, calm = kept(60)
    written = []
    real = Path.write_bytes

    def fill_up(path: Path, content: bytes) -> int:
        if ".npz" in path.name:
            written.append(path)
            if len(written) == 3:
                raise OSError(28, "No space left on device")
        return real(path, content)

    monkeypatch.setattr(Path, "write_bytes", fill_up)
    with pytest.raises(RunError, match="No space left on device"):
        hs.study("vig2019", causal_model(), treebank(60), tmp_path)
    names = sorted(path.name for path in (tmp_path / "shards").iterdir())
    assert names == ["00000.npz", "00001.npz"]
    monkeypatch.setattr(Path, "write_bytes", real)
    same_numbers(hs.study("vig2019", causal_model(), treebank(60), tmp_path), calm)


def test_the_names_in_the_result_are_those_of_the_contract() -> None:
    found = hs.study("vig2019", causal_model(), treebank(40))  # without a folder
    of_heads = ("null_share", "variability", "distance", "entropy")
    assert all(found[name].dims == ("layer", "head") for name in of_heads)
    assert found["pos_to"].dims == found["pos_from"].dims == ("layer", "head", "tag")
    assert found["deprel_to"].dims == ("layer", "head", "deprel")
    assert found["tag_frequency"].dims == ("tag",)
    assert found["dependency_alignment"].dims == ("layer", "head", "form")
    assert found["dependency_baseline"].dims == ("form",)
    assert found["dependency_probability"].dims == ("separation",)
    assert found["distance_by_layer"].dims == ("layer",)
    assert found["deprel_to_by_layer"].dims == ("layer", "deprel")
    assert found["pair"].values.tolist() == ["distance~entropy", "distance~alignment"]
    named = {"mean_dependency_span", "mean_tokens", "sentences", "tokens", "shared_tokens"}
    assert named <= set(found.attrs)
    assert found["form"].values.tolist() == ["attender_is_parent", "receiver_is_parent", "either"]
