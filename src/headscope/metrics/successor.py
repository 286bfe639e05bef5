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

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import (
    GROUP,
    Grid,
    Metric,
    Sums,
    Variables,
    add_by_group,
    group_zeros,
    label,
    pooled_variables,
    ratio_variables,
)
from headscope.model.attention import LayerAttention, widen
from headscope.model.writes import Readout, output_part, require_readout
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Baseline, Measure

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
    more="writes the next member of more series",
    baselines=(Baseline("successor_even", "a member at random"),),
)
SUCCESSOR_EVEN = Measure(
    "successor_even",
    title="Successor by chance",
    meaning="The share of a head that names a member of the series at random.",
    formula="mean over the tokens x of 1 / members of its series",
    reference=REFERENCE,
)


@dataclass(frozen=True)
class Series:
    """Tokens in an order; a week begins again, the alphabet does not."""

    tokens: tuple[int, ...]
    is_cyclic: bool

    @property
    def successors(self) -> list[tuple[int, int]]:
        """Every token that has a successor, with the index of the successor."""
        count = len(self.tokens)
        last = count if self.is_cyclic else count - 1
        return [(self.tokens[index], (index + 1) % count) for index in range(last)]


@dataclass(frozen=True)
class Successor(Metric):
    """How often each head writes the successor of what it looks at."""

    grid: Grid
    series: tuple[Series, ...]
    name: str = "successor"
    measures: tuple[Measure, ...] = (SUCCESSOR, SUCCESSOR_EVEN)

    def zero(self) -> Sums:
        return {
            "right": group_zeros(*self.grid.shape),
            "even": group_zeros(),
            "items": group_zeros(),
        }

    @cached_property
    def tokens(self) -> Int[Tensor, "member"]:
        """All members of all series."""
        return torch.tensor([token for series in self.series for token in series.tokens])

    @cached_property
    def items(self) -> Int[Tensor, "item 3"]:
        """Of every item its successor among all members, and first and last of those that compete.

        These are the members of its series; the last is exclusive.
        """
        rows: list[tuple[int, int, int]] = []
        start = 0
        for series in self.series:
            stop = start + len(series.tokens)
            rows += [(start + index, start, stop) for _, index in series.successors]
            start = stop
        return torch.tensor(rows)

    def see_model(
        self, sums: Sums, model: "Model", batch: "Batch", annotated: AnnotatedBatch
    ) -> None:
        """Look at what every head writes of every item."""
        item, position = annotated.labels[ITEM].max(1)
        rows = torch.arange(len(item), device=item.device)
        values: dict[int, Tensor] = {}

        def keep(seen: LayerAttention) -> None:
            assert seen.value is not None  # the readout needs values, too
            values[seen.layer] = widen(seen.value[rows, :, position])

        readout = require_readout(model)
        with readout.watching() as residuals:
            model.forward(batch, keep, logits=False)
        residual = widen(residuals[-1][rows, position])
        for index, layer in enumerate(self.grid.layers):
            right = self._judge(model, readout, residual, values[layer], layer, item)
            add_by_group(sums["right"][:, index], right, annotated.groups)
        _, first, stop = self.items.to(item.device)[item].T
        even = 1 / (stop - first).double()
        add_by_group(sums["even"], even, annotated.groups)
        add_by_group(sums["items"], torch.ones_like(even), annotated.groups)

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
        successor, first, stop = self.items.to(device)[item].T
        places = torch.arange(len(members), device=device)
        others = (places < first[:, None]) | (places >= stop[:, None])
        groups = self.grid.heads // values.shape[1]
        right = []
        for head in range(self.grid.heads):
            written = values[:, head // groups] @ output_part(model, layer, head)
            logits = readout.last.shift(residual, written) @ members.T
            right.append(logits.masked_fill(others, -torch.inf).argmax(-1) == successor)
        return torch.stack(right, -1).double()

    def compute(self, sums: Sums) -> Variables:
        """successor(layer, head) and successor_even, with errors over the items."""
        items = label(sums["items"], GROUP)
        right = label(sums["right"], GROUP, *self.grid.axes)
        heads = items.expand_dims(head=right["head"], layer=right["layer"])
        even = ratio_variables("successor_even", label(sums["even"], GROUP), items)
        return pooled_variables(self.name, right, heads.transpose(*right.dims)) | even
