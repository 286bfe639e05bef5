"""What is kept of a head is sent as the run has it, and thinned only for a site."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from starlette.testclient import TestClient

from headscope.explorer.answers.card import card, head_records, input_text, sparse_rows
from headscope.explorer.answers.runs import Library
from headscope.explorer.answers.thin import thinned
from headscope.explorer.wire import (
    Band,
    Example,
    HeadRecords,
    RefusedError,
    Samples,
    TokenRow,
    TopTokens,
)
from headscope.results.dataset import load, save
from headscope.results.records import CHECKSUMS, BandExample, Records
from headscope.results.run import read_run
from tests.references.exemplars import make_exemplar
from tests.references.runs import write_run


@pytest.fixture(scope="module")
def kept(folder: Path) -> Records:
    return read_run(folder / "luger").records


def test_tokens_and_writes_are_those_of_the_head_in_their_order(
    visitor: TestClient, kept: Records
) -> None:
    found = visitor.get("/api/runs/luger/records/L1H2").json()
    stored = kept.top_tokens(1, 2)
    for top in found["tops"]:
        own = [one for one in stored if (one.side, one.by) == (top["side"], top["by"])]
        assert [one["token"] for one in top["tokens"]] == [one.token for one in own]
        assert [one["lift"] for one in top["tokens"]] == [one.lift for one in own]
    assert len(found["tops"]) == 4
    written = kept.writes(1, 2)
    assert [one["logit"] for one in found["lowers"]] == [
        one.logit for one in written if one.direction == "lowers"
    ]
    assert found["no_writes"] is None


def test_examples_keep_their_bands_peaks_and_weights(visitor: TestClient, kept: Records) -> None:
    bands = visitor.get("/api/runs/luger/records/L0H1").json()["bands"]
    assert [band["name"] for band in bands] == ["1", "2", "3", "4", "5", "top"]
    stored = kept.examples(0, 1)
    sent = [one for band in bands for one in band["examples"]]
    assert [(one["input"], one["peak"]) for one in sent] == [(o.input, o.peak) for o in stored]
    for one, own in zip(sent, stored, strict=True):
        weights = {(q, k): w for q, k, w in zip(own.query, own.key, own.weight, strict=True)}
        found = {
            (query, row[i]): row[i + 1] / 1000
            for query, row in enumerate(one["rows"])
            for i in range(0, len(row), 2)
        }
        assert found.keys() == weights.keys()
        assert all(abs(found[place] - weights[place]) <= 0.0005 + 1e-9 for place in found)


def test_rows_begin_with_their_largest_weight() -> None:
    example = BandExample(0, 0, 0.5, 7, (2, 2, 2, 0), (0, 1, 2, 0), (0.1, 0.6, 0.3, 1.0))
    assert sparse_rows(example) == [[0, 1000], [], [1, 600, 2, 300, 0, 100]]


def test_points_keep_their_places_in_every_space(visitor: TestClient, kept: Records) -> None:
    found = visitor.get("/api/runs/luger/records/L1H0").json()
    samples, spaces = found["samples"], found["spaces"]
    assert [one["name"] for one in spaces] == ["query", "key", "value", "output"]
    for space in spaces:
        own = [one for one in kept.points(1, 0) if one.space == space["name"]]
        tokens = [(samples["input"][i], samples["position"][i]) for i in space["sample"]]
        assert tokens == [(one.input, one.position) for one in own]
        assert [samples["token"][i] for i in space["sample"]] == [one.token for one in own]
        assert space["component2"] == [one.component2 for one in own]
        assert space["x"] == [one.x for one in own if one.x is not None]
    assert [bool(one["x"]) for one in spaces] == [True, True, False, False]


def test_an_input_is_sent_with_its_tokens_and_place(visitor: TestClient, kept: Records) -> None:
    found = visitor.get("/api/runs/luger/inputs/3").json()
    own = kept.inputs([3])[3]
    assert found["tokens"] == list(own.tokens)
    assert (found["document"], found["start"], found["rtl"]) == (own.document, own.start, False)
    assert found["pieces"] is False


@pytest.mark.parametrize("asked", ["x", "-1", "1.5", "٣", "9" * 30, "1e3"])
def test_what_is_no_number_of_an_input_is_404(visitor: TestClient, asked: str) -> None:
    assert visitor.get(f"/api/runs/luger/inputs/{asked}").status_code == 404


def test_an_input_that_is_not_kept_is_said(visitor: TestClient) -> None:
    answer = visitor.get("/api/runs/luger/inputs/12345")
    assert (answer.status_code, "input 12345 is not there" in answer.text) == (409, True)


def test_a_run_without_records_says_why(tmp_path: Path) -> None:
    opened = Library([write_run(tmp_path / "vig", "vig2019")]).run("vig")
    save(without_records(opened.data), tmp_path / "vig" / "result.nc")
    opened = Library([tmp_path / "vig"]).run("vig")
    for ask in (head_records, input_text):
        with pytest.raises(RefusedError, match="its study makes none"):
            ask(opened, "L0H0" if ask is head_records else "0")
    assert card(opened, "L0H0").exemplars == []  # as of a run of an older version


def test_the_run_says_whether_tokens_are_word_pieces_not_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token of this input has "##", and yet its words need spaces between them."""
    path = write_run(tmp_path / "luger", "luger2026")
    opened = Library([path]).run("luger")
    assert not any(token.startswith("##") for token in opened.run.records.inputs([0])[0].tokens)
    exemplar = make_exemplar(["[CLS]", "hoped", "that"], 1, 2, text="")
    monkeypatch.setattr("headscope.explorer.answers.card.exemplars", lambda *_: [exemplar])
    for stored, shown in (("##", True), ("", False)):
        save(opened.data.assign_attrs(word_pieces=stored), path / "result.nc")
        changed = Library([path]).run("luger")
        assert input_text(changed, "0").pieces is shown
        assert card(changed, "L0H0").exemplars[0].spaces == [False, shown, shown]


