"""The map of heads as it is sent: every head with its name, its share and its bars."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from headscope.results.dataset import load
from headscope.results.evidence import MATRIX, PROFILE


def test_the_map_has_what_the_run_holds_of_every_head(visitor: TestClient, folder: Path) -> None:
    data, sent = load(folder / "told"), visitor.get("/api/runs/told/map").json()
    assert [cell["name"] for cell in sent["cells"]] == [
        f"L{layer}H{head}" for layer in (0, 1) for head in range(4)
    ]
    for cell in sent["cells"]:
        of_head = data.sel(layer=cell["layer"], head=cell["head"])
        assert cell["sentence"] == str(of_head["description"].item())
        assert cell["role"] == str(of_head["behaviour"].item())
        np.testing.assert_allclose(cell["bars"], 1000 * of_head[PROFILE], atol=0.51)
        explained = float(of_head["explained"])
        assert cell["explained"] == (None if np.isnan(explained) else pytest.approx(explained))
    counts = {(role["role"], role["heads"]) for role in sent["roles"]}
    assert ("previous token", 2) in counts and sum(count for _, count in counts) == 8


def test_a_portrait_has_shares_of_all_and_of_what_null_tokens_leave(
    visitor: TestClient, folder: Path
) -> None:
    data = load(folder / "told").sel(layer=1, head=2)
    sent = visitor.get("/api/runs/told/portraits/L1H2").json()
    by = data["explained_by"].values
    assert [part["group"] for part in sent["parts"][:2]] == ["sink", "position"]
    np.testing.assert_allclose([part["share"] for part in sent["parts"]], by, rtol=1e-6)
    assert sent["parts"][0]["share_of_rest"] is None
    np.testing.assert_allclose([part["share_of_rest"] for part in sent["parts"][1:]], by[1:])
    assert sent["matrix"] == data[MATRIX].values.ravel().tolist()
    assert sent["surprises"][0]["expected"] == 0.02


def test_a_run_without_portraits_says_why(visitor: TestClient) -> None:
    answer = visitor.get("/api/runs/vig/map")
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("The run vig describes no head: ")
