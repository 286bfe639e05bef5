"""Training a probe on sentences as they come: one Adam step for every few sentences.

A checkpoint holds the parameters and Adam's memory, so that a training that is interrupted and
resumed makes the same steps as one that is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.archive import pack_arrays, unpack_arrays
from headscope.files import write_bytes
from headscope.probes.trained.parsing import (
    ParseBatch,
    Probe,
    count_attached,
    loss,
    parse,
    take_sentences,
)
from headscope.seal import seal, unseal

LEARNING_RATE = 0.002  # Clark et al. 2019
COUNTED_TOGETHER = 4  # sentences: scores of hidden units take words² × 256 numbers each
DONE = "done"  # the array of a checkpoint that says how many chunks it stands for
_ADAM = ("step", "exp_avg", "exp_avg_sq")


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


def save(path: Path, learners: Mapping[str, Learner], done: int) -> None:
    """Write the parameters and the optimiser's memory as they are after `done` chunks."""
    arrays = {DONE: np.array(done)}
    for name, learner in learners.items():
        for place, parameter in enumerate(learner.probe.parameters()):
            arrays[f"{name}/{place}/value"] = parameter.detach().cpu().numpy()
            memory = learner.optimiser.state[parameter]
            for key in _ADAM if memory else ():  # empty before the first step
                arrays[f"{name}/{place}/{key}"] = memory[key].cpu().numpy()
    write_bytes(path, seal(pack_arrays(arrays)))


def restore(path: Path, learners: Mapping[str, Learner]) -> int:
    """Load a checkpoint and return how many chunks were done: 0 if none can be trusted."""
    content = unseal(path.read_bytes()) if path.is_file() else None
    if content is None:
        return 0
    arrays = {name: torch.from_numpy(array) for name, array in unpack_arrays(content).items()}
    for name, learner in learners.items():
        for place, parameter in enumerate(learner.probe.parameters()):
            with torch.no_grad():
                parameter.copy_(arrays[f"{name}/{place}/value"])
            learner.optimiser.state[parameter] = {
                key: arrays[f"{name}/{place}/{key}"].to(
                    "cpu" if key == "step" else parameter.device
                )
                for key in _ADAM
                if f"{name}/{place}/{key}" in arrays
            }
    return int(arrays[DONE])
