"""The whole study: on tiny networks, and on mini-gpt2, whose heads are known."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.engine import observe
from headscope.errors import RunError
from headscope.metrics import Grid
from headscope.metrics.successor import ITEM, Series, Successor
from headscope.model.inputs.encode import encode_all
from headscope.model.inputs.tokens import Tokens
from headscope.observe import NO_LABEL, Columns, Example
from headscope.results.claims import Verdict
from headscope.results.statements import read_statements
from headscope.studies.luger2026.kinds import KINDS, behaviour
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, causal_model, make_sentences

OPTIONS = {"context": 24, "records": False}
NAMES = ("self_share", "previous_share", "first_share", "delimiter_share", "entropy", "distance",
         "distance_spread", "induction", "duplicate")  # fmt: skip


def tiny_corpus() -> Corpus:
    return Corpus.from_sentences(make_sentences(120))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, xr.Dataset]]:
    found = {}
    for kind, make in MODELS.items():
        path = tmp_path_factory.mktemp(kind)
        found[kind] = path, hs.study("luger2026", make(), tiny_corpus(), path, **OPTIONS)
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_every_name_of_the_contract_is_there_or_its_absence_is_explained(
    kind: str, runs: dict[str, tuple[Path, xr.Dataset]]
) -> None:
    _, result = runs[kind]
    missing = json.loads(result.attrs["left_out"])
    for name in (*NAMES, "next_share", "retrieval", "successor"):
        assert (name in result) != (name in missing), name
        if name in result:
            assert result[name].dims == result[f"{name}_se"].dims == ("layer", "head")
    assert result["distance_histogram"].dims == ("layer", "head", "separation")
    assert result["separation"].values.tolist() == [0, 1, 2, 4, 8, 16]
    np.testing.assert_allclose(result["distance_histogram"].sum("separation"), 1, rtol=1e-5)
    assert result.sizes["peak"] == 50
    np.testing.assert_allclose(result["peak_histogram"].sum("peak"), 1)
    assert ("next_share" in missing) == (kind == "causal")
    assert ("retrieval" in missing) == (kind == "bidirectional")


@pytest.mark.parametrize("kind", MODELS)
def test_kinds_and_claims_are_said(kind: str, runs: dict[str, tuple[Path, xr.Dataset]]) -> None:
    said = read_statements(runs[kind][1])
    assert {table.name for table in said.tables} >= {"kinds", "heads", "layers"}
    verdicts = {finding.holds for finding in said.findings}
    assert verdicts <= set(get_args(Verdict))


def test_the_report_shows_what_was_left_out(runs: dict[str, tuple[Path, xr.Dataset]]) -> None:
    path, result = runs["bidirectional"]
    page = hs.report(path, formats=["png"]).read_text(encoding="utf-8")
    assert "luger2026" in page and "shorter than an input" in page
    assert json.loads(result.attrs["left_out"])["retrieval"] in page
    for figure in ("map", "shares", "reaches", "detectors"):
        assert (path / "figures" / f"{figure}.svg").stat().st_size > 1000


def test_what_is_left_out_is_counted_and_a_corpus_of_short_texts_refused(
    runs: dict[str, tuple[Path, xr.Dataset]],
) -> None:
    skipped = json.loads(runs["causal"][1].attrs["skipped"])
    texts = [" ".join(each.text for each in one) for one in tiny_corpus().documents()]
    lengths = [len(each) for each in encode_all(causal_model().tokenizer, texts, special=False)]
    rests = sum(length % OPTIONS["context"] > 0 for length in lengths)
    assert skipped == {"end of a document, shorter than an input": rests}
    assert runs["causal"][1].attrs["sentences"] == sum(n // OPTIONS["context"] for n in lengths)
    few = Corpus.from_sentences(make_sentences(3))
    said = r"1 × document shorter than 48 tokens\); give a smaller --context, or --rest"
    with pytest.raises(RunError, match=said):
        hs.study("luger2026", causal_model(), few, context=48, records=False)


@pytest.fixture(scope="module")
def mini() -> xr.Dataset:
    corpus = hs.demo_corpus()
    few = corpus.select(range(160))
    options: dict[str, Any] = {"context": 96, "records": False, "needles": 8}
    options |= {"depths": [20, 50, 80], "portrait": False}
    return hs.study("luger2026", hs.load("mini-gpt2"), few, **options)


def test_detectors_find_the_induction_and_the_previous_token_head_of_mini_gpt2(
    mini: xr.Dataset,
) -> None:
    named = mini["behaviour"]
    assert named.sel(layer=5, head=5).item() == "induction"
    assert named.sel(layer=4, head=2).item() == "previous token"
    best = mini["retrieval"].argmax(...)
    assert (int(best["layer"]), int(best["head"])) == (5, 5)
    claims = {finding.claim: finding.holds for finding in read_statements(mini).findings}
    assert claims["Some heads look mostly at the previous token."] == "yes"
    assert claims["Some heads continue what was said before: induction."] == "yes"
    assert claims["Some heads copy from far: retrieval."] == "yes"
    assert claims["Some heads look mostly at the next token."] == "not measured"


def test_a_head_is_of_a_kind_only_if_its_whole_interval_says_so(mini: xr.Dataset) -> None:
    kind = next(each for each in KINDS if each.variable == "first_share")
    judged = kind.judge(mini)
    value, error = mini["first_share"].values, mini["first_share_se"].values
    sure = np.abs(value - kind.threshold) > 4 * error + 0.01
    assert (judged.yes == (value > kind.threshold))[sure].all()
    assert not (judged.yes & judged.unclear).any()
    wide = mini.assign(first_share_se=mini["first_share_se"] * 0 + 0.2)
    doubtful = kind.judge(wide)
    near = np.abs(value - kind.threshold) < 0.1
    assert near.any() and doubtful.unclear[near].all()
    assert set(np.unique(behaviour(mini))) <= {"other", *(each.name for each in KINDS)}


def test_successors_are_those_of_a_plain_reading_of_gpt2() -> None:
    model = causal_model()
    series = (Series((5, 9, 12, 30), False), Series((40, 41, 44), True))
    items = [token for each in series for token, _ in each.successors]
    examples = [
        Example(place, bare(0, token), (False, False), {ITEM: (NO_LABEL, place)})
        for place, token in enumerate(items)
    ]
    grid = Grid(model.stacks[0].attending, model.heads)
    metric = Successor(grid, series)
    sums = observe(model, Columns.of(examples), [metric], 8)["successor"]
    found = metric.compute(sums)["successor"].values
    expected = np.zeros((3, 2))
    place = 0
    for each in series:
        for token, successor in each.successors:
            for layer in range(3):
                for head in range(2):
                    logits = plain_logits(model, token, layer, head)[list(each.tokens)]
                    expected[layer, head] += int(logits.argmax()) == successor
            place += 1
    np.testing.assert_allclose(found, expected / place)
    assert 0 < expected.sum() < expected.size * place


def bare(*ids: int) -> Tokens:
    count = len(ids)
    return Tokens(ids, ("",) * count, (None,) * count, (False,) * count, (0,) * count)


def plain_logits(model: hs.Model, token: int, layer: int, head: int) -> torch.Tensor:
    """What a look at the token would add to the logits, from GPT-2's own modules."""
    whole: Any = model.network
    network, usual = whole.transformer, whole.training
    model.network.eval()
    with torch.no_grad():
        states = model.network(torch.tensor([[0, token]]), output_hidden_states=True)
        block = network.h[layer]
        made = block.attn.c_attn(block.ln_1(states.hidden_states[layer]))[0, 1]
        value = made.split(16)[2].split(8)[head]
        written = value @ block.attn.c_proj.weight.split(8)[head]
        centred = written - written.mean()
        model.network.train(usual)
        return model.network.lm_head.weight @ (centred * network.ln_f.weight)
