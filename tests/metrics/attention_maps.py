"""Random attention over padded batches, for comparing metrics with plain loops."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Maps:
    """Weights whose padded rows and columns hold garbage, as a model may leave it there."""

    weights: Tensor  # batch head query key
    mask: Tensor  # batch token
    is_causal: bool

    def inputs(self) -> list[list[list[list[float]]]]:
        """Per input, per head, the real rows and columns as lists."""
        return [
            [head[real][:, real].tolist() for head in maps]
            for maps, real in zip(self.weights.double(), self.mask, strict=True)
        ]


def random_maps(lengths: list[int], heads: int, causal: bool, left: bool, seed: int) -> Maps:
    generator = torch.Generator().manual_seed(seed)
    size = max(lengths)
    places = torch.arange(size)
    ends = torch.tensor(lengths)[:, None]
    mask = places >= size - ends if left else places < ends
    scores = (
        torch.randn(len(lengths), heads, size, size, generator=generator, dtype=torch.float64) * 3
    )
    visible = mask[:, None, None, :].expand(-1, -1, size, -1)
    if causal:
        visible = visible & torch.ones(size, size).tril().bool()
    weights = scores.masked_fill(~visible, -1e9).softmax(-1)
    # Under left padding a model leaves uniform rows where nothing is visible.
    return Maps(weights, mask, causal)


@st.composite
def maps(draw: st.DrawFn, longest: int = 9) -> Maps:
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=4))
    return random_maps(
        lengths,
        heads=draw(st.integers(1, 3)),
        causal=draw(st.booleans()),
        left=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31)),
    )
