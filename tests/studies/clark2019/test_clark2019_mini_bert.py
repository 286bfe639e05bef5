"""The bundled BERT has heads for the previous and the next token, and the study names them."""

from typing import Any

import pytest

import headscope as hs
from headscope.head import name_in_paper
from headscope.results.findings import judge, top_heads
from headscope.results.replicates import replicated
from headscope.studies.clark2019.surface.findings import FINDINGS


def test_the_study_names_the_previous_and_next_token_heads_of_mini_bert() -> None:
    options: dict[str, Any] = {"gradients": False, "probes": False}
    result = hs.study("clark2019", hs.load("mini-bert"), hs.demo_corpus(), sentences=6, **options)
    for offset, label, finding in ((-1, "previous", FINDINGS[0]), (1, "next", FINDINGS[1])):
        layer, head, share = top_heads(result["offset_share"].sel(offset=offset), 1)[0]
        assert share > 0.8, label
        assert result["behaviour"].sel(layer=layer, head=head).item() == label
        measured = judge(finding, replicated(result))
        assert measured.verdict == "yes"
        assert measured.value == pytest.approx(share, abs=0.01)
        assert f"{name_in_paper(layer, head)} {share:.2f}" in measured.words
    layer, head, _ = top_heads(result["offset_share"].sel(offset=-1), 1)[0]
    assert float(result["previous_token_score"].sel(layer=layer, head=head)) > 0.5
