"""What a head makes of a member of a series: whether what it writes stands for the next one.

```
token x            … Monday   Tuesday   Wednesday …
written            v_x W_O, what a head writes that looks at x alone
read               through the last norm, by the tokens of the series: does the one after x lead?
```

Values are those of x behind the tokens that begin a text, as the network computes them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics.metric import GROUP, Grid, Records, State, Sums, Variables, add, label
from headscope.metrics.ratio import pooled_variables, ratio_variables, sum_by_group
from headscope.model.attention import LayerAttention, widen
from headscope.model.writes import Readout, output_part, require_readout
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Baseline, Measure, Role
from headscope.results.replicates import GROUPS

if TYPE_CHECKING:
    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

ITEM = "item"  # the label of the token whose successor is asked for: its place among all items
REFERENCE = "after Gould et al. 2023, with values of the whole network up to the layer"

SUCCESSOR = Measure(
    "successor",
    title="Successor",
    meaning="Share of numbers, weekdays, months and letters of which the head writes the next one: "
    "of all members of the series, that one gains most from a look at the token.",
    formula="number of tokens x with argmax over the series of U·norm(v_x W_O) = successor of x / "
    "number of tokens x",
    reference=REFERENCE,
    cost="one forward pass of some sixty texts of a token each",
    more="writes the next member of more series",
    baselines=(Baseline("successor_even", "a member at random"),),
    role=Role("detector", "numbers, weekdays, months, letters, to say the next one"),
)
SUCCESSOR_EVEN = Measure(
    "successor_even",
    title="Successor by chance",
    meaning="The share of a head that names a member of the series at random.",
    formula="mean over the tokens x of 1 / members of its series",
    reference=REFERENCE,
    cost="none",
)


@dataclass(frozen=True)
class Series:
    """Tokens in an order; a week begins again, the alphabet does not."""

    tokens: tuple[int, ...]
    is_cyclic: bool

    @property
    def successors(self) -> list[tuple[int, int]]:
        """Every token that has a successor, and the place of that."""
        count = len(self.tokens)
        last = count if self.is_cyclic else count - 1
        return [(self.tokens[place], (place + 1) % count) for place in range(last)]


@dataclass(frozen=True)
class Successor:
    """How often each head writes the successor of what it looks at."""

    grid: Grid
    series: tuple[Series, ...]
    name: str = "successor"
    measures: tuple[Measure, ...] = (SUCCESSOR, SUCCESSOR_EVEN)
    merge = staticmethod(add)

    def zero(self, inputs: int) -> State:
        heads = np.zeros((GROUPS, *self.grid.shape))
        return State({"right": heads, "even": np.zeros(GROUPS), "items": np.zeros(GROUPS)})

    @cached_property
    def tokens(self) -> Int[Tensor, "member"]:
        """All members of all series."""
        return torch.tensor([token for each in self.series for token in each.tokens])

    @cached_property
    def candidates(self) -> Bool[Tensor, "item member"]:
        """The members that compete for every item: those of its own series."""
        rows = [place for place, each in enumerate(self.series) for _ in each.successors]
        members = [place for place, each in enumerate(self.series) for _ in each.tokens]
        return torch.tensor(rows)[:, None] == torch.tensor(members)

    @cached_property
    def wanted(self) -> Int[Tensor, "item"]:
        """The place of the successor of every item among all members."""
        starts = np.cumsum([0, *(len(each.tokens) for each in self.series)])
        pairs = zip(starts.tolist(), self.series, strict=False)
        return torch.tensor([start + at for start, each in pairs for _, at in each.successors])

    def update_model(
        self, state: State, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Look at what every head writes of every item."""
        item, place = annotated.labels[ITEM].max(1)
        rows = torch.arange(len(item), device=item.device)
        values: dict[int, Tensor] = {}

        def keep(seen: LayerAttention) -> None:
            assert seen.value is not None  # the readout needs values, too
            values[seen.layer] = widen(seen.value[rows, :, place])

        readout = require_readout(model)
        with readout.watching() as residuals:
            model.forward(batch, keep, logits=False)
        residual = widen(residuals[-1][rows, place])
        found = [
            self._judge(model, readout, residual, values[layer], layer, item)
            for layer in self.grid.layers
        ]
        even = 1 / self.candidates.sum(1).double().to(item.device)[item]
        sums = {"right": torch.stack(found, 1), "even": even, "items": torch.ones_like(even)}
        for name, terms in sums.items():
            state.add(name, sum_by_group(terms, annotated.groups))

    def _judge(
        self,
        model: "Model",
        readout: Readout,
        residual: Float[Tensor, "input width"],
        values: Float[Tensor, "input key_head value"],
        layer: int,
        item: Int[Tensor, "input"],
    ) -> Float[Tensor, "input head"]:
        """1 where the successor gains most, for every head of a layer."""
        device = item.device
        weight = readout.unembedding.weight
        assert isinstance(weight, Tensor)
        members = widen(weight.detach()[self.tokens.to(device)])
        others, wanted = ~self.candidates.to(device)[item], self.wanted.to(device)[item]
        groups = self.grid.heads // values.shape[1]
        right = []
        for head in range(self.grid.heads):
            written = values[:, head // groups] @ output_part(model, layer, head)
            logits = readout.last.shift(residual, written) @ members.T
            right.append(logits.masked_fill(others, -torch.inf).argmax(-1) == wanted)
        return torch.stack(right, -1).double()

    def compute(self, sums: Sums, records: Records) -> Variables:
        """successor(layer, head) and successor_even, with errors over the items."""
        items = label(sums["items"], GROUP)
        right = label(sums["right"], GROUP, *self.grid.axes)
        heads = items.expand_dims(head=right["head"], layer=right["layer"])
        even = ratio_variables("successor_even", label(sums["even"], GROUP), items)
        return pooled_variables(self.name, right, heads.transpose(*right.dims)) | even
