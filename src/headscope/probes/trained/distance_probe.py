"""The baseline that knows words and distances but no attention (Clark et al. 2019, §5)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headscope.probes.trained.parsing import ParseBatch
from headscope.probes.trained.seeds import Seeds

HIDDEN = 256
FEATURES = 8
_OFFSETS = (0, -1, 1, -2, 2)


def distance_features(
    words: Bool[Tensor, "batch word"],
) -> Float[Tensor, "batch word candidate feature"]:
    """(j − i)/n ahead, (i − j)/n behind, indicators for j − i = 0, ±1, ±2, and for ROOT."""
    place = torch.arange(words.shape[1], device=words.device, dtype=torch.float32)
    offset = place[None, :] - place[:, None]
    length = words.sum(1).clamp(min=1)[:, None, None]
    ahead, behind = offset.clamp(min=0) / length, (-offset).clamp(min=0) / length
    near = [(offset == o).float().expand_as(ahead) for o in _OFFSETS]
    features = torch.stack([ahead, behind, *near, torch.zeros_like(ahead)], dim=-1)
    root = torch.zeros(*words.shape, 1, FEATURES, device=words.device)
    root[..., -1] = 1
    return torch.cat([root, features], dim=2)


class DistanceWordsProbe:
    """One hidden layer of tanh units over distance features and the vectors of both words.

    The output has no bias: it would add the same to every candidate.
    """

    def __init__(self, size: int, seeds: Seeds, hidden: int = HIDDEN) -> None:
        inputs = FEATURES + 2 * size
        self.hidden = seeds.uniform((inputs, hidden), inputs)
        self.bias = seeds.constant((hidden,), 0.0)
        self.out = seeds.uniform((hidden,), hidden)

    def __call__(self, batch: ParseBatch) -> Float[Tensor, "seed batch word candidate"]:
        """Scores of ROOT, whose vector is zero, and of every word."""
        assert batch.vectors is not None
        size = batch.vectors.shape[-1]
        distance, dependent, governor = self.hidden.split([FEATURES, size, size], dim=1)
        features = distance_features(batch.words)
        shape = features.shape[:3]
        candidates = nn.functional.pad(batch.vectors, (0, 0, 1, 0))
        # Plain products of contiguous blocks: tanh and its gradient are the cost of this probe.
        inside = (features.flatten(0, 2) @ distance).unflatten(1, shape)
        of_words = torch.einsum("bid,sdh->sbih", batch.vectors, dependent)
        inside = inside + (of_words + self.bias[:, None, None])[:, :, :, None]
        inside = inside + torch.einsum("bjd,sdh->sbjh", candidates, governor)[:, :, None]
        scores = inside.tanh().flatten(1, 3) @ self.out[..., None]
        return scores.squeeze(-1).unflatten(1, shape)

    def parameters(self) -> list[nn.Parameter]:
        """Everything that is learned."""
        return [self.hidden, self.bias, self.out]
