"""Probes that combine the heads of a model into a parser (Clark et al. 2019, §5), and a baseline.

- attention only: score(i, j) = Σ_k w_k a^k[i, j] + u_k a^k[j, i]; two weights for every head.
- attention and words: w_k and u_k are linear functions of the vectors [v_i ; v_j].
- distances and words: the baseline that knows words and distances but no attention.

ROOT is a unit like a word, with a zero vector: its attention is that of the special token before
the sentence times one learned scalar plus that of the token behind it times another. A model
without special tokens has a learned constant as the score of ROOT instead.

Training a probe on sentences as they come: one Adam step for every few sentences. Several seeds are
trained side by side: each parameter has a leading `seed` axis, and because the loss is a sum over
seeds and Adam works on every number alone, this equals separate runs.

A checkpoint holds the parameters and Adam's memory, so that a training that is interrupted and
resumed makes the same steps as one that is not.
"""

from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headscope.files import pack_arrays, seal, unpack_arrays, unseal, write_bytes
from headscope.studies.clark2019.probes.trees import (
    ParseBatch,
    as_control,
    count_attached,
    loss,
    parse,
    take_sentences,
)
from headscope.studies.shared.words import END, EXTRA, START

HIDDEN = 256
FEATURES = 8
_OFFSETS = (0, -1, 1, -2, 2)
LEARNING_RATE = 0.002  # Clark et al. 2019
COUNTED_TOGETHER = 4  # sentences: scores of hidden units take words² × 256 numbers each
DONE = "done"  # the array of a checkpoint that says how many chunks it stands for


@dataclass(frozen=True)
class Seeds:
    """Initial weights for several seeds; each seed draws the same whatever the others do."""

    count: int
    first: int = 0
    device: torch.device | str = "cpu"

    def uniform(self, shape: tuple[int, ...], inputs: int) -> nn.Parameter:
        """Uniform between ±1/√inputs."""
        seeds = range(self.first, self.first + self.count)
        drawn = [torch.rand(shape, generator=torch.Generator().manual_seed(s)) for s in seeds]
        return self._parameter((torch.stack(drawn) * 2 - 1) * inputs**-0.5)

    def constant(self, shape: tuple[int, ...], value: float) -> nn.Parameter:
        """The same number everywhere."""
        return self._parameter(torch.full((self.count, *shape), value))

    def _parameter(self, values: Float[Tensor, "seed *shape"]) -> nn.Parameter:
        return nn.Parameter(values.to(self.device))


class RootScore(nn.Module):
    """How the score of ROOT follows from the scores of the special units."""

    def __init__(self, seeds: Seeds, *, has_special: bool) -> None:
        super().__init__()
        self.has_special = has_special
        self.scalars = seeds.constant((2,), 1.0) if has_special else seeds.constant((1,), 0.0)

    def forward(
        self, scores: Float[Tensor, "seed batch unit unit"]
    ) -> Float[Tensor, "seed batch word candidate"]:
        """Scores between units as scores of ROOT and of words."""
        width = scores.shape[-1] - EXTRA
        words = scores[:, :, :width, :width]
        if self.has_special:
            to_special = scores[:, :, :width, width + START : width + END + 1]
            root = torch.einsum("sbie,se->sbi", to_special, self.scalars)
        else:
            root = self.scalars[:, :, None].expand(*words.shape[:3])
        return torch.cat([root[..., None], words], dim=-1)


class AttentionProbe(nn.Module):
    """One weight per head and direction."""

    def __init__(self, maps: int, seeds: Seeds, *, has_special: bool) -> None:
        super().__init__()
        self.weights = seeds.uniform((maps,), maps)
        self.root = RootScore(seeds, has_special=has_special)

    def forward(self, batch: ParseBatch) -> Float[Tensor, "seed batch word candidate"]:
        """Scores of ROOT and of every word."""
        assert batch.maps is not None
        return self.root(torch.einsum("sk,bxky->sbxy", self.weights, batch.maps))

    def arc_weights(self, batch: ParseBatch) -> Float[Tensor, "seed map"]:
        """The weight of every map, summed over the words that have a governor."""
        return self.weights.detach() * (batch.heads >= 0).sum()


