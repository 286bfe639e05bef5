"""Networks of random weights are measured beside every claim, as if each were studied alone."""

from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from headscope.model.untrained import untrained
from headscope.results.claims import JudgedClaim
from headscope.results.statements import read_statements
from headscope.studies import untrained as module
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, make_sentences

pytestmark = pytest.mark.usefixtures("untrained_network")
SENTENCES = 40
OPTIONS: dict[str, dict[str, Any]] = {
    "vig2019": {},
    "clark2019": {"max_tokens": 32, "probe_seeds": 1, "gradients": False},
    "luger2026": {"context": 16, "rest": True, "depths": [50], "period": 4},
}


def studied(study: str, model: hs.Model, *, beside: bool) -> xr.Dataset:
    corpus = Corpus.from_sentences(make_sentences(SENTENCES))
    brief = {name: value for name, value in module.BRIEF.items() if name in BRIEF[study]}
    options: dict[str, Any] = {"portrait": False, "untrained": beside, **brief, **OPTIONS[study]}
    return hs.study(study, model, corpus, **options)


def judged(result: xr.Dataset) -> dict[str, JudgedClaim]:
    return {claim.claim: claim for claim in read_statements(result).findings}


BRIEF = {
    "vig2019": (),
    "clark2019": ("repeated_sequences",),
    "luger2026": ("needles", "repeated_sequences"),
}


@pytest.mark.parametrize("study", OPTIONS)
def test_a_claim_has_the_value_that_a_study_of_the_untrained_network_gives(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SENTENCES", SENTENCES)
    model = untrained(MODELS["bidirectional" if study == "clark2019" else "causal"](), 9)
    result, twin = (
        studied(study, model, beside=True),
        studied(study, untrained(model, 0), beside=False),
    )
    for name in ("entropy", "distance", "offset_share", "first_share"):
        if f"{name}_untrained" in result:
            xr.testing.assert_allclose(
                result[f"{name}_untrained"], twin[name].reset_coords(drop=True)
            )
    assert "entropy_untrained" in result or "first_share_untrained" in result
    beside, alone = judged(result), judged(twin)
    without = judged(studied(study, model, beside=False))
    compared = 0
    for sentence, claim in beside.items():
        assert without[sentence].untrained is None
        assert (claim.value, claim.low) == (without[sentence].value, without[sentence].low)
        if claim.untrained is not None and "probe" not in claim.rule:
            assert claim.untrained == pytest.approx(alone[sentence].value, abs=1e-6), sentence
            assert claim.measured.startswith(without[sentence].measured)
            compared += 1
    assert compared >= 5


def test_the_networks_are_a_stage_that_is_resumed_and_can_be_left_out(tmp_path: Path) -> None:
    corpus = Corpus.from_sentences(make_sentences(SENTENCES))
    options: dict[str, Any] = {"portrait": False}
    hs.study("vig2019", MODELS["causal"](), corpus, tmp_path / "with", **options)
    (piece,) = (tmp_path / "with/stages/untrained").iterdir()
    content, time = piece.read_bytes(), piece.stat().st_mtime_ns
    (tmp_path / "with/result.nc").unlink()
    hs.study("vig2019", MODELS["causal"](), corpus, tmp_path / "with", **options)
    assert (piece.read_bytes(), piece.stat().st_mtime_ns) == (content, time)
    hs.study("vig2019", MODELS["causal"](), corpus, tmp_path / "off", untrained=False, **options)
    assert not (tmp_path / "off/stages/untrained").exists()


def test_another_network_of_the_same_shape_has_the_same_networks_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SUMS", {})
    tiny = MODELS["causal"]()
    first = studied("vig2019", tiny, beside=True)
    monkeypatch.setattr(module, "Measuring", None)  # nothing is measured once more
    second = studied("vig2019", untrained(tiny, 5), beside=True)
    xr.testing.assert_equal(first["entropy_untrained"], second["entropy_untrained"])
    assert not first["entropy"].equals(second["entropy"])