def without_records(data: xr.Dataset) -> xr.Dataset:
    """The result of a run that keeps nothing of single inputs."""
    return data.assign_attrs({CHECKSUMS: "{}"})


def test_sentences_of_other_studies_have_their_weights_too(visitor: TestClient) -> None:
    (band,) = visitor.get("/api/runs/vig/records/L1H2").json()["bands"]
    assert (band["name"], len(band["examples"])) == ("top", 3)
    assert visitor.get("/api/runs/vig/inputs/0").json()["tokens"][1] == "old"


def test_only_runs_with_tokens_and_maps_have_records_to_show(visitor: TestClient) -> None:
    assert visitor.get("/api/runs/luger/records/L9H9").status_code == 404
    runs = {one["slug"]: one["records"] for one in visitor.get("/api/session").json()["runs"]}
    assert (runs["luger"], runs["vig"], runs["damaged"]) == (True, False, False)


def test_a_card_has_the_histograms_bin_by_bin(visitor: TestClient, folder: Path) -> None:
    data = load(folder / "luger")
    found = visitor.get("/api/runs/luger/heads/L1H1").json()
    distance, peak = found["histograms"]
    own = data["distance_histogram"].sel(layer=1, head=1).values
    np.testing.assert_array_equal([one["value"] for one in distance["bins"]], own)
    assert [one["low"] for one in distance["bins"]] == [2.0**i for i in range(10)]
    assert [one["high"] for one in distance["bins"]] == [2.0 ** (i + 1) for i in range(10)]
    assert peak["bins"][-1]["high"] == 1.0
    assert found["groups"] == []


def test_heads_are_searched_by_sentence_behaviour_and_telling_tokens(
    visitor: TestClient, kept: Records
) -> None:
    heads = visitor.get("/api/runs/luger/heads").json()["heads"]
    assert [one["name"] for one in heads] == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    telling = [one.token for one in kept.top_tokens(1, 1) if (one.side, one.by) == ("key", "lift")]
    assert heads[4]["tokens"] == telling[:10]
    clark = visitor.get("/api/runs/clark/heads").json()["heads"]
    assert {one["behaviour"] for one in clark} <= {"next", "previous", "broad", "sep", "other"}


def test_a_site_keeps_the_largest_weights_and_first_tokens() -> None:
    tokens = [TokenRow(str(i), 0.1, 1.0, 1) for i in range(50)]
    rows = [[0, 900, 1, 60, 2, 20, 3, 19, 4, 18], [], [5, 300, 4, 200, 3, 100, 2, 50, 1, 40]]
    bands = [Band(name, [Example(0.5, i, rows) for i in range(9)]) for name in ("1", "top")]
    tops, samples = [TopTokens("key", "mass", tokens)], Samples([], [], [])
    whole = HeadRecords("L0H0", tops, bands, samples, [], [], [], "none")
    small = thinned(whole)
    assert [len(band.examples) for band in small.bands] == [2, 5]
    assert small.bands[0].examples[0].rows == [
        [0, 900, 1, 60, 2, 20], [], [5, 300, 4, 200, 3, 100],
    ]  # fmt: skip
    assert [one.token for one in small.tops[0].tokens] == [str(i) for i in range(20)]


def test_a_card_names_the_earlier_heads_that_feed_it(visitor: TestClient, folder: Path) -> None:
    data = load(folder / "luger")["composition"].sel(layer=1, head=2)
    feeds = visitor.get("/api/runs/luger/heads/L1H2").json()["feeds"]
    for side in ("key", "query"):
        own = [feed for feed in feeds if feed["side"] == side]
        shares = {
            f"L0H{head}": float(data.sel(side=side, source=f"L0H{head}")) for head in range(3)
        }
        assert [feed["name"] for feed in own] == sorted(shares, key=lambda name: -shares[name])
        assert [feed["share"] for feed in own] == pytest.approx(sorted(shares.values())[::-1])
    assert visitor.get("/api/runs/luger/heads/L0H1").json()["feeds"] == []
