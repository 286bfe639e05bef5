"""Studies of networks in bfloat16 give what they give in float32, within its rounding."""

from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs

# Options that keep the runs small; of each study some shares of heads, and how far they may differ.
OPTIONS: dict[str, dict[str, Any]] = {
    "vig2019": {},
    "luger2026": {"context": 48, "rest": True, "points": 20, "needles": 1, "depths": [50],
                  "repeated_sequences": 2, "period": 8},
    "clark2019": {"max_tokens": 64, "probes": False, "gradients": False, "repeated_sequences": 2,
                  "period": 8},
}  # fmt: skip
SHARES = {
    "vig2019": ("null_share", "dependency_alignment", "pos_to"),
    "luger2026": ("first_share", "previous_share", "induction_score"),
    "clark2019": ("offset_share", "special_share", "entropy"),
}


@cache
def result_of(study: str, model: str, dtype: str) -> xr.Dataset:
    corpus = hs.Corpus.from_sentences(islice(hs.demo_corpus(), 20))
    loaded = hs.load(model, device="cpu", dtype=dtype)
    return hs.study(study, loaded, corpus, untrained=False, **OPTIONS[study])


@pytest.mark.parametrize("model", ["mini-gpt2", "mini-bert"])
@pytest.mark.parametrize("study", OPTIONS)
def test_a_study_in_bfloat16_is_that_in_float32_within_rounding(study: str, model: str) -> None:
    wide, narrow = (result_of(study, model, dtype) for dtype in ("float32", "bfloat16"))
    assert set(wide.data_vars) == set(narrow.data_vars)
    assert wide.attrs["left_out"] == narrow.attrs["left_out"]
    for name in SHARES[study]:
        apart = np.abs(wide[name].values - narrow[name].values)
        assert np.nanmean(apart) < 0.002, name
        assert np.nanmax(apart) < 0.015, name
