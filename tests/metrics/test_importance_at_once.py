"""Several heads are taken away in one pass over copies of a batch."""

import pytest
import torch

from headscope.metrics import Grid, importance
from headscope.metrics.importance import loss_changes
from tests.references.tiny_models import MODELS

TEXTS = ("the old cat sees a dog .", "a quiet gardener .")


@pytest.mark.parametrize("room", [40, 4096])
def test_losses_are_the_same_however_many_heads_at_once(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    model = MODELS["causal"]()
    batch = model.batch([model.encode(text) for text in TEXTS])
    grid = Grid(model.stacks[0].attending, model.heads)
    means = {layer: torch.randn(grid.heads, 8) for layer in grid.layers}
    with torch.no_grad():
        monkeypatch.setattr(importance, "ROOM", (1, 1))
        one_by_one = loss_changes(model, batch, batch.mask, grid, means)
        monkeypatch.setattr(importance, "ROOM", (room, room))
        some = loss_changes(model, batch, batch.mask, grid, means)
    for name, values in one_by_one.items():
        assert values.abs().min() > 1e-4
        torch.testing.assert_close(some[name], values, rtol=1e-4, atol=1e-4)
