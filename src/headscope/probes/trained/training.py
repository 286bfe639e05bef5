"""Training a probe on sentences as they come: one Adam step for every few sentences.

A checkpoint holds the parameters and Adam's memory, so that a training that is interrupted and
resumed makes the same steps as one that is not.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    as_control,
    count_attached,
    loss,
    parse,
    take_sentences,
)
from headscope.seal import seal, unseal

LEARNING_RATE = 0.002  # Clark et al. 2019
COUNTED_TOGETHER = 4  # sentences: scores of hidden units take words² × 256 numbers each
DONE = "done"  # the array of a checkpoint that says how many chunks it stands for
EARLIER = "earlier"
_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Learner:
    """A probe, the state of its optimiser, and what it had learned at earlier times."""

    probe: Probe
    optimiser: torch.optim.Optimizer
    is_control: bool = False  # whether it learns the control task instead of trees
    earlier: list[list[Tensor]] = field(default_factory=list)  # its parameters, the first first

    @classmethod
    def of(
        cls, probe: Probe, rate: float = LEARNING_RATE, *, is_control: bool = False
    ) -> "Learner":
        """A probe that has learned nothing yet."""
        return cls(probe, torch.optim.Adam(probe.parameters(), lr=rate), is_control)

    def learn(self, batch: ParseBatch, size: int = 1) -> float:
        """Take a step for every `size` sentences of the batch, in order; gives the summed loss."""
        batch = as_control(batch) if self.is_control else batch
        total = 0.0
        with torch.enable_grad():
            for rows in torch.arange(len(batch.heads), device=batch.heads.device).split(size):
                total += self._step(take_sentences(batch, rows))
        return total

    def remember(self) -> None:
        """Keep the parameters as they are now."""
        self.earlier.append([each.detach().clone() for each in self.probe.parameters()])

    @contextmanager
    def as_it_was(self, then: list[Tensor]) -> Iterator[None]:
        """The probe with parameters that it had."""
        now = [each.detach().clone() for each in self.probe.parameters()]
        self._set(then)
        try:
            yield
        finally:
            self._set(now)

    def _set(self, values: list[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.probe.parameters(), values, strict=True):
                parameter.copy_(value)

    def count(
        self, batch: ParseBatch
    ) -> tuple[Float[Tensor, "seed batch"], Float[Tensor, "batch"]]:
        """How many words of each sentence it attaches rightly, and how many it was asked for."""
        batch = as_control(batch) if self.is_control else batch
        places = torch.arange(len(batch.heads), device=batch.heads.device)
        with torch.no_grad():
            parts = [take_sentences(batch, rows) for rows in places.split(COUNTED_TOGETHER)]
            counts = [count_attached(parse(self.probe(part), part), part) for part in parts]
        right, words = zip(*counts, strict=True)
        return torch.cat(right, dim=1), torch.cat(words)

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
            for number, then in enumerate(learner.earlier):
                arrays[f"{name}/{place}/{EARLIER}{number}"] = then[place].cpu().numpy()
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
        learner.earlier[:] = _earlier(arrays, name, learner.probe.parameters())
    return int(arrays[DONE])


def _earlier(
    arrays: Mapping[str, Tensor], name: str, parameters: list[torch.nn.Parameter]
) -> list[list[Tensor]]:
    """The parameters that a learner remembered before the checkpoint."""
    count = sum(key.startswith(f"{name}/0/{EARLIER}") for key in arrays)
    return [
        [
            arrays[f"{name}/{place}/{EARLIER}{number}"].to(parameter.device)
            for place, parameter in enumerate(parameters)
        ]
        for number in range(count)
    ]