class AttentionWordsProbe(nn.Module):
    """Weights per head and direction that depend on the two words."""

    def __init__(self, maps: int, size: int, seeds: Seeds, *, has_special: bool) -> None:
        super().__init__()
        self.weights = seeds.uniform((2, maps, size), 2 * size)
        self.root = RootScore(seeds, has_special=has_special)

    def forward(self, batch: ParseBatch) -> Float[Tensor, "seed batch word candidate"]:
        """Scores of ROOT and of every word.

        With G = `batch.maps`, the part of the dependent's vector is Σ_k (W v_x)_k G[x, k, y]; the
        governor's part is the same sum at y with the two halves of the maps exchanged.
        """
        assert batch.maps is not None
        dependent, governor = self._of_words(batch)
        governor = governor.roll(governor.shape[-1] // 2, dims=-1)
        left = dependent @ batch.maps
        right = governor @ batch.maps
        return self.root((left + right.transpose(1, 3)).permute(2, 0, 1, 3))

    def arc_weights(self, batch: ParseBatch) -> Float[Tensor, "seed map"]:
        """The weight of every map for a word and its governor, summed over such words."""
        dependent, governor = (part[:, : batch.heads.shape[1]] for part in self._of_words(batch))
        row, word = (batch.heads >= 0).nonzero(as_tuple=True)
        both = dependent[row, word] + governor[row, batch.heads[row, word]]
        return both.sum(0).detach()

    def _of_words(self, batch: ParseBatch) -> tuple[Tensor, Tensor]:
        """What each unit gives to the weights as dependent and as governor: batch unit seed map."""
        assert batch.vectors is not None
        vectors = nn.functional.pad(batch.vectors, (0, 0, 0, EXTRA))
        dependent, governor = torch.einsum("bxd,spkd->pbxsk", vectors, self.weights)
        return dependent, governor


def distance_features(
    words: Bool[Tensor, "batch word"],
) -> Float[Tensor, "batch word candidate feature"]:
    """(j − i)/n ahead, (i − j)/n behind, indicators for j − i = 0, ±1, ±2, and for ROOT."""
    position = torch.arange(words.shape[1], device=words.device, dtype=torch.float32)
    offset = position[None, :] - position[:, None]
    length = words.sum(1).clamp(min=1)[:, None, None]
    ahead, behind = offset.clamp(min=0) / length, (-offset).clamp(min=0) / length
    near = [(offset == o).float().expand_as(ahead) for o in _OFFSETS]
    features = torch.stack([ahead, behind, *near, torch.zeros_like(ahead)], dim=-1)
    root = torch.zeros(*words.shape, 1, FEATURES, device=words.device)
    root[..., -1] = 1
    return torch.cat([root, features], dim=2)


class DistanceWordsProbe(nn.Module):
    """One hidden layer of tanh units over distance features and the vectors of both words.

    The output has no bias: it would add the same to every candidate.
    """

    def __init__(self, size: int, seeds: Seeds, hidden: int = HIDDEN) -> None:
        super().__init__()
        inputs = FEATURES + 2 * size
        self.hidden = seeds.uniform((inputs, hidden), inputs)
        self.bias = seeds.constant((hidden,), 0.0)
        self.out = seeds.uniform((hidden,), hidden)

    def forward(self, batch: ParseBatch) -> Float[Tensor, "seed batch word candidate"]:
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


Probe = AttentionProbe | AttentionWordsProbe | DistanceWordsProbe


@dataclass(frozen=True)
class Learner:
    """A probe, the state of its optimiser, and what it had learned at earlier times."""

    probe: Probe
    optimiser: torch.optim.Optimizer
    is_control: bool = False  # whether it learns the control task instead of trees
    earlier: list[Probe] = field(default_factory=list)  # the probe at earlier times, in order

    @classmethod
    def of(
        cls, probe: Probe, rate: float = LEARNING_RATE, *, is_control: bool = False
    ) -> "Learner":
        """A learner for an untrained probe."""
        return cls(probe, torch.optim.Adam(probe.parameters(), lr=rate), is_control)

    def learn(self, batch: ParseBatch) -> float:
        """Take one step on all sentences of the batch; gives the loss."""
        batch = as_control(batch) if self.is_control else batch
        with torch.enable_grad():
            self.optimiser.zero_grad()
            cost = loss(self.probe(batch), batch)
            cost.backward()
            self.optimiser.step()
        return float(cost.detach())

    def remember(self) -> None:
        """Keep the probe as it is now."""
        self.earlier.append(deepcopy(self.probe))

    def count(
        self, batch: ParseBatch
    ) -> tuple[Float[Tensor, "seed batch"], Float[Tensor, "batch"]]:
        """How many words of each sentence it attaches rightly, and how many it was asked for."""
        return count_right(self.probe, as_control(batch) if self.is_control else batch)


def count_right(
    probe: Probe, batch: ParseBatch
) -> tuple[Float[Tensor, "seed batch"], Float[Tensor, "batch"]]:
    """How many words of each sentence a probe attaches rightly, and how many it was asked for."""
    right: list[Tensor] = []
    words: list[Tensor] = []
    for rows in torch.arange(len(batch.heads), device=batch.heads.device).split(COUNTED_TOGETHER):
        part = take_sentences(batch, rows)
        with torch.no_grad():
            predicted = parse(probe(part), part)
        attached, asked = count_attached(predicted, part)
        right.append(attached)
        words.append(asked)
    return torch.cat(right, dim=1), torch.cat(words)


def count_parameters(probe: Probe) -> int:
    """How many numbers one seed of a probe learns."""
    return sum(parameter[0].numel() for parameter in probe.parameters())


def save(path: Path, learners: Mapping[str, Learner], done: int, owner: str = "") -> None:
    """Write the parameters and the optimiser's memory as they are after `done` chunks.

    The `owner` is the training whose checkpoint it is: no other one takes it for its own.
    """
    arrays = {DONE: torch.tensor(done)}
    for name, learner in learners.items():
        for number, probe in enumerate((learner.probe, *learner.earlier)):
            for key, values in probe.state_dict().items():
                arrays[f"{name}/{number}/{key}"] = values
        for number, memory in learner.optimiser.state_dict()["state"].items():
            for key, values in memory.items():
                arrays[f"{name}/memory {number}/{key}"] = values
    content = {name: values.detach().cpu().numpy() for name, values in arrays.items()}
    write_bytes(path, seal(pack_arrays(content), owner))


def restore(path: Path, learners: Mapping[str, Learner], owner: str = "") -> int:
    """Load a checkpoint and return how many chunks were done: 0 if none can be trusted."""
    content = unseal(path.read_bytes(), owner) if path.is_file() else None
    if content is None:
        return 0
    states: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, array in unpack_arrays(content).items():
        owner, _, key = name.rpartition("/")
        states[owner][key] = torch.from_numpy(array)
    for name, learner in learners.items():
        if states[f"{name}/0"].keys() != learner.probe.state_dict().keys():
            return 0  # of an older version
    for name, learner in learners.items():
        learner.probe.load_state_dict(states[f"{name}/0"])
        learner.earlier.clear()
        while (owner := f"{name}/{len(learner.earlier) + 1}") in states:
            learner.remember()
            learner.earlier[-1].load_state_dict(states[owner])
        memory = learner.optimiser.state_dict()
        for number, _ in enumerate(learner.probe.parameters()):
            if (owner := f"{name}/memory {number}") in states:  # none before the first step
                memory["state"][number] = states[owner]
        learner.optimiser.load_state_dict(memory)
    return int(states[""][DONE])
