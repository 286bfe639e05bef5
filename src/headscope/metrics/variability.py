"""Whether a head's attention depends on content or on position (Vig & Belinkov 2019, Eq. 5).

Σ|a[i,j] − ā[i,j]| / (2 Σ a[i,j]) over the first N positions, where ā is the mean over the inputs
that have the pair. The mean is known only at the end, so the N×N corners of the inputs are held
until then: of all inputs up to a limit, and of a larger corpus those with the smallest hash of
their number, the same however the corpus is cut into batches and shards.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.metrics.hashing import seeded_hash
from headscope.metrics.metric import (
    GROUP,
    Grid,
    Metric,
    Sums,
    Variables,
    label,
    ratio_variables,
    sum_by_group,
)
from headscope.model.attention import send
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

MOST_INPUTS = 2048

VARIABILITY = Measure(
    "variability",
    title="Variability",
    meaning="0: the same positions in every input; 1: content decides.",
    formula="Σ |a[i, j] − ā[i, j]| / (2 Σ a[i, j]) over the first 10 positions; ā is the mean over "
    f"the inputs that have the pair; of more than {MOST_INPUTS:,} inputs those of smallest seeded "
    "hash",
    reference="Vig & Belinkov 2019, Eq. 5, Fig. 10",
    more="depends more on content than on position",
)

FREE = torch.iinfo(torch.int64).max  # the hash of a slot without an input


@dataclass(frozen=True)
class Variability(Metric):
    """0 for a head that looks at the same positions in every input, 1 at most."""

    grid: Grid
    is_causal: bool
    size: int = 10  # N, counted from the start of the input, the null token included
    seed: int = 0
    most_inputs: int = MOST_INPUTS
    name: str = "variability"
    measures: tuple[Measure, ...] = (VARIABILITY,)

    def zero(self) -> Sums:
        return self._slots(0)

    def _slots(self, count: int) -> Sums:
        """Slots for this many inputs; which input is in a slot follows from its hash."""
        cells = len(self._cells)
        return {
            "hash": torch.full((count,), FREE),
            "group": torch.zeros(count, dtype=torch.int64),
            "valid": torch.zeros(count, cells, dtype=torch.bool),
            "corner": torch.zeros(count, *self.grid.shape, cells),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Let inputs take free slots, then replace those of larger hash, the smallest first."""
        free = min(len(batch.numbers), self.most_inputs - len(sums["hash"]))
        for name, values in self._slots(free).items():
            sums[name] = torch.cat([sums[name], values.to(batch.mask.device)])
        hashes, row = self._hashes(batch).sort()
        replaced, slot = sums["hash"].sort(descending=True)
        pairs = min(len(hashes), len(replaced))
        enters = hashes[:pairs] < replaced[:pairs]
        row, slot = row[:pairs][enters], slot[:pairs][enters]
        _, _, valid = self._corner(batch)
        sums["hash"][slot] = hashes[:pairs][enters]
        sums["group"][slot] = batch.groups[row]
        sums["valid"][slot] = pad(valid, (0, sums["valid"].shape[1] - valid.shape[1]))[row]

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        hashes = self._hashes(layer.batch)
        row, slot = torch.nonzero(hashes[:, None] == sums["hash"], as_tuple=True)
        if len(row) == 0:  # as in most batches of a large corpus
            return
        query, key, valid = self._corner(layer.batch)
        corner = layer.corner(self.size, query, key)
        corner = torch.where(valid[:, None], corner, 0.0)
        corner = pad(corner, (0, sums["corner"].shape[-1] - len(query)))
        sums["corner"][slot, layer.index] = corner[row]

    def shrink(self, sums: Sums) -> Sums:
        """The inputs of smallest hash in the order of their hashes, without free slots."""
        slot = sums["hash"].argsort()[: self.most_inputs]
        slot = slot[sums["hash"][slot] < FREE]
        return {name: values[slot] for name, values in sums.items()}

    def merge(self, left: Sums, right: Sums) -> Sums:
        return self.shrink({name: torch.cat([left[name], right[name]]) for name in left})

    def compute(self, sums: Sums) -> Variables:
        """variability(layer, head), its error taking the mean as known, and the sums."""
        corner, valid = sums["corner"], sums["valid"][:, None, None]
        mean = corner.sum(0, dtype=torch.float64) / valid.sum(0).clamp(min=1)
        deviation = (corner - mean.float()).abs_().masked_fill_(~valid, 0.0)
        numerator = sum_by_group(deviation.sum(-1, dtype=torch.float64), sums["group"])
        denominator = sum_by_group(2 * corner.sum(-1, dtype=torch.float64), sums["group"])
        axes = (GROUP, *self.grid.axes)
        return ratio_variables(self.name, label(numerator, *axes), label(denominator, *axes))

    def _hashes(self, batch: AnnotatedBatch) -> Int[Tensor, "batch"]:
        """The upper 63 bits, for torch sorts no unsigned numbers."""

        def make() -> Tensor:
            hashes = seeded_hash(self.seed, batch.numbers) >> np.uint64(1)
            return send(torch.from_numpy(hashes.astype(np.int64)), batch.mask.device)

        return batch.once(f"hashes of seed {self.seed}", make)

    def _corner(
        self, batch: AnnotatedBatch
    ) -> tuple[Int[Tensor, "cell"], Int[Tensor, "cell"], Bool[Tensor, "batch cell"]]:
        """Queries and keys of the cells that a batch can have, and which of its inputs do."""

        def make(batch: AnnotatedBatch) -> tuple[Tensor, Tensor, Tensor]:
            cells = self._cells[self._cells.max(1) < batch.mask.shape[1]]
            query, key = torch.from_numpy(cells.T.copy()).to(batch.mask.device)
            return query, key, batch.pairs_of(0, self.size)[:, query, key]

        return batch.once_on_host(f"corner {self.size}", make)

    @property
    def _cells(self) -> Int[np.ndarray, "cell two"]:
        """(query, key) of every cell that can count, the shortest input's cells first."""
        query, key = np.indices((self.size, self.size)).reshape(2, -1)
        cells = np.stack([query, key], 1)[(key <= query) & (key > 0) | (not self.is_causal)]
        return cells[np.argsort(cells.max(1), kind="stable")]
