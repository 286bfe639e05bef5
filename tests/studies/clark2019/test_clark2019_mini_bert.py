"""The bundled BERT has heads for the previous and the next token, and the study names them."""

from typing import Any

import pytest

import headscope as hs
from headscope.head import name_in_paper
from headscope.results.claims import Replicates, judge
from headscope.results.ranks import top_heads
from headscope.studies.clark2019.claims import some_look_at_next, some_look_at_previous


def test_the_study_names_the_previous_and_next_token_heads_of_mini_bert() -> None:
    options: dict[str, Any] = {"gradients": False, "probes": False, "untrained": False}
    options |= {"sentences": 12, "max_tokens": 128}
    corpus = hs.demo_corpus().select(range(300))
    result = hs.study("clark2019", hs.load("mini-bert"), corpus, **options)
    for offset, label, claim in (
        (-1, "previous", some_look_at_previous),
        (1, "next", some_look_at_next),
    ):
        layer, head, share = top_heads(result["offset_share"].sel(offset=offset), 1)[0]
        assert share > 0.8, label
        assert result["behaviour"].sel(layer=layer, head=head).item() == f"{label} token"
        judged = judge(claim, Replicates(result))
        assert judged.holds == "yes"
        assert judged.value == pytest.approx(share, abs=0.01)
        assert f"{name_in_paper(layer, head)} {share:.2f}" in judged.measured
    layer, head, _ = top_heads(result["offset_share"].sel(offset=-1), 1)[0]
    assert float(result["previous_token_score"].sel(layer=layer, head=head)) > 0.5
