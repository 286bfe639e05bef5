"""Probes half trained, as a file: arrays only, complete or absent."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from headscope.engine.partial import is_intact
from headscope.files import SHARDS, write_atomically
from headscope.probes.trained.training import Learner

DONE = "counts"  # the array whose presence makes an archive complete
_ADAM = ("step", "exp_avg", "exp_avg_sq")


def save(path: Path, learners: Mapping[str, Learner], done: int) -> None:
    """Write parameters and the optimiser's memory after so many pieces of work."""
    arrays = {DONE: np.array(done)}
    for name, learner in learners.items():
        for place, parameter in enumerate(learner.probe.parameters()):
            arrays[f"{name}/{place}/value"] = parameter.detach().cpu().numpy()
            for key in _ADAM:
                memory = learner.optimiser.state[parameter]
                arrays[f"{name}/{place}/{key}"] = memory[key].cpu().numpy()
    with write_atomically(path, kept=SHARDS) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def restore(path: Path, learners: Mapping[str, Learner]) -> int:
    """Put a checkpoint back; how much was done, 0 if there is no checkpoint that can be trusted."""
    if not is_intact(path):
        return 0
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        for name, learner in learners.items():
            for place, parameter in enumerate(learner.probe.parameters()):
                stored = {key: _tensor(arrays[f"{name}/{place}/{key}"]) for key in _ADAM}
                with torch.no_grad():
                    parameter.copy_(_tensor(arrays[f"{name}/{place}/value"]))
                learner.optimiser.state[parameter] = {
                    key: value if key == "step" else value.to(parameter.device)
                    for key, value in stored.items()
                }
        return int(arrays[DONE])


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))
