"""The bundled BERT has heads for the previous and the next token, and the study names them."""

import numpy as np
import pytest

import headscope as hs
from headscope.report.findings import judge
from headscope.report.heads import name_both
from headscope.studies.clark2019.findings import FINDINGS


def test_the_study_names_the_previous_and_next_token_heads_of_mini_bert() -> None:
    result = hs.study(
        "clark2019",
        hs.load("mini-bert"),
        hs.demo_corpus(),
        sentences=6,
        gradients=False,
        probes=False,
    )
    for offset, label, finding in ((-1, "previous", FINDINGS[0]), (1, "next", FINDINGS[1])):
        shares = result["offset_share"].sel(offset=offset)
        best = np.unravel_index(int(shares.argmax()), shares.shape)
        assert float(shares.max()) > 0.8, label
        assert result["behaviour"].values[best] == label
        measured = judge(finding, result)
        assert measured.verdict == "yes"
        assert (
            f"{name_both(int(best[0]), int(best[1]))} {float(shares.max()):.2f}" in measured.value
        )
    score = result["previous_token_score"]
    previous = result["offset_share"].sel(offset=-1)
    assert float(score.values[np.unravel_index(int(previous.argmax()), previous.shape)]) > 0.5
    assert result.attrs["sink_rate"] == pytest.approx(
        float((result["first_token_share"] > 0.3).mean())
    )
