"""Portraits as a stage of a study: the same whatever the batches and pieces, stored, and read."""

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine.setup import Setup
from headscope.errors import RunError
from headscope.portrait import sample
from headscope.portrait.stage import PortraitStage
from headscope.results.describe import LONGEST
from headscope.text.corpus import Corpus
from tests.references.portrait_sample import model
from tests.references.tiny_models import causal_model, treebank


@cache
def corpus() -> Corpus:
    """The first documents of the demo corpus."""
    return hs.demo_corpus().select(range(170))


@cache
def result() -> xr.Dataset:
    return hs.study("vig2019", model("mini-gpt2"), corpus(), untrained=False)


def tiny_study(**options: Any) -> xr.Dataset:
    """A network of 3 layers of 2 heads on 400 short sentences."""
    return hs.study("vig2019", causal_model(), treebank(400), untrained=False, **options)


def test_batches_and_pieces_of_another_size_give_the_same_portraits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, other = tiny_study(), tiny_study(batch_tokens=300)
    for name in ("description", "portrait_weight", "explained"):
        np.testing.assert_array_equal(other[name], result[name])
    monkeypatch.setattr(sample, "HEADS", 4)
    tiny = Setup(causal_model(), treebank(400), {}, {}, batch_tokens=1024)
    assert PortraitStage().pieces(tiny, xr.Dataset()) == [(0, 1), (2,)]
    in_pieces = tiny_study()
    assert (in_pieces["behaviour"] == result["behaviour"]).all()
    np.testing.assert_allclose(in_pieces["explained"], result["explained"], atol=2e-3)


def test_work_that_was_sent_elsewhere_does_the_same() -> None:
    tiny = Setup(causal_model(), treebank(400), {}, {}, batch_tokens=1024)
    work = PortraitStage().work(tiny, xr.Dataset(), 1, Path())
    sent = pickle.loads(pickle.dumps(work))
    assert sent((1,)) == work((1,))


def test_a_run_holds_what_portraits_say() -> None:
    found = result()
    assert found["explained"].dims == ("layer", "head")
    assert found["explained_by"].dims == ("layer", "head", "explained_with")
    assert found["explained_with"].values.tolist() == [
        "sink", "position", "marks", "repetition", "token", "word_class", "syntax",
    ]  # fmt: skip
    assert 0.6 < float(found["explained"].median()) < 0.95
    assert 0 < float(found["explained_se"].median()) < 0.1
    assert 0.3 < found.attrs["which_head_one"] <= found.attrs["which_head_all"] <= 1
    assert str(found["description"].values[4, 2])[:35] == "L4H2 looks at the previous token (9"
    sentences = found["description"].values.ravel().tolist()
    assert max(map(len, sentences)) <= LONGEST
    assert all(sentence.endswith(".") for sentence in sentences)


def test_portraits_are_left_out_as_asked() -> None:
    found = hs.study("vig2019", model("mini-gpt2"), corpus().select(range(40)), portrait=False)
    assert json.loads(found.attrs["left_out"])["explained"] == "left out as asked (portrait=False)"
    assert "description" not in found
    with pytest.raises(RunError, match=r"no portraits: left out as asked \(portrait=False\)\."):
        hs.portraits(found)


def test_a_corpus_of_few_documents_has_no_portraits() -> None:
    found = hs.study("vig2019", model("mini-gpt2"), corpus().select(range(40)))
    reason = json.loads(found.attrs["left_out"])["explained"]
    assert reason.startswith("the corpus has fewer than 8 documents")


def test_a_head_is_asked_for_by_its_name() -> None:
    portraits = hs.portraits(result())
    portrait = portraits["L4H2"]
    assert len(portraits) == 64 and list(portraits)[:2] == ["L0H0", "L0H1"]
    assert portrait.name == "previous token"
    assert portrait.sentence == str(result()["description"].values[4, 2])
    assert portrait.facts[0].key == "-1" and portrait.facts[0].words == "the previous token"
    assert portrait.explained == pytest.approx(sum(portrait.by.values()), abs=1e-5)
    assert next(iter(portrait.weights)) == "offset: -1"
    with pytest.raises(KeyError, match="no head L9H0"):
        portraits["L9H0"]


def test_a_prediction_is_a_row_for_every_query_and_near_what_the_head_does() -> None:
    text = "The old ship left the harbour at dawn."
    predicted = hs.portraits(result()).predict(text, model("mini-gpt2"))
    assert predicted.dims == ("layer", "head", "query", "key")
    np.testing.assert_allclose(predicted.sum("key").values[:, :, 1:], 1, atol=1e-5)
    assert predicted["token"].values.tolist()[:3] == ["The", " old", " ship"]
    weights = model("mini-gpt2").trace(text).weights
    for layer, head in ((4, 2), (4, 0), (2, 6)):
        given = weights[layer][head].numpy()[1:]
        error = np.abs(predicted.values[layer, head, 1:] - given).sum(1).mean() / 2
        even = np.tril(np.ones_like(weights[layer][head]))
        even = (even / even.sum(1, keepdims=True))[1:]
        assert error < 0.4 * np.abs(even - given).sum(1).mean() / 2


def test_a_text_shows_the_heads_that_do_there_what_they_are_called() -> None:
    text = "The old ship left the harbour at dawn, and the old ship came back at dusk."
    portraits = hs.portraits(result())
    shown = portraits.shown_by(text, model("mini-gpt2"))
    assert shown["L4H2"] > 0.9
    assert all(share >= 0.5 for share in shown.values())
    groups = {portraits[head].facts[0].group for head in shown}
    assert not groups & {"word class", "syntax"}
    assert not {"first token", "evenly", "unnamed"} & {portraits[head].name for head in shown}


def test_scores_on_other_text_are_near_those_of_the_run() -> None:
    other = hs.demo_corpus().select(range(600, 760))
    scores = hs.portraits(result()).score(model("mini-gpt2"), other)
    difference = abs(scores["explained"] - result()["explained"]).median()
    assert float(difference) < 0.05
    with pytest.raises(RunError, match="has other heads than this run"):
        hs.portraits(result().isel(layer=[0, 1])).score(model("mini-gpt2"), other)


def test_a_head_of_another_network_is_explained_by_the_portrait_of_its_partner() -> None:
    other, gpt2 = hs.demo_corpus().select(range(600, 660)), model("mini-gpt2")
    portraits = hs.portraits(result())
    own = portraits.score(gpt2, other)["explained"]
    swapped = portraits.score(gpt2, other, partners={"L4H2": "L4H2", "L4H0": "L4H2"})["explained"]
    assert float(swapped[4, 2]) == pytest.approx(float(own[4, 2]), abs=1e-5)
    assert float(swapped[4, 0]) < float(own[4, 0]) - 0.5
    assert int(swapped.notnull().sum()) == 2
    with pytest.raises(RunError, match="no head L9H0"):
        portraits.score(gpt2, other, partners={"L4H2": "L9H0"})
