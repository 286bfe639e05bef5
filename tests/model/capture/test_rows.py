"""A layer that is shown some rows at a time is the layer that is shown as a whole."""

import pytest
import torch

from headscope.errors import CaptureError
from headscope.model.attention import LayerAttention
from tests.references.tiny_families import tiny


@pytest.mark.parametrize("block", [1, 4, 5, 100])
@pytest.mark.parametrize("name", ["Llama", "Gemma 2", "BERT"])
def test_blocks_of_rows_are_the_rows_of_the_layer(name: str, block: int) -> None:
    model = tiny(name)
    batch = model.batch([model.encode("Birds sing."), model.encode("To be")])
    layers: list[LayerAttention] = []
    parts: list[LayerAttention] = []
    logits = model.forward(batch, layers.append).logits
    in_blocks = model.forward(batch, parts.append, block=block).logits
    real = batch.mask[..., None]
    torch.testing.assert_close(in_blocks * real, logits * real, rtol=1e-4, atol=1e-4)
    for layer in layers:
        rows = [part for part in parts if part.layer == layer.layer]
        assert [part.start for part in rows] == [0, *(part.stop for part in rows[:-1])]
        assert [part.is_last for part in rows] == [part is rows[-1] for part in rows]
        assert max(part.weights.shape[2] for part in rows) <= block
        stitched = torch.cat([part.weights for part in rows], 2)
        torch.testing.assert_close(stitched, layer.weights, rtol=0, atol=1e-6)
        for part in (layer, rows[-1]):
            assert (part.key is not None) and part.stop == layer.weights.shape[2]
            torch.testing.assert_close(part.look(2, 5), layer.weights[:, :, 2:5])


def test_a_family_outside_the_interface_has_no_blocks_and_says_so() -> None:
    model = tiny("GPT-J")
    with pytest.raises(CaptureError, match="cannot be computed by rows: this family comp"):
        model.forward(model.batch([model.encode("Birds")]), lambda _: None, block=2)
