"""Initial weights of probes that are trained side by side, one set for every seed."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class Seeds:
    """So many independent draws; seed number n draws the same whatever the others do."""

    count: int
    first: int = 0
    device: torch.device | str = "cpu"

    def uniform(self, shape: tuple[int, ...], inputs: int) -> nn.Parameter:
        """Even between ±1/√inputs."""
        drawn = [self._draw(shape, seed) for seed in range(self.first, self.first + self.count)]
        return self._parameter((torch.stack(drawn) * 2 - 1) * inputs**-0.5)

    def constant(self, shape: tuple[int, ...], value: float) -> nn.Parameter:
        """The same number everywhere."""
        return self._parameter(torch.full((self.count, *shape), value))

    def _draw(self, shape: tuple[int, ...], seed: int) -> Tensor:
        return torch.rand(shape, generator=torch.Generator().manual_seed(seed))

    def _parameter(self, values: Float[Tensor, "seed *shape"]) -> nn.Parameter:
        return nn.Parameter(values.to(self.device))
