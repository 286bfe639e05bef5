"""Training a probe on sentences as they come: one Adam step for every few sentences."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.probes.trained.parsing import (
    ParseBatch,
    Probe,
    count_attached,
    loss,
    parse,
    take_sentences,
)

LEARNING_RATE = 0.002  # Clark et al. 2019
COUNTED_TOGETHER = 4  # sentences: scores of hidden units take words² × 256 numbers each


@dataclass(frozen=True)
class Learner:
    """A probe and the state of its optimiser."""

    probe: Probe
    optimiser: torch.optim.Optimizer

    @classmethod
    def of(cls, probe: Probe, rate: float = LEARNING_RATE) -> "Learner":
        """A probe that has learned nothing yet."""
        return cls(probe, torch.optim.Adam(probe.parameters(), lr=rate))

    def learn(self, batch: ParseBatch, size: int = 1) -> float:
        """Take a step for every `size` sentences of the batch, in order; gives the summed loss."""
        total = 0.0
        with torch.enable_grad():
            for rows in torch.arange(len(batch.heads), device=batch.heads.device).split(size):
                total += self._step(take_sentences(batch, rows))
        return total

    def count(self, batch: ParseBatch) -> tuple[Float[Tensor, "seed"], Float[Tensor, ""]]:
        """How many words the probe attaches rightly, and how many it was asked for."""
        places = torch.arange(len(batch.heads), device=batch.heads.device)
        with torch.no_grad():
            parts = [take_sentences(batch, rows) for rows in places.split(COUNTED_TOGETHER)]
            counts = [count_attached(parse(self.probe(part), part), part) for part in parts]
        right, words = zip(*counts, strict=True)
        return torch.stack(right).sum(0), torch.stack(words).sum()

    def _step(self, batch: ParseBatch) -> float:
        self.optimiser.zero_grad()
        cost = loss(self.probe(batch), batch)
        cost.backward()
        self.optimiser.step()
        return float(cost.detach())


def count_parameters(probe: Probe) -> int:
    """How many numbers one seed of a probe learns."""
    return sum(parameter[0].numel() for parameter in probe.parameters())
