"""A network that attends evenly is said to attend to nothing in particular."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.model.model import Model
from headscope.results.head_map import map_heads
from tests.references.tiny_models import MODELS

REPEATED = {"repeated_sequences": 4, "period": 8}
OPTIONS = {
    "vig2019": {},
    "clark2019": {"max_tokens": 48, "probe_seeds": 1, "gradients": False, **REPEATED},
    "luger2026": {"context": 32, "needles": 2, "depths": [50], **REPEATED},
}
QUERY_AND_KEY = (".c_attn.", ".query.", ".key.")


@pytest.fixture(scope="module", params=MODELS)
def even_model(request: pytest.FixtureRequest) -> Model:
    """A network whose queries and keys are zero, so that all scores are equal."""
    model: Model = MODELS[request.param]()
    network = deepcopy(model.network)
    for name, values in network.named_parameters():
        if any(part in name for part in QUERY_AND_KEY):
            # GPT-2 keeps queries, keys and values in one matrix; values stay as they are.
            width = values.shape[-1] // 3 * 2 if "c_attn" in name else values.shape[-1]
            values.data[..., :width] = 0
    return Model(network, model.tokenizer, name=f"even-{model.name}")


@pytest.mark.parametrize("study", OPTIONS)
def test_no_head_of_it_exceeds_a_baseline_or_has_a_role(
    even_model: Model, study: str, tmp_path: Path
) -> None:
    options = {**OPTIONS[study], "untrained": False}
    result = hs.study(study, even_model, hs.demo_corpus().select(range(300)), tmp_path, **options)
    below = {
        name: int((result[name] < 0.05).sum()) for name in map(str, result) if name.endswith("_q")
    }
    assert not any(below.values()), below
    if (described := map_heads(result)) is not None:
        assert {cell.name for cell in described.cells} == {"evenly"}
    if study == "vig2019":
        arcs_are_expected(result)


def arcs_are_expected(result: xr.Dataset) -> None:
    """Its alignment differs from the one expected of its distances by less than its error."""
    difference = result["dependency_alignment"] - result["dependency_expected"]
    error = result["dependency_expected_se"]
    assert np.abs(difference / error).max() < 1.96
