"""The clark2019 study as a run: resumed, batched, sampled, and honest about what it cannot do."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertModel

import headscope as hs
from headscope.engine import Setup, measure
from headscope.errors import RunError
from headscope.metrics.gradient import choose_masked, gradient_importance
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.studies import find_study
from headscope.studies.clark2019.inputs import segment_inputs
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt, Segments
from headscope.text.sentence import Sentence
from tests.references import clark2019 as plain
from tests.references.float64_models import tiny_bert, tiny_gpt2
from tests.references.numbers import same_numbers
from tests.references.segments import starting_in
from tests.studies.clark2019.corpora import paragraphs

QUICK: dict[str, Any] = {"repeated_sequences": 2, "period": 5, "max_tokens": 24}
LONGEST = 24


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 7)


@pytest.mark.parametrize("make", [tiny_bert, tiny_gpt2])
def test_the_batch_size_does_not_change_the_result(
    make: Callable[[], Model], tmp_path: Path
) -> None:
    model, corpus = make(), paragraphs()
    small = hs.study("clark2019", model, corpus, tmp_path / "a", batch_tokens=1, **QUICK)
    large = hs.study("clark2019", model, corpus, tmp_path / "b", batch_tokens=9999, **QUICK)
    for name, values in small.data_vars.items():
        if name == "head_position":  # a map may be turned
            continue
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, large[name], atol=1e-6, err_msg=str(name))
        else:
            assert (values == large[name]).all(), name


def test_shards_do_not_cut_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, corpus = tiny_bert(), paragraphs()
    many = hs.study("clark2019", model, corpus, tmp_path / "many", **QUICK)
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 1000)
    one = hs.study("clark2019", model, corpus, tmp_path / "one", **QUICK)
    assert many.attrs["sentences"] == one.attrs["sentences"] == len(Segments(corpus, LONGEST))
    np.testing.assert_allclose(many["entropy"], one["entropy"], atol=1e-12)
    np.testing.assert_allclose(many["head_divergence"], one["head_divergence"], rtol=1e-9)


def test_segments_are_made_of_the_sentences_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    model, corpus = tiny_bert(), paragraphs()
    study = find_study("clark2019")
    setup = Setup(model, corpus, study.with_options(QUICK), {}, 256)
    second = Segments(corpus, LONGEST).ranges[1]
    expected = starting_in(Segments(corpus, LONGEST), 0, second.middle)
    sentences = [replace(each, text=each.text.upper()) for each in corpus]
    given = Excerpt(sentences[: second.middle], after=sentences[second.middle : second.stop])
    monkeypatch.setattr(Corpus, "read", lambda *_: pytest.fail("the corpus was read again"))
    made = segment_inputs(setup, given, 0).examples
    assert [each.tokens.texts for each in made] == [
        (segment.first.upper(), segment.second.upper()) for segment in expected
    ]


def test_every_model_reads_the_same_texts_and_most_have_the_full_length() -> None:
    corpus, study = paragraphs(6), find_study("clark2019")
    read = []
    for model in (tiny_bert(), tiny_gpt2()):
        setup = Setup(model, corpus, study.with_options(QUICK), {}, 256)
        made = segment_inputs(setup, Excerpt([*corpus]), 0).examples
        read.append([(each.number, each.tokens.texts) for each in made])
        lengths = [len(each.tokens) for each in made]
        assert max(lengths) == LONGEST
        assert lengths.count(LONGEST) > len(lengths) / 2
    assert read[0] == read[1]


def test_gradients_are_means_over_segments_for_both_losses() -> None:
    model, corpus = tiny_bert(), paragraphs(2, 4)
    result = hs.study("clark2019", model, corpus, seed=3, **QUICK)
    for_sum, for_mean = [], []
    setup = Setup(model, corpus, find_study("clark2019").with_options(QUICK), {}, 256, seed=3)
    encoded = {
        each.number: each.tokens for each in segment_inputs(setup, Excerpt([*corpus]), 0).examples
    }
    for segment in starting_in(Segments(corpus, LONGEST), 0, len(corpus)):
        reading = plain.read(model, segment, LONGEST, seed=3)
        batch = model.batch([encoded[segment.number]])
        assert batch.ids[0].tolist() == plain.read_ids(model, segment, LONGEST, seed=3)[0]
        kinds = np.array(reading.kinds)
        ordinary = (kinds != plain.CLS) & (kinds != plain.SEP)
        masked = choose_masked(ordinary[None], [segment.number], seed=3)
        shown = ~masked[0]
        keys = (
            np.stack([kinds == plain.SEP, kinds == plain.PUNCT, kinds != ""], -1) & shown[:, None]
        )
        found = gradient_importance(model, batch, torch.tensor(masked), torch.tensor(keys)[None])
        for_sum.append(found[:, 0].numpy())
        for_mean.append(found[:, 0].numpy() / masked.sum())
    np.testing.assert_allclose(result["gradient"], np.nanmean(for_sum, 0), rtol=1e-6)
    np.testing.assert_allclose(result["gradient_mean_loss"], np.nanmean(for_mean, 0), rtol=1e-6)
    assert result["target"].values.tolist() == ["sep", "punct", "unmasked"]


def test_a_model_without_a_head_keeps_everything_but_gradients(tmp_path: Path) -> None:
    found = hs.study("clark2019", tiny_bert(BertModel), paragraphs(2), tmp_path, **QUICK)
    assert "gradient" not in found
    assert (
        "the model has no language-model head"
        in results.read_attribute(found, "left_out")["gradient"]
    )
    assert np.isfinite(found["entropy"]).all()


def test_what_a_tokenizer_does_not_have_is_nan_with_a_reason() -> None:
    model = tiny_gpt2()
    model.tokenizer.bos_token = None
    model.tokenizer.eos_token = None
    found = hs.study("clark2019", model, paragraphs(2), **QUICK)
    assert np.isnan(found["special_share"].sel(special=["cls", "sep"])).all()
    assert np.isfinite(found["special_share"].sel(special="punct")).all()
    for name in ("sep_to_sep", "other_to_sep", "entropy_from_cls"):
        assert np.isnan(found[name]).all()
        assert "tiny-gpt2" in results.read_attribute(found, "left_out")[name]
    assert np.isnan(found["gradient"].sel(target="sep")).all()
    assert np.isfinite(found["gradient"].sel(target="unmasked")).all()


def test_a_corpus_without_paragraphs_packs_sentences_and_says_so() -> None:
    corpus = Corpus.from_sentences(Sentence(f"Ann saw {i} dogs .", document="d") for i in range(9))
    found = hs.study("clark2019", tiny_bert(), corpus, **{**QUICK, "max_tokens": 10})
    assert found.attrs["sentences"] == 4
    assert (
        "made of consecutive sentences" in results.read_attribute(found, "left_out")["paragraphs"]
    )
    assert results.read_attribute(found, "skipped") == {"sentence without a second one to pair": 1}


def test_nothing_is_dropped_for_its_length(tmp_path: Path) -> None:
    texts = ["short one .", "long " * 60, "short two .", "  ", "long " * 60, "odd ."]
    corpus = Corpus.from_sentences(
        Sentence(text, document="d", paragraph=p) for p, text in enumerate(texts)
    )
    found = hs.study("clark2019", tiny_bert(), corpus, tmp_path, **QUICK)
    assert (found.attrs["sentences"], found.attrs["tokens"]) == (2, 2 * LONGEST)
    reasons = {"paragraph without a second one to pair": 1, "sentences: empty": 1}
    assert results.read_attribute(found, "skipped") == reasons
    assert json.loads((tmp_path / "run.json").read_text())["counts"]["skipped"] == reasons


def test_a_corpus_without_any_segment_is_refused() -> None:
    corpus = Corpus.from_sentences([Sentence("Alone .", document="d")])
    with pytest.raises(RunError, match="without a second one to pair"):
        hs.study("clark2019", tiny_bert(), corpus, **QUICK)


def test_mistaken_options_are_said_before_anything_runs() -> None:
    with pytest.raises(RunError, match="must be a dictionary from next, previous, broad"):
        hs.study("clark2019", tiny_bert(), paragraphs(2), thresholds={"prev": 0.4})
    with pytest.raises(RunError, match="offsets must be a list of whole numbers"):
        hs.study("clark2019", tiny_bert(), paragraphs(2), offsets=2)


def test_a_sample_draws_segments_with_the_seed() -> None:
    corpus = paragraphs(6)
    first = hs.study("clark2019", tiny_bert(), corpus, sentences=5, seed=1, **QUICK)
    again = hs.study("clark2019", tiny_bert(), corpus, sentences=5, seed=1, **QUICK)
    other = hs.study("clark2019", tiny_bert(), corpus, sentences=5, seed=2, **QUICK)
    assert first.attrs["sentences"] == 5
    same_numbers(first, again)
    assert not np.allclose(first["entropy"], other["entropy"], atol=1e-9)


def test_segment_ids_can_be_all_zero() -> None:
    model, corpus = tiny_bert(), paragraphs(2)
    pair = hs.study("clark2019", model, corpus, **QUICK)
    zero = hs.study("clark2019", model, corpus, segment_ids=False, **QUICK)
    with torch.no_grad():
        model.network.get_parameter("bert.embeddings.token_type_embeddings.weight")[1] = (
            model.network.get_parameter("bert.embeddings.token_type_embeddings.weight")[0]
        )
    same_types = hs.study("clark2019", model, corpus, **QUICK)
    assert not np.allclose(pair["entropy"], zero["entropy"], atol=1e-6)
    np.testing.assert_allclose(same_types["entropy"], zero["entropy"], atol=1e-9)


def test_scores_on_repeated_sequences_find_heads_by_what_they_do() -> None:
    """A head made to look at the previous token scores 1 there and nowhere else."""
    model = tiny_gpt2()
    _look_at_previous(model)
    found = hs.study("clark2019", model, paragraphs(2), repeated_sequences=3, period=6)
    scores = {
        name: float(found[f"{name}_score"].sel(layer=0, head=0))
        for name in ("previous_token", "duplicate_token", "induction")
    }
    assert scores["previous_token"] > 0.99
    assert max(scores["duplicate_token"], scores["induction"]) < 0.01
    assert found["behaviour"].sel(layer=0, head=0).item() == "previous"


def _look_at_previous(model: Model) -> None:
    """Positions alone decide in head 0: queries point at the key one step back on a circle."""
    network = model.network
    with torch.no_grad():
        network.get_parameter("transformer.wte.weight").mul_(0)
        places = network.get_parameter("transformer.wpe.weight")
        angle = torch.arange(len(places), dtype=torch.float64) * 0.09
        places.zero_()
        places[:, 0], places[:, 1] = angle.cos() * 9, angle.sin() * 9
        places[:, 2], places[:, 3] = -places[:, 0], -places[:, 1]  # mean zero: the norm keeps it
        for name in ("ln_1.weight", "ln_1.bias"):
            parameter = network.get_parameter(f"transformer.h.0.{name}")
            parameter.fill_(1.0 if name.endswith("weight") else 0.0)
        matrix = network.get_parameter("transformer.h.0.attn.c_attn.weight")
        network.get_parameter("transformer.h.0.attn.c_attn.bias").zero_()
        matrix[:, :4] = 0
        matrix[:, 8:12] = 0
        cos, sin = np.cos(0.09), np.sin(0.09)
        scale = 60.0
        matrix[0, 0], matrix[1, 0] = scale * cos, scale * sin  # the query turned one step back
        matrix[0, 1], matrix[1, 1] = -scale * sin, scale * cos
        matrix[0, 8], matrix[1, 9] = scale, scale
